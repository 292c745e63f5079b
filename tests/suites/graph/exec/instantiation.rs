//! Instantiation and its options.

use std::path::PathBuf;

use cuda_graph::{ContextExt, Error, ExecError, GraphExec, InstantiateOptions};
use cuda_handles::{Context, Image, Kernel, Linker};
use cuda_launch::{LaunchConfig, params, per};
use cuda_tests::{Gate, count, kernel, no_leaks, setup};

#[test]
fn options_are_those_that_were_asked_for() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&buffer, 3).unwrap();
        let plain = graph.instantiate().unwrap();
        let options = plain.options();
        assert!(!options.is_auto_free() && !options.is_for_device_launch() && !options.has_node_priorities());
        assert!(options.upload_stream().is_none());
        let (mut exec, cost) = count(|| {
            let options = InstantiateOptions::new().auto_free().node_priorities().upload_on(&stream);
            graph.instantiate_with(options).unwrap()
        });
        assert_eq!(cost.calls("cuGraphInstantiateWithParams"), 1, "{cost}");
        assert_eq!(cost.calls("cuGraphUpload"), 0, "{cost}");
        assert!(exec.options().is_auto_free() && exec.options().has_node_priorities());
        assert_eq!(exec.options().upload_stream(), Some(&stream));
        let told = exec.driver_options().unwrap();
        assert!(told.is_auto_free() && !told.is_for_device_launch());
        launched(exec, &context, &buffer);
    });
}

fn launched(mut exec: GraphExec, context: &Context, buffer: &cuda_handles::Buffer<u32>) {
    let stream = context.stream().unwrap();
    exec.launch(&stream).unwrap();
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [3; 8]);
}

#[test]
fn an_upload_waits_for_what_is_in_the_stream() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = other.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&buffer, 3).unwrap();
        let gate = Gate::close(&stream);
        let exec = graph.instantiate_with(InstantiateOptions::new().upload_on(&stream)).unwrap();
        assert!(!stream.query().unwrap());
        gate.open();
        launched(exec, &context, &buffer);
    });
}

#[test]
fn a_capturing_stream_is_no_stream_for_an_upload() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        graph.root().empty().unwrap();
        let capture = stream.begin_capture(cuda_handles::capture::CaptureMode::ThreadLocal).unwrap();
        let error = graph.instantiate_with(InstantiateOptions::new().upload_on(&stream)).unwrap_err();
        assert!(error.to_string().contains("uploading an executable graph"), "{error}");
        capture.end().unwrap();
        graph.instantiate_with(InstantiateOptions::new().upload_on(&stream)).unwrap();
    });
}

#[test]
fn kernels_can_launch_graphs_of_kernels_copies_and_fills_alone() {
    let context = setup();
    no_leaks(|| {
        let options = || InstantiateOptions::new().device_launch();
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let refused = |options: InstantiateOptions| {
            let (outcome, cost) = count(|| graph.instantiate_with(options));
            assert_eq!(cost.calls("cuGraphInstantiateWithParams"), 0, "{cost}");
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Exec(ExecError::DeviceLaunch { .. })), "{error:?}");
            error.to_string()
        };
        assert!(refused(options()).contains("needs at least one node"));
        let fill = graph.root().fill(&buffer, 3).unwrap();
        assert!(refused(options().auto_free()).contains("cannot free memory"));
        let middle = fill.then().empty().unwrap().named("middle");
        let text = refused(options());
        assert!(text.contains("because of node `middle`"), "{text}");
        middle.remove().unwrap();
        let mut exec = graph.instantiate_with(options()).unwrap();
        assert!(exec.driver_options().unwrap().is_for_device_launch());
        launched(exec, &context, &buffer);
    });
}

/// The device runtime, if this machine has it: beside the tests, or where the variable says.
fn device_runtime() -> Option<Vec<u8>> {
    let given = std::env::var_os("CUDA_TEST_DEVICE_RUNTIME").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("libcudadevrt.a"));
    std::fs::read(given.or_else(beside)?).ok()
}

fn launcher(context: &Context, archive: &[u8]) -> Kernel {
    let mut linker = Linker::new(context).unwrap();
    linker.add("device_launch.ptx", Image::Ptx(include_str!("../../ptx/device_launch.ptx"))).unwrap();
    linker.add_archive("libcudadevrt.a", archive).unwrap();
    linker.link().unwrap().kernel("launch_graph").unwrap()
}

#[test]
fn a_kernel_launches_a_graph() {
    /// The launched graph runs by itself, at once.
    const FIRE_AND_FORGET: u64 = 0x0200_0000_0000_0000;

    let context = setup();
    if cuda_tests::is_soft() {
        cuda_tests::skip!("the software driver links no archives of device code");
    }
    let Some(archive) = device_runtime() else {
        cuda_tests::skip!("there is no libcudadevrt.a beside the tests or in CUDA_TEST_DEVICE_RUNTIME");
    };
    no_leaks(|| {
        let (launch, increment) = (launcher(&context, &archive), kernel(&context, "increment"));
        let stream = context.stream().unwrap();
        let (values, status) = (stream.zeros::<u32>(64).unwrap(), stream.zeros::<u32>(1).unwrap());
        stream.fill(&status, 77).unwrap();
        stream.synchronize_blocking().unwrap();

        let inner = context.graph().unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { inner.root().launch_untyped(&increment, per(64, 32), params![&values, 64_u32]) }.unwrap();
        let mut inner = inner.instantiate_with(InstantiateOptions::new().device_launch()).unwrap();
        inner.upload(&stream).unwrap();
        stream.synchronize_blocking().unwrap();

        let outer = context.graph().unwrap();
        let raw = inner.as_raw().expose_provenance() as u64;
        let arguments = params![raw, FIRE_AND_FORGET, &status];
        // SAFETY: the kernel launches an executable that lives until the end of the test and writes
        // its answer to the one element.
        unsafe { outer.root().launch_untyped(&launch, LaunchConfig::new(1, 1), arguments) }.unwrap();
        let mut outer = outer.instantiate().unwrap();
        for round in 1..=3 {
            outer.launch(&stream).unwrap();
            assert_eq!(status.read_blocking(&stream).unwrap(), [0], "the device runtime's answer");
            assert_eq!(values.read_blocking(&stream).unwrap(), [round; 64]);
        }
        drop((outer, inner));
    });
}
