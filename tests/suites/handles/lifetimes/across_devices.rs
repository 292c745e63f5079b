//! Memory used by streams of other contexts, and faults of one device beside another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuda_handles::{Buffer, Context, Error, Stream, reaper};
use cuda_sys::CUresult;
use cuda_tests::states::loss;
use cuda_tests::{Gate, Need, SOON, Setup, alone, kernel, other_device, raw, settle, setup, skip, until};

/// Long enough for the reaper to do the wrong thing.
const A_WHILE: Duration = Duration::from_millis(300);
const LEN: usize = 1 << 10;

/// The contexts of two devices, if there are two.
fn two() -> Option<(Setup, Context)> {
    let here = setup();
    let second = Need::TwoDevices.is_met().then(other_device)?;
    Some((here, second.context().unwrap()))
}

/// Memory in which it shows that the copy has come.
fn zeroed(there: &Context) -> Buffer<u32> {
    let (stream, memory) = (there.stream().unwrap(), there.alloc_blocking::<u32>(LEN).unwrap());
    stream.fill(&memory, 0).unwrap();
    stream.synchronize_blocking().unwrap();
    memory
}

fn raw_sync(stream: &Stream) -> CUresult {
    // SAFETY: the stream lives.
    unsafe { raw::driver().cuStreamSynchronize(stream.as_raw()) }
}

/// A copy from `from` waits on a stream of `there` whose last handle is gone and which the reaper
/// has let go of.
fn copied_by_a_closed_stream<M>(there: &Context, from: &M, to: &Buffer<u32>) -> Gate
where
    for<'m> &'m M: Into<cuda_handles::Slice<'m, u32>>,
{
    let stream = there.stream().unwrap();
    let gate = Gate::close(&stream);
    stream.copy_peer(from, to).unwrap();
    drop(stream);
    assert!(until(SOON, || reaper::pending() == 0), "the reaper orders its own stream behind the closed one");
    gate
}

/// The result of the copy, once the gate is open.
fn brought(there: &Context, to: &Buffer<u32>, gate: &Gate) -> u32 {
    gate.open();
    there.synchronize_blocking().unwrap();
    let reads = there.stream().unwrap();
    assert!(until(SOON, || to.read_blocking(&reads).unwrap()[0] != 0), "the copy ends");
    to.read_blocking(&reads).unwrap()[0]
}

#[test]
fn memory_used_by_a_closed_stream_of_another_device_stays_until_that_is_done() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let Some((here, there)) = two() else { skip!("there is one device") };
    let to = zeroed(&there);
    let other = here.stream().unwrap();
    let from = here.alloc_blocking::<u32>(LEN).unwrap();
    other.fill(&from, 5).unwrap();
    other.synchronize_blocking().unwrap();
    let gate = copied_by_a_closed_stream(&there, &from, &to);
    drop(from);
    assert!(until(SOON, || reaper::pending() == 0), "it is freed in stream order");
    other.synchronize_blocking().unwrap();
    let _next: Vec<_> = (0..4).map(|_| other.zeros::<u32>(LEN).unwrap()).collect();
    assert_eq!(brought(&there, &to, &gate), 5);
    assert_eq!((here.lost(), there.lost()), (None, None));
    settle();
}

#[test]
fn pinned_memory_used_by_a_closed_stream_of_another_device_is_given_to_nobody_else() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let Some((here, there)) = two() else { skip!("there is one device") };
    let to = zeroed(&there);
    let mut from = here.pinned_zeros::<u32>(LEN).unwrap();
    from.fill(5);
    let from = from.share();
    let gate = copied_by_a_closed_stream(&there, &from, &to);
    drop(from);
    assert!(!until(A_WHILE, || reaper::pending() == 0), "the copy still reads it");
    let mut next = here.pinned_zeros::<u32>(LEN).unwrap();
    next.fill(9);
    assert_eq!(brought(&there, &to, &gate), 5);
    settle();
}

#[test]
fn an_owner_of_memory_used_by_a_closed_stream_of_another_device_is_dropped_after_that() {
    struct Owner(Arc<AtomicBool>, Buffer<u32>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    alone!("CUDA_SOFT_DEVICES" = "2");
    let Some((here, there)) = two() else { skip!("there is one device") };
    let to = zeroed(&there);
    let behind = here.alloc_blocking::<u32>(LEN).unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let owner = Owner(Arc::clone(&dropped), behind.clone());
    assert_eq!(owner.1.len(), LEN);
    // SAFETY: the owner keeps the memory.
    let from = unsafe { Buffer::<u32>::from_foreign(&here, behind.address(), LEN, owner) }.unwrap();
    let gate = copied_by_a_closed_stream(&there, &from, &to);
    drop(from);
    assert!(!until(A_WHILE, || dropped.load(Ordering::SeqCst)), "the copy still reads it");
    gate.open();
    assert!(until(SOON, || dropped.load(Ordering::SeqCst)));
    settle();
}

/// A fault of which the library has heard nothing yet.
fn lose_unnoticed(context: &Context) {
    let stream = context.stream().unwrap();
    let poke = kernel(context, "poke");
    raw::launch(&stream, &poke, 1, &[0x40, 7]);
    assert_eq!(raw_sync(&stream), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    // Their drops would hear of it.
    core::mem::forget((stream, poke));
}

#[track_caller]
fn assert_only_one_is_lost(faulted: &Context, healthy: &Context, on_it: &Stream) {
    assert!(faulted.lost().is_some());
    assert_eq!(healthy.lost(), None);
    on_it.synchronize_blocking().unwrap();
}

#[test]
fn a_fault_that_a_wait_for_a_healthy_device_meets_is_the_waiters() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let Some((faulted, healthy)) = two() else { skip!("there is one device") };
    let (waits, goes_on) = (faulted.stream().unwrap(), healthy.stream().unwrap());
    lose_unnoticed(&faulted);
    assert!(matches!(waits.wait_for_uncaptured(&goes_on), Err(Error::ContextLost(_))));
    assert_only_one_is_lost(&faulted, &healthy, &goes_on);
}

/// The reaper's own stream on the faulted device is to wait for a stream of the healthy one.
#[test]
fn a_fault_that_the_reaper_meets_is_that_of_its_own_stream() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let Some((faulted, healthy)) = two() else { skip!("there is one device") };
    let (there, here) = (healthy.stream().unwrap(), faulted.stream().unwrap());
    let [from, more] = [(); 2].map(|()| faulted.alloc_blocking::<u32>(8).unwrap());
    let to = healthy.alloc_blocking::<u32>(8).unwrap();
    // The healthy stream becomes a member of the fence first.
    there.copy_peer(&from, &to).unwrap();
    here.fill(&more, 1).unwrap();
    there.synchronize_blocking().unwrap();
    drop(from);
    assert!(until(SOON, || reaper::pending() == 0));
    lose_unnoticed(&faulted);
    drop(more);
    assert!(until(SOON, || faulted.lost().is_some() || healthy.lost().is_some()));
    assert_only_one_is_lost(&faulted, &healthy, &there);
}

/// The end of the lost device's own work says nothing of copies on the other one.
#[test]
fn an_owner_of_memory_of_a_lost_device_stays_while_another_device_may_use_it() {
    struct Owner(Arc<AtomicBool>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft", "ASAN_OPTIONS" = "detect_leaks=0");
    let Some((here, there)) = two() else { skip!("there is one device") };
    let (to, behind) = (zeroed(&there), here.alloc_blocking::<u32>(LEN).unwrap());
    let flags = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let [before, after] = flags.each_ref().map(|dropped| {
        let owner = Owner(Arc::clone(dropped));
        // SAFETY: the memory lives as long as the test.
        unsafe { Buffer::<u32>::from_foreign(&here, behind.address(), LEN, owner) }.unwrap()
    });
    let stream = there.stream().unwrap();
    let lose = loss(&here);
    let gate = Gate::close(&stream);
    stream.copy_peer(&before, &to).unwrap();
    stream.copy_peer(&after, &to).unwrap();
    drop(before);
    lose();
    drop(after);
    assert!(until(SOON, || reaper::pending() == 0));
    assert!(flags.iter().all(|dropped| !dropped.load(Ordering::SeqCst)));
    assert_eq!(there.lost(), None);
    gate.open();
}
