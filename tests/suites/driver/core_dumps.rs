//! The settings of core dumps of the process.

use std::ffi::c_void;

use cuda_sys::*;

use crate::common::*;

fn set(s: &Session, setting: CUcoredumpSettings, value: &mut [u8]) -> CUresult {
    let mut size = value.len();
    unsafe { s.cuCoredumpSetAttributeGlobal(setting, value.as_mut_ptr().cast(), &mut size) }
}

/// The first bytes of a setting.
fn get<const N: usize>(s: &Session, setting: CUcoredumpSettings) -> [u8; N] {
    let mut value = [0xee_u8; 1024];
    let mut size = value.len();
    let place = value.as_mut_ptr().cast::<c_void>();
    assert_eq!(unsafe { s.cuCoredumpGetAttributeGlobal(setting, place, &mut size) }, OK);
    value[..N].try_into().unwrap()
}

#[test]
fn settings_are_read_as_they_were_set() {
    cuda_tests::alone!();
    let s = session();
    for (setting, value) in [
        (CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST, 0),
        (CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT, 1),
        (CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT, 0),
    ] {
        assert_eq!(set(&s, setting, &mut [value]), OK);
        assert_eq!(get(&s, setting), [value]);
    }
    for setting in [CUcoredumpSettings::CU_COREDUMP_FILE, CUcoredumpSettings::CU_COREDUMP_PIPE] {
        assert_eq!(set(&s, setting, &mut b"a name\0".to_owned()), OK);
        assert_eq!(get(&s, setting), *b"a name\0");
    }
}

#[test]
fn settings_and_places_must_be_there() {
    cuda_tests::alone!();
    let s = session();
    let bad = CUresult::CUDA_ERROR_INVALID_VALUE;
    for unknown in [0, 99] {
        assert_eq!(set(&s, CUcoredumpSettings_enum(unknown), &mut [0; 8]), bad);
    }
    let (mut value, mut size) = ([0_u8; 8], 8);
    let setting = CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT;
    unsafe {
        assert_eq!(s.cuCoredumpGetAttributeGlobal(setting, std::ptr::null_mut(), &mut size), bad);
        let place = value.as_mut_ptr().cast();
        assert_eq!(s.cuCoredumpGetAttributeGlobal(setting, place, std::ptr::null_mut()), bad);
    }
}
