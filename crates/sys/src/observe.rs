//! Observing every driver call, and answering calls in the driver's place.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::{CUresult, Call, Table};

/// Sees each call before and after it. Installed by [`Loader::observe`](crate::Loader::observe).
///
/// - It runs inside the call, on the calling thread, and adds to the call's time.
/// - It cannot change the result; an [`Interceptor`] can.
/// - A panic in it is caught.
/// - Its own driver calls are not observed.
/// - It must not call the crates above, which may hold locks around a call.
///
/// An observer returns nothing:
/// ```compile_fail,E0053
/// use cuda_sys::{CUresult, Call, Observer};
/// struct Liar;
/// impl Observer for Liar {
///     fn before(&self, _: Call) -> Option<CUresult> {
///         Some(CUresult::CUDA_SUCCESS)
///     }
///     fn after(&self, _: Call, _: CUresult) {}
/// }
/// ```
pub trait Observer: Sync {
    /// Called before the call.
    fn before(&self, call: Call);

    /// Called with the result of the driver or of an [`Interceptor`].
    fn after(&self, call: Call, result: CUresult);
}

/// Answers calls in the driver's place. Installed by
/// [`Loader::intercept`](crate::Loader::intercept), which is `unsafe`: the crates above trust the
/// answers, and release memory by them.
///
/// It runs inside the call, on the calling thread. If it panics, the driver is called. Its own
/// driver calls go to the driver.
pub trait Interceptor: Sync {
    /// `Some(code)` answers the call with that code, and the driver is not called.
    fn answer(&self, call: Call) -> Option<CUresult>;
}

/// The observer and the interceptor of the process.
#[derive(Clone, Copy, Default)]
pub(crate) struct Watchers {
    pub(crate) observer: Option<&'static dyn Observer>,
    pub(crate) interceptor: Option<&'static dyn Interceptor>,
}

impl Watchers {
    fn before(self, call: Call) -> Option<CUresult> {
        if let Some(observer) = self.observer {
            outside(|| observer.before(call));
        }
        self.interceptor.and_then(|interceptor| outside(|| interceptor.answer(call)).flatten())
    }

    fn after(self, call: Call, result: CUresult) {
        if let Some(observer) = self.observer {
            outside(|| observer.after(call, result));
        }
    }
}

struct Observed {
    inner: Table,
    watchers: Watchers,
}

/// The watched table. One suffices, since a process has one driver.
static OBSERVED: OnceLock<Observed> = OnceLock::new();

thread_local! {
    /// Whether the thread runs code of an observer or interceptor. Its own calls are not watched,
    /// which would recurse without end.
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of an observer or interceptor. No panic may reach the C caller of the entry point.
fn outside<R>(run: impl FnOnce() -> R) -> Option<R> {
    OUTSIDE.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    OUTSIDE.set(false);
    // The payload is leaked, since its drop could panic.
    outcome.map_err(core::mem::forget).ok()
}

fn around(call: Call, enter: impl FnOnce(&Table) -> CUresult) -> CUresult {
    let Some(observed) = OBSERVED.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    if OUTSIDE.get() {
        return enter(&observed.inner);
    }
    let result = observed.watchers.before(call).unwrap_or_else(|| enter(&observed.inner));
    observed.watchers.after(call, result);
    result
}

macro_rules! enter {
    (baseline $table:ident $name:ident ($($arg:ident),*)) => {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { $table.$name($($arg),*) }
    };
    (optional $table:ident $name:ident ($($arg:ident),*)) => {
        // SAFETY: as above; the wrapper only replaces an entry that exists.
        unsafe { $table.$name($($arg),*) }.unwrap_or(CUresult::CUDA_ERROR_NOT_FOUND)
    };
}

macro_rules! replace {
    (baseline $table:ident $name:ident) => {
        $table.$name = wrapper::$name
    };
    (optional $table:ident $name:ident) => {
        if $table.$name.is_some() {
            $table.$name = Some(wrapper::$name);
        }
    };
}

macro_rules! define {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod wrapper {
            use super::{CUresult, Call, around};

            $(pub(super) unsafe extern "C" fn $name($($arg: $ty),*) -> CUresult {
                around(Call::$name, |table| enter!($need table $name ($($arg),*)))
            })*
        }

        fn replace_all(table: &mut Table) {
            $(replace!($need table $name);)*
        }
    };
}

for_each_call!(define);

/// Wraps every entry of `table` with `watchers`. Only the first call has an effect.
pub(crate) fn observe(table: &mut Table, watchers: Watchers) {
    let inner = *table;
    if OBSERVED.set(Observed { inner, watchers }).is_ok() {
        replace_all(table);
    }
}
