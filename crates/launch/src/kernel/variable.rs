//! Loading of declared variables.

use cuda_handles::{Buffer, Element, Error, Library, WrongVariable};

use crate::error::Result;

/// The variable `name` of a library, with `len` elements if the declaration fixes that.
///
/// # Safety
/// As for [`Library::global`].
///
/// # Errors
/// Those of [`Library::global`], or [`Error::WrongVariable`] for another number of elements.
pub unsafe fn variable<T: Element>(library: &Library, name: &str, len: Option<usize>) -> Result<Buffer<T>> {
    // SAFETY: the caller's promise.
    let variable = unsafe { library.global::<T>(name) }?;
    match len {
        Some(len) if len != variable.len() => {
            let wrong = WrongVariable::new::<T>(name, variable.address(), variable.size_bytes(), Some(len));
            Err(Error::WrongVariable(Box::new(wrong)).into())
        }
        _ => Ok(variable),
    }
}
