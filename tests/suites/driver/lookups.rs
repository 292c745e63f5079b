//! The look-up of calls by name and version: every layout of every call, including layouts older
//! than the bindings.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use cuda_sys::{CUdriverProcAddressQueryResult as Query, CUresult};

use crate::common::{IV, OK, Session, session};

fn look_up(s: &Session, symbol: &CStr, version: c_int, flags: u64) -> (CUresult, *mut c_void, Query) {
    let (mut found, mut query) = (null_mut(), Query(-1_i32 as u32));
    let answer = unsafe { s.cuGetProcAddress(symbol.as_ptr(), &mut found, version, flags, &mut query) };
    (answer, found, query)
}

macro_rules! rows {
    ($($export:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        [$((stringify!($export), $symbol, $since)),*]
    };
}

#[test]
fn every_layout_is_found_with_its_own_version() {
    let s = session();
    let own = s.version().as_raw();
    let all: [(&str, &CStr, c_int); _] = cuda_sys::for_each_export!(rows);
    let mut found = 0;
    for (export, symbol, since) in all.into_iter().filter(|(.., since)| *since <= own) {
        let (answer, pointer, query) = look_up(&s, symbol, since, 0);
        assert_eq!((answer, query), (OK, Query::CU_GET_PROC_ADDRESS_SUCCESS), "{export}");
        assert!(!pointer.is_null(), "{export}");
        found += 1;
    }
    // The oldest driver has fewer.
    assert!(found > 400, "{found}");
}

#[test]
fn layouts_of_a_call_are_different_functions() {
    let s = session();
    let at = |symbol, version| look_up(&s, symbol, version, 0).1;
    assert_ne!(at(c"cuMemAlloc", 2000), at(c"cuMemAlloc", 3020));
    assert_eq!(at(c"cuMemAlloc", 3020), at(c"cuMemAlloc", 12020));
    assert_ne!(at(c"cuGetProcAddress", 11030), at(c"cuGetProcAddress", 12000));
    // The layout of 12.0 has a name of its own.
    assert_eq!(at(c"cuGraphInstantiate", 11000), at(c"cuGraphInstantiate", 12000));
}

#[test]
fn names_that_are_none_and_versions_that_are_too_old_are_told_apart() {
    let s = session();
    let none = Query::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for name in [c"", c"cuNothing", c"cuMemAlloc_v2"] {
        assert_eq!(look_up(&s, name, 12000, 0), (OK, null_mut(), none), "{name:?}");
    }
    let old = Query::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    for (name, version) in [(c"cuGraphInstantiate", 4000), (c"cuProfilerStart", 3020)] {
        assert_eq!(look_up(&s, name, version, 0), (OK, null_mut(), old), "{name:?}");
    }
    assert_eq!(look_up(&s, c"cuInit", s.version().as_raw() + 10, 0).0, IV);
    assert_eq!(look_up(&s, c"cuInit", 12000, 7).0, IV, "flags that there are none of");
}
