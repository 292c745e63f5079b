//! Memory that is allocated in a capture: ordinary memory that the capture keeps and gives again.

use cuda_handles::capture::{ActiveCapture, CaptureMode, CaptureOptions, Captured, Scratch};
use cuda_handles::{Buffer, Context, Error, Owner, PoolOptions, Stream};
use cuda_sys::{CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraphExec, CUresult, CUstreamCaptureMode, Call};
use cuda_tests::{Kind, alone, count, every_failure, fail, live, no_leaks, other_device, raw, settle, setup};

fn begin(stream: &Stream) -> ActiveCapture {
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap()
}

fn share(stream: &Stream, scratch: &Scratch) -> ActiveCapture {
    stream.begin_capture_with(&CaptureOptions::new().scratch(scratch)).unwrap()
}

/// The number of allocations that the driver makes in a section.
fn allocations<R>(section: impl FnOnce() -> R) -> (R, u64) {
    let (result, cost) = count(section);
    let made = cost.calls("cuMemAllocAsync") + cost.calls("cuMemAllocFromPoolAsync");
    assert_eq!(cost.calls("cuMemAlloc"), 0);
    (result, made)
}

/// A temporary of a captured step.
fn step(stream: &Stream, len: usize) -> u64 {
    let temporary = stream.zeros::<u32>(len).unwrap();
    stream.fill(&temporary, 1).unwrap();
    temporary.address()
}

/// An executable of what was captured.
struct Exec(CUgraphExec, #[allow(dead_code)] Captured);

impl Exec {
    fn of(context: &Context, captured: Captured) -> Self {
        let mut exec = core::ptr::null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
        let graph = captured.graph.as_raw();
        // SAFETY: the graph lives, and what its nodes use is kept in the result.
        let made =
            || unsafe { raw::driver().cuGraphInstantiateWithParams(&raw mut exec, graph, &raw mut params) };
        raw::ok(context.with_current(made).unwrap());
        Self(exec, captured)
    }

    fn launch(&self, stream: &Stream) {
        // SAFETY: executable and stream live, and so does what the nodes use.
        raw::ok(unsafe { raw::driver().cuGraphLaunch(self.0, stream.as_raw()) });
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        // SAFETY: the last use of it.
        raw::ok(unsafe { raw::driver().cuGraphExecDestroy(self.0) });
    }
}

#[test]
fn zeros_and_uploads_become_nodes_of_memory_that_is_there() {
    let context = setup();
    for mode in [CaptureMode::ThreadLocal, CaptureMode::Global, CaptureMode::Relaxed] {
        no_leaks(|| {
            let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
            let capture = stream.begin_capture(mode).unwrap();
            let (zeros, cost) = count(|| stream.zeros::<u32>(8).unwrap());
            assert_eq!((cost.calls("cuMemAllocAsync"), cost.calls("cuMemsetD8Async")), (1, 1), "{cost}");
            let upload = stream.upload(&[1_u32, 2, 3]).unwrap();
            let large = stream.upload(&vec![7_u8; 100_000]).unwrap();
            let plain = stream.alloc::<u32>(8).unwrap();
            assert!(stream.zeros::<u32>(0).unwrap().is_empty());
            // In the capture: plain uses elsewhere.
            other.fill(&zeros, 9).unwrap();
            other.fill(&plain, 4).unwrap();
            assert_eq!(zeros.read_blocking(&other).unwrap(), [9; 8]);
            let captured = capture.end().unwrap();
            assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 3);
            // Before the first launch, and after it.
            assert_eq!(zeros.read_blocking(&stream).unwrap(), [9; 8]);
            let exec = Exec::of(&context, captured);
            for _ in 0..2 {
                stream.fill(&upload, 8).unwrap();
                exec.launch(&stream);
                assert_eq!(zeros.read_blocking(&stream).unwrap(), [0; 8]);
                assert_eq!(upload.read_blocking(&stream).unwrap(), [1, 2, 3]);
                assert_eq!(large.read_blocking(&stream).unwrap(), [7; 100_000]);
            }
            // After the graph is gone.
            drop(exec);
            other.fill(&upload, 5).unwrap();
            assert_eq!(upload.read_blocking(&other).unwrap(), [5; 3]);
            assert_eq!(plain.read_blocking(&other).unwrap(), [4; 8]);
        });
    }
}

#[test]
fn the_drop_of_a_buffer_calls_no_driver_as_long_as_the_graph_keeps_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Allocation);
        let capture = begin(&stream);
        let [first, second, third] = [(); 3].map(|()| stream.zeros::<u32>(8).unwrap());
        let ((), cost) = count(|| drop(first));
        assert_eq!(cost.total_anywhere(), 0, "{cost}");
        let captured = capture.end().unwrap();
        let ((), cost) = count(|| drop(second));
        assert_eq!(cost.total_anywhere(), 0, "{cost}");
        assert_eq!(live().of(Kind::Allocation), before + 3);
        drop(captured);
        settle();
        assert_eq!(live().of(Kind::Allocation), before + 1, "one is held");
        assert_eq!(third.allocation().home().map(|home| *home == stream), Some(false));
    });
}

#[test]
fn temporaries_cost_their_peak() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let capture = begin(&stream);
        let (addresses, made) =
            allocations(|| (0..20).map(|round| step(&stream, 1000 - round)).collect::<Vec<_>>());
        assert_eq!(made, 1);
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        // Two at once.
        let ((), made) = allocations(|| {
            for _ in 0..10 {
                let first = stream.alloc::<u32>(900).unwrap();
                stream.fill(&first, 1).unwrap();
                let second = stream.upload(&vec![1_u32; 900]).unwrap();
                assert_ne!(first.address(), second.address());
                stream.copy(&first, &second).unwrap();
            }
        });
        assert_eq!(made, 1);
        // The smallest that is large enough.
        let large = stream.alloc::<u32>(2000).unwrap();
        let large_address = large.address();
        drop(large);
        assert_ne!(step(&stream, 900), large_address);
        assert_eq!(step(&stream, 1001), large_address);
        let captured = capture.end().unwrap();
        let owners = captured.records.into_owners();
        let memory = owners.iter().filter(|owner| matches!(owner, Owner::Allocation(_)));
        assert!(memory.count() >= 3);
    });
}

#[test]
fn whoever_holds_memory_or_uses_it_elsewhere_keeps_it_from_being_given() {
    let context = setup();
    no_leaks(|| {
        let (stream, fork, plain) =
            (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
        let capture = begin(&stream);
        fork.wait_for(&stream).unwrap();
        let address = step(&stream, 8);
        assert_eq!(step(&stream, 8), address, "used on the stream alone");
        assert_ne!(step(&fork, 8), address, "of another stream of the capture");

        // One after the other, each of which takes the memory and keeps it from being given.
        let mut held: Vec<Box<dyn core::any::Any>> = Vec::new();
        let taken = |how: &mut dyn FnMut(&Buffer<u32>)| {
            let address = step(&stream, 8);
            let buffer = stream.zeros::<u32>(8).unwrap();
            assert_eq!(buffer.address(), address);
            how(&buffer);
            drop(buffer);
            assert_ne!(step(&stream, 8), address);
        };
        taken(&mut |buffer| held.push(Box::new(buffer.clone())));
        taken(&mut |buffer| held.push(Box::new(buffer.sub_buffer(..2).unwrap())));
        taken(&mut |buffer| stream.enqueue().unwrap().keep(buffer).unwrap());
        taken(&mut |buffer| capture.keep(buffer));
        taken(&mut |buffer| fork.fill(buffer, 1).unwrap());
        taken(&mut |buffer| plain.fill(buffer, 1).unwrap());
        stream.wait_for(&fork).unwrap();
        drop(capture.end().unwrap());
    });
}

#[test]
fn memory_of_a_pool_is_given_to_needs_of_that_pool() {
    let context = setup();
    no_leaks(|| {
        let (stream, pool) = (context.stream().unwrap(), context.pool(PoolOptions::default()).unwrap());
        let capture = begin(&stream);
        let of_pool = || stream.zeros_from::<u32>(&pool, 8).unwrap().address();
        let (first, made) = allocations(of_pool);
        assert_eq!(made, 1);
        assert_ne!(step(&stream, 8), first);
        assert_eq!(allocations(of_pool), (first, 0));
        let captured = capture.end().unwrap();
        drop((pool, captured));
    });
}

#[test]
fn captures_that_share_memory_need_the_largest_not_the_sum() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let scratch = Scratch::new(&context);
        let mut graphs = Vec::new();
        for (round, len) in [4000_usize, 2000, 1000, 500].into_iter().enumerate() {
            let stream = [&stream, &other][round % 2];
            let capture = share(stream, &scratch);
            let ((), made) = allocations(|| (0..5).for_each(|_| _ = step(stream, len)));
            assert_eq!(made, u64::from(round == 0), "{round}");
            let captured = capture.end().unwrap();
            assert_eq!(captured.scratch.as_ref(), Some(&scratch));
            graphs.push(captured);
        }
        assert_eq!(scratch.size_bytes(), 16_000);
        // A capture that allocates nothing is not in the line.
        let captured = share(&stream, &scratch).end().unwrap();
        assert!(captured.scratch.is_none() && captured.records.into_owners().is_empty());
        drop(graphs.split_off(1));
        drop(scratch);
        settle();
        assert_eq!(graphs[0].scratch.as_ref().map(Scratch::size_bytes), Some(16_000));
    });
}

#[test]
fn shared_memory_that_is_held_or_used_elsewhere_stays_with_its_graph() {
    let context = setup();
    no_leaks(|| {
        let (stream, plain) = (context.stream().unwrap(), context.stream().unwrap());
        let scratch = Scratch::new(&context);
        let capture = share(&stream, &scratch);
        let output = stream.zeros::<u32>(8).unwrap();
        let used = stream.zeros::<u32>(8).unwrap();
        plain.fill(&used, 1).unwrap();
        drop(used);
        step(&stream, 8);
        let first = capture.end().unwrap();
        assert_eq!(scratch.size_bytes(), 32, "the temporary");
        let output_address = output.address();
        drop(output);
        let capture = share(&stream, &scratch);
        assert_ne!(step(&stream, 8), output_address);
        // A capture beside it takes memory that no other has.
        let beside = share(&plain, &scratch);
        let (_, made) = allocations(|| step(&plain, 8));
        assert_eq!(made, 1);
        let second = beside.end().unwrap();
        drop((capture.end().unwrap(), first, second));
        assert_eq!(scratch.size_bytes(), 64);
        drop(scratch);
    });
}

#[test]
fn scratch_memory_of_another_context_is_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    cuda_tests::needs!(TwoDevices);
    let other = other_device().context().unwrap();
    let (stream, scratch) = (context.stream().unwrap(), Scratch::new(&other));
    let refused = stream.begin_capture_with(&CaptureOptions::new().scratch(&scratch));
    assert!(matches!(refused, Err(Error::WrongContext { .. })), "{refused:?}");
    drop(begin(&stream));
}

#[test]
fn in_a_capture_of_other_code_allocations_are_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let raw = stream.lend();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(raw, mode) });
        for refused in [
            stream.zeros::<u32>(8),
            stream.alloc::<u32>(8),
            stream.upload(&[1_u32]),
            stream.upload(&[1; 9999]),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error, Error::Capturing { what: "allocating a buffer" });
        }
        let mut graph = core::ptr::null_mut();
        // SAFETY: the stream lives, the out pointer is valid, and the graph is ours.
        unsafe {
            raw::ok(raw::driver().cuStreamEndCapture(raw, &raw mut graph));
            raw::ok(raw::driver().cuGraphDestroy(graph));
        }
        assert_eq!(stream.upload(&[1_u32]).unwrap().read_blocking(&stream).unwrap(), [1]);
    });
}

#[test]
fn host_memory_that_nobody_owns_is_refused_with_what_to_do() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload_blocking(&[1_u32; 4]).unwrap();
        let mut host = [0_u32; 4];
        let capture = begin(&stream);
        let refused = [
            ("`Stream::write`", buffer.write_blocking(&stream, &[1; 4])),
            ("`Stream::copy`", buffer.read_blocking(&stream).map(drop)),
            ("`Stream::copy`", buffer.read_into_blocking(&stream, &mut host)),
            ("`Stream::upload`", stream.upload_blocking(&[1_u32; 4]).map(drop)),
        ];
        for (advice, refused) in refused {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Capturing { .. }), "{error:?}");
            assert!(error.to_string().contains(advice), "{error}");
        }
        // What is advised.
        stream.write(&buffer, &[2; 4]).unwrap();
        let pinned = context.pinned_zeros::<u32>(4).unwrap().share();
        stream.copy(&buffer, &pinned).unwrap();
        drop(stream.upload(&[1_u32; 4]).unwrap());
        assert_eq!(raw::nodes(capture.end().unwrap().graph.as_raw()).len(), 3);
    });
}

#[test]
fn an_allocation_that_fails_leaves_the_capture_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let capture = begin(&stream);
        for call in [Call::cuMemAllocAsync, Call::cuMemsetD8Async] {
            let failing = fail(call, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            stream.zeros::<u32>(8).unwrap_err();
            assert!(failing.hit());
        }
        let (_, made) = allocations(|| step(&stream, 8));
        assert_eq!(made, 0, "the memory of the fill that failed");
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 2);
    });
    // In the other modes a thread whose mode cannot be exchanged invalidates the capture.
    let options = CaptureOptions::new().mode(CaptureMode::Relaxed);
    every_failure(|| {
        let (stream, scratch) = (context.stream()?, Scratch::new(&context));
        let capture = stream.begin_capture_with(&options.clone().scratch(&scratch))?;
        let (zeros, upload) = (stream.zeros::<u32>(8)?, stream.upload(&[1_u32; 8])?);
        stream.copy(&upload, &zeros)?;
        drop((zeros, upload));
        capture.end().map(drop)
    });
    every_failure(|| {
        let stream = context.stream()?;
        let capture = stream.begin_capture_with(&options)?;
        drop(stream.zeros::<u32>(8)?);
        capture.end().map(drop)
    });
}

#[test]
fn threads_allocate_in_one_capture() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| _ = step(&stream, 64)));
            }
        });
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 400);
        let exec = Exec::of(&context, captured);
        exec.launch(&stream);
        stream.synchronize_blocking().unwrap();
    });
}
