//! Any text as PTX: loaded or refused, with or without waits, alone or linked.

use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;

use cuda_handles::{Context, Error, Image, Library, Linker};
use cuda_sys::CUresult;

use crate::driver::raw;

/// Loads the bytes as a text in every way that there is. Nothing is launched.
///
/// # Panics
/// The ways disagree, or something other than the text is refused.
pub fn ptx(context: &Context, bytes: &[u8]) {
    let Ok(text) = CString::new(bytes) else { return };
    let Some(is_module) = as_module(context, &text) else { return };
    let Ok(text) = text.to_str() else {
        assert!(!is_module, "bytes that are no text");
        return;
    };
    let library = judged(Library::load(context, Image::Ptx(text)));
    assert_eq!(library.is_some(), is_module, "a library loads as a module does");
    let waiting = judged(Library::load_waiting(context, Image::Ptx(text)));
    // Waits raise `.version` and `.target`, so a text that is refused may load with them.
    assert!(waiting.is_some() || !is_module, "what loads also loads with waits");
    let linked = judged(link(context, text));
    let Some(library) = library else { return };
    let names = library.kernel_names().expect("the driver lists its kernels");
    for name in &names {
        // A name with a zero byte cannot be there: the text has none.
        let kernel = library.kernel(name).expect("a kernel that the driver lists");
        assert_eq!(kernel.name(), name);
        assert_eq!(kernel.library(), &library);
    }
    for other in waiting.map(|waiting| waiting.library).into_iter().chain(linked) {
        assert_eq!(other.kernel_names().as_ref(), Ok(&names), "other kernels in the same text");
    }
}

/// Links the text with nothing.
fn link(context: &Context, text: &str) -> cuda_handles::Result<Library> {
    let mut linker = Linker::new(context)?;
    linker.add("text", Image::Ptx(text))?;
    linker.link()
}

/// What was loaded, unless the text is refused.
#[track_caller]
fn judged<T>(loaded: cuda_handles::Result<T>) -> Option<T> {
    match loaded {
        Ok(loaded) => Some(loaded),
        Err(Error::Jit { .. } | Error::Image(_)) => None,
        Err(error) => panic!("refused for another reason: {error}"),
    }
}

/// Whether the driver loads the text as a module. `None` if its variables take more memory than the
/// device has, which a library notices at the first use.
fn as_module(context: &Context, text: &CString) -> Option<bool> {
    let driver = raw::driver();
    let mut module = ptr::null_mut();
    // SAFETY: the context lives.
    raw::ok(unsafe { driver.cuCtxSetCurrent(context.as_raw()) });
    // SAFETY: the text ends with a zero byte, and the out pointer is valid.
    let code = unsafe { driver.cuModuleLoadData(&raw mut module, text.as_ptr().cast::<c_void>()) };
    if code.is_success() {
        // SAFETY: the module was loaded above, and nobody else has it.
        raw::ok(unsafe { driver.cuModuleUnload(module) });
    }
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return None;
    }
    let refusals = [
        CUresult::CUDA_ERROR_INVALID_PTX,
        CUresult::CUDA_ERROR_INVALID_IMAGE,
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    ];
    assert!(code.is_success() || refusals.contains(&code), "the driver answers {code}");
    Some(code.is_success())
}
