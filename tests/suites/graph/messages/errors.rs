//! Error messages: they name the right things, and their advice works.

use cuda_graph::{
    ConditionError, ContextExt, EdgeError, EmbedError, Error, ExecError, Graph, LoopError, MemoryError, Node,
    NodeError, Test,
};
use cuda_tests::{needs, no_leaks, setup};

const NAME: &str = "important";

fn removed<T: core::fmt::Debug>(outcome: Result<T, Error>) {
    match outcome {
        Err(Error::Node(NodeError::Removed { node })) => assert_eq!(node, NAME),
        other => panic!("{other:?}"),
    }
}

/// A removed node is called what it was called, wherever it is met.
#[test]
fn removed_nodes_keep_their_names_in_errors() {
    let context = setup();
    no_leaks(|| {
        let buffer = context.alloc_blocking::<u32>(4).unwrap();
        let graph = context.graph().unwrap();
        let there = graph.root().empty().unwrap();
        let node = graph.root().fill(&buffer, 1).unwrap().named(NAME);
        let before = graph.root().before([&node]).unwrap();
        let both = graph.after([&there, &node]).unwrap();
        node.remove().unwrap();
        assert_eq!((node.name(), node.to_string()), (NAME.to_owned(), NAME.to_owned()));
        removed(node.predecessors());
        removed(node.successors());
        removed(node.describe());
        removed(node.set(&buffer, 2));
        removed(node.remove());
        removed(node.as_raw());
        removed(node.keep(cuda_handles::Owner::other(())));
        removed(node.then().empty());
        removed(both.empty());
        removed(before.empty());
        removed(graph.after([&there, &node]));
        removed(graph.root().before([&node]));
        removed(graph.add_edge(&there, &node));
        removed(graph.add_edge(&node, &there));
        removed(graph.remove_edges(&[(&there, &node)]));
        removed(graph.edge_kind(&there, &node));
        removed(graph.between(&node, &there));
        removed(graph.remove_nodes(&[&there, &node]));
        removed(context.graph().unwrap().find_clone_of(&node));
        // One without a name keeps its kind, and a kernel node its kernel.
        let unnamed = graph.root().empty().unwrap();
        let name = unnamed.name();
        unnamed.remove().unwrap();
        assert!(
            matches!(unnamed.then().empty(), Err(Error::Node(NodeError::Removed { node })) if node == *name)
        );
        // In a graph that went with its node, that is told.
        let inner = context.graph().unwrap();
        inner.root().empty().unwrap();
        let child = graph.root().child(&inner).unwrap();
        let inside = child.embedded().unwrap();
        let deep = inside.root().empty().unwrap().named("deep");
        child.remove().unwrap();
        assert_eq!(deep.name(), "deep");
        assert!(matches!(deep.describe(), Err(Error::Node(NodeError::Removed { node })) if node == "deep"));
        assert_eq!(deep.then().empty().unwrap_err(), Error::Node(NodeError::GraphRemoved));
    });
}

/// A graph that is gone is told to be gone, and not to be somewhere.
#[test]
fn an_embedded_graph_that_is_gone_cannot_be_used() {
    let context = setup();
    no_leaks(|| {
        let small = context.graph().unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().child(&small).unwrap();
        let inside = node.embedded().unwrap();
        assert!(matches!(
            inside.instantiate(),
            Err(Error::Embed(EmbedError::Embedded { what: "instantiated" }))
        ));
        // The advice works.
        drop(inside.clone_graph().unwrap().instantiate().unwrap());
        node.remove().unwrap();
        let fallback = cuda_graph::Fallback::HostLoop;
        let uses: [(&str, Result<(), Error>); 7] = [
            ("instantiate", inside.instantiate().map(drop)),
            ("host", inside.instantiate_with_fallback(fallback, Default::default()).map(drop)),
            ("clone", inside.clone_graph().map(drop)),
            ("embed", graph.root().child(&inside).map(drop)),
            ("add", inside.root().empty().map(drop)),
            ("len", inside.len().map(drop)),
            ("check", inside.check().map(drop)),
        ];
        for (what, outcome) in uses {
            assert_eq!(outcome, Err(Error::Node(NodeError::GraphRemoved)), "{what}");
        }
    });
}

#[test]
fn a_loop_that_runs_at_least_once_has_no_limit_of_no_rounds() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let number = context.alloc_blocking::<u32>(1).unwrap();
        number.write_blocking(&stream, &[1]).unwrap();
        let graph = context.graph().unwrap();
        let never = Test::nonzero(&number).limit(0);
        let refused = graph.root().do_while_loop(never, |body| body.root().empty());
        assert_eq!(refused.map(drop), Err(Error::Loop(LoopError::NoRounds)));
        assert_eq!(graph.len(), Ok(0));
        // What that says to do: no round, on the device and by the host; and one, if there may be
        // one.
        let rounds = graph.root().while_loop(never, |body| body.root().empty()).unwrap();
        let once = Test::nonzero(&number).limit(1);
        let one = graph.root().do_while_loop(once, |body| body.root().empty()).unwrap();
        let fallback = cuda_graph::Fallback::HostLoop;
        let mut exec = graph.instantiate_with_fallback(fallback, Default::default()).unwrap();
        exec.run_blocking(&stream).unwrap();
        assert_eq!(rounds.rounds_done_blocking(&stream), Ok(0));
        assert_eq!(one.rounds_done_blocking(&stream), Ok(1));
    });
}

/// Names of users stay data, and do nothing to terminals, lines or files.
#[test]
fn names_are_escaped_and_shortened_in_texts_and_pictures() {
    let context = setup();
    no_leaks(|| {
        let hostile = format!("a\0b\n\u{1b}[31m\u{202e}\"<&>\\N{}", "x".repeat(50_000));
        let buffer = context.alloc_blocking::<u32>(4).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&buffer, 1).unwrap().named(hostile.clone());
        let second = graph.root().fill(&buffer, 2).unwrap().named(hostile.clone());
        assert_eq!(first.name(), hostile);
        let plain = |text: &str| text.chars().all(|one| !one.is_control() && one != '\u{202e}');
        let Err(error) = graph.remove_edges(&[(&first, &second)]) else { panic!("there is an edge") };
        assert!(matches!(&error, Error::Edge(EdgeError::NoEdge { from, .. }) if **from == *hostile));
        let text = error.to_string();
        assert!(plain(&text) && text.len() < 1_000, "{text}");
        let report = graph.check().unwrap();
        let text = report.to_string();
        assert!(text.lines().all(plain) && text.len() < 4_000, "{text}");
        assert!(plain(&report.to_json()) || report.to_json().contains('\u{202e}'));
        assert!(!report.to_json().chars().any(char::is_control));
        let dot = graph.to_dot().unwrap();
        // Graphviz takes strings of less than 16 384 bytes.
        assert!(dot.lines().all(|line| plain(line) && line.len() < 16_384), "{dot}");
        assert!(dot.len() < 10_000);
        let svg = graph.to_svg().unwrap();
        assert!(svg.chars().all(|one| !one.is_control() || one == '\n'), "{svg}");
        drop((report, first, second));
    });
}

/// What is found about the order of memory, or about conditions, is told up to a thousand times,
/// and then how much more there is.
#[test]
fn findings_of_one_kind_are_bounded() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let memory: Vec<_> = (0..1_500).map(|_| graph.root().alloc::<u32>(1).unwrap().1).collect();
        for one in &memory {
            graph.root().fill(one, 1).unwrap();
        }
        let report = graph.check().unwrap();
        // Neither is the memory freed, nor does the fill wait for it.
        let of = |class| report.findings().iter().filter(|finding| finding.class() == class).count();
        assert_eq!((of("memory order"), of("never freed")), (1_000, 1_000));
        assert_eq!(report.left_out(), 1_000);
        let text = report.to_string();
        assert!(text.contains("not told: 1000 more findings"), "{}", &text[text.len() - 200..]);
        assert!(report.to_json().contains("\"left_out\":1000"));
        let Err(error) = graph.instantiate() else { panic!("in order") };
        assert!(error.to_string().len() < 2_000, "{error}");
        drop((report, memory));
    });
}

/// One graph after the other in which an error is provoked, and what it says is done.
#[test]
fn the_advice_of_errors_works() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(4).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().fill(&buffer, 1).unwrap();
        // A cycle through itself by embedding: a clone is embedded.
        assert_eq!(graph.root().child(&graph).unwrap_err(), Error::Embed(EmbedError::EmbedsItself));
        let child = graph.root().child(&graph.clone_graph().unwrap()).unwrap();
        // Replaced by what lies in it: by a clone of that.
        child.embedded().unwrap().root().child(&context.graph().unwrap()).unwrap();
        let [deep] = child.embedded().unwrap().children().unwrap().try_into().unwrap();
        let deep = deep.embedded().unwrap();
        assert!(matches!(child.set_graph(&deep), Err(Error::Embed(EmbedError::ReplacesItself { .. }))));
        child.set_graph(&deep.clone_graph().unwrap()).unwrap();
        // No elements: leave the node out or add an empty one.
        let none = stream.zeros::<u32>(0).unwrap();
        assert!(matches!(node.then().fill(&none, 1), Err(Error::Node(NodeError::NoElements { .. }))));
        node.then().empty().unwrap();
        // Freed twice, freed too late, freed before.
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(4).unwrap();
        let used = alloc.then().fill(&memory, 1).unwrap();
        let free = used.then().free(&memory).unwrap();
        assert!(matches!(graph.root().free(&memory), Err(Error::Memory(MemoryError::FreedTwice { .. }))));
        assert!(matches!(alloc.then().fill(&memory, 2), Err(Error::Memory(MemoryError::FreedBefore { .. }))));
        assert!(matches!(graph.clone_graph(), Err(Error::Memory(MemoryError::HasMemory))));
        assert!(matches!(used.remove(), Err(Error::Memory(MemoryError::KeepsAll { .. }))));
        drop(free);
        // One executable: drop it first, or make it in place of the graph.
        let exec = graph.instantiate().unwrap();
        assert!(matches!(graph.instantiate(), Err(Error::Exec(ExecError::OneExecutable { .. }))));
        drop(exec);
        drop(graph.instantiate().unwrap());
        drop((memory, used, alloc));
        drop({ graph }.instantiate().unwrap());
        // Memory that may not be there: add edges.
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(4).unwrap();
        let used = graph.root().fill(&memory, 1).unwrap();
        assert!(matches!(graph.instantiate(), Err(Error::Memory(MemoryError::MemoryOrder { .. }))));
        graph.add_edge(&alloc, &used).unwrap();
        let exec = graph.instantiate().unwrap();
        // Freed too late: let go of what launches leave.
        assert!(matches!(used.then().free(&memory), Err(Error::Memory(MemoryError::FreedTooLate { .. }))));
        drop((exec, memory));
        // Another graph's memory.
        let other = context.graph().unwrap();
        let (_, foreign) = other.root().alloc::<u32>(4).unwrap();
        assert!(matches!(
            graph.root().fill(&foreign, 1),
            Err(Error::Memory(MemoryError::ForeignMemory { .. }))
        ));
        drop(foreign);
    });
}

/// The same for conditions.
#[test]
fn the_advice_about_conditions_works() {
    let context = setup();
    needs!(Conditionals, EmptyBodies);
    no_leaks(|| {
        let buffer = context.alloc_blocking::<u32>(4).unwrap();
        let graph: Graph = context.graph().unwrap();
        let unused = graph.condition_with_default(3).unwrap();
        assert!(matches!(graph.instantiate(), Err(Error::Condition(ConditionError::UnusedCondition { .. }))));
        // A new one with the same default takes its place once its handles are gone, and the node
        // makes it one that is used.
        drop(unused);
        let again = graph.condition_with_default(3).unwrap();
        let node = graph.root().if_node(&again).unwrap();
        drop(graph.instantiate().unwrap());
        assert!(matches!(
            graph.root().if_node(&again),
            Err(Error::Condition(ConditionError::ConditionInUse { .. }))
        ));
        let other = context.graph().unwrap();
        assert!(matches!(
            other.root().if_node(&again),
            Err(Error::Condition(ConditionError::ForeignCondition { .. }))
        ));
        // The driver takes no copies of it: build it where it is to be.
        assert!(matches!(graph.clone_graph(), Err(Error::Condition(ConditionError::HasConditions { .. }))));
        let inner = other.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
        let own = other.condition().unwrap();
        inner.root().if_node(&own).unwrap();
        drop(other.instantiate().unwrap());
        // Nodes that a body cannot hold.
        let refused = node.body().unwrap().root().alloc::<u32>(4).map(drop).unwrap_err();
        assert!(refused.to_string().starts_with("an alloc node cannot be in a body"), "{refused}");
        let inside: Node = node.body().unwrap().root().fill(&buffer, 1).unwrap().into();
        assert!(!inside.is_removed());
    });
}
