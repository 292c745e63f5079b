//! The observer of typed launches and of kernel nodes, for tests.

use core::fmt;
use std::sync::OnceLock;

use cuda_handles::Kernel;

use crate::arguments::access::{AccessRanges, Declaration};
use crate::arguments::holder::Arguments;
use crate::arguments::stored::StoredArguments;

/// A typed launch that is about to reach the driver, or a node with one.
#[derive(Clone, Copy)]
pub struct ObservedLaunch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its declaration.
    pub declaration: &'static Declaration,
    ranges: &'a dyn Fn() -> AccessRanges,
}

impl ObservedLaunch<'_> {
    /// The memory given for its parameters. Each call allocates memory.
    #[must_use]
    pub fn ranges(&self) -> AccessRanges {
        (self.ranges)()
    }
}

impl fmt::Debug for ObservedLaunch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, declaration, .. } = self;
        formatter
            .debug_struct("ObservedLaunch")
            .field("kernel", kernel)
            .field("declaration", declaration)
            .finish_non_exhaustive()
    }
}

/// Called in front of the driver calls that enqueue or capture a typed launch, or that add or
/// change a kernel node, and with `None` behind them.
pub type LaunchObserver = fn(Option<ObservedLaunch<'_>>);

static OBSERVER: OnceLock<LaunchObserver> = OnceLock::new();

/// Sets the observer of typed launches of this process. Only the first one is kept.
pub fn set_launch_observer(observer: LaunchObserver) {
    let _ = OBSERVER.set(observer);
}

/// Calls the observer around a launch.
#[inline(always)]
pub(crate) fn observed<R>(kernel: &Kernel, arguments: &impl Arguments, launch: impl FnOnce() -> R) -> R {
    let Some(observer) = OBSERVER.get() else { return launch() };
    begin(*observer, kernel, arguments);
    let result = launch();
    observer(None);
    result
}

/// Tells the observer of a launch that becomes or changes a node, until it is dropped.
#[derive(Debug)]
#[must_use = "the observer hears of the end when this is dropped"]
pub struct Observed(Option<LaunchObserver>);

impl Observed {
    /// Of a launch with these arguments.
    #[inline]
    pub fn node(kernel: &Kernel, arguments: &impl Arguments) -> Self {
        Self(OBSERVER.get().copied().inspect(|observer| begin(*observer, kernel, arguments)))
    }

    /// Of a launch with stored arguments.
    #[inline]
    pub fn stored(kernel: &Kernel, arguments: &StoredArguments) -> Self {
        Self(OBSERVER.get().copied().inspect(|observer| begin_stored(*observer, kernel, arguments)))
    }

    /// Of a launch that declares nothing, within an observed one.
    #[inline]
    pub fn nothing() -> Self {
        Self(OBSERVER.get().copied().inspect(|observer| observer(None)))
    }
}

impl Drop for Observed {
    #[inline]
    fn drop(&mut self) {
        if let Some(observer) = self.0 {
            observer(None);
        }
    }
}

#[cold]
fn begin_stored(observer: LaunchObserver, kernel: &Kernel, arguments: &StoredArguments) {
    let declaration = arguments.declaration();
    observer(Some(ObservedLaunch { kernel, declaration, ranges: &|| arguments.ranges() }));
}

#[cold]
fn begin(observer: LaunchObserver, kernel: &Kernel, arguments: &impl Arguments) {
    if let Some(declaration) = arguments.accesses().declaration() {
        observer(Some(ObservedLaunch { kernel, declaration, ranges: &|| arguments.access_ranges() }));
    }
}
