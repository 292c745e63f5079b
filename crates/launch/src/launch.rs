//! Launching a kernel on a stream.

use cuda_handles::capture::Enqueue;
use cuda_handles::{AsStream, Event, Kernel, Stream};
use cuda_sys::Call;

use crate::arguments::holder::Arguments;
use crate::arguments::wrong_context;
use crate::config::driver_config::raw_config;
use crate::config::launch_config::LaunchConfig;
use crate::config::stream_config::StreamConfig;
use crate::error::{Error, Result};

/// Something that can be launched on a stream: a [`Kernel`].
pub trait Launch {
    /// Enqueues a launch on `stream`; it runs after all that was enqueued there before.
    ///
    /// On a capturing stream the launch becomes a node of the capture's graph, which keeps kernel
    /// and arguments.
    ///
    /// Configuration, arguments and contexts are checked first, so that a launch refused here has
    /// not reached the driver and leaves a capture intact. What cannot be known here the driver
    /// refuses, which ends a capture: a block other than the one that the kernel insists on
    /// (`.reqntid`), more shared memory than the kernel has been allowed since by other code, a
    /// cooperative launch in clusters for which there is room as blocks only. Then the stream is
    /// made to wait for the memory of buffers that it has not used before, where that is still
    /// needed. One driver call, no heap allocation with up to 16 arguments.
    ///
    /// ```no_run
    /// # fn example(kernel: &cuda_handles::Kernel, stream: &cuda_handles::Stream) -> Result<(), cuda_launch::Error> {
    /// use cuda_launch::{Launch, params, per};
    ///
    /// let (x, y) = (stream.zeros::<f32>(1 << 20)?, stream.zeros::<f32>(1 << 20)?);
    /// // SAFETY: `saxpy(u32 n, float a, const float *x, float *y)` touches the first n elements of x and y.
    /// unsafe { kernel.launch(stream, per(1 << 20, 256), &params![1_u32 << 20, 2.0_f32, &x, &y]) }
    /// # }
    /// ```
    ///
    /// Stands on `cuLaunchKernel`, CUDA 4.0; with attributes on `cuLaunchKernelEx`, CUDA 11.6.
    ///
    /// # Safety
    /// - The kernel's parameters mean what the arguments are: a number where it takes a number of
    ///   that kind, an address where it takes an address. (Number and sizes are checked.)
    /// - With these arguments and this configuration, and whatever the buffers hold then, the
    ///   kernel accesses no memory but that of the buffers given, within their bounds.
    /// - No other work that may run at the same time accesses the same memory in a way that makes a
    ///   data race.
    ///
    /// # Errors
    /// Configuration or arguments that the kernel does not take, a stream of another context, or
    /// what the driver answers.
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cuLaunchKernelEx")]
    unsafe fn launch<'e>(
        &self,
        stream: &impl AsStream,
        config: impl Into<StreamConfig<'e>>,
        arguments: impl Arguments,
    ) -> Result<()>;
}

impl Launch for Kernel {
    // Configuration and arguments are large: passed to a function that is not inlined, they would
    // be written to memory and read back, which takes longer than all the checks.
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

/// Checks and launches. What is seldom done is done elsewhere, by functions that take the
/// configuration itself: for a reference to it every launch would have to write it to memory.
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
    if !kernel.context().is_same(stream.context()) {
        return Err(wrong_context::kernel_and_stream(kernel, stream));
    }
    config.check(kernel)?;
    arguments.check(kernel)?;
    if arguments.has_handles() {
        return Err(outside(kernel));
    }
    if let Err(error) = arguments.ready_on(stream) {
        return Err(wrong_context::name_argument(error, kernel, arguments));
    }
    if config.has_events() {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_recording(kernel, stream, config, arguments) };
    }
    let mut turn = stream.enqueue()?;
    if turn.is_captured()? {
        turn = keep(turn, kernel, arguments)?;
    }
    if !config.is_plain() {
        // SAFETY: the caller's promise.
        return unsafe { enqueue_with_attributes(turn, kernel, config, arguments) };
    }
    // SAFETY: everything is checked; the rest is the caller's promise.
    unsafe { call(kernel, stream, config.config(), arguments) }
}

/// The error of a launch with events on a stream that captures.
#[cold]
fn uncaptured(config: StreamConfig<'_>) -> Error {
    let what = config.events().next().map_or("the event of a launch", |(_, what)| what);
    cuda_handles::Error::Capturing { what }.into()
}

#[cold]
fn outside(kernel: &Kernel) -> Error {
    Error::OutsideGraph { kernel: kernel.name().into() }
}

/// The driver's plain launch.
///
/// # Safety
/// As [`Launch::launch`]; everything is checked, and the stream's turn is held.
#[inline(always)]
unsafe fn call(
    kernel: &Kernel,
    stream: &Stream,
    config: &LaunchConfig,
    arguments: &impl Arguments,
) -> Result<()> {
    let (grid, block) = (config.grid(), config.block());
    let result = arguments.with_pointers(|pointers| {
        // SAFETY: function and stream are live, as their owners are; there is a pointer to a value
        // of the right size for each parameter; the rest is the caller's promise.
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
    });
    Ok(stream.context().check(Call::cuLaunchKernel, result)?)
}

/// The launch of a configuration that has attributes.
///
/// # Safety
/// As [`Launch::launch`]; everything is checked, and the turn is the stream's.
#[cold]
unsafe fn enqueue_with_attributes(
    turn: Enqueue<'_>,
    kernel: &Kernel,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    let stream = turn.stream();
    let mut attributes = config.list();
    let raw = raw_config(config.config(), Some(stream), &mut attributes);
    let result = arguments.with_pointers(|pointers| {
        // SAFETY: function, stream and events are live, as their owners are; the attributes live as
        // long as the call; the rest is the caller's promise.
        unsafe {
            let driver = stream.context().driver();
            driver.cuLaunchKernelEx(&raw const raw, kernel.function(), pointers, core::ptr::null_mut())
        }
    });
    Ok(stream.context().check(Call::cuLaunchKernelEx, result)?)
}

/// The launch of a configuration that has events.
///
/// # Safety
/// As [`Launch::launch`]; everything is checked.
#[cold]
unsafe fn enqueue_recording(
    kernel: &Kernel,
    stream: &Stream,
    config: StreamConfig<'_>,
    arguments: &impl Arguments,
) -> Result<()> {
    // Over the call: nobody records them in a capture meanwhile, of which the note below would know
    // nothing. Before the turn, as everywhere.
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

/// Gives the capture what the launch uses. The turn is passed through: for a reference to it every
/// launch would have to write it to memory.
#[cold]
fn keep<'s>(turn: Enqueue<'s>, kernel: &Kernel, arguments: &impl Arguments) -> Result<Enqueue<'s>> {
    turn.keep_with(|keeper| {
        keeper.kernel(kernel);
        arguments.each_allocation(|allocation| keeper.allocation(allocation));
    })?;
    Ok(turn)
}
