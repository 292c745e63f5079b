//! The fault sweep over captures: whichever call fails, the error says so, nothing is left behind,
//! and the streams take new work and new captures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{ContextExt, Error, Graph, Result, StreamExt, Test};
use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
use cuda_handles::{Buffer, Context, Owner, Stream};
use cuda_launch::per;
use cuda_sys::{CUstream, Call};
use cuda_tests::{Need, every_failure, needs, raw, setup, sweep, used_stream};

use super::{MODES, N, add_to, count_down, set_to, works_again};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// A stream with events of its own, and kernels.
struct Things {
    stream: Stream,
    add: add_to,
    set: set_to,
    down: count_down,
}

impl Things {
    fn new(context: &Context) -> Self {
        Self {
            stream: used_stream(context),
            add: add_to::load(context).unwrap(),
            set: set_to::load(context).unwrap(),
            down: count_down::load(context).unwrap(),
        }
    }

    /// Settled numbers.
    fn numbers(&self) -> Result<Buffer<u32>> {
        let numbers = self.stream.zeros::<u32>(N)?;
        self.stream.synchronize_blocking()?;
        Ok(numbers)
    }

    /// The first number after a run of the graph.
    fn run(&self, graph: Graph, numbers: &Buffer<u32>) -> Result<u32> {
        let mut exec = graph.instantiate()?;
        drop(graph);
        exec.launch(&self.stream)?;
        Ok(numbers.read_blocking(&self.stream)?[0])
    }
}

#[test]
fn captures_of_every_kind_of_call() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let things = Things::new(&context);
    let mut cases = 0;
    for mode in MODES {
        cases += sweep(&format!("a capture in {mode:?} mode"), || -> Result<(), Error> {
            let (numbers, others) = (things.numbers()?, things.numbers()?);
            let calls = Arc::new(AtomicU32::new(0));
            let inside = Arc::clone(&calls);
            let graph = things.stream.capture(mode, |capture| {
                let stream = capture.stream();
                things.add.launch(stream, per(1, 1), (1, &numbers))?;
                capture.launch(&things.add, per(1, 1), (2, &numbers))?;
                capture.launch(&things.add, per(1, 1).priority(-1), (4, &numbers))?;
                capture.copy(numbers.slice(..1)?, others.slice(2..3)?)?;
                stream.fill(others.slice(..2)?, 9)?;
                capture.write(others.slice(4..6)?, &[5, 6])?;
                let staged = capture.copy_of(&[8_u32])?;
                capture.copy(&staged, others.slice(3..4)?)?;
                capture.callback(move || {
                    inside.fetch_add(1, Ordering::Relaxed);
                })?;
                capture.keep(Owner::other(5_u32))
            })?;
            assert_eq!(things.run(graph, &numbers)?, 7);
            assert_eq!(others.read_blocking(&things.stream)?[..7], [9, 9, 7, 8, 5, 6, 0]);
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            Ok(())
        });
    }
    assert!(cases >= 300, "{cases}");
}

#[test]
fn forks_and_builders_as_values() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let things = Things::new(&context);
    let mut cases = sweep("forks joined by builders", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let capture = things.stream.graph_builder().begin()?;
        let [left, right] = capture.split()?;
        left.launch(&things.add, per(1, 1), (1, &numbers))?;
        let [deep] = right.split()?;
        deep.launch(&things.add, per(1, 1), (2, &numbers))?;
        right.join([deep])?;
        capture.launch(&things.add, per(1, 1), (4, &numbers))?;
        capture.join([left, right])?;
        capture.info()?;
        let ended = capture.end()?;
        assert_eq!(ended.unmatched()?, 0);
        assert_eq!(things.run(ended.into_graph(), &numbers)?, 7);
        Ok(())
    });
    cases += sweep("forks joined by the scope", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let graph = things.stream.capture(LOCAL, |capture| {
            let forks = capture.split_into(3)?;
            for fork in &forks {
                fork.launch(&things.add, per(1, 1), (1, &numbers))?;
                let [inner] = fork.split()?;
                inner.fill(numbers.slice(4..)?, 7)?;
            }
            Ok(())
        })?;
        assert_eq!(things.run(graph, &numbers)?, 3);
        Ok(())
    });
    cases += sweep("builders that any thread ends", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let capture = things.stream.graph_builder().begin_on_any_thread()?;
        capture.launch(&things.add, per(1, 1), (5, &numbers))?;
        let end = || capture.end();
        let ended = std::thread::scope(|scope| scope.spawn(end).join().unwrap())?;
        assert_eq!(things.run(ended.into_graph(), &numbers)?, 5);
        Ok(())
    });
    assert!(cases >= 400, "{cases}");
}

#[test]
fn memory_of_captures() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let things = Things::new(&context);
    let mut cases = sweep("temporaries in a capture", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let mut kept = None;
        let graph = things.stream.capture(LOCAL, |capture| {
            for _ in 0..3 {
                let temporary = capture.zeros::<u32>(N)?;
                capture.launch(&things.add, per(1, 1), (3, &temporary))?;
                capture.copy(temporary.slice(..1)?, numbers.slice(..1)?)?;
            }
            let [fork] = capture.split()?;
            kept = Some(fork.zeros::<u32>(2)?);
            Ok(())
        })?;
        assert_eq!(things.run(graph, &numbers)?, 3);
        assert_eq!(kept.unwrap().read_blocking(&things.stream)?, [0; 2]);
        Ok(())
    });
    cases += sweep("memory that captures share", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let scratch = Scratch::new(&context);
        let options = CaptureOptions::new().scratch(&scratch);
        let mut execs = Vec::new();
        for len in [4, 8] {
            let graph = things.stream.capture(options.clone(), |capture| {
                let temporary = capture.zeros::<u32>(len)?;
                capture.launch(&things.add, per(1, 1), (len as u32, &temporary))?;
                capture.copy(temporary.slice(..1)?, numbers.slice(..1)?)
            })?;
            execs.push(graph.instantiate()?);
        }
        for exec in &mut execs {
            exec.launch(&things.stream)?;
        }
        assert_eq!(numbers.read_blocking(&things.stream)?[0], 8);
        Ok(())
    });
    assert!(cases >= 300, "{cases}");
}

#[test]
fn captures_that_are_given_up() {
    let context = setup();
    let things = Things::new(&context);
    let numbers = things.numbers().unwrap();
    // A failing end is tried again, and nobody has to know.
    let calls = every_failure(|| -> Result<(), Error> {
        for by_stream in [false, true] {
            let capture = things.stream.graph_builder().begin()?;
            let [fork] = capture.split()?;
            fork.launch(&things.add, per(1, 1), (5, &numbers))?;
            if by_stream {
                fork.stream().discard_capture()?;
            }
            drop(capture);
        }
        things.stream.fill(&numbers, 1)?;
        Ok(())
    });
    assert!(calls >= 10, "{calls}");
    works_again(&things.stream);
}

#[test]
fn bodies_of_each_kind() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let things = Things::new(&context);
    let mut cases = sweep("branches and loops", || -> Result<(), Error> {
        let (numbers, counter) = (things.numbers()?, things.numbers()?);
        let graph = things.stream.capture(LOCAL, |capture| {
            capture.fill(&counter, 3)?;
            let is_set = capture.condition()?;
            capture.launch(&things.set, per(1, 1), (1, &is_set))?;
            capture.if_node(&is_set, |body| {
                let go_on = body.condition_with_default(1)?;
                body.while_node(&go_on, |inner| {
                    let [fork] = inner.split()?;
                    fork.launch(&things.add, per(1, 1), (1, &numbers))?;
                    inner.launch(&things.down, per(1, 1), (&counter, &go_on))
                })
            })?;
            let [fork] = capture.split()?;
            let always = fork.condition_with_default(1)?;
            fork.if_node(&always, |body| body.launch(&things.add, per(1, 1), (10, &numbers)))?;
            capture.join([fork])
        })?;
        assert_eq!(things.run(graph, &numbers)?, 13);
        Ok(())
    });
    cases += sweep("a body filled by hand", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let capture = things.stream.graph_builder().begin()?;
        let always = capture.condition_with_default(1)?;
        let node = capture.if_node(&always, |_| Ok::<_, Error>(()))?;
        let first = node.body()?.root().launch(&things.add, per(1, 1), (1, &numbers))?;
        let body = capture.capture_body(&node.body()?)?;
        body.launch(&things.add, per(1, 1), (2, &numbers))?;
        drop(body.end()?);
        first.then().launch(&things.add, per(1, 1), (4, &numbers))?;
        assert_eq!(things.run(capture.end()?.into_graph(), &numbers)?, 7);
        Ok(())
    });
    if Need::Branches.is_met() {
        cases += sweep("branches of two, and switches", || -> Result<(), Error> {
            let numbers = things.numbers()?;
            let graph = things.stream.capture(LOCAL, |capture| {
                let either = capture.condition_with_default(0)?;
                let add = |amount| (amount, &numbers);
                capture.if_else_node(
                    &either,
                    |body| body.launch(&things.add, per(1, 1), add(1)),
                    |body| body.launch(&things.add, per(1, 1), add(2)),
                )?;
                let number = capture.condition_with_default(1)?;
                capture.switch_node(&number, 3, |place, body| {
                    body.launch(&things.add, per(1, 1), add(10 * (1 + place as u32)))
                })
            })?;
            assert_eq!(things.run(graph, &numbers)?, 22);
            Ok(())
        });
    }
    assert!(cases >= 400, "{cases}");
}

#[test]
fn ready_made_loops() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Branches);
    let things = Things::new(&context);
    let cases = sweep("ready-made loops in a capture", || -> Result<(), Error> {
        let (numbers, counter) = (things.numbers()?, things.numbers()?);
        let graph = things.stream.capture(LOCAL, |capture| {
            capture.fill(&counter, 3)?;
            capture.while_loop(Test::nonzero(&counter), |body| {
                body.launch(&things.add, per(1, 1), (1, &numbers))?;
                body.launch(&things.add, per(1, 1), (u32::MAX, &counter))
            })?;
            capture.do_while_loop(Test::nonzero(&counter), |body| {
                body.launch(&things.add, per(1, 1), (10, &numbers))
            })?;
            capture.if_then_else(
                Test::zero(&counter),
                |body| {
                    body.if_then(Test::zero(&counter), |inner| {
                        inner.launch(&things.add, per(1, 1), (100, &numbers))
                    })
                },
                |body| body.fill(&numbers, 7),
            )
        })?;
        assert_eq!(things.run(graph, &numbers)?, 113);
        Ok(())
    });
    assert!(cases >= 200, "{cases}");
}

#[test]
fn captures_into_a_given_graph() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let things = Things::new(&context);
    let mut cases = 0;
    for between in [false, true] {
        cases += sweep(&format!("into a graph, between {between}"), || -> Result<(), Error> {
            let (numbers, counter) = (things.numbers()?, things.numbers()?);
            let graph = context.graph()?;
            let first = graph.root().fill(&numbers, 0)?;
            let last = first.then().launch(&things.add, per(1, 1), (1000, &numbers))?;
            let before = (graph.nodes()?, graph.edges()?);
            let at = match between {
                true => graph.between(&first, &last)?,
                false => first.then().before([&*last])?,
            };
            let captured = at.capture(&things.stream, LOCAL, |capture| {
                capture.launch(&things.add, per(1, 1), (1, &numbers))?;
                let always = capture.condition_with_default(1)?;
                capture.if_node(&always, |body| body.launch(&things.add, per(1, 1), (10, &numbers)))?;
                capture.while_loop(Test::nonzero(&counter), |body| body.fill(&counter, 0))?;
                let [fork] = capture.split()?;
                fork.launch(&things.add, per(1, 1), (100, &numbers))?;
                Ok::<_, Error>(())
            });
            if let Err(error) = captured {
                // As it was, and still of use.
                let after = (graph.nodes()?, graph.edges()?);
                let same = after.1.len() == before.1.len()
                    && after.1.iter().all(|edge| before.1.contains(edge))
                    && after.0 == before.0;
                assert!(same, "{error}: before {before:?}, after {after:?}");
                return Err(error);
            }
            assert_eq!(things.run(graph, &numbers)?, 1111);
            Ok(())
        });
    }
    assert!(cases >= 400, "{cases}");
}

#[test]
fn nodes_by_hand_graphs_and_other_code() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let things = Things::new(&context);
    let set = |stream: CUstream, memory: &Buffer<u32>| -> Result<()> {
        // SAFETY: the stream lives, and the memory is kept by the caller.
        let code = unsafe { raw::driver().cuMemsetD32Async(memory.address(), 6, 1, stream) };
        let call = Call::cuMemsetD32Async;
        if code.is_success() { Ok(()) } else { Err(cuda_handles::Error::Driver { call, code }.into()) }
    };
    let mut cases = sweep("other code and graphs in a capture", || -> Result<(), Error> {
        let (numbers, others) = (things.numbers()?, things.numbers()?);
        let inner =
            things.stream.capture(LOCAL, |capture| capture.launch(&things.add, per(1, 1), (1, &numbers)))?;
        let mut foreign = None;
        let graph = things.stream.capture(LOCAL, |capture| {
            // SAFETY: the memory is kept.
            unsafe {
                capture.foreign(|stream| set(stream, &numbers), [Owner::from(&numbers)])??;
                foreign =
                    Some(capture.embed_foreign(others.clone(), move |stream, memory: &Buffer<u32>| {
                        set(stream, memory)?;
                        Ok(vec![Owner::from(memory)])
                    })?);
            }
            capture.embed(&inner)?;
            capture.add(|at| at.launch(&things.add, per(1, 1), (2, &numbers)))?.named("by hand");
            Ok(())
        })?;
        let foreign = foreign.unwrap();
        let mut exec = graph.instantiate()?;
        foreign.set_in(&mut exec, numbers.clone())?;
        exec.launch(&things.stream)?;
        drop(exec);
        foreign.set(others)?;
        assert_eq!(things.run(graph, &numbers)?, 9);
        Ok(())
    });
    cases += sweep("memory of the graph in a capture", || -> Result<(), Error> {
        let numbers = things.numbers()?;
        let graph = things.stream.capture(LOCAL, |capture| {
            let memory = capture.alloc::<u32>(N)?;
            capture.add(|at| at.fill(&memory, 3))?;
            capture.launch(&things.add, per(1, 1), (1, &numbers))?;
            capture.add(|at| at.copy(memory.slice(..1)?, numbers.slice(1..2)?))?;
            capture.free(&memory)
        })?;
        assert_eq!(things.run(graph, &numbers)?, 1);
        assert_eq!(numbers.read_blocking(&things.stream)?[1], 3);
        Ok(())
    });
    assert!(cases >= 300, "{cases}");
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}
