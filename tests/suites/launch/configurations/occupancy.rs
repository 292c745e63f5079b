//! Occupancy.

use cuda_launch::{Launch, LaunchConfig, Occupancy, params};
use cuda_tests::{count, kernel, needs, raw, setup};

#[test]
fn blocks_fit_as_the_device_allows() {
    let context = setup();
    let (empty, roomy) = (kernel(&context, "empty"), kernel(&context, "roomy"));
    let mut last = u32::MAX;
    for threads in [32, 64, 128, 256, 512, 1024] {
        let blocks = empty.blocks_per_multiprocessor(threads, 0).unwrap();
        assert!((1..=last).contains(&blocks), "{blocks} blocks of {threads} threads");
        assert!(empty.blocks_per_multiprocessor(threads, 40_000).unwrap() <= blocks);
        last = blocks;
    }
    // It has 32 KiB of its own.
    assert!(
        roomy.blocks_per_multiprocessor(32, 0).unwrap() < empty.blocks_per_multiprocessor(32, 0).unwrap()
    );
    let config = LaunchConfig::new(1, (16, 16)).shared_bytes(1024);
    let all = u64::from(context.limits().multiprocessors);
    let one = u64::from(empty.blocks_per_multiprocessor(256, 1024).unwrap());
    assert_eq!(empty.blocks_at_once(&config).unwrap(), all * one);
}

#[test]
fn the_best_block_fills_the_device() {
    let context = setup();
    let empty = kernel(&context, "empty");
    let best = empty.best_block(0).unwrap();
    let blocks = empty.blocks_per_multiprocessor(best.block, 0).unwrap();
    assert_eq!(u64::from(best.grid), u64::from(blocks) * u64::from(context.limits().multiprocessors));
    for threads in [32, 96, 256, 1024] {
        assert!(blocks * best.block >= threads * empty.blocks_per_multiprocessor(threads, 0).unwrap());
    }
    let stream = context.stream().unwrap();
    // SAFETY: the kernel does nothing.
    unsafe { empty.launch(&stream, LaunchConfig::new(best.grid, best.block).cooperative(), params![]) }
        .unwrap();
    let more = LaunchConfig::new(best.grid + 1, best.block).cooperative();
    // SAFETY: the kernel does nothing.
    let refused = unsafe { empty.launch(&stream, more, params![]) }.unwrap_err();
    assert!(refused.to_string().contains("can run at once"), "{refused}");
    stream.synchronize_blocking().unwrap();
}

#[test]
fn shared_memory_is_what_the_blocks_leave() {
    let context = setup();
    let empty = kernel(&context, "empty");
    let one = empty.shared_bytes_available(1, 256).unwrap();
    let two = empty.shared_bytes_available(2, 256).unwrap();
    assert!(two > 0 && two <= one, "{one} and {two} bytes");
    assert!(empty.blocks_per_multiprocessor(256, u32::try_from(two).unwrap()).unwrap() >= 2);
}

#[test]
fn clusters_fit_as_the_device_allows() {
    let context = setup();
    needs!(LaunchAttributes);
    let empty = kernel(&context, "empty");
    let config = LaunchConfig::new(64, 128);
    let largest = empty.largest_cluster(&config.cluster(3)).unwrap();
    assert!((1..=8).contains(&largest), "{largest}");
    let (one, four) = (config.cluster(1), config.cluster(4));
    let (ones, fours) = (empty.clusters_at_once(&one).unwrap(), empty.clusters_at_once(&four).unwrap());
    assert!(fours > 0 && fours <= ones, "{ones} and {fours} clusters");
    let (refused, cost) = count(|| empty.clusters_at_once(&config.cluster(5)));
    cost.assert_calls(&[]);
    assert!(refused.unwrap_err().to_string().contains("does not divide the grid"));
}

fn current() -> cuda_sys::CUcontext {
    let mut current = core::ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) });
    current
}

#[test]
fn queries_need_no_current_context_and_leave_it_so() {
    let context = setup();
    let empty = kernel(&context, "empty");
    assert!(current().is_null());
    empty.best_block(0).unwrap();
    empty.blocks_at_once(&LaunchConfig::new(1, 32)).unwrap();
    empty.shared_bytes_available(1, 32).unwrap();
    assert!(current().is_null());
}
