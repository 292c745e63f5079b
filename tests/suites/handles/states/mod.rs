//! Every operation of the crate in each of the six states.

use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
use cuda_handles::nvrtc::Program;
use cuda_handles::{
    Batch, Buffer, Compare, Context, Copy2d, Copy3d, Device, Error, Event, EventOptions, GraphHandle, Image,
    Kernel, Library, Linker, LoadOptions, MemPool, PoolOptions, PoolReuse, Scheduling, SharedHostBuffer,
    Stream, StreamOptions, UserObject, reaper,
};
use cuda_sys::{CUdevice_attribute, CUfunction_attribute, CUresult, Call};
use cuda_tests::states::{
    CALLS, CHECKS, DEVICE, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared, row,
};
use cuda_tests::{SMALL, VARIABLES};

mod adopted;
mod drain;
mod host_calls;
#[cfg(unix)]
mod imports;
mod lost;
mod peers;

cuda_tests::six_states!(rows);

fn rows() -> Vec<Row> {
    [
        devices(),
        contexts(),
        streams(),
        captures(),
        default_streams(),
        events(),
        memory(),
        copies(),
        pools(),
        exports(),
        libraries(),
        compiling(),
        graphs(),
        adopted::rows(),
        host_calls::rows(),
        ends(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn devices() -> Vec<Row> {
    vec![
        row("Device::count", DEVICE, |_| done(Device::count()?)),
        row("Device::new", DEVICE, |_| done(Device::new(0)?)),
        row("Device::all", DEVICE, |_| done(Device::all()?)),
        row("Device::name", DEVICE, |things| done(things.context.device().name()?)),
        row("Device::uuid", DEVICE, |things| done(things.context.device().uuid()?)),
        row("Device::total_memory", DEVICE, |things| done(things.context.device().total_memory()?)),
        row("Device::compute_capability", DEVICE, |things| {
            done(things.context.device().compute_capability()?)
        }),
        row("Device::attribute", DEVICE, |things| {
            let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE;
            done(things.context.device().attribute(attribute)?)
        }),
        // Retained before.
        row("Device::context", PURE, |things| done(things.context.device().context()?)),
    ]
}

fn contexts() -> Vec<Row> {
    vec![
        row("Context::limits, device, as_raw, lost", PURE, |things| {
            let context = &things.context;
            drop((context.limits(), context.device(), context.as_raw(), context.lost(), context.clone()));
            Ok(())
        }),
        row("Context::from_raw", PURE, |things| {
            // SAFETY: the context lives.
            done(unsafe { Context::from_raw(things.context.as_raw()) }?)
        }),
        row("Context::ensure_usable", CHECKS, |things| Ok(things.context.ensure_usable()?)),
        row("Context::check", PURE, |things| {
            Ok(things.context.check(Call::cuCtxGetCurrent, CUresult::CUDA_SUCCESS)?)
        }),
        row("Context::ensure_same", PURE, |things| {
            Ok(things.context.ensure_same(things.home.context(), "the stream")?)
        }),
        row("Context::is_same", PURE, |things| done(things.context.is_same(things.home.context()))),
        row("Context::with_current", CALLS, |things| Ok(things.context.with_current(|| ())?)),
        row("Context::memory_info", CALLS, |things| done(things.context.memory_info()?)),
        row("Context::synchronize_blocking", CALLS, |things| Ok(things.context.synchronize_blocking()?)),
        row("Context::scheduling", CALLS, |things| done(things.context.scheduling()?)),
        row("Context::set_scheduling", CALLS, |things| {
            Ok(things.context.set_scheduling(Scheduling::BlockingSync)?)
        }),
        row("Context::start_profiler", CALLS, |things| Ok(things.context.start_profiler()?)),
        row("Context::stop_profiler", CALLS, |things| Ok(things.context.stop_profiler()?)),
        row("Context::stream", CALLS, |things| done(things.context.stream()?)),
        row("Context::stream_with", CALLS, |things| {
            let options = StreamOptions { priority: -1, blocking_with_legacy: true };
            done(things.context.stream_with(options)?)
        }),
        row("Context::address_info", CALLS, |things| {
            done(things.context.address_info(things.buffer.address())?)
        }),
        row("Context::stream_priorities", CALLS, |things| done(things.context.stream_priorities()?)),
        row("Context::event", CALLS, |things| done(things.context.event()?)),
        row("Context::event_with", CALLS, |things| {
            done(things.context.event_with(EventOptions { timing: true, ..EventOptions::default() })?)
        }),
    ]
}

fn streams() -> Vec<Row> {
    vec![
        row("Stream::as_raw, id, context, clone", PURE, |things| {
            let stream = &things.home;
            drop((stream.as_raw(), stream.id(), stream.context(), stream.clone()));
            Ok(())
        }),
        row("Stream::from_raw", PURE, |things| {
            // SAFETY: the stream lives.
            done(unsafe { Stream::from_raw(&things.context, things.home.as_raw()) }?)
        }),
        row("Stream::query", PERMITTED, |things| done(things.home.query()?)),
        row("Stream::synchronize_blocking", CALLS, |things| Ok(things.home.synchronize_blocking()?)),
        row("Stream::record", PERMITTED, |things| Ok(things.home.record(&things.event)?)),
        row("Stream::wait", PERMITTED, |things| Ok(things.other.wait(&things.event)?)),
        // The first wait for a stream makes the event that it keeps for this.
        prepared("Stream::wait_for", CALLS, never_awaited, |things, stream| {
            Ok(things.other.wait_for(&stream)?)
        }),
        prepared("Stream::wait_for, once more", PERMITTED, awaited, |things, stream| {
            Ok(things.other.wait_for(&stream)?)
        }),
        prepared("Stream::wait_for_uncaptured", CALLS, never_awaited, |things, stream| {
            Ok(things.other.wait_for_uncaptured(&stream)?)
        }),
        prepared("Stream::wait_for_uncaptured, once more", PERMITTED, awaited, |things, stream| {
            Ok(things.other.wait_for_uncaptured(&stream)?)
        }),
    ]
}

fn never_awaited(things: &Things) -> Result<Stream, Refusal> {
    Ok(things.context.stream()?)
}

fn awaited(things: &Things) -> Result<Stream, Refusal> {
    let stream = things.context.stream()?;
    things.other.wait_for(&stream)?;
    Ok(stream)
}

fn captures() -> Vec<Row> {
    vec![
        row("Stream::capture_id", PURE, |things| done(things.home.capture_id())),
        row("Stream::refuse_capture", PURE, |things| Ok(things.home.refuse_capture("nothing")?)),
        row("Stream::enqueue, Enqueue::is_captured, keep", CHECKS, |things| {
            let turn = things.home.enqueue()?;
            assert!(!turn.is_captured()?);
            Ok(turn.keep(things.buffer.allocation())?)
        }),
        row("Stream::begin_capture, ActiveCapture::end", PERMITTED, |things| {
            done(things.other.begin_capture(CaptureMode::ThreadLocal)?.end()?)
        }),
        row("Stream::begin_capture, GLOBAL, and a fill", PERMITTED, |things| {
            let capture = things.home.begin_capture(CaptureMode::Global)?;
            things.home.fill(&things.buffer, 1)?;
            done(capture.end()?)
        }),
        row("Stream::enqueue_ready", CHECKS, |things| {
            done(things.home.enqueue_ready(&[things.buffer.allocation()])?)
        }),
        row("Stream::begin_capture_with scratch memory, Stream::zeros in a capture", CALLS, |things| {
            let scratch = Scratch::new(&things.context);
            let options = CaptureOptions::new().mode(CaptureMode::Relaxed).scratch(&scratch);
            let capture = things.home.begin_capture_with(&options)?;
            drop(things.home.zeros::<u32>(8)?);
            done(capture.end()?.scratch)
        }),
        row("drop of a capture", PERMITTED, |things| {
            let capture = things.home.begin_capture(CaptureMode::Relaxed)?;
            things.home.fill(&things.buffer, 1)?;
            drop(capture);
            Ok(())
        }),
    ]
}

/// The capturing stream is non-blocking, so the legacy stream does not touch it.
fn default_streams() -> Vec<Row> {
    vec![
        row("DefaultStream::synchronize_blocking", CALLS, |things| {
            things.context.per_thread_stream().synchronize_blocking()?;
            Ok(things.context.legacy_stream().synchronize_blocking()?)
        }),
        row("DefaultStream::query", CALLS, |things| {
            things.context.per_thread_stream().query()?;
            done(things.context.legacy_stream().query()?)
        }),
        row("DefaultStream::record, wait", CALLS, |things| {
            things.context.legacy_stream().record(&things.start)?;
            Ok(things.context.per_thread_stream().wait(&things.start)?)
        }),
        row("DefaultStream::wait_for, Stream::wait_for_default", CALLS, |things| {
            things.context.legacy_stream().wait_for(&things.home)?;
            Ok(things.home.wait_for_default(&things.context.per_thread_stream())?)
        }),
    ]
}

fn events() -> Vec<Row> {
    vec![
        row("Event::as_raw, options, context, clone", PURE, |things| {
            let event = &things.event;
            drop((event.as_raw(), event.options(), event.context(), event.clone()));
            Ok(())
        }),
        row("Event::from_raw", PURE, |things| {
            // SAFETY: the event lives.
            done(unsafe { Event::from_raw(&things.context, things.event.as_raw()) }?)
        }),
        row("Event::query", PERMITTED, |things| done(things.event.query()?)),
        row("Event::synchronize_blocking", CALLS, |things| Ok(things.event.synchronize_blocking()?)),
        prepared("Event::elapsed_since", PERMITTED, timed_events, |_, (start, end)| {
            done(end.elapsed_since(&start)?)
        }),
    ]
}

fn timed_events(things: &Things) -> Result<(Event, Event), Refusal> {
    let options = EventOptions { timing: true, ..EventOptions::default() };
    let (start, end) = (things.context.event_with(options)?, things.context.event_with(options)?);
    things.home.record(&start)?;
    things.home.record(&end)?;
    things.home.synchronize_blocking()?;
    Ok((start, end))
}

fn memory() -> Vec<Row> {
    vec![
        row("Buffer::slice, sub_buffer, cast, clone, Slice::cast", PURE, |things| {
            let (slice, part) = (things.buffer.slice(8..)?, things.buffer.sub_buffer(..8)?);
            drop((
                slice.slice(1..2)?,
                slice.cast::<f32>()?,
                part.clone(),
                things.buffer.cast::<f32>()?,
                slice.address(),
            ));
            Ok(())
        }),
        row("Stream::zeros", CALLS, |things| done(things.home.zeros::<u32>(LEN)?)),
        row("Stream::upload", CALLS, |things| done(things.home.upload(&[1_u32; LEN])?)),
        row("Stream::upload_blocking", CALLS, |things| done(things.home.upload_blocking(&[1_u32; LEN])?)),
        row("Stream::write", CALLS, |things| Ok(things.home.write(&things.buffer, &[0; LEN])?)),
        row("Stream::write of more than goes through the blocks", CALLS, |things| {
            done(things.home.upload(&[0_u8; 20_000])?)
        }),
        row("Stream::fill", PERMITTED, |things| Ok(things.home.fill(&things.buffer, 0)?)),
        row("Stream::copy", CALLS, |things| {
            let (from, to) = (things.buffer.slice(..8)?, things.buffer.slice(8..16)?);
            Ok(things.home.copy(from, to)?)
        }),
        row("Buffer::read_blocking", CALLS, |things| done(things.buffer.read_blocking(&things.home)?)),
        row("Buffer::read_into_blocking", CALLS, |things| {
            Ok(things.buffer.read_into_blocking(&things.home, &mut [0; LEN])?)
        }),
        row("Buffer::write_blocking", CALLS, |things| {
            Ok(things.buffer.write_blocking(&things.home, &[0; LEN])?)
        }),
        prepared(
            "the first use of a buffer elsewhere",
            CALLS,
            |things| Ok(never_awaited(things)?.zeros::<u32>(LEN)?),
            |things, buffer| Ok(things.other.fill(&buffer, 1)?),
        ),
        prepared(
            "the first use of a buffer elsewhere, once more",
            PERMITTED,
            |things| Ok(awaited(things)?.zeros::<u32>(LEN)?),
            |things, buffer| Ok(things.other.fill(&buffer, 1)?),
        ),
        row("Allocation::ready_on, settled", PURE, |things| {
            Ok(things.buffer.allocation().ready_on(&things.home)?)
        }),
        row("Buffer::from_foreign", CHECKS, |things| done(foreign(things)?)),
        prepared("fill of foreign memory", PERMITTED, foreign, |things, buffer| {
            Ok(things.home.fill(&buffer, 0)?)
        }),
    ]
}

/// A buffer over the memory of a buffer.
fn foreign(things: &Things) -> Result<Buffer<u32>, Refusal> {
    let (address, owner) = (things.buffer.address(), things.buffer.clone());
    // SAFETY: the owner is a handle of the memory, whose work is done.
    Ok(unsafe { Buffer::from_foreign(&things.context, address, LEN, owner) }?)
}

fn batch(things: &Things) -> Result<Batch, Refusal> {
    let mut batch = Batch::new();
    batch.write(&things.plain, 0, 1_u32)?;
    Ok(batch)
}

type Pinned = (SharedHostBuffer<u32>, Buffer<u32>);

fn pinned(things: &Things) -> Result<Pinned, Refusal> {
    Ok((things.context.pinned_zeros(LEN)?.share(), things.buffer.clone()))
}

fn copies() -> Vec<Row> {
    vec![
        row("Context::alloc_blocking", CALLS, |things| done(things.context.alloc_blocking::<u32>(LEN)?)),
        row("Context::pinned_zeros", CALLS, |things| done(things.context.pinned_zeros::<u32>(LEN)?)),
        row("Context::managed_zeros", CALLS, |things| done(things.context.managed_zeros::<u32>(LEN)?)),
        prepared("SharedHostBuffer::unique_blocking", CALLS, pinned, |things, (pinned, _)| {
            things.home.copy(&pinned, &things.buffer)?;
            Ok(pinned.unique_blocking().map(drop).map_err(Error::from)?)
        }),
        prepared("SharedHostBuffer::clone, slice, try_unique", PURE, pinned, |_, (pinned, _)| {
            drop((pinned.clone(), pinned.slice(1..)?));
            pinned.try_unique().map_or_else(done, done)
        }),
        prepared("Stream::copy to the host", CALLS, pinned, |things, (pinned, buffer)| {
            Ok(things.home.copy(&buffer, &pinned)?)
        }),
        prepared("Stream::copy from the host", CALLS, pinned, |things, (pinned, buffer)| {
            Ok(things.home.copy(&pinned, &buffer)?)
        }),
        prepared("SharedHostBuffer::read_blocking", CALLS, pinned, |things, (pinned, _)| {
            done(pinned.read_blocking(&things.home)?)
        }),
        prepared("SharedHostBuffer::write_blocking", CALLS, pinned, |things, (pinned, _)| {
            Ok(pinned.write_blocking(&things.home, &[1; LEN])?)
        }),
        row("Stream::fill_2d", PERMITTED, |things| Ok(things.home.fill_2d(&things.buffer, 8, [4, 8], 1)?)),
        row("Stream::copy_2d", CALLS, |things| {
            let (source, destination) = (things.buffer.slice(..32)?, things.buffer.slice(32..)?);
            let (source_pitch, destination_pitch) = (8, 8);
            let copy = Copy2d { source, source_pitch, destination, destination_pitch, width: 4, height: 4 };
            Ok(things.home.copy_2d(copy)?)
        }),
        row("Batch::check", PURE, |things| Ok(batch(things)?.check(&things.context)?)),
        row("Batch::check that asks the device", DEVICE, |things| {
            let mut batch = Batch::new();
            batch.wait(&things.plain, 0, Compare::Nor, 1_u32)?;
            Ok(batch.check(&things.context)?)
        }),
        row("Stream::batch", PERMITTED, |things| Ok(things.home.batch(&batch(things)?)?)),
        row("Stream::copy_3d", CALLS, |things| {
            let (source, destination) = (things.buffer.slice(..32)?, things.buffer.slice(32..)?);
            let (source_pitch, destination_pitch) = (4, 4);
            let (source_rows, destination_rows) = (4, 4);
            Ok(things.home.copy_3d(Copy3d {
                source,
                source_pitch,
                source_rows,
                destination,
                destination_pitch,
                destination_rows,
                width: 3,
                height: 3,
                depth: 2,
            })?)
        }),
    ]
}

fn pool(things: &Things) -> Result<MemPool, Refusal> {
    Ok(things.context.pool(PoolOptions::default())?)
}

fn pools() -> Vec<Row> {
    vec![
        row("Context::pool", CALLS, |things| done(things.context.pool(PoolOptions::default())?)),
        row("Context::default_pool", CALLS, |things| done(things.context.default_pool()?)),
        prepared("Stream::zeros_from", CALLS, pool, |things, pool| {
            done(things.home.zeros_from::<u32>(&pool, LEN)?)
        }),
        prepared("MemPool::release_threshold, set", CALLS, pool, |_, pool| {
            let bytes = pool.release_threshold()?;
            Ok(pool.set_release_threshold(bytes)?)
        }),
        prepared("MemPool::reuses, set", CALLS, pool, |_, pool| {
            let allowed = pool.reuses(PoolReuse::Opportunistic)?;
            Ok(pool.set_reuse(PoolReuse::Opportunistic, allowed)?)
        }),
        row("Context::graph_memory_usage", CALLS, |things| done(things.context.graph_memory_usage()?)),
        row("Context::reset_graph_memory_high_water", CALLS, |things| {
            Ok(things.context.reset_graph_memory_high_water()?)
        }),
        row("Context::trim_graph_memory", CALLS, |things| Ok(things.context.trim_graph_memory()?)),
        prepared("MemPool::usage, reset_high_water", CALLS, pool, |_, pool| {
            pool.usage()?;
            Ok(pool.reset_high_water()?)
        }),
        prepared("MemPool::trim", CALLS, pool, |_, pool| Ok(pool.trim(0)?)),
        prepared("MemPool::access", CALLS, pool, |things, pool| done(pool.access(things.context.device())?)),
    ]
}

fn exported(things: &Things) -> Result<(Event, MemPool, Buffer<u32>), Refusal> {
    let event =
        things.context.event_with(EventOptions { timing: false, ipc: true, ..EventOptions::default() })?;
    let pool = things.context.pool(PoolOptions { shareable: true, ..PoolOptions::default() })?;
    let buffer = things.home.zeros_from(&pool, LEN)?;
    Ok((event, pool, buffer))
}

fn exports() -> Vec<Row> {
    vec![
        prepared("Event::export", CALLS, exported, |_, (event, ..)| done(event.export()?)),
        prepared("MemPool::export_fd", CALLS, exported, |_, (_, pool, _)| done(pool.export_fd()?)),
        prepared("Buffer::export", CALLS, exported, |_, (.., buffer)| done(buffer.export()?)),
        // An event of this process: no driver call.
        prepared(
            "Context::import_event of an own one",
            CHECKS,
            |things| {
                let (event, ..) = exported(things)?;
                Ok((event.export()?, event))
            },
            |things, (handle, event)| {
                assert_eq!(things.context.import_event(&handle)?, event);
                Ok(())
            },
        ),
        drops("drop of what can be exported", exported),
    ]
}

fn libraries() -> Vec<Row> {
    vec![
        row("Kernel::attributes, parameters, name, from_raw", PURE, |things| {
            let kernel = &things.increment;
            drop((kernel.attributes(), kernel.parameters(), kernel.name(), kernel.library().clone()));
            let _ = (kernel.waits_at_entry(), kernel.library().entry_wait());
            // SAFETY: the kernel's library is loaded.
            done(unsafe { Kernel::from_raw(kernel.as_raw()) }?)
        }),
        row("Kernel::from_raw_in of a known one", PURE, |things| {
            let kernel = &things.increment;
            // SAFETY: as above.
            done(unsafe { Kernel::from_raw_in(kernel.as_raw(), Some(kernel.library())) }?)
        }),
        row("Library::load", CALLS, |things| done(Library::load(&things.context, Image::Ptx(SMALL))?)),
        row("Library::load_with", CALLS, |things| {
            let options = LoadOptions { max_registers: Some(64), ..LoadOptions::default() };
            done(Library::load_with(&things.context, Image::Ptx(SMALL), &options)?)
        }),
        row("Library::load_waiting", CALLS, |things| {
            done(Library::load_waiting(&things.context, Image::Ptx(SMALL))?)
        }),
        row("Library::load_waiting_shared", CALLS, |things| {
            done(Library::load_waiting_shared(&things.context, Image::Ptx(VARIABLES))?)
        }),
        row("Library::kernel_names", CALLS, |things| done(things.increment.library().kernel_names()?)),
        row("Linker::new, add, link", CALLS, |things| {
            let mut linker = Linker::new(&things.context)?;
            linker.add("small", Image::Ptx(SMALL))?;
            done(linker.link()?)
        }),
        row("Linker::with, link_to_image", CALLS, |things| {
            let mut linker = Linker::with(&things.context, &LoadOptions::default())?;
            linker.add("small", Image::Ptx(SMALL))?;
            done(linker.link_to_image()?)
        }),
        row("Kernel::attribute, set_attribute", CALLS, |things| {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
            let value = things.increment.attribute(attribute)?;
            Ok(things.increment.set_attribute(attribute, value)?)
        }),
        row("Kernel::set_max_dynamic_shared_bytes", CALLS, |things| {
            let bytes = things.increment.max_dynamic_shared_bytes();
            Ok(things.increment.set_max_dynamic_shared_bytes(bytes)?)
        }),
        row("Kernel::load_now", CALLS, |things| Ok(things.increment.load_now()?)),
        row("Library::load_shared", CALLS, |things| {
            done(Library::load_shared(&things.context, Image::Ptx(VARIABLES))?)
        }),
        prepared("Library::load_shared of a loaded one", CHECKS, variables, |things, library| {
            assert_eq!(Library::load_shared(&things.context, Image::Ptx(VARIABLES))?, library);
            Ok(())
        }),
        prepared("Library::global", CALLS, variables, |_, library| {
            // SAFETY: nothing is written.
            done(unsafe { library.global::<f32>("weights") }?)
        }),
        prepared("Library::global, once more", CHECKS, variable, |_, (library, known)| {
            // SAFETY: nothing is written.
            assert_eq!(unsafe { library.global::<f32>("weights") }?, known);
            Ok(())
        }),
        prepared("Library::managed_global", CALLS, variables, |_, library| {
            // SAFETY: nothing is written.
            done(unsafe { library.managed_global::<u32>("word") }?)
        }),
        prepared("Stream::fill of a variable", PERMITTED, variable, |things, (_, known)| {
            Ok(things.home.fill(&known, 1.0)?)
        }),
        row("Library::kernel", CALLS, |things| done(things.increment.library().kernel("saxpy")?)),
    ]
}

fn variables(things: &Things) -> Result<Library, Refusal> {
    Ok(Library::load_shared(&things.context, Image::Ptx(VARIABLES))?)
}

fn variable(things: &Things) -> Result<(Library, Buffer<f32>), Refusal> {
    let library = variables(things)?;
    // SAFETY: the kernels of the image compute with the numbers in it.
    let variable = unsafe { library.global("weights") }?;
    Ok((library, variable))
}

fn compiling() -> Vec<Row> {
    vec![row("Context::compile", CHECKS, |things| {
        let program = Program::new("empty.cu", "extern \"C\" __global__ void empty() {}");
        done(things.context.compile(&program)?)
    })]
}

fn graphs() -> Vec<Row> {
    vec![
        row("GraphHandle::create", CALLS, |things| done(GraphHandle::create(&things.context)?)),
        prepared("GraphHandle::from_raw", PURE, user_object, |things, (graph, _)| {
            // SAFETY: the graph lives.
            done(unsafe { GraphHandle::from_raw(&things.context, graph.as_raw()) }?)
        }),
        row("UserObject::new", PERMITTED, |things| done(UserObject::new(&things.context, Box::new(()))?)),
        prepared("UserObject::retain_on, release_from", PERMITTED, user_object, |_, (graph, object)| {
            object.retain_on(&graph)?;
            Ok(object.release_from(&graph)?)
        }),
    ]
}

fn user_object(things: &Things) -> Result<(GraphHandle, UserObject), Refusal> {
    Ok((GraphHandle::create(&things.context)?, UserObject::new(&things.context, Box::new(()))?))
}

fn ends() -> Vec<Row> {
    vec![
        drops("drop of a buffer", |things| Ok(things.home.zeros::<u32>(LEN)?)),
        drops("drop of a buffer used elsewhere", |things| {
            let buffer = things.home.zeros::<u32>(LEN)?;
            things.other.fill(&buffer, 1)?;
            Ok(buffer)
        }),
        drops("drop of a settled buffer used elsewhere", |things| {
            let buffer = things.home.upload(&[1_u32; LEN])?;
            things.other.fill(&buffer, 1)?;
            Ok(buffer)
        }),
        drops("drop of a plain buffer", |things| Ok(things.context.alloc_blocking::<u32>(LEN)?)),
        drops("drop of a pinned buffer", |things| Ok(things.context.pinned_zeros::<u32>(LEN)?)),
        drops("drop of a pinned buffer in use", |things| {
            let (pinned, buffer) = pinned(things)?;
            things.other.copy(&pinned, &buffer)?;
            Ok(pinned)
        }),
        drops("drop of foreign memory", foreign),
        drops("drop of foreign memory in use", |things| {
            let buffer = foreign(things)?;
            things.other.fill(&buffer, 0)?;
            Ok(buffer)
        }),
        drops("drop of managed memory", |things| Ok(things.context.managed_zeros::<u32>(LEN)?)),
        drops("drop of a pool", pool),
        drops("drop of a pool with a buffer of it", |things| {
            let pool = pool(things)?;
            Ok((things.home.zeros_from::<u32>(&pool, LEN)?, pool))
        }),
        drops("drop of a buffer with its home stream", |things| {
            Ok(things.context.stream()?.zeros::<u32>(LEN)?)
        }),
        drops("drop of a stream", |things| Ok(things.context.stream()?)),
        drops("drop of an event", |things| Ok(things.context.event()?)),
        drops("drop of a library", |things| Ok(Library::load(&things.context, Image::Ptx(SMALL))?)),
        drops("drop of a shared library", variables),
        drops("drop of a variable with its library", variable),
        drops("drop of a variable in use", |things| {
            let (library, variable) = variable(things)?;
            things.other.fill(&variable, 1.0)?;
            drop(library);
            Ok(variable)
        }),
        drops("drop of a graph", |things| Ok(GraphHandle::create(&things.context)?)),
        drops("drop of a user object", |things| Ok(UserObject::new(&things.context, Box::new(()))?)),
        prepared("drop of a graph with a user object", PURE, user_object, |_, both| {
            drop(both);
            Ok(())
        }),
        row("reaper::pending", PURE, |_| done(reaper::pending())),
        // Inside a host function it does nothing; see the tests of it.
        row("reaper::drain", PURE, |_| done(reaper::drain())),
    ]
}
