//! Variables of libraries: where they are asked for, and what the driver answers.

use std::ffi::CStr;
use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::{VARIABLES, in_callback};

use crate::calls;
use crate::common::*;

const NOT_FOUND: CUresult = CUresult::CUDA_ERROR_NOT_FOUND;
const NOT_PERMITTED: CUresult = CUresult::CUDA_ERROR_NOT_PERMITTED;

type Variable = (CUresult, CUdeviceptr, usize);

fn global(driver: &Driver, library: CUlibrary, name: &CStr) -> Variable {
    let (mut address, mut bytes) = (0, 0);
    let code = unsafe { driver.cuLibraryGetGlobal(&mut address, &mut bytes, library, name.as_ptr()) };
    (code, address, bytes)
}

fn managed(driver: &Driver, library: CUlibrary, name: &CStr) -> Variable {
    let (mut address, mut bytes) = (0, 0);
    let code = unsafe { driver.cuLibraryGetManaged(&mut address, &mut bytes, library, name.as_ptr()) };
    (code, address, bytes)
}

fn unload(driver: &Driver, library: CUlibrary) {
    assert_eq!(unsafe { driver.cuLibraryUnload(library) }, OK);
}

#[test]
fn a_variable_has_an_address_in_the_current_context() {
    let s = session();
    let library = calls::load(&s, VARIABLES);
    unsafe { assert_eq!(s.cuCtxSetCurrent(null_mut()), OK) };
    assert_eq!(global(&s, library, c"calls").0, CUresult::CUDA_ERROR_INVALID_CONTEXT);
    unsafe { assert_eq!(s.cuCtxSetCurrent(s.context), OK) };
    let (code, address, bytes) = global(&s, library, c"calls");
    assert_eq!((code, bytes), (OK, 4));
    assert_ne!(address, 0);
    assert_eq!(global(&s, library, c"calls"), (OK, address, 4), "again");
    let mut value = 0u32;
    unsafe { assert_eq!(s.cuMemcpyDtoH((&raw mut value).cast(), address, 4), OK) };
    assert_eq!(value, 5, "the initialiser's");
    unload(&s, library);
}

#[test]
fn names_are_found_or_refused() {
    let s = session();
    let library = calls::load(&s, VARIABLES);
    let global = |name: &CStr| {
        let (code, _, bytes) = global(&s, library, name);
        (code, bytes)
    };
    assert_eq!(global(c"weights"), (OK, 64));
    assert_eq!(global(c"odd"), (OK, 3));
    assert_eq!(global(c"word"), (OK, 4), "a managed one as well");
    assert_eq!(global(c"_ZN4mine5totalE"), (OK, 8));
    assert_eq!(global(c"nothing"), (NOT_FOUND, 0));
    assert_eq!(global(c""), (IV, 0));
    assert_eq!(global(c"weigh"), (IV, 0), "a kernel");
    assert_eq!(managed(&s, library, c"word").0, OK);
    assert_eq!(managed(&s, library, c"calls").0, NOT_FOUND);
    assert_eq!(managed(&s, library, c"nothing").0, NOT_FOUND);
    unload(&s, library);
}

#[test]
fn one_of_address_and_size_is_enough() {
    let s = session();
    let library = calls::load(&s, VARIABLES);
    let (mut address, mut bytes) = (0, 0);
    let name = c"weights".as_ptr();
    unsafe {
        assert_eq!(s.cuLibraryGetGlobal(&mut address, null_mut(), library, name), OK);
        assert_eq!(s.cuLibraryGetGlobal(null_mut(), &mut bytes, library, name), OK);
        assert_eq!(s.cuLibraryGetGlobal(null_mut(), null_mut(), library, name), IV);
    }
    assert_eq!((OK, address, bytes), global(&s, library, c"weights"));
    unload(&s, library);
}

#[test]
fn captures_do_not_mind() {
    let s = session();
    for mode in [0, 1, 2].map(CUstreamCaptureMode) {
        let library = calls::load(&s, VARIABLES);
        unsafe { assert_eq!(s.cuStreamBeginCapture(s.stream, mode), OK) };
        let found = [global(&s, library, c"calls").0, managed(&s, library, c"word").0];
        let mut graph = null_mut();
        unsafe { assert_eq!(s.cuStreamEndCapture(s.stream, &mut graph), OK) };
        assert_eq!(found, [OK, OK], "{mode:?}");
        s.destroy(&[graph]);
        unload(&s, library);
    }
}

#[test]
fn host_functions_may_not_ask() {
    let s = session();
    let library = calls::load(&s, VARIABLES);
    assert_eq!(global(&s, library, c"calls").0, OK);
    let (tell, told) = std::sync::mpsc::channel();
    let raw = library.addr();
    let stream = s.setup.stream().unwrap();
    in_callback(&stream, move || {
        let (driver, library) = (cuda_tests::raw::driver(), std::ptr::without_provenance_mut(raw));
        let _ = tell.send([global(driver, library, c"calls").0, managed(driver, library, c"word").0]);
    });
    stream.synchronize_blocking().unwrap();
    assert_eq!(told.recv().unwrap(), [NOT_PERMITTED; 2]);
    unload(&s, library);
}

#[test]
fn an_image_that_is_none_has_no_variables() {
    let s = session();
    let mut library = null_mut();
    let text = c"this is no PTX";
    let code = unsafe {
        s.cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        )
    };
    assert_eq!(code, OK);
    // A GPU's driver says that it recognised nothing.
    let codes = [CUresult::CUDA_ERROR_INVALID_IMAGE, CUresult::CUDA_ERROR_INVALID_PTX];
    assert!(codes.contains(&global(&s, library, c"calls").0));
    unload(&s, library);
}
