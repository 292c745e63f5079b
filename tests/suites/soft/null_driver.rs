//! The null driver.

use cuda_handles::Device;
use cuda_launch::{Launch, LaunchConfig, params};
use cuda_sys::CUresult;
use cuda_tests::{alone, count, install, kernel};

#[test]
fn the_driver_that_does_nothing_answers_success_and_gives_out_distinct_handles() {
    alone!();
    // SAFETY: nothing is read.
    let driver = unsafe { cuda_soft::null_loader() }.install().unwrap();
    // SAFETY: the out pointers are valid.
    unsafe {
        assert_eq!(driver.cuInit(0), CUresult::CUDA_SUCCESS);
        let (mut first, mut second) = (core::ptr::null_mut(), core::ptr::null_mut());
        assert!(driver.cuStreamCreate(&raw mut first, 0).is_success());
        assert!(driver.cuStreamCreate(&raw mut second, 0).is_success());
        assert!(!first.is_null() && first != second);
    }
}

#[test]
fn the_library_runs_above_it() {
    alone!();
    // SAFETY: nothing is read.
    install(unsafe { cuda_soft::null_loader() });
    let context = Device::new(0).unwrap().context().unwrap();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    let (copied, cost) = count(|| stream.fill(&buffer, 1));
    copied.unwrap();
    assert_eq!(cost.total(), 1, "{cost}");
    let empty = kernel(&context, "empty");
    let config = LaunchConfig::new(1, 1);
    if config.check(&empty).is_ok() {
        // SAFETY: nothing runs.
        unsafe { empty.launch(&stream, config, params![]) }.unwrap();
    }
}
