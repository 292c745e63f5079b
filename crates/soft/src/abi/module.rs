//! Module, library, function and kernel calls.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_sys::{
    CUdevice, CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState,
    CUjit_option, CUkernel, CUlibrary, CUlibraryOption, CUmodule, CUmoduleLoadingMode, CUsharedconfig,
};

use super::table::Entries;
use crate::abi::jit_options::Logs;
use crate::device::context::{check_device, current};
use crate::device::limits::{BLOCKS_PER_SM, MAX_SHARED};
use crate::driver;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, put_if, required};
use crate::driver::result_code::{Answer, FILE_NOT_FOUND, INVALID_HANDLE, INVALID_VALUE};
use crate::memory::Allocation;
use crate::module::image::{self, RejectedImage};
use crate::module::{self, Code};
use crate::ptx::Image;
use crate::stream;
use crate::stream::callback;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuModuleLoad,
        cuModuleLoadData,
        cuModuleLoadDataEx,
        cuModuleLoadFatBinary: cuModuleLoadData,
        cuModuleUnload,
        cuModuleGetFunction,
        cuModuleGetFunctionCount,
        cuModuleEnumerateFunctions,
        cuModuleGetGlobal,
        cuModuleGetLoadingMode,
        cuLibraryLoadData,
        cuLibraryLoadFromFile,
        cuLibraryUnload,
        cuLibraryGetKernel,
        cuLibraryGetKernelCount,
        cuLibraryEnumerateKernels,
        cuLibraryGetModule,
        cuLibraryGetGlobal,
        cuLibraryGetManaged,
        cuKernelGetFunction,
        cuKernelGetLibrary,
        cuKernelGetName,
        cuKernelGetAttribute,
        cuKernelSetAttribute,
        cuKernelSetCacheConfig,
        cuKernelGetParamInfo,
        cuKernelGetParamCount,
        cuFuncGetName,
        cuFuncGetModule,
        cuFuncGetAttribute,
        cuFuncSetAttribute,
        cuFuncSetCacheConfig,
        cuFuncSetSharedMemConfig,
        cuFuncGetParamInfo,
        cuFuncGetParamCount,
        cuFuncIsLoaded,
        cuFuncLoad,
        ..entries
    }
}

/// # Safety
/// `image` is a C string or a binary form; the log buffers are valid.
unsafe fn parse(image: *const c_void, logs: &Logs) -> Answer<Image> {
    required(image)?;
    // SAFETY: a binary form has at least its four bytes of magic, none of them an end of string.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
    // SAFETY: as promised.
    unsafe { finish_parse(text, logs) }
}

/// # Safety
/// The log buffers are valid.
unsafe fn finish_parse(text: &[u8], logs: &Logs) -> Answer<Image> {
    match image::parse(text) {
        Ok(image) => {
            // SAFETY: as promised.
            unsafe {
                logs.error.write("");
                logs.info.write("");
            }
            Ok(image)
        }
        Err(RejectedImage { code, log }) => {
            // SAFETY: as promised.
            unsafe {
                logs.error.write(&log);
                logs.info.write("");
            }
            Err(code)
        }
    }
}

/// # Safety
/// `path` is null or a C string.
pub(crate) unsafe fn read_file(path: *const c_char) -> Answer<Vec<u8>> {
    required(path)?;
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| INVALID_VALUE)?;
    std::fs::read(path).map_err(|_| FILE_NOT_FOUND)
}

/// # Safety
/// `name` is null or a C string that lives as long as `'a`.
unsafe fn text<'a>(name: *const c_char) -> Answer<&'a str> {
    required(name)?;
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| INVALID_VALUE)
}

fn attribute(code: &Code, attribute: CUfunction_attribute) -> Answer<c_int> {
    type A = CUfunction_attribute;
    let signed = |value: u32| c_int::try_from(value).unwrap_or(c_int::MAX);
    let settings = &code.settings;
    Ok(match attribute {
        A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => signed(code.kernel.max_threads()),
        A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => signed(code.kernel.static_shared_bytes()),
        A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => signed(code.const_bytes),
        A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => signed(code.kernel.local_bytes()),
        A::CU_FUNC_ATTRIBUTE_NUM_REGS => signed(code.kernel.registers()),
        A::CU_FUNC_ATTRIBUTE_PTX_VERSION => code.ptx_version,
        A::CU_FUNC_ATTRIBUTE_BINARY_VERSION => {
            let (major, minor) = driver::config().capability;
            signed(major * 10 + minor)
        }
        A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => settings.dynamic_shared.load(Ordering::Relaxed),
        A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => settings.carveout.load(Ordering::Relaxed),
        A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
            settings.non_portable_cluster.load(Ordering::Relaxed).into()
        }
        A::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
            settings.cluster_policy.load(Ordering::Relaxed)
        }
        CUfunction_attribute(0..=16) => 0,
        _ => return Err(INVALID_VALUE),
    })
}

fn set_attribute(code: &Code, attribute: CUfunction_attribute, value: c_int) -> Answer {
    type A = CUfunction_attribute;
    let settings = &code.settings;
    match attribute {
        A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let room = i64::from(MAX_SHARED) - i64::from(code.kernel.static_shared_bytes());
            if value < 0 || i64::from(value) > room {
                return Err(INVALID_VALUE);
            }
            settings.dynamic_shared.store(value, Ordering::Relaxed);
        }
        A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
            settings.carveout.store(value, Ordering::Relaxed);
        }
        A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED if matches!(value, 0 | 1) => {
            settings.non_portable_cluster.store(value == 1, Ordering::Relaxed);
        }
        A::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            if (0..=BLOCKS_PER_SM as c_int).contains(&value) =>
        {
            settings.cluster_policy.store(value, Ordering::Relaxed);
        }
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

/// # Safety
/// The out pointers are null or valid for writes.
unsafe fn param_info(code: &Code, index: usize, offset: *mut usize, size: *mut usize) -> Answer {
    required(offset)?;
    let param = code.kernel.params().get(index).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's promise.
    unsafe {
        put(offset, param.offset as usize)?;
        put_if(size, param.size as usize);
    }
    Ok(())
}

/// The variable with this name. Empty names, names of kernels, and calls without out parameters are
/// invalid.
fn global(
    module: &module::Module,
    dptr: *mut CUdeviceptr,
    bytes: *mut usize,
    name: &str,
) -> Answer<Arc<Allocation>> {
    if name.is_empty() || dptr.is_null() && bytes.is_null() {
        return Err(INVALID_VALUE);
    }
    module.variable(name).map_err(|code| if module.has_kernel(name) { INVALID_VALUE } else { code })
}

entries! {
    live fn cuModuleLoad(out: *mut CUmodule, path: *const c_char) {
        required(out)?;
        let context = current()?;
        let image = finish_parse(&read_file(path)?, &Logs::default())?;
        put(out, to_raw(module::load_module(&image, &context)?))
    }

    live fn cuModuleLoadData(out: *mut CUmodule, image: *const c_void) {
        required(out)?;
        let context = current()?;
        put(out, to_raw(module::load_module(&parse(image, &Logs::default())?, &context)?))
    }

    live fn cuModuleLoadDataEx(
        out: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        required(out)?;
        let context = current()?;
        let logs = Logs::read(options, values, count)?;
        put(out, to_raw(module::load_module(&parse(image, &logs)?, &context)?))
    }

    guarded_init fn cuModuleUnload(hmod: CUmodule) {
        let module = module::module(number(hmod))?;
        if module.context.ended_out_of_sight() {
            return Err(INVALID_HANDLE);
        }
        module.context.check()?;
        stream::while_idle(|| module::unload_module(number(hmod)))
    }

    live fn cuModuleGetFunction(out: *mut CUfunction, hmod: CUmodule, name: *const c_char) {
        required(out)?;
        put(out, to_raw(module::module(number(hmod))?.function(text(name)?)?.handle))
    }

    live fn cuModuleGetFunctionCount(count: *mut c_uint, hmod: CUmodule) {
        put(count, module::module(number(hmod))?.codes.len() as c_uint)
    }

    live fn cuModuleEnumerateFunctions(out: *mut CUfunction, count: c_uint, hmod: CUmodule) {
        required(out)?;
        for (index, function) in module::module(number(hmod))?.functions().take(count as usize).enumerate() {
            out.add(index).write_unaligned(to_raw(function?.handle));
        }
        Ok(())
    }

    live fn cuModuleGetGlobal(dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char) {
        let module = module::module(number(hmod))?;
        let variable = global(&module, dptr, bytes, text(name)?)?;
        put_if(dptr, variable.start);
        put_if(bytes, variable.len);
        Ok(())
    }

    init fn cuModuleGetLoadingMode(mode: *mut CUmoduleLoadingMode) {
        put(mode, match module::loading::is_eager() {
            true => CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING,
            false => CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING,
        })
    }

    live fn cuLibraryLoadData(
        out: *mut CUlibrary,
        code: *const c_void,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    ) {
        let _ = (library_options, library_values, library_count);
        required(out)?;
        let logs = Logs::read(options, values, count)?;
        required(code)?;
        put(out, to_raw(module::load_library(parse(code, &logs))))
    }

    live fn cuLibraryLoadFromFile(
        out: *mut CUlibrary,
        path: *const c_char,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        count: c_uint,
        library_options: *mut CUlibraryOption,
        library_values: *mut *mut c_void,
        library_count: c_uint,
    ) {
        let _ = (library_options, library_values, library_count);
        required(out)?;
        let logs = Logs::read(options, values, count)?;
        put(out, to_raw(module::load_library(finish_parse(&read_file(path)?, &logs))))
    }

    guarded_in_callbacks fn cuLibraryUnload(library: CUlibrary) {
        let unload = || module::unload_library(number(library));
        // As observed: in a host function, a library that is not in any context is unloaded without
        // a wait.
        let waits = module::library(number(library))?.is_in_a_context() || !callback::inside();
        if waits { stream::while_idle(unload) } else { unload() }
    }

    live fn cuLibraryGetKernel(out: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        required(out)?;
        put(out, to_raw(module::library(number(library))?.kernel(text(name)?)?))
    }

    live fn cuLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary) {
        put(count, module::library(number(library))?.kernels()?.len() as c_uint)
    }

    live fn cuLibraryEnumerateKernels(out: *mut CUkernel, count: c_uint, library: CUlibrary) {
        required(out)?;
        for (index, kernel) in module::library(number(library))?.kernels()?.iter().take(count as usize).enumerate() {
            out.add(index).write_unaligned(to_raw(*kernel));
        }
        Ok(())
    }

    live fn cuLibraryGetModule(out: *mut CUmodule, library: CUlibrary) {
        required(out)?;
        put(out, to_raw(module::library(number(library))?.module(&current()?)?.handle))
    }

    live fn cuLibraryGetGlobal(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) {
        let library = module::library(number(library))?;
        let module = library.module(&current()?)?;
        let variable = global(&module, dptr, bytes, text(name)?)?;
        put_if(dptr, variable.start);
        put_if(bytes, variable.len);
        Ok(())
    }

    live fn cuLibraryGetManaged(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char) {
        let name = text(name)?;
        if name.is_empty() || dptr.is_null() && bytes.is_null() {
            return Err(INVALID_VALUE);
        }
        let variable = module::library(number(library))?.module(&current()?)?.variable(name)?;
        if !variable.origin.is_managed() {
            return Err(crate::driver::result_code::NOT_FOUND);
        }
        put_if(dptr, variable.start);
        put_if(bytes, variable.len);
        Ok(())
    }

    live fn cuKernelGetFunction(out: *mut CUfunction, kernel: CUkernel) {
        required(out)?;
        put(out, to_raw(module::kernel(number(kernel))?.function(&current()?)?.handle))
    }

    live fn cuKernelGetLibrary(out: *mut CUlibrary, kernel: CUkernel) {
        put(out, to_raw(module::kernel(number(kernel))?.library))
    }

    live fn cuKernelGetName(name: *mut *const c_char, kernel: CUkernel) {
        required(name)?;
        required(kernel)?;
        put(name, module::kernel(number(kernel))?.code.name.as_ptr())
    }

    live fn cuKernelGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice) {
        check_device(dev)?;
        put(pi, attribute(&module::kernel(number(kernel))?.code, attrib)?)
    }

    live fn cuKernelSetAttribute(attrib: CUfunction_attribute, value: c_int, kernel: CUkernel, dev: CUdevice) {
        check_device(dev)?;
        set_attribute(&module::kernel(number(kernel))?.code, attrib, value)
    }

    live fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) {
        let _ = config;
        check_device(dev)?;
        module::kernel(number(kernel)).map(drop)
    }

    live fn cuKernelGetParamInfo(kernel: CUkernel, index: usize, offset: *mut usize, size: *mut usize) {
        required(kernel)?;
        current()?;
        param_info(&module::kernel(number(kernel))?.code, index, offset, size)
    }

    live fn cuKernelGetParamCount(kernel: CUkernel, count: *mut usize) {
        required(kernel)?;
        current()?;
        put(count, module::kernel(number(kernel))?.code.kernel.params().len())
    }

    live fn cuFuncGetName(name: *mut *const c_char, function: CUfunction) {
        required(name)?;
        required(function)?;
        put(name, module::function(number(function))?.code.name.as_ptr())
    }

    live fn cuFuncGetModule(out: *mut CUmodule, function: CUfunction) {
        required(function)?;
        put(out, to_raw(module::function(number(function))?.module.handle))
    }

    live fn cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, function: CUfunction) {
        put(pi, attribute(&module::function(number(function))?.code, attrib)?)
    }

    live fn cuFuncSetAttribute(function: CUfunction, attrib: CUfunction_attribute, value: c_int) {
        set_attribute(&module::function(number(function))?.code, attrib, value)
    }

    live fn cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache) {
        let _ = config;
        module::function(number(function)).map(drop)
    }

    live fn cuFuncSetSharedMemConfig(function: CUfunction, config: CUsharedconfig) {
        let _ = config;
        module::function(number(function)).map(drop)
    }

    live fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize) {
        required(function)?;
        param_info(&module::function(number(function))?.code, index, offset, size)
    }

    live fn cuFuncGetParamCount(function: CUfunction, count: *mut usize) {
        required(function)?;
        put(count, module::function(number(function))?.code.kernel.params().len())
    }

    live fn cuFuncIsLoaded(state: *mut CUfunctionLoadingState, function: CUfunction) {
        module::function(number(function))?;
        put(state, CUfunctionLoadingState(1))
    }

    live fn cuFuncLoad(function: CUfunction) {
        if function.is_null() {
            return Err(INVALID_HANDLE);
        }
        module::function(number(function)).map(drop)
    }
}
