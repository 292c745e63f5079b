//! A run of the matrix is what its row says: each test looks for one axis where it has its effect.

use cuda_graph::{ContextExt, Fallback, InstantiateOptions, Test};
use cuda_sys::{CUmoduleLoadingMode, CUstream};
use cuda_tests::{device, forced_shape, host_decides, no_leaks, null_stream_is_per_thread, raw, setup, skip};

/// The value of an environment variable, if it has one.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[test]
fn modules_are_loaded_as_the_run_says() {
    let _context = setup();
    let expected = match variable("CUDA_MODULE_LOADING").as_deref() {
        Some("EAGER") => CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING,
        _ => CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING,
    };
    let mut found = CUmoduleLoadingMode(0);
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuModuleGetLoadingMode(&raw mut found) });
    assert_eq!(found, expected);
}

#[test]
fn the_null_stream_is_the_one_of_the_run() {
    let context = setup();
    let id = |stream: usize| {
        let (mut id, stream): (u64, CUstream) = (0, core::ptr::without_provenance_mut(stream));
        // SAFETY: a name of a default stream, with a context current; the out pointer is valid.
        let ask = || raw::ok(unsafe { raw::driver().cuStreamGetId(stream, &raw mut id) });
        context.with_current(ask).unwrap();
        id
    };
    let [null, legacy, per_thread] = [0, 1, 2].map(id);
    assert_ne!(legacy, per_thread);
    assert_eq!(null, if null_stream_is_per_thread() { per_thread } else { legacy });
}

#[test]
fn loops_are_decided_where_the_run_says() {
    let context = setup();
    let has_nodes = raw::driver().version().has(cuda_sys::Feature::Conditional);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (number, target) = (stream.upload(&[0_u32]).unwrap(), stream.zeros::<u32>(1).unwrap());
        let graph = context.graph().unwrap();
        let body = |body: &cuda_graph::LoopBody| body.root().fill(&target, 1).map(drop);
        graph.root().while_loop(Test::nonzero(&number), body).unwrap();
        let exec = graph.instantiate_with_fallback(Fallback::HostLoop, InstantiateOptions::new()).unwrap();
        assert_eq!(exec.is_on_host(), host_decides() || !has_nodes);
    });
}

#[test]
fn executables_have_the_shape_of_the_run() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        first.then().empty().unwrap();
        let exec = graph.instantiate().unwrap();
        assert_eq!(exec.shape_report().is_some(), forced_shape().is_some());
    });
}

#[test]
fn the_device_is_the_one_of_the_run() {
    let context = setup();
    let expected = variable("CUDA_TEST_DEVICE").map_or(0, |number| number.parse().unwrap());
    assert_eq!((context.device().ordinal(), device().ordinal()), (expected, expected));
}

#[test]
fn the_tool_of_the_run_watches() {
    let Some(tool) = variable("CUDA_TEST_TOOL") else { skip!("no tool watches in this run") };
    let _context = setup();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("anitizer"), "{tool} is not in this process");
}
