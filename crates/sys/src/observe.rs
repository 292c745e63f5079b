//! Watching every driver call: to count them, or to make some fail.

use std::sync::OnceLock;

use crate::{CUresult, Call, Table};

/// Sees each call before and after it; given to [`Loader::observe`](crate::Loader::observe).
///
/// It runs inside the call, on the calling thread, and must not make driver calls itself.
pub trait Observer: Sync {
    /// Called first. `Some(code)` answers the call with that code; the driver is not called.
    fn before(&self, call: Call) -> Option<CUresult>;

    /// Called with the result, also when [`before`](Self::before) answered.
    fn after(&self, call: Call, result: CUresult);
}

struct Observed {
    inner: Table,
    observer: &'static dyn Observer,
}

/// There is one driver in a process, so one watched table is all there can be.
static OBSERVED: OnceLock<Observed> = OnceLock::new();

fn around(call: Call, enter: impl FnOnce(&Table) -> CUresult) -> CUresult {
    let Some(observed) = OBSERVED.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    let result = observed.observer.before(call).unwrap_or_else(|| enter(&observed.inner));
    observed.observer.after(call, result);
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

/// Puts `observer` around every entry of `table`. Only the first call has an effect.
pub(crate) fn observe(table: &mut Table, observer: &'static dyn Observer) {
    let inner = *table;
    if OBSERVED.set(Observed { inner, observer }).is_ok() {
        replace_all(table);
    }
}
