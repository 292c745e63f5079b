//! Bodies of shaped graphs: empty ones, nested ones, conditions that are set elsewhere, and what
//! updates, edits and caches do to them.

use cuda_graph::{
    CacheOptions, Condition, ContextExt, Error, Frontier, Graph, GraphCache, GraphExec, GraphParam,
    InstantiateOptions, KernelNode, LoopBody, Order, RefusalReason, Shape, Test, UpdateError,
};
use cuda_handles::{Buffer, reaper};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{alone, fail, kernel, needs, no_leaks, setup};

use super::conditionals::{Bench, ONE_LESS};
use super::{first, shaped, shapes};
use crate::capture::set_to;
use crate::conditions::branches_and_loops::increment_by;

const ORDERS: [Order; 2] = [Order::AsDrawn, Order::ByData];

/// All shapes in all orders, the drawn one first.
fn options() -> impl Iterator<Item = InstantiateOptions> {
    let shapes = [Shape::AsBuilt].into_iter().chain(shapes());
    let option =
        |(shape, order)| InstantiateOptions::new().shape(shape).order(order).programmatic_edges(true);
    shapes.flat_map(|shape| ORDERS.map(|order| (shape, order))).map(option)
}

/// Behind all nodes of a graph.
fn all(graph: &Graph) -> Frontier<'_> {
    graph.after_all(&graph.nodes().unwrap()).unwrap()
}

/// Adds to a number behind some nodes, with a redundant edge and an empty node between.
fn tangle(bench: &Bench, graph: &Graph, amount: u32, number: &Buffer<u32>) -> [KernelNode; 2] {
    let all = graph.nodes().unwrap();
    let before = graph.after_all(&all).unwrap().launch(&bench.add, per(1, 1), (amount, number)).unwrap();
    let join = before.then().empty().unwrap();
    let after = graph.after([&*before, &*join]).unwrap();
    [before, after.launch(&bench.add, per(1, 1), (amount, number)).unwrap()]
}

#[test]
fn empty_bodies_do_nothing_and_keep_nodes_in_order() {
    let context = setup();
    needs!(Branches);
    needs!(EmptyBodies);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (x, one) = (bench.number(0), bench.number(1));
        let graph = context.graph().unwrap();
        let [yes, again, never, choice] =
            [1, 1, 0, 1].map(|default| graph.condition_with_default(default).unwrap());
        graph.root().fill(&x, 1).unwrap();
        all(&graph).if_node(&yes).unwrap();
        tangle(&bench, &graph, 1, &x);
        let either = all(&graph).if_else_node(&again).unwrap();
        either.then_body().unwrap().root().empty().unwrap();
        either.else_body().unwrap().root().launch(&bench.add, per(1, 1), (1_000, &x)).unwrap();
        tangle(&bench, &graph, 10, &x);
        all(&graph).while_node(&never).unwrap();
        let switch = all(&graph).switch_node(&choice, 3).unwrap();
        let inside = switch.bodies().unwrap();
        // An empty child graph between two empty nodes.
        let start = inside[1].root().empty().unwrap();
        start.then().child(&context.graph().unwrap()).unwrap().then().empty().unwrap();
        tangle(&bench, &graph, 100, &x);
        // An empty branch in a branch.
        let test = Test::nonzero(&one);
        let nested = all(&graph).if_then(test, |body| {
            body.root().if_then(test, |_| Ok::<_, Error>(()))?.then().launch(&bench.add, per(1, 1), (7, &x))
        });
        nested.unwrap();
        for options in options() {
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            for _ in 0..2 {
                exec.launch(&bench.stream).unwrap();
                assert_eq!(first(&x, &bench.stream), 1 + 2 + 20 + 200 + 7, "{options:?}");
            }
        }
    });
}

/// Conditions that are set in one body and read by nodes elsewhere.
struct Relay {
    graph: Graph,
    seen: Buffer<u32>,
    rounds: Buffer<u32>,
}

impl Relay {
    fn new(bench: &Bench, set: &set_to) -> Self {
        let graph = bench.context.graph().unwrap();
        let (seen, rounds) = (bench.number(0), bench.number(0));
        let [always, later, kept] = [Some(1), Some(0), None].map(|default| match default {
            Some(default) => graph.condition_with_default(default).unwrap(),
            None => graph.condition().unwrap(),
        });
        let go_on = graph.condition_with_default(1).unwrap();
        let add = |graph: &Graph, amount| {
            tangle(bench, graph, amount, &seen);
        };
        let then = |graph: &Graph, condition: &Condition, value: u32| {
            let all = graph.after_all(&graph.nodes().unwrap()).unwrap();
            all.launch(set, per(1, 1), (value, condition)).unwrap();
        };
        graph.root().fill(&rounds, 3).unwrap();
        add(&graph, 1);
        // The first branch lets the second one run, and chooses for the switch in the loop.
        let one = all(&graph).if_node(&always).unwrap().body().unwrap();
        add(&one, 10);
        then(&one, &later, 1);
        then(&one, &kept, 1);
        add(&graph, 100);
        let two = all(&graph).if_node(&later).unwrap().body().unwrap();
        add(&two, 1_000);
        let body = all(&graph).while_node(&go_on).unwrap().body().unwrap();
        add(&body, 10_000);
        let branches = all(&body).switch_node(&kept, 3).unwrap().bodies().unwrap();
        // The second branch chooses the third for the rounds that follow.
        add(&branches[1], 100_000);
        then(&branches[1], &kept, 2);
        add(&branches[2], 1_000_000);
        all(&body).launch(&bench.count_down, per(1, 1), (&rounds, &go_on)).unwrap();
        add(&graph, 10_000_000);
        Self { graph, seen, rounds }
    }
}

const RELAYED: u32 = 2 * (1 + 10 + 100 + 1_000 + 3 * 10_000 + 100_000 + 2 * 1_000_000 + 10_000_000);

#[test]
fn conditions_are_set_in_one_body_for_nodes_elsewhere() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let set = set_to::load(&context).unwrap();
        for options in options() {
            let Relay { graph, seen, rounds } = Relay::new(&bench, &set);
            // A condition with a number that was used before.
            let spare = graph.condition_with_default(5).unwrap();
            drop(spare);
            let again = graph.condition_with_default(5).unwrap();
            let all = graph.nodes().unwrap();
            let last = graph.after_all(&all).unwrap().switch_node(&again, 1).unwrap();
            assert_eq!(last.bodies().unwrap().len(), 1);
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            for _ in 0..2 {
                bench.stream.clear(&seen).unwrap();
                exec.launch(&bench.stream).unwrap();
                assert_eq!(first(&seen, &bench.stream), RELAYED, "{options:?}");
                assert_eq!(first(&rounds, &bench.stream), 0);
            }
            // Another graph that is built alike has the same numbers.
            let other = Relay::new(&bench, &set);
            let again = other.graph.condition_with_default(5).unwrap();
            let all = other.graph.nodes().unwrap();
            other.graph.after_all(&all).unwrap().switch_node(&again, 1).unwrap();
            assert!(exec.update(&other.graph).unwrap().is_updated(), "{options:?}");
            exec.launch(&bench.stream).unwrap();
            assert_eq!(first(&other.seen, &bench.stream), RELAYED, "{options:?}");
            drop(graph);
            drop(other.graph);
            bench.stream.clear(&other.seen).unwrap();
            exec.launch(&bench.stream).unwrap();
            assert_eq!(first(&other.seen, &bench.stream), RELAYED, "{options:?}");
        }
    });
}

/// A loop in a branch in a child graph in a loop.
struct Nest {
    graph: Graph,
    /// The kernels around each level and inside the innermost.
    levels: Vec<[KernelNode; 2]>,
}

impl Nest {
    /// Adds the amount four times, for each of two outer and three inner rounds, and around them.
    fn new(bench: &Bench, counters: &[Buffer<u32>; 2], amount: u32, number: &Buffer<u32>) -> Self {
        let graph = bench.context.graph().unwrap();
        let mut levels = vec![tangle(bench, &graph, amount, number)];
        all(&graph).fill(&counters[0], 2).unwrap();
        let round = |body: &LoopBody| {
            levels.push(tangle(bench, body, amount, number));
            let child = all(body).child(&bench.context.graph()?)?;
            let inside = child.embedded()?;
            inside.root().fill(&counters[1], 3)?;
            let branch = all(&inside).if_then(Test::nonzero(&counters[0]), |branch| {
                levels.push(tangle(bench, branch, amount, number));
                let inner = all(branch).while_loop(Test::nonzero(&counters[1]), |body| {
                    levels.push(tangle(bench, body, amount, number));
                    all(body).launch(&bench.add, per(1, 1), (ONE_LESS, &counters[1]))
                });
                inner.map(drop)
            });
            branch?;
            all(body).launch(&bench.add, per(1, 1), (ONE_LESS, &counters[0]))
        };
        all(&graph).while_loop(Test::nonzero(&counters[0]), round).unwrap();
        levels.push(tangle(bench, &graph, amount, number));
        Self { graph, levels }
    }
}

const ROUNDS: [u32; 5] = [1, 2, 2, 6, 1];

#[test]
fn nested_bodies_are_updated_by_their_own_nodes() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters = [bench.number(0), bench.number(0)];
        let numbers: Vec<_> = (0..5).map(|_| bench.number(0)).collect();
        let x = bench.number(0);
        for options in options() {
            let own = Nest::new(&bench, &counters, 1, &x);
            let mut exec = own.graph.instantiate_with(options.clone()).unwrap();
            let run = |exec: &mut GraphExec| {
                numbers.iter().chain([&x]).for_each(|number| stream.clear(number).unwrap());
                exec.launch(stream).unwrap();
                let levels: Vec<u32> = numbers.iter().map(|number| first(number, stream)).collect();
                (levels, first(&x, stream))
            };
            let each = |factor: u32| ROUNDS.map(|rounds| factor * rounds).to_vec();
            let sum: u32 = ROUNDS.into_iter().sum();
            assert_eq!(run(&mut exec), (each(0), 2 * sum), "{options:?}");
            // The first kernel of each level counts elsewhere.
            for (number, [node, _]) in numbers.iter().zip(&own.levels) {
                exec.node(node).set(&bench.add, per(1, 1), (1, number)).unwrap();
            }
            assert_eq!(run(&mut exec), (each(1), sum), "{options:?}");
            own.levels.iter().for_each(|[node, _]| exec.node(node).set_enabled(false).unwrap());
            assert_eq!(run(&mut exec), (each(0), sum), "{options:?}");
            // They stay disabled in an update from another graph, by whose nodes they are known.
            let other = Nest::new(&bench, &counters, 10, &x);
            assert_eq!(exec.check_update(&other.graph).unwrap(), [], "{options:?}");
            assert!(exec.update(&other.graph).unwrap().is_updated(), "{options:?}");
            assert_eq!(run(&mut exec), (each(0), 10 * sum), "{options:?}");
            for (number, [node, _]) in numbers.iter().zip(&other.levels) {
                assert!(!exec.node(node).is_enabled().unwrap());
                exec.node(node).set_enabled(true).unwrap();
                exec.node(node).set(&bench.add, per(1, 1), (3, number)).unwrap();
            }
            for [_, node] in &own.levels {
                exec.node(node).set(&bench.add, per(1, 1), (2, &x)).unwrap();
            }
            assert_eq!(run(&mut exec), (each(3), 2 * sum), "{options:?}");
            // Back to the own graph, with other parameters of the innermost kernel.
            own.levels[3][1].set(&bench.add, per(1, 1), (5, &numbers[0])).unwrap();
            assert!(exec.update(&own.graph).unwrap().is_updated(), "{options:?}");
            assert_eq!(run(&mut exec), (vec![30, 0, 0, 0, 0], 2 * sum - 6), "{options:?}");
        }
    });
}

#[test]
fn a_graph_whose_bodies_were_edited_updates_no_shaped_executable() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters = [bench.number(0), bench.number(0)];
        let x = bench.number(0);
        let sum: u32 = ROUNDS.into_iter().sum();
        for options in options().skip(2) {
            let own = Nest::new(&bench, &counters, 1, &x);
            let mut exec = own.graph.instantiate_with(options.clone()).unwrap();
            let run = |exec: &mut GraphExec| {
                stream.clear(&x).unwrap();
                exec.launch(stream).unwrap();
                first(&x, stream)
            };
            // The innermost body gets a node, and another one loses one.
            let inner = own.levels[3][1].graph().clone();
            let late = inner.after_all(&inner.nodes().unwrap()).unwrap();
            let late = late.launch(&bench.add, per(1, 1), (100, &x)).unwrap();
            let [_, removed] = &own.levels[2];
            removed.remove().unwrap();
            assert_eq!(run(&mut exec), 2 * sum, "{options:?}");
            let refused = exec.node(&late).set(&bench.add, per(1, 1), (1, &x));
            assert!(
                matches!(refused, Err(Error::Update(UpdateError::NotInExecutable { .. }))),
                "{refused:?}"
            );
            assert!(exec.node(removed).set_enabled(false).is_err());
            exec.node(&own.levels[3][0]).set(&bench.add, per(1, 1), (2, &x)).unwrap();
            assert_eq!(run(&mut exec), 2 * sum + 6, "{options:?}");
            let refused = exec.update(&own.graph).unwrap();
            assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped, "{options:?}");
            assert_eq!(run(&mut exec), 2 * sum + 6, "{options:?}");
            let rebuilt = exec.update_or_rebuild(&own.graph).unwrap();
            assert!(rebuilt.is_some());
            assert_eq!(run(&mut exec), 2 * sum - 2 + 600, "{options:?}");
        }
    });
}

#[test]
fn parameters_enable_and_replace_nodes_of_bodies() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y, z) = (bench.number(0), bench.number(0), bench.number(0));
        let (one, two) = (bench.number(11), bench.number(22));
        for options in options() {
            let graph = context.graph().unwrap();
            let (source, target) = (graph.param(&one).unwrap(), graph.param(&y).unwrap());
            let [fills, copies, adds] = [(); 3].map(|()| graph.param(true).unwrap());
            let value = graph.param(5_u32).unwrap();
            let inside = |body: &LoopBody| {
                let fill = body.root().fill(&x, &value)?;
                fill.enabled_by(&fills)?;
                let empty = fill.then().empty()?;
                let copy = body.after([&*fill, &*empty])?.copy(&source, &target)?;
                copy.enabled_by(&copies)?;
                let add = copy.then().launch(&bench.add, per(1, 1), (1, &x))?;
                add.enabled_by(&adds)?;
                let last = body.after([&*fill, &*add])?;
                last.launch(&bench.add, per(1, 1), (ONE_LESS, &z)).map(drop)
            };
            let start = graph.root().fill(&z, 2).unwrap();
            start.then().while_loop(Test::nonzero(&z), inside).unwrap();
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            let read = || [&x, &y, &z].map(|number| first(number, stream));
            exec.launch(stream).unwrap();
            assert_eq!(read(), [6, 11, 0], "{options:?}");
            exec.launch_with(stream, ((&fills, false), (&source, &two))).unwrap();
            assert_eq!(read(), [8, 22, 0], "{options:?}");
            exec.launch_with(stream, ((&copies, false), (&source, &one), (&adds, false))).unwrap();
            assert_eq!(read(), [8, 22, 0], "{options:?}");
            exec.launch_with(stream, ((&fills, true), (&value, 9), (&copies, true))).unwrap();
            assert_eq!(read(), [9, 11, 0], "{options:?}");
            assert!(exec.update(&graph).unwrap().is_updated(), "{options:?}");
            exec.launch(stream).unwrap();
            assert_eq!(read(), [6, 11, 0], "{options:?}");
            stream.clear(&y).unwrap();
        }
    });
}

#[test]
fn memory_of_bodies_is_kept_as_long_as_the_executable_uses_it() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        for options in options() {
            let counter = bench.number(1);
            let build = |value: u32, to: &Buffer<u32>| {
                let host = context.pinned_zeros::<u32>(1).map(|mut host| {
                    host[0] = value;
                    host.share()
                });
                let host = host.unwrap();
                let graph = context.graph().unwrap();
                let copied = graph.root().fill(&counter, 1).unwrap();
                let body = copied.then().while_loop(Test::nonzero(&counter), |body| {
                    body.root().copy(&host, to)?;
                    tangle(&bench, body, 1, to);
                    body.after_all(&body.nodes()?)?.launch(&bench.add, per(1, 1), (ONE_LESS, &counter))
                });
                body.unwrap();
                (graph, host)
            };
            let to = bench.number(0);
            let (graph, host) = build(5, &to);
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            drop(graph);
            exec.launch(stream).unwrap();
            assert_eq!(first(&to, stream), 7, "{options:?}");
            // The executable keeps its graph.
            let host = host.try_unique().unwrap_err();
            let (second, other) = build(50, &to);
            assert!(exec.update(&second).unwrap().is_updated(), "{options:?}");
            drop(second);
            exec.launch(stream).unwrap();
            assert_eq!(first(&to, stream), 52, "{options:?}");
            let other = other.try_unique().unwrap_err();
            drop(exec);
            assert!(host.try_unique().is_ok() && other.try_unique().is_ok(), "{options:?}");
        }
    });
}

#[test]
fn nodes_are_updated_whose_first_kernels_are_of_no_use_any_more() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, counter) = (bench.number(0), bench.number(0));
        for options in options() {
            stream.clear(&x).unwrap();
            // Of a library of its own.
            let former = increment_by::load(&context).unwrap();
            let graph = context.graph().unwrap();
            let launch = |graph: &Graph| {
                let before = all(graph).launch(&former, per(1, 1), (1, &x)).unwrap();
                let empty = before.then().empty().unwrap();
                let after = graph.after([&*before, &*empty]).unwrap();
                [after.launch(&former, per(1, 1), (1, &x)).unwrap(), before]
            };
            graph.root().fill(&counter, 2).unwrap();
            let outside = launch(&graph);
            let inside = all(&graph).while_loop(Test::nonzero(&counter), |body| {
                let inside = launch(body);
                all(body).launch(&bench.add, per(1, 1), (ONE_LESS, &counter))?;
                Ok::<_, Error>(inside)
            });
            let inside = inside.unwrap().into_inside();
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            for node in outside.iter().chain(&inside) {
                node.set(&bench.add, per(1, 1), (10, &x)).unwrap();
            }
            assert!(exec.update(&graph).unwrap().is_updated());
            exec.launch(stream).unwrap();
            assert_eq!(first(&x, stream), 60);
            drop(former);
            reaper::drain();
            for node in outside.iter().chain(&inside) {
                exec.node(node).set(&bench.add, per(1, 1), (100, &x)).unwrap();
                exec.node(node).set_enabled(false).unwrap();
                exec.node(node).set_enabled(true).unwrap();
            }
            exec.launch(stream).unwrap();
            assert_eq!(first(&x, stream), 660, "{options:?}");
            drop((graph, outside, inside));
            drop(exec);
        }
    });
}

#[test]
fn caches_of_shaped_loops_take_structures_and_data_that_change() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters = [bench.number(0), bench.number(0)];
        let [x, y] = [bench.number(0), bench.number(0)];
        let sum: u32 = ROUNDS.into_iter().sum();
        for options in options() {
            let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
            let (mut in_x, mut in_y) = (0, 0);
            [&x, &y].into_iter().for_each(|number| stream.clear(number).unwrap());
            for stamp in 0..6_u32 {
                let (number, expected) = if stamp % 2 == 0 { (&x, &mut in_x) } else { (&y, &mut in_y) };
                let build = || {
                    let nest = Nest::new(&bench, &counters, stamp, number);
                    if stamp == 4 {
                        // Another structure in the innermost body.
                        let inner = nest.levels[3][1].graph().clone();
                        inner.after_all(&inner.nodes()?)?.launch(&bench.add, per(1, 1), (100, number))?;
                    }
                    Ok((nest.graph, ()))
                };
                let mut cached = cache.get_with(stream, &options, 1, u64::from(stamp), build).unwrap();
                cached.parts().0.launch(stream).unwrap();
                drop(cached);
                *expected += 2 * stamp * sum + if stamp == 4 { 600 } else { 0 };
                assert_eq!((first(&x, stream), first(&y, stream)), (in_x, in_y), "{stamp}: {options:?}");
            }
        }
    });
}

#[test]
fn wide_sets_of_branches_and_in_branches_run_in_lanes() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let numbers: Vec<_> = (0..8).map(|_| bench.number(0)).collect();
        let (yes, sum) = (bench.number(1), bench.number(0));
        let graph = context.graph().unwrap();
        let start = graph.root().launch(&bench.add, per(1, 1), (1, &sum)).unwrap();
        let branches: Vec<_> = numbers
            .iter()
            .map(|number| {
                let branch = start.then().if_then(Test::nonzero(&yes), |body| {
                    let begin = body.root().launch(&bench.add, per(1, 1), (1, number))?;
                    for _ in 0..4 {
                        begin.then().copy(&yes, number)?;
                    }
                    body.after_all(&body.nodes()?)?.launch(&bench.add, per(1, 1), (1, number))
                });
                (**branch.unwrap()).clone()
            })
            .collect();
        graph.after_all(&branches).unwrap().launch(&bench.add, per(1, 1), (10, &sum)).unwrap();
        for options in options() {
            numbers.iter().chain([&sum]).for_each(|number| stream.clear(number).unwrap());
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            for round in 1..3 {
                exec.launch(stream).unwrap();
                assert_eq!(first(&sum, stream), 11 * round, "{options:?}");
                for number in &numbers {
                    assert_eq!(first(number, stream), 2, "{options:?}");
                }
            }
        }
    });
}

#[test]
fn a_kernel_that_may_wait_deep_in_a_branch_stops_what_is_beside() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let increment = kernel(&context, "increment");
        let numbers = bench.stream.zeros::<u32>(crate::capture::N).unwrap();
        let many: Vec<_> = (0..4).map(|_| bench.number(0)).collect();
        let yes = bench.number(1);
        let fan = |graph: &Graph| {
            let begin = graph.root().launch(&bench.add, per(1, 1), (1, &many[0]))?;
            many.iter().try_for_each(|number| {
                begin.then().launch(&bench.add, per(1, 1), (1, number))?;
                Ok::<_, Error>(())
            })
        };
        let report = |waits: bool| {
            let graph = context.graph().unwrap();
            let test = Test::nonzero(&yes);
            // One branch may hold the kernel, two levels down; the other one is beside it.
            let one = graph.root().if_then(test, |body| {
                let inner = body.root().if_then(test, |body| {
                    if waits {
                        // SAFETY: the kernel increments the numbers that it is given.
                        unsafe {
                            body.root().launch_untyped(&increment, per(1, 1), params![&numbers, 1_u32])
                        }?;
                    }
                    Ok::<_, Error>(())
                });
                inner.map(drop)
            });
            one.unwrap();
            let two = graph.root().if_then(test, |body| body.root().if_then(test, fan).map(drop));
            two.unwrap();
            let exec = shaped(&graph, shapes()[2]);
            exec.shape_report().unwrap().to_string()
        };
        assert!(report(false).contains("threaded 4 nodes"), "{}", report(false));
        let found = report(true);
        assert!(!found.contains("threaded 4 nodes"), "{found}");
        assert!(found.contains("beside the conditional node may wait"), "{found}");
    });
}

#[test]
fn a_driver_that_refuses_a_step_of_a_copy_leaves_the_executable_as_it_was() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters = [bench.number(0), bench.number(0)];
        let x = bench.number(0);
        let sum: u32 = ROUNDS.into_iter().sum();
        let own = Nest::new(&bench, &counters, 1, &x);
        let mut exec = shaped(&own.graph, Shape::Reduced);
        let other = Nest::new(&bench, &counters, 10, &x);
        let steps = (1..=3).map(|nth| (Call::cuGraphConditionalHandleCreate, nth));
        let steps = steps.chain([1, 5, 9, 13].map(|nth| (Call::cuGraphAddNode, nth)));
        let run = |exec: &mut GraphExec| {
            stream.clear(&x).unwrap();
            exec.launch(stream).unwrap();
            first(&x, stream)
        };
        for (step, nth) in steps {
            let failure = fail(step, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let refused = exec.update(&other.graph).unwrap();
            assert!(failure.hit(), "{step:?} {nth}");
            drop(failure);
            assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
            exec.node(&own.levels[3][0]).set(&bench.add, per(1, 1), (2, &x)).unwrap();
            assert_eq!(run(&mut exec), 2 * sum + 6);
        }
        assert!(exec.update(&other.graph).unwrap().is_updated());
        assert_eq!(run(&mut exec), 20 * sum);
    });
}

#[test]
fn the_first_drivers_with_conditionals_get_no_empty_body() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (x, none) = (bench.number(0), bench.number(0));
        let graph = context.graph().unwrap();
        graph.root().fill(&x, 1).unwrap();
        let yes = graph.condition_with_default(1).unwrap();
        all(&graph).if_node(&yes).unwrap();
        tangle(&bench, &graph, 1, &x);
        all(&graph).while_loop(Test::nonzero(&none), |_| Ok::<_, Error>(())).unwrap();
        let last = all(&graph).if_then(Test::nonzero(&x), |body| body.root().empty().map(drop)).unwrap();
        last.then().launch(&bench.add, per(1, 1), (10, &x)).unwrap();
        for options in options() {
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            exec.launch(&bench.stream).unwrap();
            assert_eq!(first(&x, &bench.stream), 13, "{options:?}");
            assert!(exec.update(&graph).unwrap().is_updated());
            exec.launch(&bench.stream).unwrap();
            assert_eq!(first(&x, &bench.stream), 13, "{options:?}");
        }
    });
}

#[test]
fn deep_nests_are_shaped_updated_and_drawn() {
    const DEPTH: u32 = 100;
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, yes) = (bench.number(0), bench.number(1));
        let graph = context.graph().unwrap();
        let mut at = graph.clone();
        let mut innermost = None;
        for _ in 0..DEPTH {
            let [_, last] = tangle(&bench, &at, 1, &x);
            let branch =
                last.then().if_then(Test::nonzero(&yes), |body| Ok::<_, Error>(body.clone())).unwrap();
            tangle(&bench, &at, 1, &x);
            at = branch.into_inside();
            innermost = Some(last);
        }
        tangle(&bench, &at, 1, &x);
        for options in options() {
            stream.clear(&x).unwrap();
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            exec.launch(stream).unwrap();
            assert_eq!(first(&x, stream), 4 * DEPTH + 2, "{options:?}");
            exec.node(innermost.as_ref().unwrap()).set(&bench.add, per(1, 1), (2, &x)).unwrap();
            exec.launch(stream).unwrap();
            assert_eq!(first(&x, stream), 2 * (4 * DEPTH + 2) + 1, "{options:?}");
            assert!(exec.update(&graph).unwrap().is_updated());
            assert!(!exec.to_dot().unwrap().is_empty());
        }
    });
}

#[test]
fn defaults_of_conditions_follow_whole_updates() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let x = bench.number(0);
        let build = |outer: u32, inner: u32| {
            let graph = context.graph().unwrap();
            let [outer, inner] = [outer, inner].map(|value| graph.condition_with_default(value).unwrap());
            tangle(&bench, &graph, 1, &x);
            let body = all(&graph).if_node(&outer).unwrap().body().unwrap();
            tangle(&bench, &body, 10, &x);
            // The default of this one is set by a node of the body.
            let inside = all(&body).if_node(&inner).unwrap().body().unwrap();
            tangle(&bench, &inside, 100, &x);
            tangle(&bench, &graph, 1_000, &x);
            graph
        };
        for options in options() {
            let own = build(1, 1);
            let mut exec = own.instantiate_with(options.clone()).unwrap();
            for (outer, inner) in [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)] {
                let other = build(outer, inner);
                assert!(exec.update(&other).unwrap().is_updated(), "{options:?}");
                for _ in 0..2 {
                    stream.clear(&x).unwrap();
                    exec.launch(stream).unwrap();
                    let expected = 2 * (1_001 + outer * (10 + inner * 100));
                    assert_eq!(first(&x, stream), expected, "{outer} {inner} {options:?}");
                }
            }
        }
    });
}

#[test]
fn updates_and_launches_of_loops_follow_each_other_without_a_wait() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters = [bench.number(0), bench.number(0)];
        let x = bench.number(0);
        let sum: u32 = ROUNDS.into_iter().sum();
        for options in options() {
            stream.clear(&x).unwrap();
            let own = Nest::new(&bench, &counters, 1, &x);
            let mut exec = own.graph.instantiate_with(options.clone()).unwrap();
            exec.launch(stream).unwrap();
            for amount in 2..12 {
                let other = Nest::new(&bench, &counters, amount, &x);
                assert!(exec.update(&other.graph).unwrap().is_updated(), "{options:?}");
                drop(other);
                exec.launch(stream).unwrap();
            }
            drop((exec, own));
            assert_eq!(first(&x, stream), 2 * sum * (1..12).sum::<u32>(), "{options:?}");
        }
    });
}

#[test]
fn a_kernel_that_may_wait_is_refused_in_a_body_that_relies_on_progress() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let increment = kernel(&context, "increment");
        let numbers = bench.stream.zeros::<u32>(crate::capture::N).unwrap();
        let many: Vec<_> = (0..4).map(|_| bench.number(0)).collect();
        let yes = bench.number(1);
        let build = || {
            let graph = context.graph().unwrap();
            let branch = graph.root().if_then(Test::nonzero(&yes), |body| {
                let inner = body.root().if_then(Test::nonzero(&yes), |body| {
                    let begin = body.root().launch(&bench.add, per(1, 1), (1, &many[0]))?;
                    let add = |number| begin.then().launch(&bench.add, per(1, 1), (1, number));
                    let named = |(at, number)| Ok(add(number)?.named(format!("inner {at}")));
                    (0..).zip(&many).map(named).collect::<Result<Vec<_>, Error>>()
                });
                inner.map(|inner| inner.into_inside())
            });
            (graph, branch.unwrap().into_inside())
        };
        let (own, nodes) = build();
        let mut exec = shaped(&own, shapes()[2]);
        assert!(exec.shape_report().unwrap().to_string().contains("threaded 4 nodes"));
        // SAFETY: the kernel increments the numbers that it is given.
        let refused =
            unsafe { exec.node(&nodes[1]).set_untyped(&increment, per(1, 1), params![&numbers, 1_u32]) };
        let Err(Error::Update(UpdateError::NotPossible { node, why })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(node.to_string(), "inner 1");
        assert!(why.contains("may wait"), "{why}");
        let (other, others) = build();
        // SAFETY: as above.
        unsafe { others[2].set_untyped(&increment, per(1, 1), params![&numbers, 1_u32]) }.unwrap();
        let refused = exec.update(&other).unwrap();
        let refusal = refused.refusal().unwrap();
        assert_eq!(refusal.reason, RefusalReason::Shaped);
        assert!(refusal.to_string().contains("inner 2"), "{refusal}");
        exec.launch(&bench.stream).unwrap();
        assert_eq!(first(&many[3], &bench.stream), 1);
        assert!(exec.update_or_rebuild(&other).unwrap().is_some());
        exec.launch(&bench.stream).unwrap();
        assert_eq!([2, 3].map(|at| first(&many[at], &bench.stream)), [1, 2]);
        assert_eq!(first(&numbers, &bench.stream), 1);
    });
}

#[test]
fn kernels_that_set_conditions_take_parameters_ordered_by_data() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let [x, y, no, yes] = [0, 0, 0, 1].map(|value| bench.number(value));
        let build = |former: usize| {
            let graph = context.graph().unwrap();
            let chosen = graph.param(&no).unwrap();
            // The driver gives the condition the same number, however many there were before.
            (0..former).for_each(|_| drop(graph.condition().unwrap()));
            let condition = graph.condition().unwrap();
            // The kernels need no order with the fill, but with each other.
            let fill = graph.root().fill(&y, 5).unwrap();
            let early = fill.then().launch(&bench.set_from, per(1, 1), (&yes, &condition)).unwrap();
            let set = early.then().launch(&bench.set_from, per(1, 1), (&chosen, &condition)).unwrap();
            let body = set.then().if_node(&condition).unwrap().body().unwrap();
            tangle(&bench, &body, 1, &x);
            (graph, chosen)
        };
        for options in options() {
            let run = |exec: &mut GraphExec, chosen: &GraphParam<_>, memory: &Buffer<u32>| {
                stream.clear(&x).unwrap();
                exec.launch_with(stream, ((chosen, memory),)).map(|()| first(&x, stream))
            };
            let check = |exec: &mut GraphExec, chosen: &GraphParam<_>| {
                for _ in 0..2 {
                    assert_eq!(run(exec, chosen, &no).unwrap(), 0, "{options:?}");
                    assert_eq!(run(exec, chosen, &yes).unwrap(), 2, "{options:?}");
                }
                // With the memory of the fill, the kernel needs that order.
                let met = run(exec, chosen, &y);
                match options.wanted_order() {
                    Order::ByData => assert!(matches!(met, Err(Error::Update(UpdateError::Meets { .. })))),
                    _ => assert_eq!(met.unwrap(), 2),
                }
                assert_eq!(run(exec, chosen, &no).unwrap(), 0, "{options:?}");
            };
            let (own, chosen) = build(0);
            let mut exec = own.instantiate_with(options.clone()).unwrap();
            check(&mut exec, &chosen);
            let (other, chosen) = build(3);
            assert!(exec.update(&other).unwrap().is_updated(), "{options:?}");
            check(&mut exec, &chosen);
        }
    });
}
