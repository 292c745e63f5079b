//! Loading PTX text, and looking up its variables.

use std::ffi::CString;
use std::ptr::null_mut;

use cuda_sys::{CUmodule, CUresult};

use crate::common::{OK, Session, session};

const HEAD: &str = ".version 7.8\n.target sm_70\n.address_size 64\n";
const KERNEL: &str = ".visible .entry k(.param .u64 out) { ret; }\n";

const INVALID_PTX: CUresult = CUresult::CUDA_ERROR_INVALID_PTX;
const TOO_NEW: CUresult = CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
const INVALID_IMAGE: CUresult = CUresult::CUDA_ERROR_INVALID_IMAGE;
const NOT_FOUND: CUresult = CUresult::CUDA_ERROR_NOT_FOUND;

fn load(s: &Session, text: &str) -> Result<CUmodule, CUresult> {
    let mut module = null_mut();
    let text = CString::new(text).unwrap();
    match unsafe { s.cuModuleLoadData(&mut module, text.as_ptr().cast()) } {
        OK => Ok(module),
        code => Err(code),
    }
}

#[track_caller]
fn assert_answers(s: &Session, text: &str, expected: Result<(), CUresult>) {
    let answer = load(s, text);
    assert_eq!(answer.map(drop), expected, "{text}");
    if let Ok(module) = answer {
        assert_eq!(unsafe { s.cuModuleUnload(module) }, OK);
    }
}

#[test]
fn a_version_that_is_too_new_is_told_before_anything_else() {
    let s = session();
    let whole = format!("{HEAD}{KERNEL}");
    let newer = whole.replace("7.8", "99.9");
    assert_answers(&s, &whole, Ok(()));
    assert_answers(&s, &newer, Err(TOO_NEW));
    assert_answers(&s, &newer.replace("ret;", "frobnicate.u32 1;"), Err(TOO_NEW));
    assert_answers(&s, &newer.replace("sm_70", "sm_999"), Err(TOO_NEW));
    assert_answers(&s, &whole.replace("sm_70", "sm_999"), Err(INVALID_PTX));
    assert_answers(&s, &whole.replace("ret;", "frobnicate.u32 1;"), Err(INVALID_PTX));
}

#[test]
fn a_text_begins_with_version_and_target() {
    let s = session();
    let whole = format!("{HEAD}{KERNEL}");
    assert_answers(&s, &format!("// A comment.\n\n{whole}"), Ok(()));
    assert_answers(&s, &whole.replace(".version 7.8\n", ""), Err(INVALID_IMAGE));
    assert_answers(&s, &whole.replace(".target sm_70\n", ""), Err(INVALID_PTX));
}

#[test]
fn variables_and_parameters_without_a_size_are_refused() {
    let s = session();
    let parameter = |text: &str| format!("{HEAD}{}", KERNEL.replace(".param .u64 out", text));
    assert_answers(&s, &parameter(".param .u32 a[4]"), Ok(()));
    assert_answers(&s, &parameter(".param .align 4 .b8 a[4]"), Ok(()));
    assert_answers(&s, &parameter(".param .b8 a[]"), Err(INVALID_PTX));
    assert_answers(&s, &format!("{HEAD}.extern .shared .b8 s[];\n{KERNEL}"), Ok(()));
    assert_answers(&s, &format!("{HEAD}.shared .b8 s[];\n{KERNEL}"), Err(INVALID_PTX));
    assert_answers(&s, &format!("{HEAD}.global .b8 s[];\n{KERNEL}"), Err(INVALID_PTX));
    assert_answers(
        &s,
        &format!("{HEAD}{}", KERNEL.replace("ret;", ".shared .b8 s[]; ret;")),
        Err(INVALID_PTX),
    );
}

#[test]
fn variables_are_found_by_name_unless_a_body_declares_them() {
    let s = session();
    let body = KERNEL.replace("ret;", ".global .u32 inner; .const .u32 fixed[2] = {6}; ret;");
    let text = format!("{HEAD}.global .u32 plain; .const .u32 table[3];\n{body}");
    let module = load(&s, &text).unwrap();
    let find = |name: &str| {
        let (mut address, mut size, name) = (0, 0, CString::new(name).unwrap());
        let answer = unsafe { s.cuModuleGetGlobal(&mut address, &mut size, module, name.as_ptr()) };
        if answer == OK { Ok(size) } else { Err(answer) }
    };
    assert_eq!([find("plain"), find("table")], [Ok(4), Ok(12)]);
    assert_eq!([find("inner"), find("fixed")], [Err(NOT_FOUND); 2]);
    assert_eq!(unsafe { s.cuModuleUnload(module) }, OK);
}
