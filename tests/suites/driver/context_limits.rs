//! Limits of a context. Seen on an H200, driver 580.159.04.

use std::ptr::null_mut;

use cuda_sys::{CUlimit, CUresult};
use cuda_tests::alone;

use crate::common::table::{Table, said};
use crate::common::{OK, Session, session};

/// In a context of its own, since limits stay.
fn in_a_context(act: impl FnOnce(&Session)) {
    let s = session();
    let (mut context, mut device) = (null_mut(), 0);
    unsafe {
        assert_eq!(s.cuCtxGetDevice(&mut device), OK);
        assert_eq!(s.cuCtxCreate(&mut context, null_mut(), 0, 0, device), OK);
        act(&s);
        assert_eq!(s.cuCtxDestroy(context), OK);
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
    }
}

fn told(s: &Session, limit: CUlimit) -> Result<usize, CUresult> {
    let mut value = 0;
    let answer = unsafe { s.cuCtxGetLimit(&mut value, limit) };
    if answer == OK { Ok(value) } else { Err(answer) }
}

#[test]
fn a_limit_is_raised_lowered_or_refused() {
    alone!();
    in_a_context(|s| {
        let mut table = Table::default();
        let word = |told: Result<usize, CUresult>| match told {
            Ok(value) => value.to_string(),
            Err(code) => said(code),
        };
        for (limit, values) in [
            (CUlimit::CU_LIMIT_STACK_SIZE, [0, 1 << 16, 1 << 20, usize::MAX]),
            (CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE, [0, 1 << 20, 1 << 38, usize::MAX]),
            (CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE, [0, 1 << 20, 8 << 20, usize::MAX]),
            (CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, [0, 1, 1 << 20, usize::MAX]),
            (CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY, [0, 64, 1 << 10, usize::MAX]),
        ] {
            table.row(format!("{}", limit.0), word(told(s, limit)));
            for value in values {
                let answer = unsafe { s.cuCtxSetLimit(limit, value) };
                table.row(
                    format!("{} set {value}", limit.0),
                    format!("{}, then {}", said(answer), word(told(s, limit))),
                );
            }
        }
        table.is("
            0: 1024
            0 set 0: ok, then 0
            0 set 65536: ok, then 65536
            0 set 1048576: INVALID_VALUE, then 65536
            0 set 18446744073709551615: INVALID_VALUE, then 65536
            1: 8650752
            1 set 0: ok, then 524288
            1 set 1048576: ok, then 1048576
            1 set 274877906944: ok, then 2147483648
            1 set 18446744073709551615: ok, then 0
            2: 8388608
            2 set 0: ok, then 4194304
            2 set 1048576: ok, then 4194304
            2 set 8388608: ok, then 8388608
            2 set 18446744073709551615: ok, then 0
            3: UNSUPPORTED_LIMIT
            3 set 0: UNSUPPORTED_LIMIT, then UNSUPPORTED_LIMIT
            3 set 1: UNSUPPORTED_LIMIT, then UNSUPPORTED_LIMIT
            3 set 1048576: UNSUPPORTED_LIMIT, then UNSUPPORTED_LIMIT
            3 set 18446744073709551615: UNSUPPORTED_LIMIT, then UNSUPPORTED_LIMIT
            5: 64
            5 set 0: ok, then 0
            5 set 64: ok, then 64
            5 set 1024: INVALID_VALUE, then 64
            5 set 18446744073709551615: INVALID_VALUE, then 64
        ");
    });
}

#[test]
fn the_largest_heap_is_a_part_of_the_devices_memory() {
    alone!();
    in_a_context(|s| {
        let heap = CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE;
        let (mut free, mut all) = (0, 0);
        assert_eq!(unsafe { s.cuMemGetInfo(&mut free, &mut all) }, OK);
        let largest = [1 << 40, 1 << 60].map(|bytes| {
            assert_eq!(unsafe { s.cuCtxSetLimit(heap, bytes) }, OK);
            told(s, heap).unwrap()
        });
        assert_eq!(largest[0], largest[1]);
        assert!((all / 16..all / 4).contains(&largest[0]), "{} of {all}", largest[0]);
    });
}
