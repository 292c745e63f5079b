//! A launch waits until the memory of its arguments is ready.

use cuda_launch::{Launch, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, every_failure, fail, kernel, no_leaks, setup};

#[test]
fn a_launch_on_another_stream_waits_for_the_homes_of_all_buffers() {
    let context = setup();
    no_leaks(|| {
        let offset_copy = kernel(&context, "offset_copy");
        let streams: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        for held in 0..2 {
            let gate = Gate::close(&streams[held]);
            let (from, to) = (streams[0].zeros::<u32>(16).unwrap(), streams[1].zeros::<u32>(16).unwrap());
            // SAFETY: the arguments are the kernel's, and both buffers have 16 elements.
            unsafe { offset_copy.launch(&streams[2], per(16, 16), params![&from, &to, 3_u32, 16_u32]) }
                .unwrap();
            assert!(!streams[2].query().unwrap());
            gate.open();
            assert_eq!(to.read_blocking(&streams[2]).unwrap(), [3; 16]);
        }
    });
}

#[test]
fn a_launch_that_fails_leaves_nothing_enqueued() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(16).unwrap();
        let launch = || {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { increment.launch(&stream, per(16, 16), params![&buffer, 16_u32]) }
        };
        let injection = fail(Call::cuLaunchKernel, 1, CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        let text = launch().unwrap_err().to_string();
        assert!(injection.hit());
        assert!(
            text.contains("cuLaunchKernel") && text.contains("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
            "{text}"
        );
        launch().unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 16]);
    });
}

#[test]
fn whatever_call_of_a_launch_fails_nothing_stays_behind() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let operation = || -> cuda_launch::Result<()> {
        let buffer = home.zeros::<u32>(16)?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { increment.launch(&other, per(16, 16), params![&buffer, 16_u32]) }?;
        assert_eq!(buffer.read_blocking(&other)?, [1; 16]);
        Ok(())
    };
    // Once before, so that both streams have what they keep for as long as they live.
    operation().unwrap();
    let calls = every_failure(operation);
    assert!(calls >= 5, "{calls}");
}
