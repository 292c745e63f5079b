//! Scopes: however a closure ends, its capture ends, and the streams work afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::capture::{Capturing, GraphBuilder, Kind};
use cuda_graph::{CaptureError, ConditionError, ContextExt, Error, Result, StreamExt};
use cuda_handles::Stream;
use cuda_handles::capture::CaptureMode;
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, needs, no_leaks, settle, setup};

use super::{Bench, MODES, invalidate, works_again};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// The error of a closure.
#[derive(Debug, PartialEq)]
enum Own {
    Chosen(u32),
    Graph(String),
}

impl From<Error> for Own {
    fn from(error: Error) -> Self {
        Self::Graph(error.to_string())
    }
}

/// How a closure ends.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Returns,
    Fails,
    Panics,
    Invalidates,
}

const EXITS: [Exit; 4] = [Exit::Returns, Exit::Fails, Exit::Panics, Exit::Invalidates];

impl Exit {
    fn take<K: Kind>(self, at: &GraphBuilder<K, Capturing>) -> Result<(), Own> {
        match self {
            Self::Returns => Ok(()),
            Self::Fails => Err(Own::Chosen(7)),
            Self::Panics => panic!("on purpose"),
            Self::Invalidates => {
                invalidate(at.stream());
                Ok(())
            }
        }
    }

    /// Asserts that a scope ended as its closure did.
    #[track_caller]
    fn check<T>(self, outcome: std::thread::Result<Result<T, Own>>) {
        match (self, outcome) {
            (Self::Returns, Ok(Ok(_))) | (Self::Fails, Ok(Err(Own::Chosen(7)))) | (Self::Panics, Err(_)) => {}
            (Self::Invalidates, Ok(Err(Own::Graph(text)))) => assert!(text.contains("invalidated"), "{text}"),
            (exit, Ok(Err(error))) => panic!("{exit:?}: {error:?}"),
            (exit, outcome) => panic!("{exit:?}: is_ok {}", outcome.is_ok()),
        }
    }
}

fn caught<T>(run: impl FnOnce() -> T) -> std::thread::Result<T> {
    catch_unwind(AssertUnwindSafe(run))
}

#[test]
fn a_scope_ends_its_capture_however_the_closure_ends() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for mode in MODES {
            for exit in EXITS {
                let outcome = caught(|| {
                    bench.stream.try_capture(mode, |capture| {
                        bench.add(capture, 1)?;
                        exit.take(capture)?;
                        Ok::<_, Own>(5)
                    })
                });
                if let Ok(Ok((graph, result))) = &outcome {
                    assert_eq!((graph.len().unwrap(), *result), (1, 5));
                }
                exit.check(outcome);
                bench.works_again();
            }
        }
    });
}

#[test]
fn forks_of_a_scope_end_with_it() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for exit in EXITS {
            let mut streams: Vec<Stream> = Vec::new();
            let outcome = caught(|| {
                bench.stream.try_capture(LOCAL, |capture| {
                    let [left, right] = capture.split()?;
                    bench.add(&left, 1)?;
                    let [deep] = right.split()?;
                    bench.add(&deep, 2)?;
                    streams.extend([&left, &right, &deep].map(|fork| fork.stream().clone()));
                    exit.take(&deep)
                })
            });
            if let Ok(Ok((graph, ()))) = &outcome {
                assert_eq!(bench.run(graph), 3, "joined by the scope");
            }
            exit.check(outcome);
            bench.works_again();
            streams.iter().for_each(works_again);
        }
    });
}

#[test]
fn forks_that_outlive_their_scope_are_over() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut kept = Vec::new();
        let graph = bench
            .stream
            .capture(LOCAL, |capture| {
                kept = capture.split_into(2)?;
                bench.add(&kept[0], 4)
            })
            .unwrap();
        assert_eq!(bench.run(&graph), 4);
        for fork in &kept {
            let over = bench.add(fork, 1).unwrap_err();
            assert_eq!(over, Error::Capture(CaptureError::Over { kind: "fork" }));
            works_again(fork.stream());
        }
    });
}

#[test]
fn bodies_of_a_scope_end_with_it_at_every_depth() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        // How deep the exit is, and whether a fork leads there.
        for (exit, depth, forked) in EXITS
            .into_iter()
            .flat_map(|exit| (0..3).flat_map(move |depth| [(exit, depth, false), (exit, depth, true)]))
        {
            let mut streams: Vec<Stream> = Vec::new();
            let outcome = caught(|| {
                bench.stream.try_capture(LOCAL, |capture| {
                    bench.add(capture, 1)?;
                    deeper(&bench, capture, (exit, depth, forked), &mut streams)?;
                    bench.add(capture, 1)?;
                    Ok::<_, Own>(())
                })
            });
            if let Ok(Ok((graph, ()))) = &outcome {
                assert_eq!(bench.run(graph), 2 + 10 * (1 + depth));
            }
            exit.check(outcome);
            bench.works_again();
            streams.iter().for_each(works_again);
        }
    });
}

/// A branch that runs, in it another one, and so on down to the exit.
fn deeper<K: Kind>(
    bench: &Bench,
    at: &GraphBuilder<K, Capturing>,
    (exit, depth, forked): (Exit, u32, bool),
    streams: &mut Vec<Stream>,
) -> Result<(), Own> {
    if forked {
        let [fork] = at.split()?;
        streams.push(fork.stream().clone());
        branch(bench, &fork, (exit, depth, forked), streams)?;
        return Ok(at.join([fork])?);
    }
    branch(bench, at, (exit, depth, forked), streams)
}

fn branch<K: Kind>(
    bench: &Bench,
    at: &GraphBuilder<K, Capturing>,
    (exit, depth, forked): (Exit, u32, bool),
    streams: &mut Vec<Stream>,
) -> Result<(), Own> {
    let always = at.condition_with_default(1)?;
    at.if_node(&always, |body| {
        streams.push(body.stream().clone());
        bench.add(body, 10)?;
        match depth {
            0 => exit.take(body),
            _ => deeper(bench, body, (exit, depth - 1, forked), streams),
        }
    })?;
    Ok(())
}

#[test]
fn a_capture_into_a_graph_that_ends_in_whatever_way_leaves_that_graph_as_it_was() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        for exit in EXITS {
            let graph = context.graph().unwrap();
            let first = graph.root().fill(&bench.numbers, 100).unwrap();
            let last =
                first.then().launch(&bench.add, cuda_launch::per(1, 1), (1000, &bench.numbers)).unwrap();
            let before = (graph.nodes().unwrap(), graph.edges().unwrap());
            let outcome = caught(|| {
                first.then().before([&last]).unwrap().capture(&bench.stream, LOCAL, |capture| {
                    bench.add(capture, 1)?;
                    let always = capture.condition_with_default(1)?;
                    capture.if_node(&always, |body| bench.add(body, 10))?;
                    let [fork] = capture.split()?;
                    fork.fill(&bench.others, 1)?;
                    exit.take(capture)
                })
            });
            if let Ok(Ok(())) = outcome {
                assert_eq!(bench.run(&graph), 1111);
            } else {
                assert_eq!((graph.nodes().unwrap(), graph.edges().unwrap()), before, "{exit:?}");
                // The driver cannot take back the condition; the next one like it takes its place.
                let unused = graph.instantiate().unwrap_err();
                let is_unused = matches!(
                    unused,
                    Error::Condition(ConditionError::UnusedCondition { default: Some(1), .. })
                );
                assert!(is_unused, "{exit:?}: {unused}");
                let always = graph.condition_with_default(1).unwrap();
                last.then().if_node(&always).unwrap();
                assert_eq!(bench.run(&graph), 1100);
            }
            exit.check(outcome);
            bench.works_again();
        }
    });
}

#[test]
fn a_join_at_the_end_of_a_scope_that_fails_discards_the_capture() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        for call in [Call::cuEventRecord, Call::cuStreamWaitEvent, Call::cuStreamEndCapture] {
            // A call of the reaper would fail in place of one of the scope.
            settle();
            let mut streams = Vec::new();
            let mut injection = None;
            let failed = bench
                .stream
                .capture(LOCAL, |capture| {
                    let forks = capture.split_into(2)?;
                    streams.extend(forks.iter().map(|fork| fork.stream().clone()));
                    forks.iter().try_for_each(|fork| bench.add(fork, 1))?;
                    injection = Some(fail(call, 1, code));
                    Ok(())
                })
                .unwrap_err();
            assert_eq!(failed, Error::Handles(cuda_handles::Error::Driver { call, code }));
            drop(injection);
            bench.works_again();
            streams.iter().for_each(works_again);
        }
    });
}

#[test]
fn scopes_of_two_streams_nest() {
    let context = setup();
    no_leaks(|| {
        let (bench, other) = (Bench::new(&context), context.stream().unwrap());
        for exit in EXITS {
            let mut inner = None;
            let outer = bench
                .stream
                .capture(LOCAL, |capture| {
                    bench.add(capture, 1)?;
                    inner = Some(caught(|| {
                        other.try_capture(LOCAL, |there| {
                            bench.add(there, 5)?;
                            exit.take(there)
                        })
                    }));
                    bench.add(capture, 2)
                })
                .unwrap();
            exit.check(inner.unwrap());
            assert_eq!(bench.run(&outer), 3, "{exit:?}: only the inner one ends");
            bench.works_again();
            works_again(&other);
        }
    });
}
