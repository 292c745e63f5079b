//! Rules of single calls: null handles, empty allocations, counts, error strings.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use cuda_sys::*;

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
        ];
        // A driver that lacks a call says nothing of it.
        assert!(answers.into_iter().flatten().all(|answer| answer == IV), "{answers:?}");
    }
}
