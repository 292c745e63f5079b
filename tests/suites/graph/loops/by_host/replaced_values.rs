//! When values of graph parameters are let go where the host decides.

use cuda_graph::{ContextExt, Error, Fallback, GraphParam, HostLoopExec, InstantiateOptions, Test};
use cuda_handles::{Buffer, Context, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, Injection, Kind, SOON, fail, live, no_leaks, setup, until};

use crate::common::gone::{flag, soon};

const LEN: usize = 8;

/// An executable that fills a target, and then branches by memory of its own.
struct Lab {
    context: Context,
    stream: Stream,
    memory: Buffer<u32>,
    target: GraphParam<[u32]>,
    exec: HostLoopExec,
}

impl Lab {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let (memory, level) = (stream.zeros::<u32>(LEN).unwrap(), stream.zeros::<u32>(1).unwrap());
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let target = graph.param(&memory).unwrap();
        let fill = graph.root().fill(&target, 7).unwrap();
        fill.then().if_then(Test::zero(&level), |body| body.root().fill(&target, 8).map(drop)).unwrap();
        let fallback = Fallback::HostLoopAlways;
        let exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        Self { context: context.clone(), stream, memory, target, exec }
    }

    /// The same memory with another owner, and whether that is gone.
    fn value(&self) -> (Buffer<u32>, impl Fn() -> bool + use<>) {
        let (owner, is_gone) = flag();
        let (memory, address) = (self.memory.clone(), self.memory.address());
        // SAFETY: the owner keeps the memory.
        let value = unsafe { Buffer::from_foreign(&self.context, address, LEN, (owner, memory)) };
        (value.unwrap(), is_gone)
    }

    /// Runs with a value that nobody else holds.
    fn run(&mut self) -> (Result<(), Error>, impl Fn() -> bool + use<>) {
        let (value, is_gone) = self.value();
        (self.exec.run_blocking_with(&self.stream, ((&self.target, &value),)), is_gone)
    }

    fn fails(&mut self) -> impl Fn() -> bool + use<> {
        let injection = failing();
        let (outcome, is_gone) = self.run();
        assert!(outcome.is_err() && injection.hit());
        is_gone
    }
}

/// The first wait of a run fails at once.
fn failing() -> Injection {
    fail(Call::cuStreamSynchronize, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM)
}

#[test]
fn a_run_lets_go_of_the_values_before() {
    let context = setup();
    no_leaks(|| {
        let mut lab = Lab::new(&context);
        let (first, is_gone) = lab.run();
        first.unwrap();
        assert!(!is_gone());
        let (second, is_second_gone) = lab.run();
        second.unwrap();
        // All runs are over, so nothing is left to the reaper.
        assert!(is_gone() && !is_second_gone());
        // A value that was set and never ran goes with the next.
        let (value, is_gone) = lab.value();
        lab.exec.set(&lab.target, &value).unwrap();
        drop(value);
        assert!(!is_gone());
        lab.exec.set(&lab.target, &lab.memory).unwrap();
        assert!(is_gone());
        drop(lab);
        assert!(soon(&is_second_gone));
    });
}

#[test]
fn what_a_failed_run_used_goes_with_the_next_that_succeeds() {
    let context = setup();
    no_leaks(|| {
        let mut lab = Lab::new(&context);
        let gate = Gate::close(&lab.stream);
        let (is_first_gone, is_second_gone) = (lab.fails(), lab.fails());
        assert!(!is_first_gone() && !is_second_gone(), "the gate holds both runs up");
        gate.open();
        let (third, _) = lab.run();
        third.unwrap();
        assert!(soon(&is_first_gone) && soon(&is_second_gone));
        assert_eq!(lab.memory.read_blocking(&lab.stream).unwrap(), [8; LEN]);
        // From then on nothing is left to the reaper again.
        let (fourth, is_gone) = lab.run();
        fourth.unwrap();
        let (fifth, _) = lab.run();
        fifth.unwrap();
        assert!(is_gone());
    });
}

#[test]
fn what_a_failed_run_used_goes_with_the_executable() {
    let context = setup();
    no_leaks(|| {
        let mut lab = Lab::new(&context);
        let stream = lab.stream.clone();
        let gate = Gate::close(&stream);
        let (is_first_gone, is_second_gone) = (lab.fails(), lab.fails());
        drop(lab);
        assert!(!is_first_gone() && !is_second_gone(), "the gate holds both runs up");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(soon(&is_first_gone) && soon(&is_second_gone));
    });
}

#[test]
fn runs_that_all_fail_are_flat_in_memory() {
    let context = setup();
    no_leaks(|| {
        let mut lab = Lab::new(&context);
        let before = live();
        for round in 0..400 {
            let value = lab.stream.zeros::<u32>(LEN).unwrap();
            let injection = failing();
            lab.exec.run_blocking_with(&lab.stream, ((&lab.target, &value),)).unwrap_err();
            drop(injection);
            drop(value);
            if round % 100 == 99 {
                lab.stream.synchronize_blocking().unwrap();
                let is_flat = until(SOON, || live().since(&before).of(Kind::Allocation) <= 70);
                assert!(is_flat, "after {round}: {}", live().since(&before));
            }
        }
    });
}
