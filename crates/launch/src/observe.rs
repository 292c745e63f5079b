//! The observer of typed launches, for tests.

use std::sync::OnceLock;

use cuda_handles::Kernel;

use crate::arguments::access::{AccessRanges, Declaration};
use crate::arguments::holder::Arguments;

/// A typed launch that is about to reach the driver.
#[derive(Clone, Copy, Debug)]
pub struct ObservedLaunch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its declaration.
    pub declaration: &'static Declaration,
    /// The memory given for its parameters.
    pub ranges: &'a AccessRanges,
}

/// Called in front of the driver call of a typed launch on a stream, and with `None` behind it.
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

#[cold]
fn begin(observer: LaunchObserver, kernel: &Kernel, arguments: &impl Arguments) {
    if let Some(declaration) = arguments.accesses().declaration() {
        let ranges = arguments.access_ranges();
        observer(Some(ObservedLaunch { kernel, declaration, ranges: &ranges }));
    }
}
