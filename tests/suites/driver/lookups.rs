//! The look-up of calls by name and version: every layout of every call, including layouts older
//! than the bindings.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use cuda_sys::{
    CUdeviceptr, CUdriverProcAddressQueryResult as Query, CUgraph, CUresult, CUstream, CUstreamCaptureMode,
};

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

#[test]
fn the_flag_for_per_thread_streams_finds_other_functions() {
    const PER_THREAD: u64 = 2;
    let s = session();
    let at = |symbol, version, flags| {
        let (answer, pointer, _) = look_up(&s, symbol, version, flags);
        assert_eq!(answer, OK, "{symbol:?}");
        assert!(!pointer.is_null(), "{symbol:?}");
        pointer
    };
    // Calls without a stream have no variant.
    assert_eq!(at(c"cuGraphCreate", 12000, PER_THREAD), at(c"cuGraphCreate", 12000, 0));
    for symbol in [c"cuMemcpyHtoD", c"cuLaunchKernel", c"cuStreamBeginCapture", c"cuEventRecord"] {
        assert_eq!(at(symbol, 12000, 1), at(symbol, 12000, 0), "{symbol:?}");
        assert_ne!(at(symbol, 12000, PER_THREAD), at(symbol, 12000, 0), "{symbol:?}");
    }
    let layouts = [10010, 11030].map(|version| at(c"cuStreamGetCaptureInfo", version, PER_THREAD));
    assert_ne!(layouts[0], layouts[1], "variants have layouts, too");
}

#[test]
fn the_null_stream_of_variants_is_captured() {
    type Begin = unsafe extern "C" fn(CUstream, CUstreamCaptureMode) -> CUresult;
    type End = unsafe extern "C" fn(CUstream, *mut CUgraph) -> CUresult;
    type Fill = unsafe extern "C" fn(CUdeviceptr, u32, usize, CUstream) -> CUresult;
    const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let s = session();
    let find = |symbol, flags| look_up(&s, symbol, 12000, flags).1;
    let (legacy, begin, end, fill): (Begin, Begin, End, Fill) = unsafe {
        (
            transmute::<*mut c_void, Begin>(find(c"cuStreamBeginCapture", 0)),
            transmute::<*mut c_void, Begin>(find(c"cuStreamBeginCapture", 2)),
            transmute::<*mut c_void, End>(find(c"cuStreamEndCapture", 2)),
            transmute::<*mut c_void, Fill>(find(c"cuMemsetD32Async", 2)),
        )
    };
    let (word, mut graph) = (s.words(1), null_mut());
    unsafe {
        let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        assert_eq!(legacy(null_mut(), MODE), unsupported);
        assert_eq!(begin(null_mut(), MODE), OK);
        assert_eq!(fill(word, 7, 1, null_mut()), OK);
        assert_eq!(end(null_mut(), &mut graph), OK);
        // The other default stream keeps its meaning.
        assert_eq!(legacy(null_mut(), MODE), unsupported);
    }
    assert_eq!(s.nodes(graph).len(), 1);
    let exec = s.instantiate(graph);
    s.run(exec);
    assert_eq!(s.read(word), 7);
    s.end(exec);
    s.destroy(&[graph]);
    s.free(word);
}
