//! Linking PTX texts.

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

const HEAD: &str = ".version 7.8\n.target sm_70\n.address_size 64\n";

const CALLER: &str = "
.extern .func (.param .b32 r) twice(.param .b32 a);
.extern .global .u32 base;
.visible .entry run(.param .u64 out, .param .u32 a) {
    .reg .b64 %rd<4>; .reg .b32 %r<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [a];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), twice, (p); ld.param.b32 %r2, [q]; }
    ld.global.u32 %r3, [base];
    add.u32 %r4, %r2, %r3;
    st.global.u32 [%rd1], %r4;
    ret;
}";

const CALLEE: &str = "
.visible .global .u32 base = 1000;
.func (.param .b32 r) helper(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.visible .func (.param .b32 r) twice(.param .b32 a) {
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [a];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), helper, (p); ld.param.b32 %r2, [q]; }
    st.param.b32 [r], %r2;
    ret;
}";

/// The other text's function of the same name is its own business.
const BYSTANDER: &str = "
.func helper() { ret; }
.weak .global .u32 base = 7;
.visible .entry nothing() { call helper; ret; }";

fn create(driver: &Driver) -> CUlinkState {
    let mut link = null_mut();
    assert_eq!(unsafe { driver.cuLinkCreate(0, null_mut(), null_mut(), &mut link) }, OK);
    link
}

fn add(driver: &Driver, link: CUlinkState, body: &str) -> CUresult {
    let text = CString::new(format!("{HEAD}{body}")).unwrap();
    let bytes = text.as_bytes_with_nul();
    let kind = CUjitInputType::CU_JIT_INPUT_PTX;
    let data = bytes.as_ptr().cast_mut().cast();
    unsafe {
        driver.cuLinkAddData(link, kind, data, bytes.len(), c"part".as_ptr(), 0, null_mut(), null_mut())
    }
}

fn complete(driver: &Driver, link: CUlinkState) -> Result<(*mut c_void, usize), CUresult> {
    let (mut image, mut size) = (null_mut(), 0);
    match unsafe { driver.cuLinkComplete(link, &mut image, &mut size) } {
        OK => Ok((image, size)),
        code => Err(code),
    }
}

#[test]
fn names_are_found_in_other_texts() {
    let driver = &session();
    for order in [[CALLER, CALLEE, BYSTANDER], [BYSTANDER, CALLER, CALLEE], [CALLEE, BYSTANDER, CALLER]] {
        let link = create(driver);
        for body in order {
            assert_eq!(add(driver, link, body), OK);
        }
        let (image, size) = complete(driver, link).unwrap();
        assert!(size > CALLER.len() + CALLEE.len());
        assert_eq!(complete(driver, link), Ok((image, size)));
        let mut library = null_mut();
        let mut module = null_mut();
        unsafe {
            let none = null_mut();
            let answer =
                driver.cuLibraryLoadData(&mut library, image, none, null_mut(), 0, null_mut(), null_mut(), 0);
            assert_eq!(answer, OK);
            assert_eq!(driver.cuModuleLoadData(&mut module, image), OK);
            assert_eq!(driver.cuLinkDestroy(link), OK);
            assert_eq!(driver.cuLinkDestroy(link), CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let mut out = words(driver, 1);
        let (function, mut a) = (function(driver, library, "run"), 21u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut out).cast(), (&raw mut a).cast()];
        unsafe {
            let launched = driver.cuLaunchKernel(
                function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                null_mut(),
                arguments.as_mut_ptr(),
                null_mut(),
            );
            assert_eq!(launched, OK);
            assert_eq!(read(driver, out, 1), [1042]);
            let (mut base, mut bytes, mut count) = (0, 0, 0);
            assert_eq!(driver.cuLibraryGetGlobal(&mut base, &mut bytes, library, c"base".as_ptr()), OK);
            assert_eq!((bytes, read(driver, base, 1)), (4, vec![1000]));
            assert_eq!(driver.cuLibraryGetKernelCount(&mut count, library), Ok(OK));
            assert_eq!(count, 2);
            assert_eq!(driver.cuModuleUnload(module), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
            assert_eq!(driver.cuMemFree(out), OK);
        }
    }
}

#[test]
fn what_is_missing_double_or_wrong_is_said() {
    let driver = &session();
    let mut text = [0u8; 512];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [text.as_mut_ptr().cast(), std::ptr::without_provenance_mut(512)];
    let mut link = null_mut();
    let raw = text.as_ptr();
    let log = || unsafe { CStr::from_ptr(raw.cast()) }.to_str().unwrap().to_owned();
    let ptx = CUresult::CUDA_ERROR_INVALID_PTX;
    unsafe {
        assert_eq!(driver.cuLinkCreate(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut link), OK);
        assert_eq!(add(driver, link, ".visible .entry k() { frobnicate; }"), ptx);
        assert!(log().contains("frobnicate"), "{}", log());
        assert_eq!(add(driver, link, CALLER), OK);
        assert_eq!(complete(driver, link), Err(ptx));
        assert!(log().contains("base"), "{}", log());
        // The array of values belongs to the caller again when the link is created.
        assert_eq!(values[1].addr(), 512);
        assert_eq!(add(driver, link, CALLEE), OK);
        assert!(complete(driver, link).is_ok());
        assert_eq!(driver.cuLinkDestroy(link), OK);
    }
    let link = create(driver);
    assert_eq!(add(driver, link, CALLEE), OK);
    assert_eq!(add(driver, link, CALLEE), OK);
    assert_eq!(complete(driver, link), Err(ptx));
    let data = c"no".as_ptr().cast_mut().cast();
    let add = |kind, size| unsafe {
        driver.cuLinkAddData(link, kind, data, size, std::ptr::null(), 0, null_mut(), null_mut())
    };
    assert_eq!(add(CUjitInputType::CU_JIT_INPUT_CUBIN, 3), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert_eq!(add(CUjitInputType(9), 3), IV);
    assert_eq!(add(CUjitInputType::CU_JIT_INPUT_PTX, 0), IV);
    assert_eq!(unsafe { driver.cuLinkDestroy(link) }, OK);
}

/// The text alone, with names that nobody defines, is no image.
#[test]
fn an_unlinked_text_is_refused() {
    let driver = &session();
    let text = CString::new(format!("{HEAD}{CALLER}")).unwrap();
    let mut module = null_mut();
    let answer = unsafe { driver.cuModuleLoadData(&mut module, text.as_ptr().cast()) };
    assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_PTX);
}
