//! Bodies: conditional nodes, ready-made loops and child graphs in a capture, and captures into
//! graphs that exist.

use core::slice;

use cuda_graph::capture::{Capturing, GraphBuilder, Kind};
use cuda_graph::{
    CaptureError, ConditionError, ContextExt, Error, Graph, IfNode, Node, NodeKind, Result, StreamExt, Test,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{Kind as Object, SOON, fail, live, needs, no_leaks, raw, settle, setup, until};

use super::{Bench, invalidate, is_free, works_again};
use crate::common::gone::{flag, soon};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

fn kinds(graph: &Graph) -> Vec<NodeKind> {
    graph.nodes().unwrap().iter().map(|node| node.kind()).collect()
}

/// Captures by a builder of each kind: of a primary, a fork, and a body. Gives the graph, and what
/// the capture gave.
fn from_each_kind<R>(
    bench: &Bench,
    what: &str,
    capture: impl Fn(&dyn Captures) -> Result<R>,
    mut check: impl FnMut(&str, &Graph, R),
) {
    let stream = &bench.stream;
    let mut made = None;
    let graph = stream
        .capture(LOCAL, |primary| {
            made = Some(capture(primary)?);
            Ok(())
        })
        .unwrap();
    check(&format!("{what} by the primary"), &graph, made.take().unwrap());
    let graph = stream
        .capture(LOCAL, |primary| {
            let [fork] = primary.split()?;
            made = Some(capture(&fork)?);
            primary.join([fork])
        })
        .unwrap();
    check(&format!("{what} by a fork"), &graph, made.take().unwrap());
    let graph = stream
        .capture(LOCAL, |primary| {
            let always = primary.condition_with_default(1)?;
            primary.if_node(&always, |body| {
                made = Some(capture(body)?);
                Ok::<_, Error>(())
            })
        })
        .unwrap();
    check(&format!("{what} by a body"), &graph, made.take().unwrap());
    let graph = stream
        .capture(LOCAL, |primary| {
            let always = primary.condition_with_default(1)?;
            let [fork] = primary.split()?;
            fork.if_node(&always, |body| {
                let [inner] = body.split()?;
                made = Some(capture(&inner)?);
                body.join([inner])
            })?;
            primary.join([fork])
        })
        .unwrap();
    check(&format!("{what} by a fork in a body of a fork"), &graph, made.take().unwrap());
    bench.works_again();
}

/// A builder of any kind.
trait Captures {
    fn branch(&self, bench: &Bench, value: u32) -> Result<()>;
    fn either(&self, bench: &Bench, value: u32) -> Result<()>;
    fn rounds(&self, bench: &Bench, counter: &Buffer<u32>) -> Result<()>;
    fn switch(&self, bench: &Bench, value: u32) -> Result<()>;
    fn ready_made(&self, bench: &Bench, counter: &Buffer<u32>) -> Result<()>;
    fn embeds(&self, bench: &Bench, graph: &Graph) -> Result<()>;
    fn by_hand(&self, bench: &Bench) -> Result<IfNode>;
}

impl<K: Kind> Captures for GraphBuilder<K, Capturing> {
    fn branch(&self, bench: &Bench, value: u32) -> Result<()> {
        bench.add(self, 1)?;
        let condition = self.condition()?;
        bench.set(self, &condition, value)?;
        self.if_node(&condition, |body| bench.add(body, 10))?;
        bench.add(self, 100)
    }

    fn either(&self, bench: &Bench, value: u32) -> Result<()> {
        let condition = self.condition()?;
        bench.set(self, &condition, value)?;
        self.if_else_node(&condition, |then| bench.add(then, 10), |other| bench.add(other, 20))?;
        bench.add(self, 1)
    }

    fn rounds(&self, bench: &Bench, counter: &Buffer<u32>) -> Result<()> {
        self.fill(counter, 5)?;
        let go_on = self.condition_with_default(1)?;
        self.while_node(&go_on, |body| {
            bench.add(body, 1)?;
            body.launch(&bench.count_down, per(1, 1), (counter, &go_on))
        })?;
        bench.add(self, 100)
    }

    fn switch(&self, bench: &Bench, value: u32) -> Result<()> {
        let condition = self.condition()?;
        bench.set(self, &condition, value)?;
        self.switch_node(&condition, 3, |number, body| bench.add(body, 10 + number as u32))?;
        bench.add(self, 100)
    }

    fn ready_made(&self, bench: &Bench, counter: &Buffer<u32>) -> Result<()> {
        self.fill(counter, 4)?;
        self.while_loop(Test::nonzero(counter), |body| {
            bench.add(body, 1)?;
            body.launch(&bench.add, per(1, 1), (u32::MAX, counter))
        })?;
        self.do_while_loop(Test::nonzero(counter), |body| bench.add(body, 10))?;
        self.if_then(Test::zero(counter), |body| bench.add(body, 100))?;
        self.if_then_else(Test::zero(counter), |body| bench.add(body, 1000), |body| bench.add(body, 2000))?;
        bench.add(self, 10000)
    }

    fn embeds(&self, bench: &Bench, graph: &Graph) -> Result<()> {
        bench.add(self, 1)?;
        self.embed(graph)?;
        bench.add(self, 100)
    }

    fn by_hand(&self, bench: &Bench) -> Result<IfNode> {
        let always = self.condition_with_default(1)?;
        let node = self.if_node(&always, |body| bench.add(body, 1))?;
        // Filled by hand before, and behind what is captured.
        let first = node.body()?.root().launch(&bench.add, per(1, 1), (10, &bench.numbers))?;
        let builder = self.capture_body(&node.body()?)?;
        bench.add(&builder, 100)?;
        drop(builder.end()?);
        first.then().launch(&bench.add, per(1, 1), (1000, &bench.numbers))?;
        Ok(node)
    }
}

#[test]
fn branches_are_captured_by_builders_of_every_kind() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        for (value, expected) in [(0, 101), (1, 111), (7, 111)] {
            from_each_kind(
                &bench,
                "a branch",
                |at| at.branch(&bench, value),
                |what, graph, ()| {
                    assert_eq!(bench.run(graph), expected, "{what}, {value}");
                },
            );
        }
        needs!(Branches);
        for (value, expected) in [(0, 21), (1, 11)] {
            from_each_kind(
                &bench,
                "a branch of two",
                |at| at.either(&bench, value),
                |what, graph, ()| {
                    assert_eq!(bench.run(graph), expected, "{what}, {value}");
                },
            );
        }
        for (value, expected) in [(0, 110), (2, 112), (3, 100)] {
            from_each_kind(
                &bench,
                "a switch",
                |at| at.switch(&bench, value),
                |what, graph, ()| {
                    assert_eq!(bench.run(graph), expected, "{what}, {value}");
                },
            );
        }
    });
}

#[test]
fn loops_are_captured_by_builders_of_every_kind() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let counter = bench.stream.zeros::<u32>(1).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        from_each_kind(
            &bench,
            "a loop",
            |at| at.rounds(&bench, &counter),
            |what, graph, ()| {
                assert_eq!(bench.run(graph), 105, "{what}");
            },
        );
        needs!(Branches);
        from_each_kind(
            &bench,
            "loops",
            |at| at.ready_made(&bench, &counter),
            |what, graph, ()| {
                assert_eq!(bench.run(graph), 11114, "{what}");
            },
        );
    });
}

#[test]
fn graphs_are_embedded_by_builders_of_every_kind() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let ended = bench.stream.capture(LOCAL, |capture| bench.add(capture, 10)).unwrap();
        from_each_kind(
            &bench,
            "a graph",
            |at| at.embeds(&bench, &ended),
            |what, graph, ()| {
                assert_eq!(bench.run(graph), 111, "{what}");
            },
        );
        assert_eq!(bench.run(&ended), 10, "it is a clone that was embedded");
    });
}

#[test]
fn a_body_is_captured_and_filled_by_hand_before_and_after() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        from_each_kind(
            &bench,
            "a body",
            |at| at.by_hand(&bench),
            |what, graph, node| {
                assert_eq!(bench.run(graph), 1111, "{what}");
                let end = node.body().unwrap().nodes().unwrap().pop().unwrap();
                end.then().launch(&bench.add, per(1, 1), (10000, &bench.numbers)).unwrap();
                assert_eq!(bench.run(graph), 11111, "{what}: and after the end");
            },
        );
    });
}

#[test]
fn a_captured_graph_outlives_everything_but_its_executable() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let outside = context.stream().unwrap();
        let out = outside.zeros::<u32>(4).unwrap();
        outside.synchronize_blocking().unwrap();
        let (mut exec, is_gone) = {
            let bench = Bench::new(&context);
            let input = bench.stream.upload_blocking(&[7_u32; 4]).unwrap();
            let child = bench.stream.upload_blocking(&[9_u32; 1]).unwrap();
            let capture = bench.begin();
            let (owner, is_gone) = flag();
            capture.keep(owner).unwrap();
            let always = capture.condition_with_default(1).unwrap();
            let [fork] = capture.split().unwrap();
            fork.if_node(&always, |body| body.copy(&input, &out)).unwrap();
            capture.join([fork]).unwrap();
            let inner = context.graph().unwrap();
            inner.root().copy(&child, out.slice(3..).unwrap()).unwrap();
            capture.embed(&inner).unwrap();
            let ended = capture.end().unwrap();
            (ended.instantiate().unwrap(), is_gone)
        };
        settle();
        drop(setup_garbage(&outside));
        for _ in 0..3 {
            outside.fill(&out, 0).unwrap();
            exec.launch(&outside).unwrap();
            assert_eq!(out.read_blocking(&outside).unwrap(), [7, 7, 7, 9]);
        }
        assert!(!is_gone());
        drop(exec);
        assert!(soon(&is_gone));
    });
}

/// Takes what freed blocks would be given out for, and writes over it.
fn setup_garbage(stream: &Stream) -> Vec<Buffer<u32>> {
    let buffers: Vec<_> = (0..16).map(|_| stream.zeros::<u32>(4).unwrap()).collect();
    buffers.iter().for_each(|buffer| stream.fill(buffer, u32::MAX).unwrap());
    stream.synchronize_blocking().unwrap();
    buffers
}

#[test]
fn an_open_body_is_ended_first_and_named() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        for ends in [true, false] {
            let capture = bench.begin();
            let always = capture.condition_with_default(1).unwrap();
            let node = capture.if_node(&always, |body| bench.add(body, 1)).unwrap();
            let body = capture.capture_body(&node.body().unwrap()).unwrap();
            bench.add(&body, 1).unwrap();
            // A body in the body.
            let inner_condition = body.condition_with_default(1).unwrap();
            let inner = body.if_node(&inner_condition, |inner| bench.add(inner, 1)).unwrap();
            let deep = body.capture_body(&inner.body().unwrap()).unwrap();
            bench.add(&deep, 1).unwrap();
            let streams = [body.stream().clone(), deep.stream().clone()];
            if ends {
                let open = capture.end().unwrap_err();
                assert_eq!(open, Error::Capture(CaptureError::BodyOpen { kind: "primary", bodies: 1 }));
            } else {
                drop(capture);
            }
            bench.works_again();
            streams.iter().for_each(works_again);
            let over = bench.add(&deep, 1).unwrap_err();
            assert_eq!(over, Error::Capture(CaptureError::Over { kind: "body" }));
            let late = body.end().unwrap_err();
            assert_eq!(late, Error::Capture(CaptureError::Over { kind: "body" }));
            drop(deep);
            drop((node, inner));
        }
        bench.works_again();
    });
}

#[test]
fn work_captured_around_a_body_instead_of_in_it_is_refused() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        let by_builder = capture.if_node(&always, |_| bench.add(&capture, 1));
        let on_stream = capture.if_node(&always, |_| Ok::<_, Error>(bench.stream.fill(&bench.numbers, 0)?));
        let from_inside = capture.if_node(&always, |body| {
            let inner = body.condition_with_default(1)?;
            body.if_node(&inner, |_| bench.add(body, 1))
        });
        for refused in [by_builder.err(), on_stream.err(), from_inside.err()] {
            let Some(Error::Capture(error)) = refused else { panic!("{refused:?}") };
            assert!(matches!(error, CaptureError::OutsideBody { .. }), "{error}");
        }
        capture.if_node(&always, |body| bench.add(body, 10)).unwrap();
        let graph = capture.end().unwrap().into_graph();
        assert_eq!(kinds(&graph), [NodeKind::If, NodeKind::Kernel, NodeKind::Memset]);
    });
}

#[test]
fn a_failing_body_takes_its_node_away_and_the_capture_goes_on() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        bench.add(&capture, 1).unwrap();
        let always = capture.condition_with_default(1).unwrap();
        let mut streams = Vec::new();
        let failed = capture.if_node(&always, |body| {
            streams.push(body.stream().clone());
            bench.add(body, 10)?;
            invalidate(body.stream());
            Ok::<_, Error>(())
        });
        assert!(matches!(failed, Err(Error::Handles(cuda_handles::Error::CaptureInvalidated { by: None }))));
        let failed = capture.if_node(&always, |body| -> Result<()> {
            streams.push(body.stream().clone());
            let [fork] = body.split()?;
            streams.push(fork.stream().clone());
            bench.add(&fork, 10)?;
            bench.all.launch(body.stream(), per(64, 64), (64, &bench.numbers))?;
            Ok(())
        });
        assert!(matches!(failed, Err(Error::Launch(_))), "{failed:?}");
        streams.iter().for_each(|stream| assert!(is_free(stream)));
        // The condition serves another node.
        capture.if_node(&always, |body| bench.add(body, 100)).unwrap();
        bench.add(&capture, 1000).unwrap();
        let graph = capture.end().unwrap().into_graph();
        assert_eq!(kinds(&graph), [NodeKind::If, NodeKind::Kernel, NodeKind::Kernel]);
        assert_eq!(bench.run(&graph), 1101);
        bench.works_again();
        streams.iter().for_each(works_again);
    });
}

#[test]
fn only_bodies_of_the_capture_are_captured_into() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let other = context.graph().unwrap();
        let condition = other.condition_with_default(1).unwrap();
        let theirs = other.root().if_node(&condition).unwrap();
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        let node = capture.if_node(&always, |body| bench.add(body, 1)).unwrap();
        let removed = capture.condition_with_default(1).unwrap();
        let gone = capture.add(|at| at.if_node(&removed)).unwrap();
        let gone_body = gone.body().unwrap();
        gone.remove().unwrap();
        for graph in [&other, &theirs.body().unwrap(), node.graph(), &gone_body] {
            let refused = capture.capture_body(graph).map(drop).unwrap_err();
            assert_eq!(refused, Error::Capture(CaptureError::NotABody));
        }
        // A condition of another graph.
        let foreign = bench.set(&capture, &condition, 1).unwrap_err();
        assert!(matches!(foreign, Error::Condition(ConditionError::ForeignCondition { .. })), "{foreign}");
        let foreign = capture.if_node(&condition, |body| bench.add(body, 1)).unwrap_err();
        assert!(matches!(foreign, Error::Condition(ConditionError::ForeignCondition { .. })), "{foreign}");
        drop(capture);
        bench.works_again();
    });
}

/// A graph of three nodes in a row, with owners.
struct Given {
    graph: Graph,
    ends: [Node; 2],
    nodes: Vec<Node>,
    edges: Vec<cuda_graph::Edge>,
}

impl Given {
    fn new(bench: &Bench) -> Self {
        let graph = bench.stream.context().graph().unwrap();
        let first: Node = graph.root().fill(&bench.numbers, 0).unwrap().into();
        let last: Node = first.then().launch(&bench.add, per(1, 1), (1000, &bench.numbers)).unwrap().into();
        last.then().copy(bench.numbers.slice(..1).unwrap(), bench.numbers.slice(1..2).unwrap()).unwrap();
        let (nodes, edges) = (graph.nodes().unwrap(), graph.edges().unwrap());
        Self { graph, ends: [first, last], nodes, edges }
    }

    /// It is as it was.
    #[track_caller]
    fn is_untouched(&self, what: &str) {
        assert_eq!(self.graph.nodes().unwrap(), self.nodes, "{what}");
        let edges = self.graph.edges().unwrap();
        assert!(
            edges.len() == self.edges.len() && edges.iter().all(|edge| self.edges.contains(edge)),
            "{what}: {edges:?}, before {:?}",
            self.edges
        );
    }
}

#[test]
fn captured_nodes_are_added_to_a_given_graph_at_its_frontier() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for between in [false, true] {
            let given = Given::new(&bench);
            let [first, last] = &given.ends;
            let frontier = match between {
                true => given.graph.between(first, last).unwrap(),
                false => first.then().before([last]).unwrap(),
            };
            let result = frontier
                .capture(&bench.stream, LOCAL, |capture| {
                    bench.add(capture, 1)?;
                    let [fork] = capture.split()?;
                    bench.add(&fork, 10)?;
                    fork.fill(&bench.others, 3)?;
                    bench.add(capture, 100)?;
                    capture.join([fork])?;
                    Ok::<_, Error>("result")
                })
                .unwrap();
            assert_eq!(result, "result");
            let nodes = given.graph.nodes().unwrap();
            assert_eq!(nodes.len(), 7);
            let [start, forked, filled, beside] = [&nodes[3], &nodes[4], &nodes[5], &nodes[6]];
            assert_eq!(start.predecessors().unwrap(), slice::from_ref(first));
            assert_eq!(forked.predecessors().unwrap(), slice::from_ref(start));
            assert_eq!(filled.successors().unwrap(), slice::from_ref(last));
            assert_eq!(beside.successors().unwrap(), slice::from_ref(last));
            let direct = last.predecessors().unwrap().contains(first);
            assert_eq!(direct, !between, "the edge is replaced exactly if it was asked for");
            assert_eq!(bench.run(&given.graph), 1111);
            bench.works_again();
        }
    });
}

#[test]
fn a_given_graph_is_as_it_was_after_each_failure() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        // With it, what could not be destroyed is destroyed later.
        let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
        for between in [false, true] {
            let mut done = false;
            for nth in 1.. {
                let given = Given::new(&bench);
                let (owner, is_gone) = flag();
                let mut owner = Some(owner);
                let [first, last] = &given.ends;
                let frontier = match between {
                    true => given.graph.between(first, last).unwrap(),
                    false => first.then().before([last]).unwrap(),
                };
                let mut injection = None;
                let outcome = frontier.capture(&bench.stream, LOCAL, |capture| {
                    bench.add(capture, 1)?;
                    capture.keep(owner.take().unwrap())?;
                    let always = capture.condition_with_default(1)?;
                    capture.if_node(&always, |body| bench.add(body, 10))?;
                    let [fork] = capture.split()?;
                    bench.add(&fork, 100)?;
                    fork.fill(&bench.others, 3)?;
                    bench.add(capture, 5000)?;
                    injection = Some(cuda_tests::fail_any(nth, code));
                    Ok::<_, Error>(())
                });
                let hit = injection.as_ref().and_then(|injection| injection.hit_call());
                drop(injection);
                bench.works_again();
                let Some(call) = hit else {
                    outcome.unwrap();
                    assert_eq!(bench.run(&given.graph), 6111);
                    done = true;
                    break;
                };
                if let Err(error) = &outcome {
                    assert!(error.to_string().contains("CUDA_ERROR_NOT_PERMITTED"), "{call:?}: {error}");
                    given.is_untouched(&format!("between {between}, call {nth}: {}", call.name()));
                    assert!(soon(&is_gone), "{call:?}: what was captured is let go");
                }
            }
            assert!(done);
        }
    });
}

#[test]
fn a_ready_made_loop_in_a_capture_into_a_given_graph_goes_with_the_capture() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let counter = bench.stream.zeros::<u32>(1).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        for fails in [true, false] {
            let given = Given::new(&bench);
            let [first, last] = &given.ends;
            let outcome = first.then().before([last]).unwrap().capture(&bench.stream, LOCAL, |capture| {
                capture.ready_made(&bench, &counter)?;
                if fails { Err(Error::Capture(CaptureError::NotABody)) } else { Ok(()) }
            });
            assert_eq!(outcome.is_err(), fails);
            if fails {
                given.is_untouched("a loop");
            } else {
                assert_eq!(bench.run(&given.graph), 12114);
            }
            bench.works_again();
        }
    });
}

#[test]
fn a_given_graph_whose_nodes_cannot_be_taken_away_again_is_broken() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let counter = bench.stream.zeros::<u32>(1).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        for in_body in [false, true] {
            let given = Given::new(&bench);
            let mut injection = None;
            let failed = given.ends[0]
                .then()
                .capture(&bench.stream, LOCAL, |capture| {
                    let mut fails = || {
                        injection = Some(fail(Call::cuGraphDestroyNode, 1, code));
                        Err(Error::Capture(CaptureError::NotABody))
                    };
                    if in_body {
                        let always = capture.condition_with_default(1)?;
                        return capture.if_node(&always, |_| fails()).map(drop);
                    }
                    capture.while_loop(Test::nonzero(&counter), |body| bench.add(body, 1))?;
                    fails()
                })
                .unwrap_err();
            assert!(injection.is_some_and(|injection| injection.hit()));
            assert_eq!(failed, Error::Capture(CaptureError::NotABody), "the closure's error");
            let broken = given.graph.root().empty().unwrap_err();
            assert!(matches!(broken, Error::Broken(_)), "{broken}");
            assert!(broken.to_string().contains("cuGraphDestroyNode"), "{broken}");
            bench.works_again();
        }
    });
}

#[test]
fn a_ready_made_loop_that_gets_no_place_leaves_nothing() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let counter = bench.stream.zeros::<u32>(1).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        let capture = bench.begin();
        let refused = {
            let injection = fail(Call::cuLaunchHostFunc, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            let refused = capture.if_then(Test::zero(&counter), |body| bench.add(body, 1)).map(drop);
            assert!(injection.hit());
            refused
        };
        refused.unwrap_err();
        let node = capture.if_then(Test::zero(&counter), |body| bench.add(body, 5)).unwrap();
        assert_eq!(node.graph().len().unwrap(), 3, "where it begins, the deciding kernel, and the node");
        assert_eq!(bench.run(capture.end().unwrap().graph()), 5);
        bench.works_again();
    });
}

#[test]
fn a_position_that_is_gone_at_the_end_is_refused() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for gone in 0..2 {
            let given = Given::new(&bench);
            let [first, last] = &given.ends;
            let outcome = first.then().before([last]).unwrap().capture(&bench.stream, LOCAL, |capture| {
                bench.add(capture, 1)?;
                given.ends[gone].remove()
            });
            assert!(
                matches!(outcome, Err(Error::Node(cuda_graph::NodeError::Removed { .. }))),
                "{outcome:?}"
            );
            assert_eq!(given.graph.len().unwrap(), 2);
            bench.works_again();
        }
    });
}

#[test]
fn a_placed_node_removed_during_the_capture_is_named_at_the_end() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        bench.add(&capture, 1).unwrap();
        let always = capture.condition_with_default(1).unwrap();
        let node = capture.if_node(&always, |body| bench.add(body, 1)).unwrap().named("removed");
        node.remove().unwrap();
        bench.add(&capture, 1).unwrap();
        let refused = capture.end().unwrap_err();
        assert!(refused.to_string().contains("removed"), "{refused}");
        bench.works_again();
    });
}

unsafe extern "C" fn nothing(_: *mut core::ffi::c_void) {}

#[test]
fn what_cannot_be_copied_is_refused_by_name() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let allocate = |stream: cuda_sys::CUstream| {
            let mut address = 0;
            // SAFETY: the stream lives and captures; the out pointer is valid.
            unsafe {
                raw::ok(raw::driver().cuMemAllocAsync(&raw mut address, 64, stream));
                raw::ok(raw::driver().cuMemsetD8Async(address, 1, 64, stream));
                raw::ok(raw::driver().cuMemFreeAsync(address, stream));
            }
        };
        // A graph of its own may have them.
        let graph = bench
            .stream
            .capture(CaptureMode::Relaxed, |capture| {
                bench.add(capture, 1)?;
                // SAFETY: it uses only memory of its own.
                unsafe { capture.foreign(allocate, []) }
            })
            .unwrap();
        assert_eq!(kinds(&graph)[1..], [NodeKind::Alloc, NodeKind::Memset, NodeKind::Free]);
        assert_eq!(bench.run(&graph), 1);
        drop(graph);
        let given = Given::new(&bench);
        let refused = given.ends[0]
            .then()
            .capture(&bench.stream, CaptureMode::Relaxed, |capture| {
                bench.add(capture, 1)?;
                // SAFETY: as above.
                unsafe { capture.foreign(allocate, []) }
            })
            .unwrap_err();
        assert!(matches!(refused, Error::Capture(CaptureError::NotCopied { .. })), "{refused}");
        assert!(refused.to_string().contains("`alloc"), "{refused}");
        given.is_untouched("memory nodes");
        // Other nodes of other code can.
        given.ends[0]
            .then()
            .capture(&bench.stream, CaptureMode::Relaxed, |capture| {
                // SAFETY: the function does nothing.
                unsafe {
                    capture.foreign(
                        |stream| raw::driver().cuLaunchHostFunc(stream, Some(nothing), core::ptr::null_mut()),
                        [],
                    )
                }
            })
            .unwrap();
        assert_eq!(given.graph.len().unwrap(), 4);
        bench.works_again();
    });
    context.trim_graph_memory().unwrap();
}

#[test]
fn memory_nodes_in_a_body_are_refused_by_name_and_the_rest_goes_on() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        let refused = capture
            .if_node(&always, |body| {
                // SAFETY: it uses only memory of its own.
                unsafe {
                    body.foreign(
                        |stream| {
                            let mut address = 0;
                            let mut mode = cuda_sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
                            raw::ok(raw::driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
                            raw::ok(raw::driver().cuMemAllocAsync(&raw mut address, 64, stream));
                            raw::ok(raw::driver().cuMemFreeAsync(address, stream));
                            raw::ok(raw::driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
                        },
                        [],
                    )
                }
            })
            .unwrap_err();
        assert!(matches!(refused, Error::Condition(ConditionError::NotInBody { .. })), "{refused}");
        bench.add(&capture, 4).unwrap();
        capture.if_node(&always, |body| bench.add(body, 1)).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 5);
        bench.works_again();
    });
}

#[test]
fn a_given_graph_keeps_what_was_captured_into_it_and_lets_go_of_it_with_its_nodes() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let before = live().of(Object::Allocation);
        let buffers: Vec<_> = (0..3).map(|_| bench.stream.zeros::<u32>(4).unwrap()).collect();
        bench.stream.synchronize_blocking().unwrap();
        graph
            .root()
            .capture(&bench.stream, LOCAL, |capture| {
                buffers.iter().try_for_each(|buffer| capture.fill(buffer, 1))
            })
            .unwrap();
        drop(buffers);
        settle();
        assert_eq!(live().of(Object::Allocation), before + 3);
        for (place, node) in graph.nodes().unwrap().iter().enumerate() {
            node.remove().unwrap();
            let left = before + 2 - place as i64;
            let gone = until(SOON, || {
                settle();
                live().of(Object::Allocation) == left
            });
            assert!(gone, "after the removal of {}", place + 1);
        }
        bench.works_again();
    });
}

#[test]
fn a_failing_placement_takes_the_node_away() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let inner = bench.stream.capture(LOCAL, |capture| bench.add(capture, 7)).unwrap();
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        for _ in 0..2 {
            let injection = fail(Call::cuLaunchHostFunc, 1, code);
            capture.if_node(&always, |body| bench.add(body, 1)).unwrap_err();
            assert!(injection.hit());
            drop(injection);
            let injection = fail(Call::cuLaunchHostFunc, 1, code);
            capture.embed(&inner).unwrap_err();
            assert!(injection.hit());
        }
        let node = capture.if_node(&always, |body| bench.add(body, 1)).unwrap();
        assert_eq!(kinds(node.graph()), [NodeKind::If]);
        assert_eq!(bench.run(capture.end().unwrap().graph()), 1);
        bench.works_again();
    });
}
