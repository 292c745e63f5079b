//! Hooks for failures of drops that call the library, drop, and panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_handles::reaper::{self, DropFailure};
use cuda_sys::{CUresult, Call};
use cuda_tests::{SOON, alone, device, fail, settle, setup, until};

static CALLED: AtomicUsize = AtomicUsize::new(0);

fn busy(_: &DropFailure) {
    let context = device().context().unwrap();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [0; 8]);
    context.event().unwrap();
    reaper::drain();
    reaper::set_hook(busy);
    CALLED.fetch_add(1, Ordering::SeqCst);
    panic!("as it was asked to");
}

#[test]
fn a_hook_that_calls_back_in_and_panics_holds_nothing_up() {
    alone!();
    let context = setup();
    reaper::set_hook(busy);
    std::panic::set_hook(Box::new(|_| {}));
    let called = |times| until(SOON, || CALLED.load(Ordering::SeqCst) == times);
    let (home, user) = (context.stream().unwrap(), context.stream().unwrap());
    // On the thread that drops.
    let event = context.event().unwrap();
    let injection = fail(Call::cuEventDestroy, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    drop(event);
    assert!(called(1) && injection.hit());
    // On the reaper's.
    let shared = home.zeros::<u32>(8).unwrap();
    user.fill(&shared, 1).unwrap();
    user.synchronize_blocking().unwrap();
    let injection = fail(Call::cuMemFreeAsync, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    drop(shared);
    reaper::drain();
    assert!(called(2) && injection.hit());
    // Nothing waits for it.
    settle();
    home.zeros::<u32>(8).unwrap();
}
