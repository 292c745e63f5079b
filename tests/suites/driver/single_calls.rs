//! Rules of single calls: null handles, empty allocations, counts, error strings.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::table::{Table, said};
use crate::common::*;

#[test]
fn codes_have_the_drivers_sentences() {
    let driver = session();
    let sentence = |code: u32| {
        let mut text: *const c_char = null();
        let answer = unsafe { driver.cuGetErrorString(CUresult(code), &mut text) };
        if answer == OK { unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned() } else { said(answer) }
    };
    let codes = [
        (0, "no error"),
        (1, "invalid argument"),
        (2, "out of memory"),
        (101, "invalid device ordinal"),
        (600, "device not ready"),
        (700, "an illegal memory access was encountered"),
        (719, "unspecified launch failure"),
        (900, "operation not permitted when stream is capturing"),
        (999, "unknown error"),
        (12345, "INVALID_VALUE"),
    ];
    for (code, words) in codes {
        assert_eq!(sentence(code), words);
    }
}

#[test]
fn nothing_is_allocated_and_freed_on_the_host() {
    let driver = session();
    let mut place: *mut c_void = null_mut::<u8>().wrapping_add(7).cast();
    unsafe {
        assert_eq!(driver.cuMemHostAlloc(&mut place, 0, 0), OK);
        assert!(place.is_null());
        assert_eq!(driver.cuMemFreeHost(place), OK);
        for len in [1 << 62, usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX] {
            assert_eq!(driver.cuMemHostAlloc(&mut place, len, 0), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
    }
}

#[test]
fn user_objects_start_with_any_count_and_are_retained_by_31_bits() {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    let driver = session();
    let mut table = Table::default();
    for count in [0, 1, i32::MAX as u32, 1 << 31, u32::MAX] {
        let mut object = null_mut();
        let answer = unsafe { driver.cuUserObjectCreate(&mut object, null_mut(), Some(nothing), count, 1) };
        table.row(format!("created with {count}"), said(answer));
        // Counts are given up by 31 bits at a time.
        let mut left = if answer == OK { count } else { 0 };
        while left > 0 {
            let some = left.min(i32::MAX as u32);
            assert_eq!(unsafe { driver.cuUserObjectRelease(object, some) }, OK);
            left -= some;
        }
    }
    table.is("created with 0: INVALID_VALUE
        created with 1: ok
        created with 2147483647: ok
        created with 2147483648: ok
        created with 4294967295: ok");
}

#[test]
fn null_kernels_and_functions_are_invalid_values() {
    let driver = session();
    let (mut name, mut offset, mut size): (*const c_char, _, _) = (null(), 0, 0);
    unsafe {
        let answers = [
            driver.cuKernelGetName(&mut name, null_mut()),
            driver.cuFuncGetName(&mut name, null_mut()),
            driver.cuKernelGetParamInfo(null_mut(), 0, &mut offset, &mut size),
            driver.cuFuncGetParamInfo(null_mut(), 0, &mut offset, &mut size),
            driver.cuKernelGetParamCount(null_mut(), &mut offset),
            driver.cuFuncGetParamCount(null_mut(), &mut offset),
        ];
        // A driver that lacks a call says nothing of it.
        assert!(answers.into_iter().flatten().all(|answer| answer == IV), "{answers:?}");
    }
}

#[test]
fn parameters_of_kernels_need_a_current_context() {
    let s = session();
    let library = crate::calls::load(&s, include_str!("../ptx/condition.ptx"));
    let kernel = crate::calls::kernel(&s, library, "add");
    let (mut offset, mut size) = (9, 9);
    let mut ask = || unsafe { s.cuKernelGetParamInfo(kernel, 1, &mut offset, &mut size) };
    let without = unsafe {
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
        let without = ask();
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
        without
    };
    // A driver that lacks the call says nothing.
    let Ok(without) = without else { return };
    assert_eq!(without, CUresult::CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(ask().unwrap(), OK);
    assert_eq!((offset, size), (8, 8));
    assert_eq!(unsafe { s.cuLibraryUnload(library) }, OK);
}

#[test]
fn tensor_maps_need_no_alignment_of_64() {
    let s = session();
    needs!(LaunchAttributes);
    #[repr(align(64))]
    struct Aligned([u8; 256]);
    let mut room = Box::new(Aligned([0; 256]));
    let memory = s.words(64 * 64);
    for offset in [0, 8, 16, 24, 32, 64] {
        let map = room.0[offset..].as_mut_ptr().cast();
        let address = std::ptr::with_exposed_provenance_mut(memory as usize);
        let answer = unsafe {
            s.cuTensorMapEncodeTiled(
                map,
                CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                2,
                address,
                [64u64, 64].as_ptr(),
                [256u64].as_ptr(),
                [32u32, 8].as_ptr(),
                [1u32, 1].as_ptr(),
                CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
                CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        assert_eq!(answer, OK, "{offset} bytes past a multiple of 64");
    }
    s.free(memory);
}

#[test]
fn a_kernel_tells_its_constants_and_what_shared_memory_it_may_have() {
    const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.const .align 4 .b8 table[256] = {1, 2, 3};
.visible .entry shares()
{
    .shared .align 4 .b8 part[1024];
    .reg .b32 %r<2>;
    ld.const.u32 %r1, [table];
    st.shared.u32 [part], %r1;
    ret;
}";
    let s = session();
    let library = crate::calls::load(&s, PTX);
    let function = crate::calls::function(&s, library, "shares");
    let available = |blocks| {
        let mut bytes = 0;
        assert_eq!(
            unsafe { s.cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, function, blocks, 64) },
            OK
        );
        bytes
    };
    // 48 KiB without an opt-in, less what is static.
    assert_eq!(available(2), 48_128);
    assert!(available(16) < 48_128);
    let mut constants = 0;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES;
    assert_eq!(unsafe { s.cuFuncGetAttribute(&mut constants, attribute, function) }, OK);
    assert!(constants >= 256, "{constants}");
    assert_eq!(unsafe { s.cuLibraryUnload(library) }, OK);
}

#[test]
fn devices_have_default_pools_by_location() {
    let s = session();
    let (mut default, mut current) = (null_mut(), null_mut());
    unsafe {
        assert_eq!(s.cuDeviceGetDefaultMemPool(&mut default, 0), OK);
        assert_eq!(s.cuDeviceGetMemPool(&mut current, 0), OK);
    }
    let mut location =
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    let mut found = null_mut();
    let Ok(answer) = (unsafe { s.cuMemGetDefaultMemPool(&mut found, &mut location, pinned) }) else { return };
    assert_eq!((answer, found), (OK, default));
    let answer = unsafe { s.cuMemGetMemPool(&mut found, &mut location, pinned) };
    assert_eq!((answer.unwrap(), found), (OK, current));
}

#[test]
fn devices_are_found_by_their_bus() {
    let s = session();
    let mut text = [0; 32];
    assert_eq!(unsafe { s.cuDeviceGetPCIBusId(text.as_mut_ptr(), 32, 0) }, OK);
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap();
    let find = |text: &str| {
        let text = std::ffi::CString::new(text).unwrap();
        let mut device = 9;
        (unsafe { s.cuDeviceGetByPCIBusId(&mut device, text.as_ptr()) }, device)
    };
    assert_eq!(find(text), (OK, 0), "{text}");
    assert_eq!(find(&text.to_lowercase()), (OK, 0));
    let (without_function, _) = text.rsplit_once('.').unwrap();
    assert_eq!(find(without_function), (OK, 0));
    assert_ne!(find("0000:7f:00.0").0, OK);
    assert_ne!(find("no bus").0, OK);
}

#[test]
fn old_properties_are_those_of_the_attributes() {
    type A = CUdevice_attribute_enum;
    let s = session();
    let mut old = CUdevprop::default();
    assert_eq!(unsafe { s.cuDeviceGetProperties(&mut old, 0) }, OK);
    let attribute = |attribute| {
        let mut value = 0;
        assert_eq!(unsafe { s.cuDeviceGetAttribute(&mut value, attribute, 0) }, OK);
        value
    };
    assert_eq!(old.maxThreadsPerBlock, attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    assert_eq!(old.maxGridSize[1], attribute(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
    assert_eq!(old.SIMDWidth, attribute(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    assert_eq!(old.sharedMemPerBlock, attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    assert_eq!(unsafe { s.cuDeviceGetProperties(null_mut(), 0) }, IV);
}

#[test]
fn maps_of_images_have_corners_in_range() {
    let s = session();
    needs!(LaunchAttributes);
    #[repr(align(64))]
    #[derive(Default)]
    struct Map(CUtensorMap);
    let (mut map, memory) = (Map::default(), s.words(8 * 8 * 64));
    let address = std::ptr::with_exposed_provenance_mut(memory as usize);
    let mut encode = |lower: [i32; 2], upper: [i32; 2], pixels| unsafe {
        s.cuTensorMapEncodeIm2col(
            &mut map.0,
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            4,
            address,
            [64u64, 8, 8, 1].as_ptr(),
            [256u64, 2048, 16384].as_ptr(),
            lower.as_ptr(),
            upper.as_ptr(),
            32,
            pixels,
            [1u32; 4].as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    assert_eq!(encode([-1, -1], [-1, -1], 64), OK);
    assert_eq!(encode([-129, 0], [0, 0], 64), IV);
    assert_eq!(encode([0, 0], [0, 128], 64), IV);
    assert_eq!(encode([0, 0], [0, 0], 1025), IV);
    s.free(memory);
}

#[test]
fn memory_is_exported_by_descriptors() {
    type A = CUdevice_attribute_enum;
    let s = session();
    for attribute in [
        A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
    ] {
        let mut value = 0;
        assert_eq!(unsafe { s.cuDeviceGetAttribute(&mut value, attribute, 0) }, OK);
        assert_eq!(value & 1, 1, "{attribute:?}");
    }
}
