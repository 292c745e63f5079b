//! Variables of libraries: look-ups and errors.

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

/// Does something on another thread beside a stream that is held up, and tells whether it came back
/// before the stream was let go.
fn comes_back_beside_work(s: &Session, act: impl FnOnce(&Driver) + Send) -> bool {
    let (driver, context, stream) = (cuda_tests::raw::driver(), s.context.addr(), s.setup.stream().unwrap());
    let gate = cuda_tests::Gate::close(&stream);
    let (tell, told) = std::sync::mpsc::channel();
    let is_back = std::thread::scope(|scope| {
        scope.spawn(move || {
            unsafe { assert_eq!(driver.cuCtxSetCurrent(std::ptr::without_provenance_mut(context)), OK) };
            act(driver);
            let _ = tell.send(());
        });
        // Too short only makes a call that comes back look like one that waits.
        let is_back = told.recv_timeout(std::time::Duration::from_secs(1)).is_ok();
        gate.open();
        is_back
    });
    stream.synchronize_blocking().unwrap();
    is_back
}

/// Whether libraries are loaded at their first use, and not at once.
fn is_lazy(s: &Session) -> bool {
    let mut mode = CUmoduleLoadingMode(0);
    assert_eq!(unsafe { s.cuModuleGetLoadingMode(&mut mode) }, OK);
    mode == CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING
}

#[test]
fn the_first_use_of_a_library_waits_for_running_work() {
    let s = session();
    for is_kernel in [false, true] {
        let library = calls::load(&s, VARIABLES);
        let raw = library.addr();
        let first_use = move |driver: &Driver| {
            let library = std::ptr::without_provenance_mut(raw);
            match is_kernel {
                true => drop(calls::function(driver, library, "weigh")),
                false => assert_eq!(global(driver, library, c"calls").0, OK),
            }
        };
        if !is_lazy(&s) {
            assert!(comes_back_beside_work(&s, first_use), "it is loaded already; kernel: {is_kernel}");
            unload(&s, library);
            return;
        }
        assert!(!comes_back_beside_work(&s, first_use), "kernel: {is_kernel}");
        assert!(comes_back_beside_work(&s, first_use), "later ones do not; kernel: {is_kernel}");
        unload(&s, library);
    }
    // The load itself does not.
    let loaded = std::sync::Mutex::new(0);
    let load = |driver: &Driver| *loaded.lock().unwrap() = calls::load(driver, VARIABLES).addr();
    assert!(comes_back_beside_work(&s, load));
    unload(&s, std::ptr::without_provenance_mut(loaded.into_inner().unwrap()));
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
    assert_eq!(managed(&s, library, c"weigh").0, NOT_FOUND);
    assert_eq!(managed(&s, library, c"").0, IV);
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
        assert_eq!(s.cuLibraryGetManaged(null_mut(), null_mut(), library, name), IV);
    }
    assert_eq!((OK, address, bytes), global(&s, library, c"weights"));
    unload(&s, library);
}

#[test]
fn variables_are_not_freed_by_calls() {
    let s = session();
    let library = calls::load(&s, VARIABLES);
    for (name, value) in [(c"word", 9), (c"calls", 5)] {
        let (code, address, _) = global(&s, library, name);
        assert_eq!(code, OK);
        unsafe {
            assert_eq!(s.cuMemFree(address), IV, "{name:?}");
            assert_eq!(s.cuMemFreeAsync(address, s.stream), IV, "{name:?}");
        }
        s.wait();
        assert_eq!(s.read(address), value, "{name:?}");
    }
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
