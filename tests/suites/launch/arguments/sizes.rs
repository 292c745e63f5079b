//! Arguments of the wrong number or size.

use cuda_launch::{Arguments, Error, Launch, Params, params, per};
use cuda_tests::{alone, count, kernel, needs, no_leaks, other_device, setup};

/// Launches and expects a refusal without a driver call; returns its text.
fn refused(name: &str, params: &Params<'_>, context: &cuda_handles::Context) -> String {
    let (kernel, stream) = (kernel(context, name), context.stream().unwrap());
    // SAFETY: the arguments are refused.
    let (outcome, cost) = count(|| unsafe { kernel.launch(&stream, per(32, 32), params) });
    cost.assert_calls(&[]);
    let error = outcome.unwrap_err();
    assert_eq!(params.check(&kernel).unwrap_err(), error, "the check says the same");
    assert!(matches!(error, Error::WrongArguments(_)), "{error:?}");
    stream.synchronize_blocking().unwrap();
    error.to_string()
}

#[test]
fn a_wrong_number_of_arguments_is_refused_with_the_kernels_layout() {
    let context = setup();
    needs!(ParameterLayouts);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<f32>(32).unwrap();
        let text = refused("saxpy", &params![32_u32, 2.0_f32, &x], &context);
        assert!(
            text.contains("`saxpy`") && text.contains("4 parameters") && text.contains("3 arguments"),
            "{text}"
        );
        assert!(text.contains("4 B at 0") && text.contains("8 B at 16"), "{text}");
        let text = refused("saxpy", &params![], &context);
        assert!(text.contains("0 arguments"), "{text}");
        let text = refused("empty", &params![1_u32], &context);
        assert!(text.contains("`empty`") && text.contains("0 parameters"), "{text}");
        let text = refused("saxpy", &params![1_u32, 2.0_f32, &x, &x, 1_u8], &context);
        assert!(text.contains("5 arguments"), "{text}");
    });
}

#[test]
fn a_wrong_size_is_refused_with_the_argument_and_both_sizes() {
    let context = setup();
    needs!(ParameterLayouts);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<f32>(32).unwrap();
        let text = refused("saxpy", &params![32_u64, 2.0_f32, &x, &x], &context);
        assert!(text.contains("argument 1 has 8 bytes where 4 are expected"), "{text}");
        let text = refused("saxpy", &params![32_u32, 2.0_f64, 5_u32, &x], &context);
        assert!(text.contains("argument 2 has 8 bytes") && text.contains("argument 3 has 4 bytes"), "{text}");
        let text = refused("structures", &params![1_u8, [1_u64; 2], 2_u16, [3_u64; 2], 4_u32, &x], &context);
        assert!(text.contains("argument 2 has 16 bytes where 24 are expected"), "{text}");
    });
}

#[test]
fn a_holder_checked_with_one_kernel_is_checked_again_with_another() {
    let context = setup();
    needs!(ParameterLayouts);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(32).unwrap();
        let owned = params![&buffer, 32_u32].into_owned();
        let increment = kernel(&context, "increment");
        owned.check(&increment).unwrap();
        owned.check(&increment).unwrap();
        assert!(owned.check(&kernel(&context, "saxpy")).is_err());
        owned.check(&increment).unwrap();
    });
}

#[test]
fn a_driver_without_layouts_launches_unchecked_arguments() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(32).unwrap();
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    unsafe { kernel(&context, "increment").launch(&stream, per(32, 32), params![&buffer, 32_u32]) }.unwrap();
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 32]);
    let mut params = Params::new();
    (0..5000).for_each(|value: u64| params.push(value));
    let text = params.check(&kernel(&context, "increment")).unwrap_err().to_string();
    assert!(text.contains("40000 bytes") && text.contains("`increment`"), "{text}");
}

#[test]
fn a_stream_of_another_context_is_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let other = other_device().context().unwrap();
    let (empty, stream) = (kernel(&context, "empty"), other.stream().unwrap());
    // SAFETY: the launch is refused.
    let (outcome, cost) = count(|| unsafe { empty.launch(&stream, per(1, 1), params![]) });
    cost.assert_calls(&[]);
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Handles(cuda_handles::Error::WrongContext { .. })), "{error:?}");
}
