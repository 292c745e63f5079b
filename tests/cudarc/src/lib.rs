//! These crates and [cudarc] in one process, on one context.
//!
//! Both open the driver by themselves and retain the same primary context. Objects pass between
//! them as raw values of the driver, each time with a promise about who ends them; the functions
//! here are these promises, written once.

use std::sync::Arc;

use cuda_graph::Graph;
use cuda_handles::{Buffer, Context, Device, Element, Stream};
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The context that both use: the primary one of cudarc's device.
///
/// # Errors
/// The driver has no such device, or cudarc's context is one of its own.
pub fn shared_context(theirs: &CudaContext) -> Outcome<Context> {
    let context = Device::new(theirs.ordinal())?.context()?;
    if context.as_raw().addr() != theirs.cu_ctx().addr() {
        return Err("cudarc uses a context of its own".into());
    }
    Ok(context)
}

/// A stream of cudarc's, for work of this library.
///
/// # Safety
/// `theirs` lives until the result and its clones are dropped and
/// [`reaper::pending`](cuda_handles::reaper::pending) is 0, and cudarc begins and ends captures of
/// it while nobody enqueues through the result.
///
/// # Errors
/// The stream is known here and of another context, or it is a default stream.
pub unsafe fn adopt_stream(context: &Context, theirs: &CudaStream) -> Outcome<Stream> {
    // SAFETY: the caller's promise.
    Ok(unsafe { Stream::from_raw(context, theirs.cu_stream().cast()) }?)
}

/// A stream of this library, for work of cudarc's.
///
/// # Safety
/// `ours` lives as long as the result, and cudarc begins and ends captures of it while nobody
/// enqueues through `ours`.
#[must_use]
pub unsafe fn lend_stream(theirs: &Arc<CudaContext>, ours: &Stream) -> Arc<CudaStream> {
    // SAFETY: the stream is of the shared context, and the caller keeps it alive.
    unsafe { theirs.wrap_borrowed_stream(ours.lend().cast()) }
}

/// Memory of cudarc's as a buffer. cudarc gets it back once the buffer and all work with it are
/// done.
///
/// # Errors
/// The context is lost.
pub fn adopt_slice<T: Element>(context: &Context, theirs: CudaSlice<T>) -> Outcome<Buffer<T>>
where
    CudaSlice<T>: Send + Sync,
{
    let stream = theirs.stream().clone();
    let (len, address) = (theirs.len(), theirs.device_ptr(&stream).0);
    // Its work on the memory comes before ours.
    stream.synchronize()?;
    // SAFETY: cudarc's slice has the memory and is kept; its stream, the only one that used it, is
    // idle.
    Ok(unsafe { Buffer::from_foreign(context, address, len, theirs) }?)
}

/// Lets cudarc use a buffer for the time of `work`.
///
/// # Safety
/// `work` leaves nothing enqueued that uses the memory later than what is enqueued on `stream` when
/// it returns.
///
/// # Errors
/// What `work` returns.
pub unsafe fn with_slice<T: Element, R>(
    ours: &Buffer<T>,
    stream: &Arc<CudaStream>,
    work: impl FnOnce(&mut CudaSlice<T>) -> Outcome<R>,
) -> Outcome<R> {
    // SAFETY: the buffer is that long; what cudarc makes of it does not free it, see below.
    let mut slice = unsafe { stream.upgrade_device_ptr::<T>(ours.address(), ours.len()) };
    let outcome = work(&mut slice);
    // The memory stays the buffer's.
    slice.leak();
    outcome
}

/// A graph that cudarc captured, to be changed, instantiated and launched here.
///
/// # Safety
/// `theirs` and what its nodes use live until the result, its nodes and every executable made of it
/// are dropped and [`reaper::pending`](cuda_handles::reaper::pending) is 0.
///
/// # Errors
/// What the driver answers.
pub unsafe fn adopt_graph(context: &Context, theirs: &CudaGraph) -> Outcome<Graph> {
    // SAFETY: the caller's promise; cudarc never changes the graph again.
    Ok(unsafe { Graph::from_raw(context, theirs.cu_graph().cast()) }?)
}
