//! Watching every driver call: to count them; and answering calls in the driver's place: to make
//! some fail.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::{CUresult, Call, Table};

/// Sees each call before and after it; given to [`Loader::observe`](crate::Loader::observe).
///
/// It runs inside the call, on the calling thread, and a call takes as long as it does. It cannot
/// change what a call answers: for that there is an [`Interceptor`]. A panic in it ends with it.
/// Driver calls that it makes itself are not observed. The library above may hold its locks around
/// a call, so do not call that.
///
/// An observer has nothing to answer with:
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
    /// Called first.
    fn before(&self, call: Call);

    /// Called with the result, also when an [`Interceptor`] answered.
    fn after(&self, call: Call, result: CUresult);
}

/// Answers calls in the driver's place; given to [`Loader::intercept`](crate::Loader::intercept),
/// which is `unsafe`: the library above takes an answer for the driver's, and lets go of memory by
/// it.
///
/// It runs inside the call, on the calling thread. After a panic in it the driver is called. Driver
/// calls that it makes itself go to the driver.
pub trait Interceptor: Sync {
    /// `Some(code)` answers the call with that code, and the driver is not called.
    fn answer(&self, call: Call) -> Option<CUresult>;
}

/// Who looks at the calls, and who answers them.
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

/// There is one driver in a process, so one watched table is all there can be.
static OBSERVED: OnceLock<Observed> = OnceLock::new();

thread_local! {
    /// Whether the thread is in code of an observer or interceptor, whose own calls are not
    /// watched: they would never end.
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of others inside a call. The C caller of the entry point must not see a panic.
fn outside<R>(run: impl FnOnce() -> R) -> Option<R> {
    OUTSIDE.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    OUTSIDE.set(false);
    // A value that panics when it is dropped is leaked: nobody has a use for it.
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
        // SAFETY: the arguments are handed on as they came.
        unsafe { $table.$name($($arg),*) }
    };
    (optional $table:ident $name:ident ($($arg:ident),*)) => {
        // SAFETY: as above; the wrapper is only put in place of an entry that is there.
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

/// Puts `watchers` around every entry of `table`. Only the first call has an effect.
pub(crate) fn observe(table: &mut Table, watchers: Watchers) {
    let inner = *table;
    if OBSERVED.set(Observed { inner, watchers }).is_ok() {
        replace_all(table);
    }
}
