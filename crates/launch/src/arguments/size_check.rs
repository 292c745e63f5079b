//! The check of the arguments' number and sizes against the kernel's parameters.

use cuda_handles::{Kernel, Parameter};

use crate::arguments::slot::ParameterSlot;
use crate::error::{Error, MAX_BYTES, Result, WrongArguments};

/// Checks the arguments in `slots` against the parameters of `kernel`.
///
/// Only number and sizes count. The driver reads each argument through its own pointer, so a
/// different offset (an array of four floats where the kernel has a 16-byte aligned vector) is
/// harmless. Drivers before 12.4 do not report a kernel's parameters; then only the total size is
/// checked.
#[inline]
pub(crate) fn check(kernel: &Kernel, slots: &[ParameterSlot]) -> Result<()> {
    if fits(kernel, slots) { Ok(()) } else { Err(wrong(kernel, slots, None)) }
}

/// Checks the declared parameters in `slots`, with their names, against those of `kernel`, as
/// [`check`] does.
pub(crate) fn check_declared(
    kernel: &Kernel,
    slots: &[ParameterSlot],
    names: &'static [&'static str],
) -> Result<()> {
    if fits(kernel, slots) { Ok(()) } else { Err(wrong(kernel, slots, Some(names))) }
}

#[inline]
fn fits(kernel: &Kernel, slots: &[ParameterSlot]) -> bool {
    match kernel.parameters() {
        Some(parameters) => {
            parameters.len() == slots.len()
                && parameters.iter().zip(slots).all(|(wanted, given)| wanted.size == given.size())
        }
        None => slots.last().is_none_or(|last| last.end() <= MAX_BYTES),
    }
}

#[cold]
fn wrong(kernel: &Kernel, slots: &[ParameterSlot], declared: Option<&'static [&'static str]>) -> Error {
    Error::WrongArguments(Box::new(WrongArguments {
        kernel: kernel.name().to_owned(),
        expected: kernel.parameters().map(<[Parameter]>::to_vec),
        found: slots.iter().map(|slot| Parameter { offset: slot.offset(), size: slot.size() }).collect(),
        is_declared: declared.is_some(),
        names: declared.unwrap_or_default(),
    }))
}
