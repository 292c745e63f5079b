//! Pictures of graphs: DOT and SVG.

use cuda_graph::{ChildGraphNode, ContextExt, DebugDotFlags, DrawError, Error};
use cuda_handles::Context;
use cuda_launch::{params, per};
use cuda_tests::{count, kernel, needs, no_leaks, setup};

use crate::common::chains::Bench;
use crate::common::driver_view::Drawn;

#[test]
fn nodes_have_names_for_people() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = Drawn::new(&context);
        let unnamed = graph.root().empty().unwrap();
        // SAFETY: the graph is never launched.
        let launch = unsafe {
            graph.root().launch_untyped(&kernel(&context, "increment"), per(8, 8), params![&buffer, 8_u32])
        }
        .unwrap();
        assert!(unnamed.name().contains("empty"), "{}", unnamed.name());
        assert!(launch.name().contains("increment"), "a kernel node tells its kernel: {}", launch.name());
        assert_ne!(unnamed.name(), graph.root().empty().unwrap().name());
        let named = launch.clone().named("step");
        assert_eq!(
            (named.name(), launch.name()),
            ("step".to_owned(), "step".to_owned()),
            "one node, one name"
        );
        assert_eq!(named, launch);
        assert_eq!(graph.nodes().unwrap()[1].name(), "step");
        assert_eq!(named.to_string(), "step");
        assert_eq!(named.named("again").name(), "again");
    });
}

/// Quoted strings of a DOT text, unescaped, in order; panics where quotes do not close.
fn strings(dot: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut characters = dot.chars();
    while let Some(character) = characters.next() {
        if character != '"' {
            continue;
        }
        let mut text = String::new();
        loop {
            match characters.next().expect("every quote closes") {
                '"' => break,
                '\\' => match characters.next().unwrap() {
                    quoted @ ('"' | '\\') => text.push(quoted),
                    other => text.extend(['\\', other]),
                },
                other => text.push(other),
            }
        }
        strings.push(text);
    }
    strings
}

#[test]
fn the_dot_text_has_every_node_and_every_edge() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = Drawn::new(&context);
        let first = graph.root().fill(&a, 1).unwrap().named("first");
        let second = first.then().copy(&a, &b).unwrap().named("second");
        let third = graph.root().empty().unwrap().named("third");
        graph.after([&second, &third]).unwrap().empty().unwrap().named("last");
        let dot = graph.to_dot().unwrap();
        assert!(dot.trim_start().starts_with("digraph"), "{dot}");
        assert!(dot.trim_end().ends_with('}'), "{dot}");
        assert_eq!(dot.matches(" -> n").count(), 3, "{dot}");
        let strings = strings(&dot);
        for name in ["first", "second", "third", "last"] {
            assert!(strings.iter().any(|text| text.contains(name)), "{name} is not in {dot}");
        }
    });
}

#[test]
fn names_with_quotes_and_breaks_make_no_other_picture() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let names =
            ["a \"quoted\" name", "back\\slash", "x\"]; evil -> node [label=\"", "two\nlines", "", "π → ∞"];
        for name in names {
            graph.root().empty().unwrap().named(name);
        }
        let dot = graph.to_dot().unwrap();
        let outside: String = {
            let mut rest = String::new();
            let (mut inside, mut escaped) = (false, false);
            for character in dot.chars() {
                match character {
                    _ if escaped => escaped = false,
                    '\\' if inside => escaped = true,
                    '"' => inside = !inside,
                    other if !inside => rest.push(other),
                    _ => {}
                }
            }
            assert!(!inside, "{dot}");
            rest
        };
        assert!(!outside.contains("->") && !outside.contains("evil"), "{dot}");
        assert!(strings(&dot).iter().any(|text| text.contains("a \"quoted\" name")), "{dot}");
    });
}

#[test]
fn an_empty_graph_has_a_picture_too() {
    let context = setup();
    let dot = context.graph().unwrap().to_dot().unwrap();
    assert!(dot.contains("digraph") && !dot.contains("->"), "{dot}");
}

/// A graph with a chain of two kernels under it, a programmatic edge, and nodes named for trouble.
fn troubled(context: &Context) -> Drawn {
    let bench = Bench::new(context);
    let graph = Drawn::new(context);
    let child = graph.root().child(&bench.chain(context, 2)).unwrap().named("inner & outer");
    let first = bench.step(&child.then()).named("a < b");
    let second = bench.step(&first.then()).named("\"]; x -> y [\u{1}");
    graph.after([&child, &second]).unwrap().empty().unwrap().named("last");
    graph
}

#[test]
fn a_dot_text_has_embedded_graphs_as_clusters() {
    let context = setup();
    no_leaks(|| {
        let dot = troubled(&context).to_dot().unwrap();
        // The node with the graph in it, and the graph.
        assert_eq!(dot.matches("subgraph \"cluster_").count(), 2, "{dot}");
        // Besides, there are some that only hold the graph in its node's place.
        let (held, edges): (Vec<&str>, Vec<&str>) =
            dot.lines().filter(|line| line.contains(" -> n")).partition(|line| line.contains("style=invis"));
        assert_eq!((edges.len(), held.is_empty()), (4 + 1, false), "{dot}");
        let strings = strings(&dot);
        assert_eq!(strings.iter().filter(|text| text.contains("increment")).count(), 4, "{dot}");
    });
}

#[test]
fn a_picture_has_everything_in_it_and_is_the_same_each_time() {
    let context = setup();
    no_leaks(|| {
        let graph = troubled(&context);
        let svg = graph.to_svg().unwrap();
        assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<g class=\"node\">").count(), 6, "{svg}");
        assert_eq!(svg.matches("<g class=\"edge\"><title>").count(), 5, "{svg}");
        assert_eq!(svg.matches("class=\"child\"").count(), 1, "{svg}");
        for text in [
            "inner &amp; outer",
            "a &lt; b",
            "&quot;]; x -&gt; y [\u{fffd}",
            "last",
            "kernel × 4",
            "full edges × 5",
        ] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert_eq!(graph.to_svg().unwrap(), svg);
    });
}

#[test]
fn a_picture_of_an_embedded_graph_is_of_that_one() {
    let context = setup();
    no_leaks(|| {
        let graph = troubled(&context);
        let child = graph.nodes().unwrap().into_iter().find_map(|node| ChildGraphNode::try_from(node).ok());
        let svg = child.unwrap().embedded().unwrap().to_svg().unwrap();
        assert_eq!(svg.matches("<g class=\"node\">").count(), 2, "{svg}");
        assert!(svg.contains("<title>inner &amp; outer</title>"), "{svg}");
    });
}

#[test]
fn many_nodes_between_two_are_drawn_in_one_frame() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let first = graph.root().empty().unwrap();
        let middle: Vec<_> = (0..200).map(|_| first.then().empty().unwrap()).collect();
        graph.after_all(middle.iter().map(|node| &**node)).unwrap().empty().unwrap();
        let svg = graph.to_svg().unwrap();
        assert_eq!(svg.matches("<g class=\"node\">").count(), 202);
        assert!(
            svg.contains("202 nodes, 400 edges") && svg.contains("200 nodes, each between the same nodes")
        );
    });
}

#[test]
fn kinds_of_edges_are_in_pictures() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = Drawn::new(&context);
        let first = bench.step(&graph.root());
        let second = bench.step(&first.then_with(cuda_graph::EdgeKind::Programmatic));
        bench.step(&second.then());
        let dot = graph.to_dot().unwrap();
        assert_eq!((dot.matches(" -> ").count(), dot.matches("style=dashed").count()), (2, 1), "{dot}");
        let svg = graph.to_svg().unwrap();
        assert!(svg.contains("full edge × 1") && svg.contains("programmatic edge × 1"), "{svg}");
        assert_eq!(svg.matches("<marker").count(), 2, "{svg}");
    });
}

#[test]
fn the_driver_dumps_graphs_into_files() {
    let context = setup();
    no_leaks(|| {
        let graph = troubled(&context);
        let file = std::env::temp_dir().join(format!("cuda-graph-dump-{}.dot", std::process::id()));
        let dump = |flags| {
            let ((), cost) = count(|| graph.debug_dot(&file, flags).unwrap());
            cost.assert_calls(&[("cuGraphDebugDotPrint", 1)]);
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains("digraph"), "{text}");
            text
        };
        let short = dump(DebugDotFlags::default());
        let long = dump(DebugDotFlags::VERBOSE | DebugDotFlags::KERNEL_PARAMS | DebugDotFlags::HANDLES);
        assert!(long.len() >= short.len(), "{long}");
        std::fs::remove_file(&file).unwrap();
        let nowhere = file.join("file");
        let error = graph.debug_dot(&nowhere, DebugDotFlags::VERBOSE).unwrap_err();
        assert!(error.to_string().contains("CUDA_ERROR_OPERATING_SYSTEM"), "{error}");
        let error = graph.debug_dot("a\0b", DebugDotFlags::VERBOSE).unwrap_err();
        assert_eq!(error, Error::Draw(DrawError::PathWithNul { path: "a\0b".into() }));
    });
}
