//! Variants of the calls for programs whose default stream is the thread's own. Each runs the plain
//! call with that meaning of the null stream.

use core::ffi::{CStr, c_void};
use std::sync::OnceLock;

use cuda_sys::{CUresult, Version};

use super::proc_address::find_plain;
use super::table::Found;
use crate::driver;
use crate::driver::result_code::NOT_FOUND;
use crate::stream::default_stream;

macro_rules! define {
    ($($export:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod variant {
            $(pub(super) unsafe extern "C" fn $export($($arg: $ty),*) -> cuda_sys::CUresult {
                type Entry = unsafe extern "C" fn($($ty),*) -> cuda_sys::CUresult;
                static PLAIN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
                super::call(&PLAIN, $symbol, $since, |plain| {
                    // SAFETY: the layout of this version has this signature; the arguments are the
                    // caller's promise.
                    unsafe { core::mem::transmute::<*mut core::ffi::c_void, Entry>(plain)($($arg),*) }
                })
            })*
        }

        /// The variants as name, version and pointer.
        fn all() -> impl Iterator<Item = (&'static CStr, Version, *mut c_void)> {
            [$(($symbol, Version::from_raw($since), variant::$export as *mut c_void)),*].into_iter()
        }
    };
}

cuda_sys::for_each_per_thread_export!(define);

/// Calls the plain layout of a version, with the thread's own stream as the default one.
fn call(
    plain: &OnceLock<usize>,
    symbol: &CStr,
    since: i32,
    act: impl FnOnce(*mut c_void) -> CUresult,
) -> CUresult {
    let address = *plain.get_or_init(|| match find_plain(symbol, Version::from_raw(since)) {
        Found::Entry(pointer) => pointer.expose_provenance(),
        Found::NoSuchCall | Found::NotInThatVersion => 0,
    });
    if address == 0 {
        return NOT_FOUND;
    }
    default_stream::with_own(|| act(core::ptr::with_exposed_provenance_mut(address)))
}

/// The newest variant of a call that the requested version has; `None` if it has none.
pub(super) fn find(symbol: &CStr, asked: Version) -> Option<*mut c_void> {
    let newest = asked.min(driver::version());
    let known = all().filter(|(name, since, _)| *name == symbol && *since <= newest);
    known.max_by_key(|(_, since, _)| *since).map(|(.., pointer)| pointer)
}
