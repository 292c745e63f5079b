use cuda_graph::ContextExt;
use cuda_launch::{params, per};
use cuda_tests::{kernel, no_leaks, setup};

use crate::drawn::Drawn;

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
