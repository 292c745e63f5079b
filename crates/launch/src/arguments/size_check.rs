//! The layout of a kernel's parameters, against that of the arguments given.

use cuda_handles::{Kernel, Parameter};

use crate::arguments::slot::ParameterSlot;
use crate::error::{Error, MAX_BYTES, Result, WrongArguments};

/// Whether arguments at `slots` are what `kernel` takes.
///
/// Number and sizes decide: the driver reads each argument through a pointer of its own, so an
/// offset that differs (an array of four floats where the kernel has a 16-byte aligned vector) is
/// no fault. Drivers before 12.4 do not tell a kernel's layout; there only the total size is looked
/// at.
#[inline]
pub(crate) fn check(kernel: &Kernel, slots: &[ParameterSlot]) -> Result<()> {
    let fits = match kernel.parameters() {
        Some(parameters) => {
            parameters.len() == slots.len()
                && parameters.iter().zip(slots).all(|(wanted, given)| wanted.size == given.size())
        }
        None => slots.last().is_none_or(|last| last.end() <= MAX_BYTES),
    };
    if fits { Ok(()) } else { Err(wrong(kernel, slots)) }
}

#[cold]
fn wrong(kernel: &Kernel, slots: &[ParameterSlot]) -> Error {
    Error::WrongArguments(Box::new(WrongArguments {
        kernel: kernel.name().to_owned(),
        expected: kernel.parameters().map(<[Parameter]>::to_vec),
        found: slots.iter().map(|slot| Parameter { offset: slot.offset(), size: slot.size() }).collect(),
    }))
}
