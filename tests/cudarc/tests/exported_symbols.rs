//! The symbols of the software driver as a library: those of a driver library, in all layouts.

#![allow(clippy::unwrap_used)] // This is how a test fails.

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use cuda_sys::{CUresult, CUstream, CUstreamCaptureStatus};

/// The library, opened by its path; `None` if the tests run on another driver.
struct Library(*mut c_void);

impl Library {
    fn open() -> Option<Self> {
        let Some(path) = std::env::var_os("CUDA_SYS_DRIVER") else {
            println!("skipped: `cargo xtask cudarc` builds the library and names it");
            return None;
        };
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the library's constructors do nothing; it stays open.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?}");
        Some(Self(handle))
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the library is open and the name a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

macro_rules! rows {
    ($($export:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        [$((stringify!($export), $symbol)),*]
    };
}

#[test]
fn every_symbol_is_exported() {
    let Some(library) = Library::open() else { return };
    let plain: [(&str, &CStr); _] = cuda_sys::for_each_export!(rows);
    let own: [(&str, &CStr); _] = cuda_sys::for_each_per_thread_export!(rows);
    let mut all: Vec<&str> = plain.iter().chain(&own).map(|(export, _)| *export).collect();
    let missing: Vec<_> = all.iter().filter(|name| library.symbol(name).is_null()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Each once, under the names that programs link to.
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count);
    for name in
        ["cuMemAlloc", "cuMemAlloc_v2", "cuMemcpyHtoD_v2_ptds", "cuLaunchKernel_ptsz", "cuGetExportTable"]
    {
        assert!(all.binary_search(&name).is_ok(), "{name}");
    }
}

#[test]
fn the_null_stream_of_a_symbol_is_that_of_its_variant() {
    let Some(library) = Library::open() else { return };
    type Init = unsafe extern "C" fn(u32) -> CUresult;
    type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> CUresult;
    type SetCurrent = unsafe extern "C" fn(*mut c_void) -> CUresult;
    type Begin = unsafe extern "C" fn(CUstream, u32) -> CUresult;
    type Status = unsafe extern "C" fn(CUstream, *mut CUstreamCaptureStatus) -> CUresult;
    type End = unsafe extern "C" fn(CUstream, *mut *mut c_void) -> CUresult;
    let at = |name| library.symbol(name);
    // SAFETY: each symbol has the signature of its layout, and gets valid arguments.
    unsafe {
        let (mut context, mut graph) = (null_mut(), null_mut());
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        assert!(transmute::<*mut c_void, Init>(at("cuInit"))(0).is_success());
        assert!(
            transmute::<*mut c_void, Retain>(at("cuDevicePrimaryCtxRetain"))(&mut context, 0).is_success()
        );
        assert!(transmute::<*mut c_void, SetCurrent>(at("cuCtxSetCurrent"))(context).is_success());
        let begin = |name| transmute::<*mut c_void, Begin>(at(name))(null_mut(), 2);
        assert_eq!(begin("cuStreamBeginCapture_v2"), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert!(begin("cuStreamBeginCapture_v2_ptsz").is_success());
        let asked = transmute::<*mut c_void, Status>(at("cuStreamIsCapturing_ptsz"))(null_mut(), &mut status);
        assert!(asked.is_success());
        assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        let ended = transmute::<*mut c_void, End>(at("cuStreamEndCapture_ptsz"))(null_mut(), &mut graph);
        assert!(ended.is_success());
        assert!(transmute::<*mut c_void, SetCurrent>(at("cuGraphDestroy"))(graph).is_success());
    }
}
