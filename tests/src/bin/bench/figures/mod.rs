//! The figures: each operation of the library beside the raw calls that do the same.

mod capture;
mod chains;
mod graph;
mod handles;
mod launch;
mod loops;
mod replay;

use core::ffi::c_void;

use cuda_handles::{Buffer, Context, Device, Image, Kernel, Library, Stream};
use cuda_sys::{CUresult, Driver};

use crate::Outcome;
use crate::driver::Choice;
use crate::measure::{Effort, Measured, Pair};

/// A figure: one operation.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// The operations of a batch, where not the driver decides.
    batch: Option<u32>,
    pair: RowOf,
}

impl Figure {
    pub(crate) fn measure(&self, bench: &Bench, effort: Effort) -> Outcome<Measured> {
        let effort = self.batch.map_or(effort, |batch| effort.with_batch(batch));
        (self.pair)(bench)?.measure(effort)
    }
}

/// All figures that make sense on a driver: on one that does nothing, loops have no rounds and
/// graphs no nodes.
pub(crate) fn all(driver: &Choice) -> impl Iterator<Item = Figure> {
    let is_null = *driver == Choice::Null;
    let loops = if is_null { &[] } else { loops::FIGURES };
    let lists = if is_null { &[] } else { chains::LISTS };
    let figures =
        [launch::FIGURES, capture::FIGURES, graph::FIGURES, replay::FIGURES, handles::FIGURES, loops];
    let figures = figures.into_iter().flatten().map(|&(name, pair)| Figure { name, batch: None, pair });
    let sized = [chains::FIGURES, lists].into_iter().flatten();
    figures.chain(sized.map(|&(name, batch, pair)| Figure { name, batch: Some(batch), pair }))
}

type RowOf = for<'a> fn(&'a Bench) -> Outcome<Pair<'a>>;

type Row = (&'static str, RowOf);

const IMAGE: &str = include_str!("../../../../suites/ptx/small.ptx");

/// The elements of the buffers, and the threads of the launches: few, since only the host's time
/// counts.
const N: u32 = 32;

/// The objects of the figures: a kernel `saxpy(n, a, x, y)` and its buffers, whose home is the
/// stream of the launches.
pub(crate) struct Bench {
    context: Context,
    stream: Stream,
    saxpy: Kernel,
    x: Buffer<f32>,
    y: Buffer<f32>,
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

    fn driver(&self) -> &'static Driver {
        self.context.driver()
    }

    /// Waits, so that a batch starts with an empty queue.
    fn settle<T>(&self, value: T) -> Outcome<T> {
        self.stream.synchronize_blocking()?;
        Ok(value)
    }
}

fn load(context: &Context, kernel: &str) -> Outcome<Kernel> {
    Ok(Library::load(context, Image::Ptx(IMAGE))?.kernel(kernel)?)
}

/// The result of a raw call.
#[inline]
fn ok(code: CUresult) -> Outcome<()> {
    if code.is_success() { Ok(()) } else { refused(code) }
}

#[cold]
fn refused(code: CUresult) -> Outcome<()> {
    Err(format!("a raw call answered {code}").into())
}

/// The arguments of `saxpy` as the raw driver takes them.
struct RawArguments {
    n: u32,
    a: f32,
    x: u64,
    y: u64,
}

impl RawArguments {
    #[inline]
    fn new(bench: &Bench, n: u32, a: f32) -> Self {
        Self { n, a, x: bench.x.address(), y: bench.y.address() }
    }

    #[inline]
    fn pointers(&mut self) -> [*mut c_void; 4] {
        [
            (&raw mut self.n).cast(),
            (&raw mut self.a).cast(),
            (&raw mut self.x).cast(),
            (&raw mut self.y).cast(),
        ]
    }
}
