//! Declared variables of images.

use cuda_handles::{Buffer, Element, Error, Library};

use crate::error::Result;

/// A variable with as many elements as were declared.
///
/// # Safety
/// As for [`Library::global`].
///
/// # Errors
/// Those of [`Library::global`], or the variable has another number of elements.
pub unsafe fn variable<T: Element>(library: &Library, name: &str, len: Option<usize>) -> Result<Buffer<T>> {
    // SAFETY: the caller's promise.
    let variable = unsafe { library.global::<T>(name) }?;
    match len {
        Some(len) if len != variable.len() => {
            let (element, size) = (core::any::type_name::<T>(), size_of::<T>());
            let expected = format!("{len} elements of `{element}`, {size} bytes each,").into();
            let (bytes, address) = (variable.size_bytes(), variable.address());
            Err(Error::GlobalSize { name: name.into(), bytes, address, expected }.into())
        }
        _ => Ok(variable),
    }
}
