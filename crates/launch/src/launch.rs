//! Launching a kernel on a stream.

use cuda_handles::{AsStream, Kernel};
use cuda_sys::Call;

use crate::config::LaunchConfig;
use crate::error::Result;
use crate::params::Arguments;

/// Something that can be launched on a stream: a [`Kernel`].
pub trait Launch {
    /// Enqueues a launch on `stream`; it runs after all that was enqueued there before.
    ///
    /// Configuration, arguments and contexts are checked first, so that a refused launch has not reached the driver and leaves a capture
    /// intact. Then the stream is made to wait for the memory of buffers that it has not used before, where that is still needed. One
    /// driver call, no heap allocation with up to 16 arguments.
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
    /// Stands on `cuLaunchKernel`, CUDA 4.0.
    ///
    /// # Safety
    /// - The kernel's parameters mean what the arguments are: a number where it takes a number of that kind, an address where it takes an
    ///   address. (Number and sizes are checked.)
    /// - With these arguments and this configuration, and whatever the buffers hold then, the kernel accesses no memory but that of the
    ///   buffers given, within their bounds.
    /// - No other work that may run at the same time accesses the same memory in a way that makes a data race.
    /// - On a capturing stream the arguments live until every graph made of the capture, and all its executables, are gone.
    ///
    /// # Errors
    /// Configuration or arguments that the kernel does not take, a stream of another context, or what the driver answers.
    #[doc(alias = "cuLaunchKernel")]
    unsafe fn launch(
        &self,
        stream: &impl AsStream,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()>;
}

impl Launch for Kernel {
    #[inline]
    unsafe fn launch(
        &self,
        stream: &impl AsStream,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        let stream = stream.as_stream();
        let context = stream.context();
        context.ensure_usable()?;
        self.context().ensure_same(context, "the stream of a launch")?;
        config.check(self)?;
        arguments.check(self)?;
        arguments.ready_on(stream)?;
        let (grid, block) = (config.grid(), config.block());
        let result = arguments.with_pointers(|pointers| {
            // SAFETY: function and stream are live, as their owners are; there is a pointer to a value of the right size for each
            // parameter; the rest is the caller's promise.
            unsafe {
                context.driver().cuLaunchKernel(
                    self.function(),
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
        Ok(context.check(Call::cuLaunchKernel, result)?)
    }
}
