//! Owners of graphs of two devices outlive their runs, wherever these are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::{Buffer, reaper};
use cuda_launch::per;
use cuda_tests::states::loss;
use cuda_tests::{Gate, Kind, SOON, alone, live, needs, on_two_devices, setup, until};

use super::{LEN, N, Two, leaves_nothing, offset_copy};

#[test]
fn everything_is_dropped_while_a_run_is_in_flight_on_either_device() {
    on_two_devices!();
    let two = Two::new();
    for device in [0, 1] {
        leaves_nothing(|| {
            let stream = &two.streams[device];
            let pooled = two.streams[1].zeros::<u32>(LEN).unwrap();
            two.streams[1].synchronize_blocking().unwrap();
            let result = two.more(0);
            let before = live().of(Kind::Allocation);
            let gate = Gate::close(stream);
            let graph = two.graph();
            let filled = graph.root().fill(&pooled, 3).unwrap();
            let step = filled.then().launch(&two.increments[1], per(LEN, 32), (&pooled, N)).unwrap();
            step.then().copy(&pooled, &result).unwrap();
            let mut exec = graph.instantiate().unwrap();
            exec.launch(stream).unwrap();
            drop((graph, filled, step, exec, pooled));
            assert_eq!(live().of(Kind::Allocation), before, "the run still uses the memory");
            gate.open();
            stream.synchronize_blocking().unwrap();
            assert_eq!(two.first(0, &result), 4);
            let is_freed = || {
                reaper::drain();
                live().of(Kind::Allocation) < before
            };
            assert!(until(SOON, is_freed));
        });
    }
}

#[test]
fn values_that_updates_replace_go_behind_the_last_run_on_whatever_device() {
    on_two_devices!();
    let two = Two::new();
    leaves_nothing(|| {
        let graph = two.graph();
        let fill = graph.root().fill(&two.memory[1], 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for round in 0..200_u32 {
            let stream = &two.streams[round as usize % 2];
            let memory = two.more(1);
            exec.node(&fill).set(&memory, round).unwrap();
            exec.launch(stream).unwrap();
        }
        drop(exec);
        for stream in &two.streams {
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn memory_that_a_kernel_of_the_other_device_reads_is_freed_after_it() {
    on_two_devices!();
    let two = Two::new();
    let adds = offset_copy::load(&two.here).unwrap();
    two.reach();
    two.there.default_pool().unwrap().grant_access(two.here.device()).unwrap();
    leaves_nothing(|| {
        for is_pooled in [false, true] {
            let far = if is_pooled { two.streams[1].zeros::<u32>(LEN).unwrap() } else { two.more(1) };
            two.streams[1].fill(&far, 6).unwrap();
            two.streams[1].synchronize_blocking().unwrap();
            let gate = Gate::close(&two.streams[0]);
            adds.launch(&two.streams[0], per(LEN, 32), (&far, &two.memory[0], 1, N)).unwrap();
            drop(far);
            // Memory that came free would be handed out again.
            let next: Vec<_> = (0..4).map(|_| two.streams[1].zeros::<u32>(LEN).unwrap()).collect();
            two.streams[1].synchronize_blocking().unwrap();
            gate.open();
            assert_eq!(two.first(0, &two.memory[0]), 7);
            drop(next);
        }
    });
}

#[test]
fn memory_of_another_device_that_a_kernel_used_is_still_no_memory_for_fills_there() {
    on_two_devices!();
    let two = Two::new();
    let adds = offset_copy::load(&two.here).unwrap();
    two.reach();
    let ([near, far], stream) = (&two.memory, &two.streams[0]);
    adds.launch(stream, per(LEN, 32), (far, near, 1, N)).unwrap();
    assert!(stream.fill(far, 1).is_err());
    assert!(stream.copy(far, near).is_err());
    stream.copy_peer(far, near).unwrap();
    assert!(stream.fill(far, 1).is_err());
    stream.synchronize_blocking().unwrap();
}

/// An owner of memory of a device that says when it is dropped.
struct Flagged(Arc<AtomicBool>);

impl Drop for Flagged {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Memory of the second device, whose owner sets the flag.
fn flagged(two: &Two) -> (Buffer<u32>, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let (address, owner) = (two.memory[1].address(), Flagged(Arc::clone(&dropped)));
    // SAFETY: the memory lives as long as the test.
    (unsafe { Buffer::from_foreign(&two.there, address, LEN, owner) }.unwrap(), dropped)
}

/// The end of a run on the lost device's stream says nothing of its nodes on the other one.
#[test]
fn what_a_run_uses_stays_when_one_of_its_devices_is_lost_after_the_drop() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft", "ASAN_OPTIONS" = "detect_leaks=0");
    drop(setup());
    needs!(TwoDevices);
    let two = Two::new();
    let ((replaced, was_replaced), (last, was_last)) = (flagged(&two), flagged(&two));
    let lose = loss(&two.here);
    // The second device holds the run back.
    let (gate, event) = (Gate::close(&two.streams[1]), two.there.event().unwrap());
    two.streams[1].record(&event).unwrap();
    let graph = two.graph();
    let waits = graph.root().wait(&event).unwrap();
    let fill = waits.then().fill(&two.memory[1], 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.node(&fill).set(&replaced, 1).unwrap();
    exec.launch(&two.streams[0]).unwrap();
    exec.node(&fill).set(&last, 1).unwrap();
    exec.release();
    drop((graph, waits, fill, exec, replaced, last));
    lose();
    assert!(until(SOON, || reaper::pending() == 0));
    assert_eq!(two.there.lost(), None);
    assert!(!was_replaced.load(Ordering::SeqCst) && !was_last.load(Ordering::SeqCst));
    gate.open();
}
