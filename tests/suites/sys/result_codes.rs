//! Result codes: names and sentences.

use std::collections::HashSet;
use std::ffi::CStr;

use cuda_sys::CUresult;
use cuda_tests::{raw, setup};

#[test]
fn every_result_code_has_a_name_of_its_own() {
    let all = CUresult::all();
    assert!(all.len() > 80, "the headers name more codes than {}", all.len());
    for (code, name) in all {
        assert_eq!(code.name(), Some(*name));
        assert_eq!(CUresult::from_name(name), Some(*code));
        assert_eq!(code.to_string(), format!("{name} ({})", code.0));
    }
    let names: HashSet<_> = all.iter().map(|(_, name)| name).collect();
    let codes: HashSet<_> = all.iter().map(|(code, _)| code.0).collect();
    assert_eq!((names.len(), codes.len()), (all.len(), all.len()));
}

#[test]
fn a_code_from_the_future_is_an_ordinary_value() {
    let code = CUresult(54_321);
    assert_eq!(code.name(), None);
    assert!(!code.is_success());
    assert!(code.to_string().contains("54321"), "{code}");
    assert_eq!(CUresult::from_name("CUDA_ERROR_OF_THE_FUTURE"), None);
}

#[test]
fn the_driver_has_the_same_names_for_the_codes_it_knows() {
    let _context = setup();
    let mut known = 0;
    for (code, name) in CUresult::all() {
        let mut text = core::ptr::null();
        // SAFETY: the out pointer is valid.
        let result = unsafe { raw::driver().cuGetErrorName(*code, &raw mut text) };
        if result.is_success() {
            known += 1;
            // SAFETY: a static string of the driver.
            assert_eq!(unsafe { CStr::from_ptr(text) }.to_str(), Ok(*name));
            assert!(raw::driver().describe(*code).is_some_and(|sentence| !sentence.is_empty()), "{name}");
        }
    }
    assert!(known > 80, "the driver knows {known} codes");
    assert_eq!(raw::driver().describe(CUresult(54_321)), None);
}
