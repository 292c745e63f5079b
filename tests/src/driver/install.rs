//! Choosing and installing the driver under test.

use core::num::NonZeroU16;
use core::ops::Deref;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_graph::{ContextExt, Shape};
use cuda_handles::{Context, reaper};
use cuda_soft::Check;
use cuda_sys::{Driver, Loader};

use crate::driver::conditionals::host_decides;
use crate::driver::declared::check_declarations;
use crate::driver::device::device;
use crate::driver::null_stream::{self, null_stream_is_per_thread};
use crate::poll::{SOON, until};
use crate::record::live::{Kind, live};
use crate::record::watch::Watch;
use crate::wrapped::{created, graph_memory, moved, user_object};

const VARIABLE: &str = "CUDA_TEST_DRIVER";

/// NVIDIA's driver, as the system finds it.
const SYSTEM: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

static ALONE: Mutex<()> = Mutex::new(());
static WARM: OnceLock<()> = OnceLock::new();
static WATCH: Watch = Watch;

/// The context of the device under test, for one test at a time: tests in one process wait for each
/// other, since the counts are those of the process.
#[derive(Debug)]
pub struct Setup {
    context: Context,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Setup {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// The loader that the environment variable `CUDA_TEST_DRIVER` names: `soft` (also when it is not
/// set), `system`, or a path.
///
/// # Panics
/// The configuration of the software driver in the environment is wrong.
#[must_use]
pub fn chosen() -> Loader {
    let name = std::env::var(VARIABLE);
    match (name.as_deref(), null_stream_is_per_thread()) {
        (Err(_) | Ok("" | "soft"), false) => cuda_soft::loader(soft_config()),
        (Err(_) | Ok("" | "soft"), true) => {
            drop(cuda_soft::loader(soft_config()));
            null_stream::soft()
        }
        (Ok("system"), false) => Loader::system(),
        (Ok("system"), true) => null_stream::file(SYSTEM),
        // SAFETY: whoever sets the variable names a driver.
        (Ok(path), false) => unsafe { Loader::file(path) },
        (Ok(path), true) => null_stream::file(path),
    }
}

/// The configuration of the software driver in the environment. It checks shared memory, unless the
/// environment chooses the checks: those of global memory make all kernels several times slower.
fn soft_config() -> cuda_soft::Config {
    let config = cuda_soft::Config::from_environment().expect("CUDA_SOFT_* say what they should");
    match std::env::var_os("CUDA_SOFT_CHECK") {
        Some(_) => config,
        None => config.checks([Check::UnwrittenShared, Check::SharedRaces]),
    }
}

/// Installs `loader` as the process's driver, with observer and wrappers in place.
///
/// # Panics
/// The driver cannot be loaded.
pub fn install(loader: Loader) -> &'static Driver {
    // SAFETY: the wrappers keep to the interface of their calls.
    let loader = unsafe {
        loader.wrap(user_object::wrap).wrap(created::wrap).wrap(moved::wrap).wrap(graph_memory::wrap)
    };
    // SAFETY: injected codes are those of calls that did nothing; a test that makes a context look
    // lost has no work on the device that matters.
    let loader = unsafe { loader.observe(&WATCH).intercept(&WATCH) };
    if let Some(shape) = forced_shape() {
        cuda_graph::internal::set_shape_by_default(shape);
    }
    if host_decides() {
        cuda_graph::internal::let_the_host_decide();
    }
    let driver = loader.install().unwrap_or_else(|error| panic!("the driver under test: {error}"));
    if is_soft() && std::env::var_os("CUDA_TEST_DECLARATIONS").is_some() {
        check_declarations();
    }
    driver
}

/// The shape of executables whose options name none, if the environment variable
/// `CUDA_TEST_SHAPE` names one.
///
/// # Panics
/// It names something else.
#[must_use]
pub fn forced_shape() -> Option<Shape> {
    match std::env::var("CUDA_TEST_SHAPE").as_deref() {
        Err(_) => None,
        Ok("reduced") => Some(Shape::Reduced),
        Ok("lanes") => Some(Shape::Lanes(const { NonZeroU16::new(2).unwrap() })),
        Ok("auto") => Some(Shape::Auto),
        Ok(other) => panic!("CUDA_TEST_SHAPE is {other}, and not reduced, lanes or auto"),
    }
}

/// Installs the driver under test, once, and opens the device under test. One test of a process at
/// a time gets past this.
///
/// # Panics
/// There is no driver or no device.
#[must_use]
pub fn setup() -> Setup {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if cuda_sys::installed().is_none() {
        install(chosen());
    }
    let device = device();
    let context = device.context().unwrap_or_else(|error| panic!("device {}: {error}", device.ordinal()));
    WARM.get_or_init(|| warm(&context));
    Setup { context, _alone: alone }
}

/// Whether the driver in use is the software driver.
#[must_use]
pub fn is_soft() -> bool {
    cuda_sys::installed().is_some_and(|driver| driver.origin().contains("cuda-soft"))
}

/// Loads the library's own kernels for shapes, and keeps them loaded. Loading them waits for the
/// device, and tests close a gate there.
fn keep_kernels_of_shapes(context: &Context) {
    let graph = context.graph().expect("a graph");
    drop(graph.instantiate().expect("an executable"));
    core::mem::forget(graph);
}

/// Makes the library create what it keeps for ever (the reaper's thread and its stream), so that
/// this does not look like a leak. Waits until the reaper is idle, so that its calls do not mix
/// with those of the test.
fn warm(context: &Context) {
    let before = live();
    let (home, other) = (context.stream().expect("a stream"), context.stream().expect("a stream"));
    let buffer = home.zeros::<u32>(1).expect("a buffer");
    other.fill(&buffer, 1_u32).expect("a fill");
    other.synchronize_blocking().expect("the fill ends");
    drop((buffer, home, other));
    if forced_shape().is_some() {
        keep_kernels_of_shapes(context);
    }
    let quiet = until(SOON, || {
        reaper::drain();
        let more = live().since(&before);
        reaper::pending() == 0
            && more.of(Kind::Allocation) == 0
            && more.of(Kind::Event) == 0
            && more.of(Kind::Stream) <= 1
    });
    assert!(quiet, "left behind by the first use: {}", live().since(&before));
}
