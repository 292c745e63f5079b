//! The settings of core dumps of the process.

use cuda_sys::*;

use crate::common::*;

type Setting = CUcoredumpSettings;

const IV: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
/// The bytes of a name.
const NAME: usize = 1024;

fn set(s: &Session, setting: Setting, value: &mut [u8]) -> CUresult {
    let mut size = value.len();
    unsafe { s.cuCoredumpSetAttributeGlobal(setting, value.as_mut_ptr().cast(), &mut size) }
}

/// A setting of exactly so many bytes.
fn get<const N: usize>(s: &Session, setting: Setting) -> Result<[u8; N], CUresult> {
    let (mut value, mut size) = ([0xee_u8; N], N);
    match unsafe { s.cuCoredumpGetAttributeGlobal(setting, value.as_mut_ptr().cast(), &mut size) } {
        OK => Ok(value),
        code => Err(code),
    }
}

#[test]
fn settings_are_read_as_they_were_set() {
    cuda_tests::alone!();
    let s = session();
    for (setting, value, found) in [
        (Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION, 0, 0),
        (Setting::CU_COREDUMP_TRIGGER_HOST, 0, 0),
        (Setting::CU_COREDUMP_TRIGGER_HOST, 2, 1),
        (Setting::CU_COREDUMP_LIGHTWEIGHT, 2, 1),
        (Setting::CU_COREDUMP_LIGHTWEIGHT, 0, 0),
        (Setting::CU_COREDUMP_ENABLE_USER_TRIGGER, 2, 2),
    ] {
        assert_eq!(set(&s, setting, &mut [value]), OK);
        assert_eq!(get(&s, setting), Ok([found]));
    }
    let flags = Setting::CU_COREDUMP_GENERATION_FLAGS;
    assert_eq!(set(&s, flags, &mut [2, 0, 0, 0]), OK);
    assert_eq!(get(&s, flags), Ok([2, 0, 0, 0]));
    assert_eq!(set(&s, Setting::CU_COREDUMP_LIGHTWEIGHT, &mut [1]), OK);
    assert_eq!(get(&s, flags), Ok([0x2f, 0, 0, 0]));
}

#[test]
fn names_have_1024_bytes() {
    cuda_tests::alone!();
    let s = session();
    let file = Setting::CU_COREDUMP_FILE;
    let mut name = [0; NAME];
    name[..6].copy_from_slice(b"a name");
    // The zero ends the name, whatever its size is said to be.
    assert_eq!(set(&s, file, &mut b"a name\0".to_owned()), OK);
    assert_eq!(get(&s, file), Ok(name));
    assert_eq!(get::<4>(&s, file), Err(IV), "shorter than the name");
    // A GPU's driver takes pipes or not, depending on the machine.
    if cuda_tests::is_soft() {
        assert_eq!(set(&s, Setting::CU_COREDUMP_PIPE, &mut name), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    let mut long = [b'x'; NAME + 1];
    long[NAME - 1..].fill(0);
    assert_eq!(set(&s, file, &mut long[..NAME]), OK);
    long[NAME - 1] = b'x';
    assert_eq!(set(&s, file, &mut long), IV);
    // Whether a GPU's driver keeps the name that was there before is not known.
    let letters = |name: [u8; NAME]| (name[0], name.iter().take_while(|letter| **letter != 0).count());
    eprintln!("after a refusal, the first letter and their count: {:?}", get(&s, file).map(letters));
}

#[test]
fn settings_and_sizes_must_be_there() {
    cuda_tests::alone!();
    let s = session();
    for unknown in [0, 8, 99] {
        assert_eq!(set(&s, CUcoredumpSettings_enum(unknown), &mut [0; 8]), IV);
        assert_eq!(get::<8>(&s, CUcoredumpSettings_enum(unknown)), Err(IV));
    }
    let setting = Setting::CU_COREDUMP_LIGHTWEIGHT;
    for len in [0, 2, 8] {
        assert_eq!(set(&s, setting, &mut vec![0; len]), IV, "{len}");
    }
    assert_eq!((get::<0>(&s, setting), get::<2>(&s, setting)), (Err(IV), Err(IV)));
    let (mut value, none) = ([0_u8; 1], std::ptr::null_mut());
    unsafe {
        let place = value.as_mut_ptr().cast();
        assert_eq!(s.cuCoredumpGetAttributeGlobal(setting, place, std::ptr::null_mut()), IV);
        assert_eq!(s.cuCoredumpSetAttributeGlobal(setting, place, std::ptr::null_mut()), IV);
    }
    // Without a place for the value its size is told, or nothing is set.
    for (setting, len) in [
        (setting, 1),
        (Setting::CU_COREDUMP_GENERATION_FLAGS, 4),
        (Setting::CU_COREDUMP_FILE, NAME),
        (Setting::CU_COREDUMP_PIPE, NAME),
    ] {
        let mut size = 77;
        assert_eq!(unsafe { s.cuCoredumpGetAttributeGlobal(setting, none, &mut size) }, OK);
        assert_eq!(size, len, "{setting:?}");
    }
    let mut size = 1;
    assert_eq!(unsafe { s.cuCoredumpSetAttributeGlobal(setting, none, &mut size) }, OK);
}
