//! The null driver: every call succeeds and does nothing but fill the out parameters that callers
//! need.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUdriverProcAddressQueryResult as Query, CUevent,
    CUfunction, CUfunction_attribute, CUgraph, CUgraphEdgeData, CUgraphNode, CUhostFn, CUjit_option,
    CUkernel, CUlibrary, CUlibraryOption, CUmemoryPool, CUmodule, CUresult, CUstream, CUstreamCaptureStatus,
    CUuserObject, CUuuid, Version, cuuint64_t,
};

use crate::abi::table::{Entries, Found};
use crate::device::properties;
use crate::driver::pointer::put_if;
use crate::driver::result_code::INVALID_VALUE;
use crate::module::image;
use crate::ptx::Kernel;
use crate::sync::lock;

/// The version that this driver reports.
const VERSION: Version = Version::new(13, 0);

static NEXT: AtomicUsize = AtomicUsize::new(1);

/// A new handle.
fn fresh() -> usize {
    fresh_span(0) as usize
}

/// A new address range of `len` bytes.
fn fresh_span(len: usize) -> CUdeviceptr {
    ((1 << 62) + NEXT.fetch_add(1 + len / 256, Ordering::Relaxed) * 256) as CUdeviceptr
}

/// Allocates host memory, which callers read and write.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn host(out: *mut *mut c_void, len: usize) -> CUresult {
    // SAFETY: any size may be asked for; the caller's promise.
    unsafe { tell(out, libc::calloc(len.max(1), 1)) }
}

/// Offsets and sizes of a kernel's parameters.
type Layout = Vec<(usize, usize)>;

/// The parameter layouts of libraries, kernels and functions, by handle.
#[derive(Default)]
struct KernelLayouts {
    libraries: HashMap<usize, HashMap<String, Layout>>,
    kernels: HashMap<usize, Layout>,
}

static LAYOUTS: Mutex<Option<KernelLayouts>> = Mutex::new(None);

fn with_layouts<R>(act: impl FnOnce(&mut KernelLayouts) -> R) -> R {
    act(lock(&LAYOUTS).get_or_insert_default())
}

/// The kernels of a PTX text; none for other images.
fn kernels_of(text: &[u8]) -> HashMap<String, Layout> {
    let Ok(image) = image::parse(text) else { return HashMap::new() };
    let layout = |kernel: &Kernel| {
        kernel.params().iter().map(|param| (param.offset as usize, param.size as usize)).collect()
    };
    image.kernels().map(|kernel| (kernel.name().to_owned(), layout(kernel))).collect()
}

/// Writes a new handle of a kernel or function with this layout.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn make_with_layout<T>(out: *mut *mut T, layout: Option<Layout>) -> CUresult {
    let handle = fresh();
    if let Some(layout) = layout {
        with_layouts(|known| known.kernels.insert(handle, layout));
    }
    // SAFETY: the caller's promise.
    unsafe { tell(out, core::ptr::without_provenance_mut(handle)) }
}

/// # Safety
/// The out parameters are null or valid for writes.
unsafe fn param_info(handle: usize, index: usize, offset: *mut usize, size: *mut usize) -> CUresult {
    let found = with_layouts(|known| known.kernels.get(&handle)?.get(index).copied());
    let Some((at, bytes)) = found else { return INVALID_VALUE };
    // SAFETY: the caller's promise.
    unsafe {
        put_if(size, bytes);
        tell(offset, at)
    }
}

/// Writes a new handle.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn make<T>(out: *mut *mut T) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe { put_if(out, core::ptr::without_provenance_mut(fresh())) };
    CUresult::CUDA_SUCCESS
}

/// A write of a value.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn tell<T>(out: *mut T, value: T) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe { put_if(out, value) };
    CUresult::CUDA_SUCCESS
}

/// Defines entry points without a gate.
macro_rules! bare {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> CUresult {
                // SAFETY: the caller keeps to the interface of the call.
                unsafe { $body }
            }
        )*
    };
}

mod graph;

const CONTEXT: usize = (1 << 62) + 64;

bare! {
    fn cuDriverGetVersion(out: *mut c_int) { tell(out, VERSION.as_raw()) }
    fn cuGetErrorName(_e: CUresult, out: *mut *const c_char) { tell(out, c"CUDA_SUCCESS".as_ptr()) }
    fn cuGetErrorString(_e: CUresult, out: *mut *const c_char) { tell(out, c"no error".as_ptr()) }
    fn cuDeviceGet(out: *mut CUdevice, ordinal: c_int) { tell(out, ordinal) }
    fn cuDeviceGetCount(out: *mut c_int) { tell(out, 1) }
    fn cuDeviceGetName(out: *mut c_char, len: c_int, _d: CUdevice) { if len > 0 { tell(out, 0) } else { INVALID_VALUE } }
    fn cuDeviceGetAttribute(out: *mut c_int, attribute: CUdevice_attribute, dev: CUdevice) {
        match properties::attribute(attribute, dev) {
            Ok(value) => tell(out, value),
            Err(code) => code,
        }
    }
    fn cuDeviceTotalMem(out: *mut usize, _d: CUdevice) { tell(out, 1 << 36) }
    fn cuDeviceGetUuid(out: *mut CUuuid, dev: CUdevice) {
        tell(out, CUuuid { bytes: properties::uuid(dev).map(|byte| byte as c_char) })
    }
    fn cuDeviceGetDefaultMemPool(out: *mut CUmemoryPool, _d: CUdevice) { make(out) }
    fn cuDeviceGetMemPool(out: *mut CUmemoryPool, _d: CUdevice) { make(out) }
    fn cuDevicePrimaryCtxRetain(out: *mut CUcontext, _d: CUdevice) {
        tell(out, core::ptr::without_provenance_mut(CONTEXT))
    }
    fn cuCtxGetCurrent(out: *mut CUcontext) { tell(out, core::ptr::without_provenance_mut(CONTEXT)) }
    fn cuCtxPopCurrent(out: *mut CUcontext) { tell(out, core::ptr::without_provenance_mut(CONTEXT)) }
    fn cuCtxGetDevice(out: *mut CUdevice) { tell(out, 0) }
    fn cuCtxGetDevice_v13000(out: *mut CUdevice, _c: CUcontext) { tell(out, 0) }
    fn cuCtxGetApiVersion(_c: CUcontext, out: *mut c_uint) { tell(out, 3020) }
    fn cuCtxGetId(_c: CUcontext, out: *mut u64) { tell(out, 1) }
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        put_if(least, 0);
        tell(greatest, properties::GREATEST_PRIORITY)
    }
    fn cuStreamCreate(out: *mut CUstream, _f: c_uint) { make(out) }
    fn cuStreamCreateWithPriority(out: *mut CUstream, _f: c_uint, _p: c_int) { make(out) }
    fn cuStreamGetCtx(_s: CUstream, out: *mut CUcontext) { tell(out, core::ptr::without_provenance_mut(CONTEXT)) }
    fn cuStreamGetFlags(_s: CUstream, out: *mut c_uint) { tell(out, 1) }
    fn cuStreamGetPriority(_s: CUstream, out: *mut c_int) { tell(out, 0) }
    fn cuStreamGetId(_s: CUstream, out: *mut u64) { tell(out, 1) }
    fn cuStreamGetDevice(_s: CUstream, out: *mut CUdevice) { tell(out, 0) }
    fn cuStreamIsCapturing(_s: CUstream, out: *mut CUstreamCaptureStatus) {
        tell(out, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
    fn cuStreamGetCaptureInfo(
        _s: CUstream,
        status: *mut CUstreamCaptureStatus,
        _id: *mut cuuint64_t,
        _graph: *mut CUgraph,
        _nodes: *mut *const CUgraphNode,
        _count: *mut usize,
    ) {
        tell(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
    fn cuStreamGetCaptureInfo_v12030(
        _s: CUstream,
        status: *mut CUstreamCaptureStatus,
        _id: *mut cuuint64_t,
        _graph: *mut CUgraph,
        _nodes: *mut *const CUgraphNode,
        _edges: *mut *const CUgraphEdgeData,
        _count: *mut usize,
    ) {
        tell(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
    fn cuEventCreate(out: *mut CUevent, _f: c_uint) { make(out) }
    fn cuEventElapsedTime(out: *mut f32, _a: CUevent, _b: CUevent) { tell(out, 0.0) }
    fn cuMemAlloc(out: *mut CUdeviceptr, n: usize) { tell(out, fresh_span(n)) }
    fn cuMemAllocManaged(out: *mut CUdeviceptr, n: usize, _f: c_uint) {
        let mut address = core::ptr::null_mut();
        host(&raw mut address, n);
        tell(out, address.expose_provenance() as CUdeviceptr)
    }
    fn cuMemHostAlloc(out: *mut *mut c_void, n: usize, _f: c_uint) { host(out, n) }
    fn cuMemAllocHost(out: *mut *mut c_void, n: usize) { host(out, n) }
    fn cuMemFreeHost(p: *mut c_void) {
        libc::free(p);
        CUresult::CUDA_SUCCESS
    }
    fn cuMemHostGetDevicePointer(out: *mut CUdeviceptr, p: *mut c_void, _f: c_uint) {
        tell(out, p.expose_provenance() as CUdeviceptr)
    }
    fn cuMemAllocAsync(out: *mut CUdeviceptr, n: usize, _s: CUstream) { tell(out, fresh_span(n)) }
    fn cuMemAllocFromPoolAsync(out: *mut CUdeviceptr, n: usize, _p: CUmemoryPool, _s: CUstream) {
        tell(out, fresh_span(n))
    }
    fn cuMemGetInfo(free: *mut usize, total: *mut usize) {
        put_if(free, 1 << 36);
        tell(total, 1 << 36)
    }
    fn cuModuleLoadData(out: *mut CUmodule, _i: *const c_void) { make(out) }
    fn cuModuleLoadDataEx(
        out: *mut CUmodule,
        _i: *const c_void,
        _n: c_uint,
        _o: *mut CUjit_option,
        _v: *mut *mut c_void,
    ) {
        make(out)
    }
    fn cuModuleGetFunction(out: *mut CUfunction, _m: CUmodule, _n: *const c_char) { make(out) }
    fn cuLibraryLoadData(
        out: *mut CUlibrary,
        code: *const c_void,
        _o: *mut CUjit_option,
        _v: *mut *mut c_void,
        _n: c_uint,
        _lo: *mut CUlibraryOption,
        _lv: *mut *mut c_void,
        _ln: c_uint,
    ) {
        let handle = fresh();
        if !code.is_null() {
            // Binary forms start with four bytes of magic without a zero.
            let kernels = kernels_of(CStr::from_ptr(code.cast()).to_bytes());
            with_layouts(|known| known.libraries.insert(handle, kernels));
        }
        tell(out, core::ptr::without_provenance_mut(handle))
    }
    fn cuLibraryUnload(library: CUlibrary) {
        with_layouts(|known| known.libraries.remove(&library.addr()));
        CUresult::CUDA_SUCCESS
    }
    fn cuLibraryGetKernel(out: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        let name = if name.is_null() { c"" } else { CStr::from_ptr(name) }.to_str().unwrap_or("");
        make_with_layout(out, with_layouts(|known| known.libraries.get(&library.addr())?.get(name).cloned()))
    }
    fn cuLibraryGetModule(out: *mut CUmodule, _l: CUlibrary) { make(out) }
    fn cuKernelGetFunction(out: *mut CUfunction, kernel: CUkernel) {
        make_with_layout(out, with_layouts(|known| known.kernels.get(&kernel.addr()).cloned()))
    }
    fn cuKernelGetName(out: *mut *const c_char, _k: CUkernel) { tell(out, c"kernel".as_ptr()) }
    fn cuFuncGetName(out: *mut *const c_char, _f: CUfunction) { tell(out, c"kernel".as_ptr()) }
    fn cuKernelGetAttribute(out: *mut c_int, attribute: CUfunction_attribute, _k: CUkernel, _d: CUdevice) {
        tell(out, function_attribute(attribute))
    }
    fn cuFuncGetAttribute(out: *mut c_int, attribute: CUfunction_attribute, _f: CUfunction) {
        tell(out, function_attribute(attribute))
    }
    // The parameters of a kernel that is not from a PTX text are unknown: every index is past the
    // end.
    fn cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: *mut usize, size: *mut usize) {
        param_info(kernel.addr(), index, offset, size)
    }
    fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize) {
        param_info(function.addr(), index, offset, size)
    }
    fn cuUserObjectCreate(out: *mut CUuserObject, _p: *mut c_void, _d: CUhostFn, _n: c_uint, _f: c_uint) { make(out) }

    fn cuGetProcAddress(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        version: c_int,
        _flags: cuuint64_t,
        status: *mut Query,
    ) {
        if symbol.is_null() || pfn.is_null() || version > VERSION.as_raw() {
            return INVALID_VALUE;
        }
        let (pointer, query) = match ENTRIES.find(CStr::from_ptr(symbol), Version::from_raw(version), VERSION) {
            Found::Entry(pointer) => (pointer, Query::CU_GET_PROC_ADDRESS_SUCCESS),
            Found::NoSuchCall => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
            Found::NotInThatVersion => (core::ptr::null_mut(), Query::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        };
        pfn.write(pointer);
        tell(status, query)
    }
}

fn function_attribute(attribute: CUfunction_attribute) -> c_int {
    match attribute {
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => 48 << 10,
        _ => 0,
    }
}

static ENTRIES: Entries = Entries {
    cuDriverGetVersion,
    cuGetProcAddress,
    cuGetErrorName,
    cuGetErrorString,
    cuDeviceGet,
    cuDeviceGetCount,
    cuDeviceGetName,
    cuDeviceGetAttribute,
    cuDeviceTotalMem,
    cuDeviceGetUuid,
    cuDeviceGetDefaultMemPool,
    cuDeviceGetMemPool,
    cuDevicePrimaryCtxRetain,
    cuCtxGetCurrent,
    cuCtxPopCurrent,
    cuCtxGetDevice,
    cuCtxGetDevice_v13000,
    cuCtxGetApiVersion,
    cuCtxGetId,
    cuCtxGetStreamPriorityRange,
    cuStreamCreate,
    cuStreamCreateWithPriority,
    cuStreamGetCtx,
    cuStreamGetFlags,
    cuStreamGetPriority,
    cuStreamGetId,
    cuStreamGetDevice,
    cuStreamIsCapturing,
    cuStreamGetCaptureInfo,
    cuStreamGetCaptureInfo_v12030,
    cuEventCreate,
    cuEventElapsedTime,
    cuEventElapsedTime_v12080: cuEventElapsedTime,
    cuMemAlloc,
    cuMemAllocManaged,
    cuMemHostAlloc,
    cuMemAllocHost,
    cuMemFreeHost,
    cuMemHostGetDevicePointer,
    cuMemAllocAsync,
    cuMemAllocFromPoolAsync,
    cuMemGetInfo,
    cuModuleLoadData,
    cuModuleLoadDataEx,
    cuModuleGetFunction,
    cuLibraryLoadData,
    cuLibraryUnload,
    cuLibraryGetKernel,
    cuLibraryGetModule,
    cuKernelGetFunction,
    cuKernelGetName,
    cuFuncGetName,
    cuKernelGetAttribute,
    cuFuncGetAttribute,
    cuKernelGetParamInfo,
    cuFuncGetParamInfo,
    cuUserObjectCreate,
    ..graph::add(Entries::NOTHING)
};
