//! A launch on another stream that fails, while the launch before it is in flight: that one keeps
//! what it uses.

use std::time::Duration;

use cuda_graph::ContextExt;
use cuda_handles::{Buffer, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, fail, no_leaks, setup, until};

use crate::common::gone::{allocations, flag};

const N: usize = 1 << 19;
const REFUSED: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
const A_WHILE: Duration = Duration::from_millis(100);

fn settled(stream: &Stream) -> Buffer<u32> {
    let memory = stream.zeros::<u32>(N).unwrap();
    stream.synchronize_blocking().unwrap();
    memory
}

#[test]
fn values_stay_until_the_launch_in_flight_is_over() {
    let context = setup();
    no_leaks(|| {
        let [first, second] = [(); 2].map(|()| context.stream().unwrap());
        let (one, last) = (settled(&first), settled(&first));
        let graph = context.graph().unwrap();
        let target = graph.param(&last).unwrap();
        graph.root().fill(&target, 7_u32).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&first).unwrap();
        first.synchronize_blocking().unwrap();
        let gate = Gate::close(&first);
        exec.launch_with(&first, ((&target, &one),)).unwrap();
        drop(one);
        let before = allocations();
        let injected = fail(Call::cuGraphLaunch, 1, REFUSED);
        exec.launch_with(&second, ((&target, &last),)).unwrap_err();
        assert!(injected.hit());
        exec.release();
        let freed = until(A_WHILE, || allocations() < before);
        gate.open();
        first.synchronize_blocking().unwrap();
        assert!(!freed, "the launch in flight fills it");
    });
}

#[test]
fn owners_stay_until_the_launch_in_flight_is_over() {
    let context = setup();
    no_leaks(|| {
        let [first, second] = [(); 2].map(|()| context.stream().unwrap());
        let memory = settled(&first);
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&memory, 7_u32).unwrap();
        let (owner, is_gone) = flag();
        fill.keep(owner).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&first).unwrap();
        first.synchronize_blocking().unwrap();
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        let injected = fail(Call::cuGraphLaunch, 1, REFUSED);
        exec.launch(&second).unwrap_err();
        assert!(injected.hit());
        let before = allocations();
        drop((graph, fill, memory));
        drop(exec);
        let freed = until(A_WHILE, || is_gone() || allocations() < before);
        gate.open();
        first.synchronize_blocking().unwrap();
        assert!(!freed, "the launch in flight uses it");
    });
}
