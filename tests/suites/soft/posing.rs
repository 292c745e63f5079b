//! Posing as another driver.

use cuda_graph::ContextExt;
use cuda_handles::Device;
use cuda_launch::{Launch, params, per};
use cuda_soft::{Config, ConfigError};
use cuda_sys::Version;
use cuda_tests::{alone, install, kernel, no_leaks, raw, setup};

/// The whole path on whatever driver the environment asks for.
fn whole_path() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&buffer, 4).unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let node =
            unsafe { fill.then().launch_untyped(&increment, per(64, 64), params![&buffer, 64_u32]) }.unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        // SAFETY: as above.
        unsafe { increment.launch(&stream, per(64, 64), params![&buffer, 64_u32]) }.unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [6; 64]);
        assert_eq!(node.predecessors().unwrap().len(), 1);
        assert_eq!(graph.edges().unwrap().len(), 1);
        node.remove().unwrap();
    });
}

macro_rules! on_version {
    ($($name:ident $version:literal;)*) => {$(
        #[test]
        fn $name() {
            alone!("CUDA_SOFT_VERSION" = $version, "CUDA_TEST_DRIVER" = "soft");
            whole_path();
            assert_eq!(raw::driver().version().to_string(), $version);
        }
    )*};
}

on_version! {
    the_whole_path_works_on_a_driver_12_2 "12.2";
    the_whole_path_works_on_a_driver_12_3 "12.3";
    the_whole_path_works_on_a_driver_12_4 "12.4";
    the_whole_path_works_on_a_driver_12_8 "12.8";
    the_whole_path_works_on_a_driver_13_0 "13.0";
    the_whole_path_works_on_a_driver_13_2 "13.2";
}

#[test]
fn a_driver_too_old_is_refused() {
    alone!();
    let error = cuda_soft::loader(Config::new().version(Version::new(12, 1))).install().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("12.1") && text.contains("12.2"), "{text}");
}

#[test]
fn a_pose_has_its_devices_capability_and_memory() {
    alone!();
    let config = Config::new().devices(3).compute_capability(8, 6).memory(1 << 28).multiprocessors(7);
    install(cuda_soft::loader(config));
    let devices = Device::all().unwrap();
    assert_eq!(devices.len(), 3);
    for device in devices {
        assert_eq!(device.compute_capability().unwrap(), (8, 6));
        assert_eq!(device.total_memory().unwrap(), 1 << 28);
        let context = device.context().unwrap();
        assert_eq!(context.limits().multiprocessors, 7);
        let stream = context.stream().unwrap();
        assert!(matches!(stream.zeros::<u8>(1 << 29), Err(cuda_handles::Error::OutOfMemory { .. })));
        let part = stream.zeros::<u8>(1 << 20).unwrap();
        assert_eq!(part.read_blocking(&stream).unwrap().len(), 1 << 20);
    }
}

#[test]
fn addresses_are_given_out_again_where_that_is_asked_for() {
    alone!();
    install(cuda_soft::loader(Config::new().reuse_addresses(true)));
    let context = setup();
    let stream = context.stream().unwrap();
    let mut addresses = std::collections::HashSet::new();
    for _ in 0..20 {
        addresses.insert(stream.zeros::<u32>(100).unwrap().address());
        stream.synchronize_blocking().unwrap();
    }
    assert!(addresses.len() < 20);
}

#[test]
fn a_wrong_variable_is_an_error_that_says_what_it_may_be() {
    alone!("CUDA_SOFT_VERSION" = "new");
    let ConfigError { variable, value, expected, .. } = Config::from_environment().unwrap_err();
    assert_eq!((variable, value.as_str()), ("CUDA_SOFT_VERSION", "new"));
    assert!(expected.contains("12.4"), "{expected}");
}
