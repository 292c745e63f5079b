//! Captured launches: one driver call each, and a record with kernel, configuration and arguments.

use cuda_handles::capture::{ActiveCapture, CaptureMode, Record, Work};
use cuda_handles::{Context, Owner, Stream};
use cuda_launch::internal::launch_captured;
use cuda_launch::{ConditionalHandle, Error, Launch, ParamBytes, TypedKernel, kernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, kernel, no_leaks, raw, setup};

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each touches the first element
    // alone.
    unsafe in "../../kernels/conditions.ptx";

    fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

fn begin(stream: &Stream) -> ActiveCapture {
    stream.begin_capture(CaptureMode::Relaxed).unwrap()
}

fn arguments(record: Record<'_>) -> Vec<Option<Vec<u8>>> {
    record.arguments().map(|bytes| bytes.map(<[u8]>::to_vec)).collect()
}

fn bytes(value: u64) -> Option<Vec<u8>> {
    Some(value.to_ne_bytes().to_vec())
}

fn owners(record: Record<'_>) -> Vec<Owner> {
    record.owners().cloned().collect()
}

#[test]
fn a_captured_launch_is_one_driver_call_and_its_record_tells_its_node() {
    let context = setup();
    let (increment, empty) = (kernel(&context, "increment"), kernel(&context, "empty"));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = begin(&stream);
        let launch = || {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { increment.launch(&stream, per(64, 32), params![&buffer, 64_u32]) }.unwrap();
        };
        let ((), cost) = count(launch);
        cost.assert_calls(&[("cuLaunchKernel", 1)]);
        let ((), cost) = count(|| (0..1000).for_each(|_| launch()));
        cost.assert_calls(&[("cuLaunchKernel", 1000)]);
        assert!(cost.heap_allocations() < 50, "only tables grow: {}", cost.heap_allocations());
        // SAFETY: it has no parameters.
        unsafe { empty.launch(&stream, per(1, 1).shared_bytes(16), params![]) }.unwrap();
        let captured = capture.end().unwrap();
        let nodes = raw::nodes(captured.graph.as_raw());
        assert_eq!(captured.records.len(), nodes.len());
        let last = captured.records.len() - 1;
        for (index, (record, node)) in captured.records.iter().zip(nodes).enumerate() {
            let (node, shared, threads) =
                (raw::kernel(node), record.work(), if index < last { 32 } else { 1 });
            let kernel = if index < last { &increment } else { &empty };
            let expected = Work::Kernel {
                kernel: kernel.as_raw().addr(),
                grid: [node.gridDimX, node.gridDimY, node.gridDimZ],
                block: [threads, 1, 1],
                shared: node.sharedMemBytes,
            };
            assert_eq!(shared, expected);
            let mut expected = vec![Owner::from(kernel)];
            if index < last {
                expected.push(Owner::from(&buffer));
                let values = [bytes(buffer.address()), Some(64_u32.to_ne_bytes().to_vec())];
                assert_eq!(arguments(record), values);
            } else {
                assert!(arguments(record).is_empty());
            }
            assert_eq!(owners(record), expected);
        }
        assert_eq!(captured.records.into_owners().len(), 3);
    });
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Padded {
    tag: u8,
    weight: f64,
    corner: [i32; 3],
    last: u16,
}

kernel! {
    // SAFETY: the kernel in the file has these parameters, and writes six elements.
    unsafe in "../../kernels/arguments.ptx";

    fn padded_struct(value: Struct<Padded>, out: Out<f64>) where out.len() >= 6;
}

#[test]
fn bytes_that_may_be_padding_are_never_read() {
    let context = setup();
    no_leaks(|| {
        let (stream, take) = (context.stream().unwrap(), padded_struct::load(&context).unwrap());
        let out = stream.zeros::<f64>(6).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = begin(&stream);
        let value = Padded { tag: 1, weight: 2.0, corner: [3; 3], last: 4 };
        // SAFETY: there are no addresses in it.
        let given = || unsafe { ParamBytes::of(&value) };
        let config = per(1, 1);
        // SAFETY: the arguments are the kernel's.
        unsafe {
            take.kernel().launch(&stream, config, params![given(), &out]).unwrap();
            take.kernel().launch(&stream, config, params![given(), &out].into_owned()).unwrap();
        }
        take.launch(&stream, config, (value, &out)).unwrap();
        let captured = capture.end().unwrap();
        for record in captured.records.iter() {
            assert_eq!(arguments(record), [None, bytes(out.address())]);
        }
        assert_eq!(captured.records.len(), 3);
    });
}

#[test]
fn a_refused_launch_leaves_no_record_and_is_named_at_the_end() {
    let context = setup();
    let (increment, empty) = (kernel(&context, "increment"), kernel(&context, "empty"));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = begin(&stream);
        // SAFETY: it has no parameters.
        let launch_empty = || unsafe { empty.launch(&stream, per(1, 1), params![]) };
        launch_empty().unwrap();
        let injection = fail(Call::cuLaunchKernel, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let refused = unsafe { increment.launch(&stream, per(64, 32), params![&buffer, 64_u32]) };
        assert!(injection.hit() && refused.is_err());
        drop(injection);
        launch_empty().unwrap();
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 2);
        let all: Vec<_> = captured.records.iter().map(owners).collect();
        assert_eq!(all, [[Owner::from(&empty)], [Owner::from(&empty)]]);
    });
}

fn is_outside(outcome: Result<(), Error>) {
    assert!(matches!(outcome, Err(Error::OutsideGraph { .. })), "{outcome:?}");
}

#[test]
fn kernels_with_handles_are_launched_into_captures_of_this_library_alone() {
    let context: &Context = &setup();
    no_leaks(|| {
        let (stream, count_down) = (context.stream().unwrap(), count_down::load(context).unwrap());
        let counter = stream.zeros::<u32>(1).unwrap();
        stream.synchronize_blocking().unwrap();
        // SAFETY: what is captured with it never runs.
        let handle = unsafe { ConditionalHandle::new(71, 2, 3) };
        let one = per(1, 1);
        let launch = |capture| {
            let prepared = count_down.prepare(&one, (&counter, handle)).unwrap();
            // SAFETY: the arguments are the kernel's, and it never runs.
            unsafe { launch_captured(count_down.kernel(), (&stream, capture), one, &prepared, None) }
        };
        let (outcome, cost) = count(|| launch(1));
        is_outside(outcome);
        cost.assert_calls(&[]);
        let capture = begin(&stream);
        stream.fill(&counter, 1).unwrap();
        let (outcome, cost) = count(|| launch(capture.id()));
        outcome.unwrap();
        cost.assert_calls(&[("cuLaunchKernel", 1)]);
        stream.fill(&counter, 1).unwrap();
        // SAFETY: as above.
        let untyped = params![&counter, handle];
        // SAFETY: as above.
        unsafe { launch_captured(count_down.kernel(), (&stream, capture.id()), one, &untyped, None) }
            .unwrap();
        // SAFETY: it does not reach the driver.
        is_outside(unsafe { count_down.kernel().launch(&stream, one, &untyped) });
        let captured = capture.end().unwrap();
        let handles: Vec<_> = captured.records.iter().map(|record| record.handles().to_vec()).collect();
        assert_eq!(handles, [vec![], vec![71], vec![], vec![71]]);
        for record in captured.records.iter().filter(|record| !record.handles().is_empty()) {
            assert_eq!(arguments(record), [bytes(counter.address()), bytes(71)]);
            assert_eq!(owners(record), [Owner::from(count_down.kernel()), Owner::from(&counter)]);
        }
        // A capture of other code.
        let theirs = stream.lend();
        let mode = cuda_sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(theirs, mode) });
        is_outside(launch(1));
        let mut graph = core::ptr::null_mut();
        // SAFETY: the stream lives, the out pointer is valid, and the graph is ours.
        unsafe {
            raw::ok(raw::driver().cuStreamEndCapture(theirs, &raw mut graph));
            raw::ok(raw::driver().cuGraphDestroy(graph));
        }
    });
}
