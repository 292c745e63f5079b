//! Which order is left out, and what the report says.

use cuda_graph::{ContextExt, EdgeKind, Frontier, Order, Shape, StreamExt, WhyDropped};
use cuda_handles::capture::CaptureMode;
use cuda_launch::per;
use cuda_tests::{needs, no_leaks, setup};

use super::{by_data, figures, in_shape};
use crate::capture::{N, add_to};

#[test]
fn a_chain_captured_from_one_stream_runs_in_parallel() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers: Vec<_> = (0..8).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = stream
            .capture(CaptureMode::ThreadLocal, |capture| {
                for _ in 0..3 {
                    for numbers in &numbers {
                        add.launch(capture.stream(), per(1, 1), (1, numbers))?;
                    }
                }
                Ok(())
            })
            .unwrap();
        let mut exec = by_data(&graph);
        let report = exec.shape_report().unwrap();
        let before = report.before().unwrap();
        assert_eq!((before.roots, before.edges, before.widest), (1, 23, 1));
        // Eight chains of three.
        assert_eq!(figures(&exec), (8, 16, 8));
        assert_eq!((report.shape(), report.order()), (Shape::AsBuilt, Order::ByData));
        assert_eq!(report.dropped_edges().len(), 23);
        assert!(report.dropped_edges().iter().all(|edge| edge.why() == WhyDropped::NothingShared));
        exec.launch(&stream).unwrap();
        for numbers in &numbers {
            assert_eq!(numbers.read_blocking(&stream).unwrap()[0], 3);
        }
        // A shape sees the order by data.
        assert_eq!(figures(&in_shape(&graph, Shape::Reduced)), (1, 24, 8));
    });
}

#[test]
fn the_report_names_the_dropped_edges() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [x, y, z] = [0; 3].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&x, 1).unwrap().named("first");
        let second = first.then().copy(&x, &y).unwrap().named("second");
        let third = second.then().copy(&x, &z).unwrap().named("third");
        let join = third.then().empty().unwrap().named("join");
        join.then().fill(x.slice(0..4).unwrap(), 2).unwrap().named("last");
        let exec = by_data(&graph);
        let report = exec.shape_report().unwrap();
        let dropped: Vec<_> =
            report.dropped_edges().iter().map(|edge| (edge.from(), edge.to(), edge.why())).collect();
        let expected = [
            ("second", "third", WhyDropped::OnlyRead),
            ("third", "join", WhyDropped::PassedOn),
            ("join", "last", WhyDropped::PassedOn),
        ];
        for edge in expected {
            assert!(dropped.contains(&edge), "{dropped:?}");
        }
        assert_eq!(dropped.len(), 3);
        let text = report.to_string();
        assert!(text.contains("dropped 3 edges that no access needs"), "{text}");
        assert!(text.contains("`second` → `third` (both only read what they share)"), "{text}");
        // The first comes before both copies, and the last after both.
        assert_eq!(figures(&exec), (1, 4, 2));
    });
}

#[test]
fn what_conflicts_by_bytes_stays_ordered_and_what_does_not_goes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(64).unwrap();
        let graph = context.graph().unwrap();
        // Columns of a matrix of eight columns share no byte, though their rows lie between each
        // other.
        let left = graph.root().fill_2d(&numbers, 8, [4, 8], 1_u32).unwrap();
        let right = left.then().fill_2d(numbers.slice(4..).unwrap(), 8, [4, 8], 2_u32).unwrap();
        right.then().fill(numbers.slice(3..5).unwrap(), 3).unwrap();
        let mut exec = by_data(&graph);
        assert_eq!(figures(&exec), (2, 2, 2));
        exec.launch(&stream).unwrap();
        let read = numbers.read_blocking(&stream).unwrap();
        assert_eq!(read[..9], [1, 1, 1, 3, 3, 2, 2, 2, 1]);
        // Nothing to drop.
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&numbers, 1).unwrap();
        first.then().fill(&numbers, 2).unwrap();
        let exec = by_data(&graph);
        let report = exec.shape_report().unwrap();
        assert!(
            report.dropped_edges().is_empty() && report.to_string().contains("dropped no edge"),
            "{report}"
        );
    });
}

#[test]
fn child_graphs_are_ordered_node_by_node() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let child = context.graph().unwrap();
        let inner = child.root().launch(&add, per(1, 1), (1, &x)).unwrap();
        inner.then().launch(&add, per(1, 1), (1, &y)).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().child(&child).unwrap();
        let second = first.then().child(&child).unwrap();
        second.then().launch(&add, per(1, 1), (10, &x)).unwrap();
        let mut exec = by_data(&graph);
        assert_eq!(figures(&exec), (2, 3, 2));
        exec.launch(&stream).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap()[0], 12);
        assert_eq!(y.read_blocking(&stream).unwrap()[0], 2);
    });
}

#[test]
fn nodes_at_programmatic_edges_keep_their_order() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        // Kernels that wait at their entry.
        let add = add_to::load_waiting(&context).unwrap();
        let [w, x, y, z] = [0; 4].map(|_| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let launch = |at: &Frontier<'_>, numbers| at.launch(&add, per(1, 1), (1, numbers)).unwrap();
        let first = launch(&graph.root(), &w);
        let second = launch(&first.then(), &x);
        let third = launch(&second.then_with(EdgeKind::Programmatic), &y);
        let fourth = launch(&third.then(), &z);
        launch(&fourth.then(), &w);
        let mut exec = by_data(&graph);
        // All edges but the last stay, and the last node comes behind the second and third ones.
        assert_eq!(figures(&exec), (1, 4, 2));
        assert_eq!(exec.shape_report().unwrap().dropped_edges().len(), 1);
        exec.launch(&stream).unwrap();
        assert_eq!(w.read_blocking(&stream).unwrap()[0], 2);
    });
}

#[test]
fn a_graph_that_would_need_far_more_edges_keeps_its_order() {
    let context = setup();
    no_leaks(|| {
        const WIDE: usize = 64;
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(WIDE).unwrap();
        let others: Vec<_> = (0..WIDE).map(|_| stream.zeros::<u32>(WIDE).unwrap()).collect();
        let graph = context.graph().unwrap();
        let writes: Vec<_> = (0..WIDE)
            .map(|place| graph.root().fill(numbers.slice(place..place + 1).unwrap(), 1).unwrap())
            .collect();
        let join = graph.after_all(writes.iter().map(|write| &**write)).unwrap().empty().unwrap();
        for other in &others {
            join.then().copy(&numbers, other).unwrap();
        }
        let mut exec = by_data(&graph);
        let report = exec.shape_report().unwrap();
        assert!(report.dropped_edges().is_empty());
        assert!(report.to_string().contains("left the order as drawn: the graph is too large"), "{report}");
        exec.launch(&stream).unwrap();
        for other in &others {
            assert_eq!(other.read_blocking(&stream).unwrap(), [1; WIDE]);
        }
    });
}
