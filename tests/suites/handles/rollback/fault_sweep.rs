//! The fault sweep over the crate: each driver call of these scenarios fails in turn.

use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
use cuda_handles::{
    Context, Copy2d, Copy3d, Device, EntryWait, Error, EventOptions, GraphHandle, Image, Library, Linker,
    LoadOptions, Owner, PoolOptions, PoolReuse, StreamOptions, UserObject,
};
use cuda_sys::{CUfunction_attribute, CUresult, CUstream, CUstreamCaptureMode, Call, Version};
use cuda_tests::{SMALL, VARIABLES, needs, raw, setup, sweep, used_stream};

#[test]
fn devices_and_contexts() {
    let context = setup();
    let cases = sweep("devices and contexts", || -> Result<(), Error> {
        let device = Device::new(context.device().ordinal())?;
        assert_eq!(device.context()?, *context);
        drop((device.name()?, device.uuid()?, device.total_memory()?, device.compute_capability()?));
        context.memory_info()?;
        context.set_scheduling(context.scheduling()?)?;
        context.start_profiler()?;
        context.stop_profiler()?;
        let _waited_for = context.stream()?;
        context.synchronize_blocking()
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn streams_and_events() {
    let context = setup();
    let cases = sweep("streams and events", || -> Result<(), Error> {
        let (first, second) =
            (context.stream()?, context.stream_with(StreamOptions { priority: -1, ..Default::default() })?);
        let timed = EventOptions { timing: true, ..EventOptions::default() };
        let (start, end) = (context.event_with(timed)?, context.event_with(timed)?);
        first.record(&start)?;
        second.wait(&start)?;
        second.record(&end)?;
        second.wait_for(&first)?;
        first.synchronize_blocking()?;
        end.synchronize_blocking()?;
        assert!(end.query()? && first.query()?);
        end.elapsed_since(&start).map(drop)
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn default_streams() {
    let context = setup();
    let home = used_stream(&context);
    let event = context.event().unwrap();
    let cases = sweep("default streams", || -> Result<(), Error> {
        let buffer = home.zeros::<u32>(16)?;
        for stream in [context.legacy_stream(), context.per_thread_stream()] {
            stream.wait_for(&home)?;
            stream.record(&event)?;
            stream.wait(&event)?;
            home.wait_for_default(&stream)?;
            stream.synchronize_blocking()?;
            assert!(stream.query()?);
        }
        assert_eq!(buffer.read_blocking(&home)?, [0; 16]);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn memory_at_home() {
    let context = setup();
    let home = used_stream(&context);
    let cases = sweep("memory at home", || -> Result<(), Error> {
        let (from, to) = (home.upload(&[7_u32; 16])?, home.zeros::<u32>(16)?);
        home.copy(&from, &to)?;
        home.fill(to.slice(8..)?, 1)?;
        from.write_blocking(&home, &[2; 16])?;
        let part = to.sub_buffer(4..12)?;
        drop(to);
        assert_eq!(part.read_blocking(&home)?, [7, 7, 7, 7, 1, 1, 1, 1]);
        assert_eq!(from.read_blocking(&home)?, [2; 16]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn memory_used_on_other_streams() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("memory used on other streams", || -> Result<(), Error> {
        let (unsettled, settled) = (home.zeros::<u32>(16)?, home.upload(&[1_u32; 16])?);
        other.fill(&unsettled, 2)?;
        other.copy(&unsettled, &settled)?;
        assert_eq!(settled.read_blocking(&other)?, [2; 16]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn memory_with_streams_of_its_own() {
    let context = setup();
    let cases = sweep("memory with streams of its own", || -> Result<(), Error> {
        let (home, other) = (context.stream()?, context.stream()?);
        let buffer = home.zeros::<u32>(16)?;
        drop(home);
        other.fill(&buffer, 1)?;
        assert_eq!(buffer.read_blocking(&other)?, [1; 16]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn libraries_and_kernels() {
    let context = setup();
    let cases = sweep("libraries and kernels", || -> Result<(), Error> {
        let library = Library::load(&context, Image::Ptx(SMALL))?;
        let (saxpy, again) = (library.kernel("saxpy")?, library.kernel("saxpy")?);
        assert_eq!(saxpy, again);
        if raw::driver().version() >= Version::new(12, 4) {
            assert!(library.kernel_names()?.len() > 5);
        }
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

/// A failed compilation with the waits is no error: the outcome tells of it.
#[test]
fn libraries_that_wait() {
    let context = setup();
    needs!(LaunchAttributes);
    let told = |library: &Library| match library.entry_wait() {
        Some(EntryWait::AsItIs { why }) => Err(why.to_string()),
        _ => Ok(()),
    };
    let cases = sweep("libraries that wait", || -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let loaded = Library::load_waiting(&context, Image::Ptx(SMALL)).map_err(text)?;
        loaded.library.kernel("saxpy").map_err(text)?;
        let shared = Library::load_waiting_shared(&context, Image::Ptx(VARIABLES)).map_err(text)?;
        told(&loaded.library).and(told(&shared))
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn shared_libraries_and_variables() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("shared libraries and variables", || -> Result<(), Error> {
        let library = Library::load_shared(&context, Image::Ptx(VARIABLES))?;
        assert_eq!(Library::load_shared(&context, Image::Ptx(VARIABLES))?, library);
        // SAFETY: the kernels of the image compute with the numbers in them.
        let (weights, word) =
            unsafe { (library.global::<f32>("weights")?, library.managed_global::<u32>("word")?) };
        drop(library);
        home.fill(&weights, 0.5)?;
        weights.write_blocking(&home, &[1.5; 16])?;
        word.write_blocking(&home, &[7])?;
        assert_eq!(weights.read_blocking(&other)?, [1.5; 16]);
        assert_eq!(word.read_blocking(&other)?, [7]);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn graphs_and_user_objects() {
    let context = setup();
    let cases = sweep("graphs and user objects", || -> Result<(), Error> {
        let graph = GraphHandle::create(&context)?;
        let (kept, given_back) =
            (UserObject::new(&context, Box::new(()))?, UserObject::new(&context, Box::new(()))?);
        kept.retain_on(&graph)?;
        given_back.retain_on(&graph)?;
        given_back.release_from(&graph)
    });
    assert!(cases >= 15, "{cases}");
}

#[test]
fn plain_pinned_and_managed_memory() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("plain, pinned and managed memory", || -> Result<(), Error> {
        let plain = context.alloc_blocking::<u32>(16)?;
        home.fill(&plain, 3)?;
        let (pinned, managed) =
            (context.pinned_zeros::<u32>(16)?.share(), context.managed_zeros::<u32>(16)?.share());
        home.copy(&plain, &pinned)?;
        other.wait_for(&home)?;
        other.copy(&pinned, managed.slice(..)?)?;
        assert_eq!(managed.read_blocking(&other)?, [3; 16]);
        pinned.write_blocking(&home, &[4; 16])?;
        assert_eq!(pinned.read_blocking(&home)?, [4; 16]);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn staged_writes_and_memory_that_comes_back() {
    let context = setup();
    let home = used_stream(&context);
    let event = context.event().unwrap();
    let cases = sweep("staged writes", || -> Result<(), Error> {
        let (small, large) = (home.upload(&[7_u32; 16])?, home.upload(&[5_u8; 20_000])?);
        home.write(small.slice(4..)?, &[1; 12])?;
        home.write(&large, &[6; 20_000])?;
        let host = context.pinned_zeros::<u32>(16)?.share();
        home.copy(&small, &host)?;
        home.record(&event)?;
        event.synchronize_blocking()?;
        // If the query fails, the memory stays shared.
        if let Ok(mut host) = host.try_unique() {
            assert_eq!((host[3], host[4]), (7, 1));
            host.fill(3);
            let shared = host.share();
            home.copy(&shared, &small)?;
            shared.unique_blocking()?;
        }
        assert_eq!(large.read_blocking(&home)?, [6; 20_000]);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn pools() {
    let context = setup();
    let home = used_stream(&context);
    let cases = sweep("pools", || -> Result<(), Error> {
        let pool = context.pool(PoolOptions::default())?;
        pool.set_release_threshold(1 << 20)?;
        pool.set_reuse(PoolReuse::Opportunistic, false)?;
        assert!(!pool.reuses(PoolReuse::Opportunistic)?);
        let buffer = home.zeros_from::<u32>(&pool, 16)?;
        assert!(pool.usage()?.used >= 64);
        drop(buffer);
        home.synchronize_blocking()?;
        pool.trim(0)?;
        pool.reset_high_water()
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn pools_dropped_behind_their_buffers() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("pools dropped behind their buffers", || -> Result<(), Error> {
        let (pool, own) = (context.pool(PoolOptions::default())?, context.stream()?);
        let (plain, shared) = (home.zeros_from::<u32>(&pool, 16)?, home.zeros_from::<u32>(&pool, 16)?);
        other.fill(&shared, 1)?;
        own.zeros_from::<u32>(&pool, 16)?;
        drop((plain, own, pool));
        let next = context.pool(PoolOptions::default())?;
        home.zeros_from::<u32>(&next, 16).map(drop)
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn rectangles() {
    let context = setup();
    let home = used_stream(&context);
    let cases = sweep("rectangles", || -> Result<(), Error> {
        let (from, to) = (home.zeros::<u32>(64)?, home.zeros::<u32>(64)?);
        home.fill_2d(&from, 8, [4, 8], 5)?;
        let (source, destination) = (from.as_slice(), to.as_slice());
        let (source_pitch, destination_pitch) = (8, 8);
        home.copy_2d(Copy2d { source, source_pitch, destination, destination_pitch, width: 4, height: 4 })?;
        let (source_rows, destination_rows) = (4, 4);
        home.copy_3d(Copy3d {
            source,
            source_pitch,
            source_rows,
            destination: to.slice(32..)?,
            destination_pitch,
            destination_rows,
            width: 4,
            height: 4,
            depth: 1,
        })?;
        assert_eq!(to.read_blocking(&home)?.iter().sum::<u32>(), 4 * 8 * 5);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn linking_and_attributes() {
    let context = setup();
    let cases = sweep("linking and attributes", || -> Result<(), Error> {
        let mut linker = Linker::with(&context, &LoadOptions { line_info: true, ..LoadOptions::default() })?;
        linker.add("small", Image::Ptx(SMALL))?;
        let kernel = linker.link()?.kernel("increment")?;
        kernel.set_max_dynamic_shared_bytes(1024)?;
        assert_eq!(kernel.max_dynamic_shared_bytes(), 1024);
        kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        if raw::driver().version() >= Version::new(12, 4) {
            kernel.load_now()?;
        }
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn captures() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let buffer = home.upload_blocking(&[1_u32; 16]).unwrap();
    let cases = sweep("captures", || -> Result<(), Error> {
        let capture = home.begin_capture(CaptureMode::ThreadLocal)?;
        home.fill(&buffer, 1)?;
        other.wait_for(&home)?;
        other.fill(&buffer, 2)?;
        home.wait_for(&other)?;
        let captured = capture.end()?;
        assert!(!captured.records.is_empty());
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

/// Whether other code captures a stream that was lent to it, the driver alone knows.
#[test]
fn a_lent_stream() {
    let context = setup();
    let (stream, other) = (used_stream(&context), used_stream(&context));
    let _ = stream.lend();
    let cases = sweep("a lent stream", || -> Result<(), Error> {
        let buffer = stream.zeros::<u32>(16)?;
        assert!(!stream.enqueue()?.is_captured()?);
        stream.fill(&buffer, 3)?;
        stream.write(buffer.slice(..2)?, &[1, 2])?;
        assert_eq!(buffer.read_blocking(&other)?[..3], [1, 2, 3]);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn memory_of_captures() {
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("memory of captures", || -> Result<(), Error> {
        let (scratch, pool) = (Scratch::new(&context), context.pool(PoolOptions::default())?);
        let unsettled = other.zeros::<u32>(16)?;
        let options = CaptureOptions::new().mode(CaptureMode::Relaxed).scratch(&scratch);
        let capture = home.begin_capture_with(&options)?;
        home.fill(&unsettled, 1)?;
        drop(home.upload(&[1_u32; 16])?);
        home.copy(&unsettled, &home.zeros::<u32>(16)?)?;
        let pooled = home.alloc_from::<u32>(&pool, 16)?;
        let captured = capture.end()?;
        assert_eq!(captured.scratch, Some(scratch));
        drop(captured);
        other.fill(&pooled, 2)
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn host_functions() {
    let context = setup();
    let home = used_stream(&context);
    let cases = sweep("host functions", || -> Result<(), Error> {
        let (buffer, host) = (home.upload(&[7_u32; 16])?, context.pinned_zeros::<u32>(16)?.share());
        let (sender, receiver) = std::sync::mpsc::channel();
        home.copy(&buffer, &host)?;
        home.host_with(&host, |view| drop(view.set(0, 1)))?;
        home.host(|| ())?;
        home.host_once_with(&host, move |view| drop(sender.send(view.to_vec())))?;
        home.synchronize_blocking()?;
        let seen = receiver.try_recv();
        assert_eq!(seen.map(|seen| (seen[0], seen[15])), Ok((1, 7)));
        let capture = home.begin_capture(CaptureMode::ThreadLocal)?;
        home.host_with(&host, |_| ())?;
        capture.end().map(drop)
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn registered_and_unfilled_memory() {
    let context = setup();
    let home = used_stream(&context);
    let cases = sweep("registered and unfilled memory", || -> Result<(), Error> {
        let pool = context.pool(PoolOptions::default())?;
        let (host, dropped) = (context.register(vec![7_u64; 16])?.share(), context.register(vec![1_u8])?);
        let (buffer, pooled) = (home.alloc::<u64>(16)?, home.alloc_from::<u64>(&pool, 16)?);
        home.copy(&host, &buffer)?;
        home.clear(&pooled)?;
        home.clear(buffer.slice(8..)?)?;
        home.copy(&buffer, &host)?;
        home.synchronize_blocking()?;
        drop((dropped, pooled, pool));
        let view = host.try_view().map(|view| (view.get(7), view.get(8)));
        assert_eq!(view, Some((Some(7), Some(0))));
        let vector = context.register(vec![3_u16; 16])?.into_vec_blocking()?;
        assert_eq!(vector, [3; 16]);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

/// Other code captures a stream that was lent to it, and something is kept for the graph.
#[test]
fn a_capture_of_other_code() {
    let context = setup();
    let stream = used_stream(&context);
    let theirs = stream.lend();
    let cases = sweep("a capture of other code", || -> Result<(), Error> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives.
        let begun = unsafe { raw::driver().cuStreamBeginCapture(theirs, mode) };
        context.check(Call::cuStreamBeginCapture, begun)?;
        let kept = stream.enqueue().and_then(|turn| turn.keep(Owner::other(5_u32)));
        end_theirs(&context, theirs).and(kept)
    });
    assert!(cases >= 10, "{cases}");
}

/// Ends the capture of other code and destroys its graph. A call that fails is made again, so that
/// nothing stays.
fn end_theirs(context: &Context, theirs: CUstream) -> Result<(), Error> {
    let insist = |call: Call, make: &mut dyn FnMut() -> CUresult| {
        let first = context.check(call, make());
        // A sweep makes two calls of a run fail at most.
        let done = first.is_ok() || (0..2).any(|_| make().is_success());
        assert!(done, "{first:?}");
        first
    };
    let mut graph = core::ptr::null_mut();
    // SAFETY: the stream lives and the out pointer is valid.
    let mut end = || unsafe { raw::driver().cuStreamEndCapture(theirs, &raw mut graph) };
    let ended = insist(Call::cuStreamEndCapture, &mut end);
    // SAFETY: nobody else has the graph, and it is destroyed once.
    let mut destroy = || unsafe { raw::driver().cuGraphDestroy(graph) };
    ended.and(insist(Call::cuGraphDestroy, &mut destroy))
}
