//! The objects that all measurements use.

use core::ffi::c_void;

use cuda_handles::{Buffer, Context, Device, Image, Kernel, Library, Stream};
use cuda_sys::Driver;

use crate::Outcome;
use crate::raw::ok;

/// The image with all kernels of the hot paths.
pub const IMAGE: &str = include_str!("../../suites/ptx/small.ptx");

/// The elements of the buffers, and the threads of the launches: few, since only the host's time
/// counts.
pub const N: u32 = 32;

/// A kernel `saxpy(n, a, x, y)` and its buffers, whose home is the stream of the launches.
#[derive(Debug)]
pub struct Bench {
    /// The context, which is current.
    pub context: Context,
    /// The stream of all work.
    pub stream: Stream,
    pub(crate) saxpy: Kernel,
    /// The buffer that the kernel reads.
    pub x: Buffer<f32>,
    /// The buffer that the kernel updates.
    pub y: Buffer<f32>,
}

impl Bench {
    pub(crate) fn new() -> Outcome<Self> {
        let context = Device::new(0)?.context()?;
        let stream = context.stream()?;
        let saxpy = load(&context, "saxpy")?;
        let (x, y) = (stream.zeros(N as usize)?, stream.zeros(N as usize)?);
        stream.synchronize_blocking()?;
        // The driver's lazy work belongs to no figure, and raw calls need the context that the
        // library enters by itself.
        let driver = context.driver();
        // SAFETY: the context lives as long as the process.
        ok(unsafe { driver.cuCtxSetCurrent(context.as_raw()) })?;
        Ok(Self { context, stream, saxpy, x, y })
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.context.driver()
    }

    /// Waits, so that a batch starts with an empty queue.
    ///
    /// # Errors
    /// The context is lost.
    pub fn settle<T>(&self, value: T) -> Outcome<T> {
        self.stream.synchronize_blocking()?;
        Ok(value)
    }
}

pub(crate) fn load(context: &Context, kernel: &str) -> Outcome<Kernel> {
    Ok(Library::load(context, Image::Ptx(IMAGE))?.kernel(kernel)?)
}

/// The arguments of `saxpy` as the raw driver takes them.
pub(crate) struct RawArguments {
    pub(crate) n: u32,
    pub(crate) a: f32,
    pub(crate) x: u64,
    pub(crate) y: u64,
}

impl RawArguments {
    #[inline]
    pub(crate) fn new(bench: &Bench, n: u32, a: f32) -> Self {
        Self { n, a, x: bench.x.address(), y: bench.y.address() }
    }

    #[inline]
    pub(crate) fn pointers(&mut self) -> [*mut c_void; 4] {
        [
            (&raw mut self.n).cast(),
            (&raw mut self.a).cast(),
            (&raw mut self.x).cast(),
            (&raw mut self.y).cast(),
        ]
    }
}
