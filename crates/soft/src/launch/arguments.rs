//! Reading kernel arguments.

use std::ffi::c_void;

use cuda_sys::CUresult;

use crate::driver::result_code::{Answer, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES};
use crate::module::Code;

/// The arguments of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) bytes: Vec<u8>,
    /// They were given as one block by `extra`.
    pub(crate) packed: bool,
    /// The given size of a packed block.
    pub(crate) given: usize,
}

/// Reads the arguments of a kernel. `too_large` is the result for a packed block that is too large.
///
/// # Safety
/// `params` and `extra` are as the interface demands.
pub(crate) unsafe fn read_arguments(
    code: &Code,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    too_large: CUresult,
) -> Answer<Arguments> {
    let wanted = code.kernel.param_bytes() as usize;
    if !params.is_null() && !extra.is_null() {
        return Err(INVALID_VALUE);
    }
    if !extra.is_null() {
        // SAFETY: the caller's promise.
        let bytes = unsafe { read_packed(extra, wanted, too_large)? };
        return Ok(bytes);
    }
    let mut bytes = vec![0; wanted];
    let layout = code.kernel.params();
    if layout.is_empty() {
        return Ok(Arguments { bytes, packed: false, given: 0 });
    }
    if params.is_null() {
        return Err(INVALID_VALUE);
    }
    for (index, param) in layout.iter().enumerate() {
        // SAFETY: the array has a pointer for each parameter.
        let from = unsafe { params.add(index).read_unaligned() };
        if from.is_null() {
            return Err(INVALID_VALUE);
        }
        let (start, size) = (param.offset as usize, param.size as usize);
        if let Some(place) = bytes.get_mut(start..start + size) {
            // SAFETY: each pointer is valid for its parameter's size.
            unsafe { place.as_mut_ptr().copy_from_nonoverlapping(from.cast(), size) };
        }
    }
    Ok(Arguments { bytes, packed: false, given: 0 })
}

/// # Safety
/// `extra` is a list of keys and values as the interface demands.
unsafe fn read_packed(extra: *mut *mut c_void, wanted: usize, too_large: CUresult) -> Answer<Arguments> {
    let (mut buffer, mut size) = (core::ptr::null_mut::<c_void>(), None);
    let mut at = extra;
    loop {
        // SAFETY: the list goes on until its end key.
        let key = unsafe { at.read_unaligned() }.addr();
        if key == 0 {
            break;
        }
        // SAFETY: each key but the last has a value.
        let value = unsafe { at.add(1).read_unaligned() };
        match key {
            1 => buffer = value,
            // SAFETY: the value of the size key points to the size.
            2 if !value.is_null() => size = Some(unsafe { value.cast::<usize>().read_unaligned() }),
            _ => return Err(INVALID_VALUE),
        }
        // SAFETY: as above.
        at = unsafe { at.add(2) };
    }
    let given = size.unwrap_or(0);
    if buffer.is_null() || given == 0 {
        return Err(INVALID_VALUE);
    }
    if given > wanted {
        return Err(too_large);
    }
    let mut bytes = vec![0; wanted];
    // SAFETY: the block has the size given, which fits.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(buffer.cast(), given) };
    Ok(Arguments { bytes, packed: true, given })
}

/// The result of a launch with a packed block that is too large.
pub(crate) const PACKED_TOO_LARGE: CUresult = LAUNCH_OUT_OF_RESOURCES;
