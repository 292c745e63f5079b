//! Reports: their text, their cost, and their limits.

use cuda_graph::{
    CheckOptions, EdgeError, EdgeKind, Error, ExecError, Finding, Graph, MemoryError, Severity, Stopped,
};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Counts, alone, count, fail, kernel, needs, raw, setup};

use super::{Lab, N, seen};
use crate::common::other;

/// A graph with a bit of everything.
fn mixture(lab: &Lab) -> Graph {
    let graph = lab.graph();
    let up = graph.root().fill(&lab.a, 1.0).unwrap().named("clear");
    let left = lab.add(&up.then(), &lab.a, &lab.b, "relax <left>");
    lab.add(&up.then(), lab.a.slice(..16).unwrap(), lab.b.slice(..16).unwrap(), "relax \"right\"");
    let condition = graph.condition_with_default(1).unwrap();
    let branch = left.then().if_else_node(&condition).unwrap().named("branch");
    lab.write(&branch.then_body().unwrap().root(), &lab.c, "inside");
    lab.change(&branch.else_body().unwrap().root(), &lab.b, "other side");
    up.then().copy(&lab.c, lab.count_as_floats()).unwrap().named("out");
    lab.untyped(&left.then(), &lab.a, &lab.c, "who knows");
    graph
}

impl Lab {
    fn count_as_floats(&self) -> cuda_handles::Slice<'_, f32> {
        self.a.slice(..).unwrap()
    }
}

#[test]
fn a_race_is_told_in_a_sentence() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    lab.add(&graph.root(), &lab.a, lab.b.slice(..33).unwrap(), "scale");
    let inner = lab.graph();
    inner.root().copy(lab.b.slice(32..).unwrap(), lab.c.slice(32..).unwrap()).unwrap().named("save");
    graph.root().child(&inner).unwrap().named("output");
    let report = graph.check().unwrap();
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!((finding.severity(), finding.class()), (Severity::Error, "data race"));
    let memory = format!("the pooled memory of 256 bytes at {:#x}", lab.b.address());
    assert_eq!(
        report.to_string(),
        format!(
            "error: data race: bytes 128..132 of {memory}: `scale` reads and writes it (argument `y`), `save` (in `output`) reads it (its source), \
             and there is no path between them; an edge from `scale` to `output`, or the other way round, puts them in order\n"
        )
    );
    let Finding::Race(race) = finding else { panic!("{finding}") };
    assert_eq!((race.bytes.clone(), race.more, race.may_wait), (128..132, 0, false));
    assert_eq!(race.edge.1.node().name(), "output");
    assert_eq!(race.second.node.within(), ["`output`"]);
}

#[test]
fn a_report_is_one_line_of_json() {
    let context = setup();
    needs!(Branches);
    let lab = Lab::new(&context);
    let graph = mixture(&lab);
    let report = graph.check().unwrap();
    let json = report.to_json();
    assert_eq!(json.lines().count(), 1);
    let depth = json.bytes().fold((0_i32, false, false), |(depth, quoted, escaped), byte| match byte {
        _ if escaped => (depth, quoted, false),
        b'\\' => (depth, quoted, true),
        b'"' => (depth, !quoted, false),
        b'{' | b'[' if !quoted => (depth + 1, quoted, false),
        b'}' | b']' if !quoted => (depth - 1, quoted, false),
        _ => (depth, quoted, false),
    });
    assert_eq!(depth, (0, false, false), "{json}");
    for part in [
        "{\"clean\":false,\"findings\":[{\"severity\":\"error\",\"class\":\"data race\",",
        "\"name\":\"relax \\\"right\\\"\",\"within\":[]",
        "\"race\":{\"memory\":{\"address\":",
        "\"role\":\"y\",\"argument\":true",
        "\"opaque\":[{\"node\":{\"name\":\"who knows\",",
        "\"left_out\":0,\"stopped\":null}",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
    assert_eq!(
        lab.graph().check().unwrap().to_json(),
        "{\"clean\":true,\"findings\":[],\"opaque\":[],\"left_out\":0,\"stopped\":null}"
    );
}

#[test]
fn an_endless_loop_is_told_in_a_sentence() {
    let context = setup();
    needs!(Conditionals);
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let condition = graph.condition_with_default(1).unwrap();
    let rounds = graph.root().while_node(&condition).unwrap().named("rounds");
    let step = lab.change(&rounds.body().unwrap().root(), &lab.a, "step");
    let report = graph.check().unwrap();
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!((finding.severity(), finding.class()), (Severity::Error, "endless loop"));
    assert_eq!(
        finding.to_string(),
        "endless loop: `rounds` goes by condition 1, and no kernel in its body gets that, so that it does not end \
         once it begins; add a kernel to its body that gets the condition as an argument, and sets it to 0 in the \
         last round"
    );
    let Finding::EndlessLoop { conditional, .. } = finding else { panic!("{finding}") };
    assert_eq!(conditional.name(), "rounds");
    assert!(
        report.to_json().contains("\"class\":\"endless loop\",")
            && report.to_json().contains("\"condition\":1}")
    );
    assert_eq!(graph.to_svg_with(&report).unwrap().matches("class=\"box faulty\"").count(), 1);
    // Drivers take such a graph, and so does `instantiate`.
    graph.instantiate().unwrap();
    step.then().launch(&lab.set_to, per(1, 1), (0, &condition)).unwrap();
    assert!(graph.check().unwrap().findings().is_empty());
}

#[test]
fn findings_are_drawn() {
    let context = setup();
    needs!(Branches);
    let lab = Lab::new(&context);
    let graph = mixture(&lab);
    let report = graph.check().unwrap();
    let picture = graph.to_svg_with(&report).unwrap();
    if let Ok(path) = std::env::var("CUDA_TEST_PICTURE") {
        std::fs::write(path, &picture).unwrap();
    }
    let races = report.findings().len();
    assert_eq!(picture.matches("<g class=\"race\"><title>data race: ").count(), races, "{report}");
    assert_eq!(picture.matches("class=\"box faulty\"").count(), 5, "{report}");
    assert!(picture.contains(&format!(">data race × {races}</text>")) && picture.contains(">opaque</text>"));
    assert!(picture.contains("&lt;left&gt;") && !picture.contains("<left>"));
    // The same picture, but for what was found.
    let plain = graph.to_svg().unwrap();
    assert!(!plain.contains("race") && !plain.contains("faulty"));
    // Nodes that are gone are left out.
    for node in graph.nodes().unwrap() {
        if node.name() == "clear" || node.name().starts_with("relax") {
            node.remove().unwrap();
        }
    }
    assert!(!graph.to_svg_with(&report).unwrap().contains("relax"));
    assert!(!lab.graph().to_svg_with(&report).unwrap().contains("box faulty"));
}

#[test]
fn what_hangs_on_kernels_that_wait_is_a_note() {
    let context = setup();
    needs!(EdgeKinds);
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let one = lab.write(&graph.root(), &lab.a, "one");
    let two = lab.change(&one.then_with(cuda_graph::EdgeKind::Programmatic), &lab.a, "two");
    let three = lab.change(&two.then_with(EdgeKind::ProgrammaticLaunchOrder), &lab.a, "three");
    let report = graph.check().unwrap();
    assert!(report.is_clean() && seen(&report).is_empty() && report.findings().len() == 2, "{report}");
    let text = report.to_string();
    assert!(
        text.starts_with("note: data race, unless kernels wait: ") && text.contains("griddepcontrol.wait"),
        "{text}"
    );
    assert!(graph.to_svg_with(&report).unwrap().contains("class=\"box doubtful\""));
    assert!(text.contains("make the edge from `one` to `two` a full one (Graph::set_edge_kind)"), "{text}");
    graph.add_edge(&one, &three).unwrap();
    let notes = graph.check().unwrap().findings().len();
    graph.set_edge_kind(&one, &two, EdgeKind::Full).unwrap();
    graph.set_edge_kind(&two, &three, EdgeKind::Full).unwrap();
    assert_eq!((notes, graph.check().unwrap().findings().len()), (2, 0));
}

#[test]
fn memory_that_launches_leave_is_a_note() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
    let alloc = alloc.named("result");
    lab.own(&alloc.then(), memory.as_slice(), "write");
    let report = graph.check().unwrap();
    assert_eq!(
        report.to_string(),
        "note: never freed: no node frees the memory of 256 bytes that `result` allocates, so that each launch leaves it; free it in the graph \
         before its first executable (Graph::free), or take it after each launch (GraphExec::launch_with_outputs)\n"
    );
    assert!(report.is_clean() && report.to_json().contains("\"class\":\"never freed\","), "{report}");
    assert!(report.to_json().contains("\"bytes\":256}"), "{}", report.to_json());
    assert!(graph.to_svg_with(&report).unwrap().contains("class=\"box doubtful\""));
    graph.free(&memory).unwrap();
    assert!(graph.check().unwrap().findings().is_empty());
}

#[test]
fn memory_out_of_order_is_told_as_instantiation_does() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
    let alloc = alloc.named("scratch");
    lab.own(&graph.root(), memory.as_slice(), "early");
    graph.root().free(&memory).unwrap().named("gone");
    let Err(Error::Memory(MemoryError::MemoryOrder { found, .. })) = graph.instantiate() else { panic!() };
    let report = graph.check().unwrap();
    let told = report.findings().iter().map(|finding| match finding {
        Finding::MemoryOrder { what, first, second, .. } => (*what, first.name(), second.name()),
        other => panic!("{other}"),
    });
    let told: Vec<_> = told.collect();
    let refused: Vec<_> =
        found.iter().map(|order| (order.what, order.first.as_str(), order.second.as_str())).collect();
    assert!(told == refused && told.len() == 3, "{report}");
    assert!(
        report.to_string().contains(
            "error: memory order: `gone` frees the memory that `scratch` allocates, and does not wait for the end of `early`, which uses it; an edge from \
             `early` to `gone` puts them in order\n"
        ),
        "{report}"
    );
    let picture = graph.to_svg_with(&report).unwrap();
    assert_eq!(picture.matches("<g class=\"race\"><title>memory order: ").count(), 3, "{report}");
    assert_eq!(picture.matches("class=\"box faulty\"").count(), 3, "{report}");
    assert!(picture.contains(">memory order × 3</text>") && !picture.contains("data race"), "{picture}");
    // The edges that it proposes mend all.
    for finding in report.findings() {
        if let Finding::MemoryOrder { edge: Some(edge), .. } = finding {
            graph.add_edge(edge.0.node(), edge.1.node()).unwrap();
        }
    }
    assert!(graph.check().unwrap().findings().is_empty());
    assert_eq!(alloc.successors().unwrap().len(), 2);
    graph.instantiate().unwrap();
}

#[test]
fn a_condition_that_is_set_too_late_is_drawn_as_such() {
    let context = setup();
    needs!(Conditionals);
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let condition = graph.condition_with_default(0).unwrap();
    graph.root().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap();
    graph.root().if_node(&condition).unwrap();
    let picture = graph.to_svg_with(&graph.check().unwrap()).unwrap();
    assert!(
        picture.contains(">unordered condition × 1</text>") && !picture.contains("data race"),
        "{picture}"
    );
}

/// JSON contains every name as it is.
#[test]
fn a_finding_is_one_line() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let inner = lab.graph();
    lab.write(&inner.root(), &lab.a, "one\nnote: two");
    graph.root().child(&inner).unwrap().named("in\r\nner");
    lab.write(&graph.root(), &lab.a, "\u{1b}[31m\u{85}ä\u{2028}\"");
    let report = graph.check().unwrap();
    let text = report.to_string();
    assert_eq!((report.findings().len(), text.lines().count()), (1, 1), "{text:?}");
    assert!(text.contains("`one\\nnote: two` (in `in\\r\\nner`)") && !text.contains('\u{1b}'), "{text:?}");
    assert!(report.to_json().contains("\"one\\u000anote: two\""), "{}", report.to_json());
    assert!(graph.to_svg_with(&report).unwrap().contains("data race"));
}

#[test]
fn an_edge_that_puts_nothing_in_order_is_to_be_another_one() {
    let context = setup();
    needs!(EdgeKinds);
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let one = lab.write(&graph.root(), &lab.a, "one");
    lab.change(&one.then_with(EdgeKind::LaunchOrder), &lab.a, "two");
    let report = graph.check().unwrap();
    let Some(Finding::Race(race)) = report.findings().first() else { panic!("{report}") };
    // A second edge is refused, and so is one the other way round.
    let (from, to) = (race.edge.0.node(), race.edge.1.node());
    assert!(matches!(graph.add_edge(from, to), Err(Error::Edge(EdgeError::DuplicateEdge { .. }))));
    assert!(race.are_linked && report.to_json().contains("\"linked\":true"), "{report}");
    assert!(
        report.to_string().ends_with(
            "; make the edge from `one` to `two`, which does not put them in order, a full one (Graph::set_edge_kind)\n"
        ),
        "{report}"
    );
    graph.set_edge_kind(from, to, EdgeKind::Full).unwrap();
    assert!(graph.check().unwrap().findings().is_empty());
}

#[test]
fn a_check_says_where_it_stopped() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    for _ in 0..10 {
        lab.write(&graph.root(), &lab.a, "write");
        lab.write(&graph.root(), &lab.b, "write");
    }
    let report = graph.check_with(CheckOptions::new().races(5)).unwrap();
    let Some(Stopped::Races(left)) = report.stopped() else { panic!("{report}") };
    assert_eq!((report.findings().len(), left.of, left.ranges), (5, 2, 2));
    assert!(
        report.to_string().contains(
            "2 of 2 ranges of memory were not compared, or not wholly; the first is in the pooled memory"
        ),
        "{report}"
    );
    let report = graph.check_with(CheckOptions::new().steps(20)).unwrap();
    assert!(matches!(report.stopped(), Some(Stopped::Steps(_))), "{report}");
    assert!(
        report
            .to_json()
            .contains("\"stopped\":{\"text\":\"the search for data races took as many steps as it may")
    );
    assert_eq!(graph.check().unwrap().findings().len(), 2 * 45);
}

/// A report of a large graph, correct and with one fault.
#[test]
fn large_graphs_are_checked_in_few_steps() {
    const NODES: usize = 20_000;
    let nodes = NODES;
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let buffer = lab.stream.zeros::<f32>(nodes).unwrap();
    let start = lab.write(&graph.root(), &buffer, "start");
    let mut ends = Vec::new();
    for line in 0..nodes / 20 {
        let mut last = start.clone();
        for _ in 0..20 {
            last = lab.change(&last.then(), buffer.slice(20 * line..20 * line + 20).unwrap(), "step");
        }
        ends.push(last);
    }
    let join = graph.after_all(ends.iter().map(|end| &**end)).unwrap();
    lab.add(&join, buffer.slice(nodes - N..).unwrap(), &lab.a, "end");
    join.copy(buffer.slice(..nodes / 2).unwrap(), buffer.slice(nodes / 2..nodes / 2 * 2).unwrap())
        .unwrap()
        .named("copy");
    let few = CheckOptions::new().steps(20 * nodes as u64);
    let started = std::time::Instant::now();
    let (report, cost) = count(|| graph.check_with(few).unwrap());
    println!("{nodes} nodes in {:?}", started.elapsed());
    let found: Vec<_> = seen(&report);
    assert!(
        report.stopped().is_none() && found == [("data race", vec!["copy".to_owned(), "end".to_owned()])],
        "{report}"
    );
    assert_eq!(
        (cost.calls("cuGraphGetNodes"), cost.calls("cuGraphKernelNodeGetParams")),
        (2, graph.len().unwrap() as u64 - 1)
    );
}

#[test]
fn adding_typed_kernels_costs_no_more_heap_than_untyped_ones() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let start = lab.write(&graph.root(), &lab.a, "start");
    let untyped = kernel(&context, "saxpy");
    // What grows is made to have room.
    let many = |typed: bool| {
        for _ in 0..100 {
            if typed {
                start
                    .then()
                    .launch(
                        &lab.saxpy,
                        per(N, 32),
                        (32, 2.0, lab.a.slice(..32).unwrap(), lab.b.slice(32..).unwrap()),
                    )
                    .unwrap();
            } else {
                // SAFETY: the arguments are the kernel's, and both buffers have as many elements.
                unsafe {
                    start.then().launch_untyped(
                        &untyped,
                        per(N, 32),
                        params![N as u32, 2.0_f32, &lab.a, &lab.b],
                    )
                }
                .unwrap();
            }
        }
    };
    many(true);
    // The least of some: a table whose places were used before is made anew now and then, depending
    // on the addresses in it.
    let least = |typed: bool| {
        let runs = std::iter::repeat_with(|| {
            graph.nodes().unwrap().into_iter().skip(1).for_each(|node| node.remove().unwrap());
            count(|| many(typed)).1
        });
        runs.take(5).min_by_key(Counts::heap_allocations).unwrap()
    };
    let (without, with) = (least(false), least(true));
    assert_eq!(with.heap_allocations(), without.heap_allocations(), "{with} {without}");
    with.assert_calls(&[("cuGraphAddNode", 100)]);
}

#[test]
fn a_failed_instantiation_has_the_words_of_a_check() {
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let raw_graph = cuda_tests::last_graph();
    let one = lab.write(&graph.root(), &lab.a, "one");
    one.then().empty().unwrap().named("two");
    // Behind the library's back.
    let nodes = raw::nodes(raw_graph);
    other::connect(raw_graph, nodes[1], nodes[0]);
    let error = graph.instantiate().unwrap_err();
    let Error::Exec(ExecError::Instantiate(reason)) = &error else { panic!("{error:?}") };
    let text = error.to_string();
    assert!(
        text.contains("cycle: `one` -> `two` -> `one` wait for each other; remove one of these edges"),
        "{text}"
    );
    let report = graph.check().unwrap();
    let [found @ Finding::Cycle { nodes }] = report.findings() else { panic!("{report}") };
    assert_eq!((nodes.len(), report.stopped()), (2, Some(&Stopped::Cycle)));
    assert_eq!(reason.findings, [found.to_string()]);
}

/// A larger picture, to be looked at.
#[test]
fn a_pipeline_is_drawn_with_what_is_wrong() {
    let context = setup();
    needs!(EdgeKinds);
    let lab = Lab::new(&context);
    let graph = lab.graph();
    let up = graph.root().copy(&lab.b, &lab.a).unwrap().named("up");
    let mut steps = Vec::new();
    for quarter in 0..4_usize {
        // Each but the last has a quarter of its own.
        let range = 16 * quarter..(16 * quarter + 17).min(64);
        steps.push(lab.change(&up.then(), lab.a.slice(range).unwrap(), &format!("quarter {quarter}")));
    }
    let join = graph.after_all(steps.iter().map(|step| &**step)).unwrap();
    let inner = lab.graph();
    let norm = lab.add(&inner.root(), &lab.a, &lab.c, "norm");
    lab.write(&norm.then_with(cuda_graph::EdgeKind::Programmatic), &lab.c, "reset");
    let child = join.child(&inner).unwrap().named("reduce");
    child.then().copy(&lab.c, &lab.b).unwrap().named("down");
    graph.root().fill(&lab.c, 0.0).unwrap().named("clear");
    graph.condition_with_default(1).unwrap();
    let report = graph.check().unwrap();
    let picture = graph.to_svg_with(&report).unwrap();
    if let Ok(path) = std::env::var("CUDA_TEST_PIPELINE") {
        std::fs::write(path, &picture).unwrap();
    }
    // Three quarters with their neighbours, and the fill with the child.
    assert_eq!(picture.matches("<g class=\"race\"><title>data race: ").count(), 4, "{report}");
    assert_eq!(picture.matches("<g class=\"race\"><title>data race, unless").count(), 1, "{report}");
    assert!(picture.contains("5 errors (data race, unused condition), 1 note (data race)"), "{report}");
}

#[test]
fn drivers_that_tell_no_layouts_tell_enough() {
    alone!("CUDA_SOFT_VERSION" = "12.2");
    let context = setup();
    let lab = Lab::new(&context);
    let graph = lab.graph();
    lab.add(&graph.root(), lab.a.slice(..9).unwrap(), &lab.b, "one");
    lab.write(&graph.root(), lab.a.slice(8..).unwrap(), "two");
    lab.write(&graph.root(), lab.c.slice(8..).unwrap(), "three");
    let names = ["one", "two"].map(str::to_owned).to_vec();
    assert_eq!(seen(&graph.check().unwrap()), [("data race", names)]);
}

#[test]
fn a_check_that_fails_leaves_all_as_it_was() {
    alone!("CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    needs!(Branches);
    let lab = Lab::new(&context);
    let draw = || {
        let graph = mixture(&lab);
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        lab.own(&alloc.then(), memory.as_slice(), "scratch");
        let inner = lab.graph();
        inner.root().empty().unwrap();
        graph.root().child(&inner).unwrap();
        graph.lend().unwrap();
        graph
    };
    let expected = draw().check().unwrap().to_string();
    let mut cases = 0;
    for &call in Call::ALL {
        for nth in 1.. {
            let graph = draw();
            let injection = fail(call, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let result = graph.check();
            let was_hit = injection.hit();
            drop(injection);
            assert_eq!(graph.check().unwrap().to_string(), expected, "{call:?} {nth}");
            if !was_hit {
                break;
            }
            let error = result.unwrap_err().to_string();
            assert!(error.contains(call.name()), "{nth}: {error}");
            cases += 1;
        }
    }
    println!("{cases} cases");
    assert!(cases > 10);
}
