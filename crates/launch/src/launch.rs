//! Kernel launches on a stream.

use core::ffi::c_void;

use cuda_handles::capture::{Enqueue, Work};
use cuda_handles::internal::{Recorder, Tag};
use cuda_handles::{AsStream, Event, Kernel, Owner, Stream};
use cuda_sys::{CUresult, Call};
use smallvec::SmallVec;

use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::holder::Arguments;
use crate::arguments::wrong_context;
use crate::config::dim::Dim;
use crate::config::driver_config::raw_config;
use crate::config::launch_config::LaunchConfig;
use crate::config::stream_config::StreamConfig;
use crate::error::{Error, Result};

/// Untyped launches on a stream, implemented by [`Kernel`].
pub trait Launch {
    /// Enqueues a launch on `stream`. It runs after all work enqueued there before.
    ///
    /// On a capturing stream the launch becomes a node of the capture's graph, which keeps kernel
    /// and arguments alive.
    ///
    /// Contexts, configuration and arguments are checked first. A launch refused by these checks
    /// has not reached the driver and leaves a capture intact. The driver itself refuses the rest,
    /// which invalidates a capture: a block other than the kernel requires (`.reqntid`), more
    /// shared memory than the kernel is allowed since other code changed that, or a cooperative
    /// launch in clusters that fits as single blocks only. Next, the stream waits for the memory of
    /// buffers that are not ready on it yet; in a capture of this library the graph's first launch
    /// does. The launch is one driver call. With up to 16 arguments
    /// it makes no heap allocation.
    ///
    /// ```no_run
    /// # use cuda_handles::{Kernel, Stream};
    /// # fn example(kernel: &Kernel, stream: &Stream) -> Result<(), cuda_launch::Error> {
    /// use cuda_launch::{Launch, params, per};
    ///
    /// let (x, y) = (stream.zeros::<f32>(1 << 20)?, stream.zeros::<f32>(1 << 20)?);
    /// let n = 1_u32 << 20;
    /// // SAFETY: `saxpy(u32 n, float a, const float *x, float *y)` accesses the first n elements
    /// // of x and y.
    /// unsafe { kernel.launch(stream, per(1 << 20, 256), &params![n, 2.0_f32, &x, &y]) }
    /// # }
    /// ```
    ///
    /// Calls `cuLaunchKernel` (CUDA 4.0), or with attributes `cuLaunchKernelEx` (CUDA 11.6).
    ///
    /// # Safety
    /// - The arguments have the types of the kernel's parameters. (Number and sizes are checked.)
    /// - With these arguments and this configuration, and whatever the buffers hold then, the
    ///   kernel accesses only the memory of the given buffers, within their bounds.
    /// - No other work that may run at the same time accesses this memory in a data race.
    ///
    /// # Errors
    /// - [`Error::Limit`], [`Error::Attribute`] or [`Error::DriverTooOld`] for the configuration.
    /// - [`Error::WrongArguments`] or [`Error::OutsideGraph`] for the arguments.
    /// - [`Error::Handles`] if kernel and stream are of different contexts, or the kernel
    ///   [cannot use](cuda_handles::Allocation::is_reachable_from) memory of another one; or with
    ///   the driver's error.
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cuLaunchKernelEx")]
    #[doc(alias = "cudaLaunchKernel")]
    #[doc(alias = "cudaLaunchKernelEx")]
    #[doc(alias = "cudaLaunchKernelExC")]
    #[doc(alias = "cudaLaunch")]
    #[doc(alias = "kernel launch")]
    unsafe fn launch<'e>(
        &self,
        stream: &impl AsStream,
        config: impl Into<StreamConfig<'e>>,
        arguments: impl Arguments,
    ) -> Result<()>;
}

impl Launch for Kernel {
    // Always inlined: otherwise configuration and arguments would be written to memory and read
    // back, which takes longer than all the checks.
    #[inline(always)]
    unsafe fn launch<'e>(
        &self,
        stream: &impl AsStream,
        config: impl Into<StreamConfig<'e>>,
        arguments: impl Arguments,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { enqueue(self, stream.as_stream(), config.into(), &arguments) }
    }
}

/// Checks and launches. Rare cases are in cold functions, which take the configuration by value: a
/// reference would force every launch to write it to memory.
///
/// # Safety
/// As [`Launch::launch`].
#[inline(always)]
pub(crate) unsafe fn enqueue(
    kernel: &Kernel,
    stream: &Stream,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    check(kernel, stream, &config, arguments)?;
    if arguments.has_handles() {
        return Err(outside(kernel));
    }
    if let Err(error) = arguments.ready_on(stream) {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_first_use(kernel, stream, config, arguments, error) };
    }
    if config.has_events() {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_recording(kernel, stream, config, arguments) };
    }
    let turn = stream.enqueue()?;
    if turn.is_captured()? {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_captured(turn, kernel, config, arguments, None) };
    }
    if !config.is_plain() {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_with_attributes(turn, kernel, config, arguments) };
    }
    let result = arguments.with_pointers(|pointers| {
        // SAFETY: the checks above, and the caller's promise for the rest.
        unsafe { call(kernel, stream, config.config(), pointers) }
    });
    Ok(stream.context().check(Call::cuLaunchKernel, result)?)
}

/// Launches into the capture of this library with this number. An argument may be the handle of a
/// condition; the caller checks that its graph is the capture's. The record of the call has the
/// tag.
///
/// # Safety
/// As [`Launch::launch`]; and the handles among the arguments are of the graph into which the
/// capture's nodes come.
///
/// # Errors
/// As [`Launch::launch`]; [`Error::OutsideGraph`] if the stream is not in that capture.
pub unsafe fn launch_captured<'e>(
    kernel: &Kernel,
    (stream, capture): (&impl AsStream, u64),
    config: impl Into<StreamConfig<'e>>,
    arguments: &impl Arguments,
    tag: Option<Tag>,
) -> Result<()> {
    let (stream, config) = (stream.as_stream(), config.into());
    check(kernel, stream, &config, arguments)?;
    // Asked again below: here, so that nothing waits for the arguments in vain.
    if stream.capture_id() != Some(capture) {
        return Err(outside(kernel));
    }
    if config.has_events() {
        return Err(uncaptured(config));
    }
    let turn = match arguments.ready_on(stream) {
        Ok(()) => stream.enqueue()?,
        Err(error) => turn_of_first_use(kernel, stream, config, arguments, error)?,
    };
    if stream.capture_id() != Some(capture) {
        return Err(outside(kernel));
    }
    // SAFETY: the caller's promise.
    unsafe { enqueue_captured(turn, kernel, config, arguments, tag) }
}

/// The checks that make no driver call.
#[inline(always)]
fn check(
    kernel: &Kernel,
    stream: &Stream,
    config: &StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    if !kernel.context().is_same(stream.context()) {
        return Err(wrong_context::kernel_and_stream(kernel, stream));
    }
    config.check(kernel)?;
    arguments.check(kernel)
}

/// The error of a launch with events on a stream that captures.
#[cold]
fn uncaptured(config: StreamConfig<'_>) -> Error {
    let what = config.events().next().map_or("the event of a launch", |(_, what)| what);
    cuda_handles::Error::Capturing { what }.into()
}

/// The turn of a launch whose memory is not ready: in a capture it waits for nothing.
#[cold]
fn turn_of_first_use<'s>(
    kernel: &Kernel,
    stream: &'s Stream,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
    error: Error,
) -> Result<Enqueue<'s>> {
    let named = |error| wrong_context::name_argument(error, kernel, arguments);
    if !matches!(error, Error::Handles(cuda_handles::Error::CapturedFirstUse)) {
        return Err(named(error));
    }
    if config.has_events() {
        return Err(uncaptured(config));
    }
    let mut memory = SmallVec::<[_; 16]>::new();
    arguments.each_allocation(|allocation| memory.push(allocation));
    stream.enqueue_ready_for_kernel(&memory).map_err(|error| named(error.into()))
}

/// A launch whose memory is not ready: in a capture it waits for nothing.
///
/// # Safety
/// As [`Launch::launch`]; configuration and arguments are checked.
#[cold]
unsafe fn enqueue_first_use(
    kernel: &Kernel,
    stream: &Stream,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
    error: Error,
) -> Result<()> {
    let turn = turn_of_first_use(kernel, stream, config, arguments, error)?;
    if turn.is_captured()? {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_captured(turn, kernel, config, arguments, None) };
    }
    if !config.is_plain() {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_with_attributes(turn, kernel, config, arguments) };
    }
    let result = arguments.with_pointers(|pointers| {
        // SAFETY: the caller's promise.
        unsafe { call(kernel, stream, config.config(), pointers) }
    });
    Ok(stream.context().check(Call::cuLaunchKernel, result)?)
}

#[cold]
fn outside(kernel: &Kernel) -> Error {
    Error::OutsideGraph { kernel: kernel.name().into() }
}

/// The launch of a configuration without attributes.
///
/// # Safety
/// As [`Launch::launch`]; configuration and arguments are checked, `pointers` are the arguments',
/// and the stream's turn is held.
#[inline(always)]
unsafe fn call(
    kernel: &Kernel,
    stream: &Stream,
    config: &LaunchConfig,
    pointers: *mut *mut c_void,
) -> CUresult {
    let (grid, block) = (config.grid(), config.block());
    // SAFETY: function and stream are live, as their owners are; there is a pointer to a value of
    // the right size for each parameter; the rest is the caller's promise.
    unsafe {
        stream.context().driver().cuLaunchKernel(
            kernel.function(),
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            config.shared(),
            stream.as_raw(),
            pointers,
            core::ptr::null_mut(),
        )
    }
}

/// The launch of a configuration that has attributes.
///
/// # Safety
/// As [`Launch::launch`]; configuration and arguments are checked, and `turn` is the stream's.
#[cold]
unsafe fn enqueue_with_attributes(
    turn: Enqueue<'_>,
    kernel: &Kernel,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    let stream = turn.stream();
    let result = arguments.with_pointers(|pointers| {
        // SAFETY: the caller's promise.
        unsafe { call_with_attributes(kernel, stream, config, pointers) }
    });
    Ok(stream.context().check(Call::cuLaunchKernelEx, result)?)
}

/// The driver call for a configuration that has attributes.
///
/// # Safety
/// As [`call`].
#[cold]
unsafe fn call_with_attributes(
    kernel: &Kernel,
    stream: &Stream,
    config: StreamConfig<'_>,
    pointers: *mut *mut c_void,
) -> CUresult {
    let mut attributes = config.list();
    let raw = raw_config(config.config(), Some(stream), &mut attributes);
    // SAFETY: function, stream and events are live, as their owners are; the attributes live as
    // long as the call; the rest is the caller's promise.
    unsafe {
        let driver = stream.context().driver();
        driver.cuLaunchKernelEx(&raw const raw, kernel.function(), pointers, core::ptr::null_mut())
    }
}

/// The launch on a stream that captures. The turn is passed by value: a reference would force every
/// launch to write it to memory.
///
/// # Safety
/// As [`Launch::launch`]; configuration and arguments are checked, and `turn` is the stream's.
#[cold]
unsafe fn enqueue_captured(
    turn: Enqueue<'_>,
    kernel: &Kernel,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
    tag: Option<Tag>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { enqueue_recorded(&turn, kernel, &config, arguments, tag) }
}

/// The launch with a record of kernel and arguments, which the capture keeps. Apart from the cold
/// function: little is inlined into those.
///
/// # Safety
/// As [`enqueue_captured`].
#[inline(never)]
unsafe fn enqueue_recorded(
    turn: &Enqueue<'_>,
    kernel: &Kernel,
    config: &StreamConfig<'_>,
    arguments: &impl Arguments,
    tag: Option<Tag>,
) -> Result<()> {
    let stream = turn.stream();
    let plain = config.config();
    let work = Work::Kernel {
        kernel: kernel.as_raw().addr(),
        grid: three(plain.grid()),
        block: three(plain.block()),
        shared: plain.shared(),
    };
    Ok(arguments.with_pointers(|pointers| {
        let give = |record: &mut Recorder<'_>| {
            // SAFETY: the pointers are the arguments'.
            unsafe { record_launch(record, kernel, arguments, pointers) };
            if let Some(tag) = tag {
                record.tag(tag);
            }
        };
        turn.captured_call(work, give, || {
            // SAFETY: the caller's promise.
            unsafe {
                match config.is_plain() {
                    true => (Call::cuLaunchKernel, call(kernel, stream, plain, pointers)),
                    false => {
                        (Call::cuLaunchKernelEx, call_with_attributes(kernel, stream, *config, pointers))
                    }
                }
            }
        })
    })?)
}

fn three(Dim { x, y, z }: Dim) -> [u32; 3] {
    [x, y, z]
}

/// Writes kernel and arguments of a launch into its record.
///
/// # Safety
/// The pointers are the arguments'.
#[inline(always)]
unsafe fn record_launch(
    record: &mut Recorder<'_>,
    kernel: &Kernel,
    arguments: &impl Arguments,
    pointers: *mut *mut c_void,
) {
    record.kernel(kernel);
    arguments.each_allocation(|allocation| record.allocation(allocation));
    for (index, slot) in arguments.slots().iter().enumerate() {
        record.argument((!arguments.may_be_padded(index)).then(|| {
            // SAFETY: there is a pointer to a value of the slot's size for each argument, by the
            // caller's promise, and all its bytes are initialised, as it has no padding.
            unsafe { core::slice::from_raw_parts((*pointers.add(index)).cast::<u8>(), slot.size()) }
        }));
    }
    let accesses = arguments.accesses();
    if let Some(declared) = accesses.to_record() {
        record.declared(declared);
        if accesses.are_apart() {
            record.owner(Owner::other(arguments.access_ranges()));
        }
    }
    if arguments.has_handles() {
        record.handles(arguments.handles().into_iter().map(ConditionalHandle::as_raw));
    }
}

/// The launch of a configuration that has events.
///
/// # Safety
/// As [`Launch::launch`]; configuration and arguments are checked.
#[cold]
unsafe fn enqueue_recording(
    kernel: &Kernel,
    stream: &Stream,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    // Held over the call, so that no capture records the events meanwhile, which `done` would then
    // miss. Taken before the turn, as everywhere.
    let recording = Event::recording(config.events().map(|(event, _)| event))?;
    let turn = stream.enqueue()?;
    if turn.is_captured()? {
        return Err(uncaptured(config));
    }
    // SAFETY: the caller's promise.
    unsafe { enqueue_with_attributes(turn, kernel, config, arguments) }?;
    recording.done();
    Ok(())
}
