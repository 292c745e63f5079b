//! Configurations beyond the limits of device or kernel.

use cuda_launch::{Error, Launch, LaunchConfig, params, per};
use cuda_tests::{count, kernel, setup};

fn refused(context: &cuda_handles::Context, name: &str, config: LaunchConfig) -> String {
    let (kernel, stream) = (kernel(context, name), context.stream().unwrap());
    let buffer = stream.zeros::<u64>(64).unwrap();
    let params = if name == "empty" { params![] } else { params![&buffer] };
    // SAFETY: the configuration is refused.
    let (outcome, cost) = count(|| unsafe { kernel.launch(&stream, config, params) });
    cost.assert_calls(&[]);
    let error = outcome.unwrap_err();
    let Error::Limit(limit) = &error else { panic!("{error:?}") };
    assert_eq!((limit.kernel.as_str(), limit.config), (name, config));
    assert_eq!(config.check(&kernel).unwrap_err(), error);
    let text = error.to_string();
    assert!(text.contains(&format!("`{name}`")), "{text}");
    text
}

#[test]
fn a_block_beyond_the_device_is_refused_with_the_limit() {
    let context = setup();
    let limit = context.limits().max_threads_per_block.to_string();
    let text = refused(&context, "empty", LaunchConfig::new(1, 2048));
    assert!(text.contains("2048") && text.contains(&limit), "{text}");
    let text = refused(&context, "empty", LaunchConfig::new(1, (64, 32)));
    assert!(text.contains("2048") && text.contains(&limit), "{text}");
    let deep = context.limits().max_block[2] + 1;
    let text = refused(&context, "empty", LaunchConfig::new(1, (1, 1, deep)));
    assert!(text.contains(&deep.to_string()) && text.contains('z'), "{text}");
}

#[test]
fn a_grid_beyond_the_device_is_refused_with_the_limit() {
    let context = setup();
    let most = context.limits().max_grid[1];
    let text = refused(&context, "empty", LaunchConfig::new((1, most + 1), 1));
    assert!(text.contains(&most.to_string()) && text.contains(&(most + 1).to_string()), "{text}");
    let text = refused(&context, "empty", per(usize::MAX, 1));
    assert!(text.contains("grid"), "{text}");
}

#[test]
fn nothing_to_do_is_refused_and_says_so() {
    let context = setup();
    for config in [
        per(0, 256),
        per(10, 0),
        LaunchConfig::new(0, 1),
        LaunchConfig::new((1, 0), 1),
        LaunchConfig::new(1, (1, 1, 0)),
    ] {
        let text = refused(&context, "empty", config);
        assert!(text.contains('0'), "{text}");
    }
}

#[test]
fn shared_memory_beyond_the_kernels_allowance_is_refused() {
    let context = setup();
    let text = refused(&context, "neighbour", LaunchConfig::new(1, 32).shared_bytes(1 << 20));
    assert!(text.contains("shared") && text.contains(&(1 << 20).to_string()), "{text}");
    // The kernel has 32 KiB of its own, so that another 32 are too much where a block has 48.
    if context.limits().max_shared_bytes < 65536 {
        let text = refused(&context, "roomy", LaunchConfig::new(1, 1).shared_bytes(32768));
        assert!(text.contains("shared"), "{text}");
    }
}

/// Follows the advice of the error, and the launch works.
#[test]
fn shared_memory_over_a_limit_says_who_raises_it_and_how_far() {
    let context = setup();
    let (limits, stream) = (context.limits(), context.stream().unwrap());
    let empty = kernel(&context, "empty");
    let (usual, most) =
        (limits.max_shared_bytes, limits.max_shared_bytes_opt_in.max(limits.max_shared_bytes));
    let over = |bytes: u32| LaunchConfig::new(1, 32).shared_bytes(bytes);
    let launch = |bytes| {
        // SAFETY: the kernel does nothing.
        unsafe { empty.launch(&stream, over(bytes), params![]) }.unwrap();
    };
    let refused = |bytes| {
        // SAFETY: the configuration is refused.
        let (outcome, cost) = count(|| unsafe { empty.launch(&stream, over(bytes), params![]) });
        cost.assert_calls(&[]);
        outcome.unwrap_err().to_string()
    };
    const HOW: &str = "`Kernel::set_max_dynamic_shared_bytes`";
    assert_eq!(empty.max_dynamic_shared_bytes(), usual);
    if most > usual {
        let text = refused(usual + 1);
        let expected = format!(
            "is {}; the limit is {usual}; {HOW} raises it, for this kernel on this device to up to {most}",
            usual + 1
        );
        assert!(text.ends_with(&expected), "{text}");
        empty.set_max_dynamic_shared_bytes(usual + 1).unwrap();
        launch(usual + 1);
    }
    empty.set_max_dynamic_shared_bytes(100).unwrap();
    let text = refused(101);
    let lowered =
        format!("the limit is 100; it was lowered from the default {usual}; {HOW} raises it to up to {most}");
    assert!(text.ends_with(&lowered), "{text}");
    empty.set_max_dynamic_shared_bytes(101).unwrap();
    launch(101);
    let text = refused(most + 1);
    assert!(
        text.ends_with(&format!(
            "; a block of this device has {most} at most, of which the kernel declares 0 itself"
        )),
        "{text}"
    );
    stream.synchronize_blocking().unwrap();
}

#[test]
fn the_largest_configurations_are_accepted() {
    let context = setup();
    let limits = context.limits();
    let stream = context.stream().unwrap();
    let empty = kernel(&context, "empty");
    let most = empty.attributes().max_threads_per_block.min(limits.max_threads_per_block);
    for config in [
        LaunchConfig::new(1, most),
        LaunchConfig::new((1, 1, 16), 1),
        LaunchConfig::new(1, (1, 1, limits.max_block[2])),
        LaunchConfig::new(1, 1).shared_bytes(empty.attributes().max_dynamic_shared_bytes),
    ] {
        config.check(&empty).unwrap();
        // SAFETY: the kernel does nothing.
        unsafe { empty.launch(&stream, config, params![]) }.unwrap();
    }
    stream.synchronize_blocking().unwrap();
}
