//! A stream has a thread while it has work, and for a while after it; a destroyed stream has none.

use cuda_tests::{SOON, setup, skip, until};

/// The number of this process's threads.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn streams_that_are_destroyed_leave_no_threads() {
    let context = setup();
    if !cuda_tests::is_soft() || threads() == 0 {
        skip!("about the software driver, on a system that lists threads");
    }
    let before = threads();
    let mut most = 0;
    for _ in 0..200 {
        let stream = context.stream().unwrap();
        stream.host(|| ()).unwrap();
        stream.synchronize_blocking().unwrap();
        drop(stream);
        most = most.max(threads());
    }
    assert!(most < before + 100, "{most} threads, {before} before");
    assert!(until(SOON, || threads() <= before + 8), "{} threads, {before} before", threads());
}
