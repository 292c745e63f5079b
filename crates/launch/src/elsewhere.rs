//! Errors about things of another context: which of kernel, stream and arguments is elsewhere.

use cuda_handles::{Context, Kernel, Stream, WrongContext};

use crate::arguments::Arguments;
use crate::error::{Error, Result};

/// The kernel and the stream of a launch are of different contexts.
#[cold]
pub(crate) fn kernel(kernel: &Kernel, stream: &Stream) -> Error {
    wrong_kernel(kernel, "the stream of the launch", stream.context())
}

fn wrong_kernel(kernel: &Kernel, with: &'static str, context: &Context) -> Error {
    let what = format!("the kernel `{}`", kernel.name());
    let error = WrongContext::new(what, kernel.context(), with, context);
    Error::Handles(error.advise("load it for that context, or use a stream of its own").into())
}

/// The error of arguments that are not ready: where their memory is of another context, it names
/// the first such argument.
#[cold]
pub(crate) fn named(error: Error, kernel: &Kernel, arguments: &impl Arguments) -> Error {
    match error {
        Error::Handles(cuda_handles::Error::WrongContext(_)) => {
            memory(kernel, arguments).err().unwrap_or(error)
        }
        other => other,
    }
}

/// Whether the memory of all arguments is of the kernel's context.
///
/// # Errors
/// [`WrongContext`](cuda_handles::WrongContext) names the first argument whose memory is not.
#[inline]
pub(crate) fn memory(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Result<()> {
    let mut is_same = true;
    arguments.each_allocation(|allocation| is_same &= kernel.context().is_same(allocation.context()));
    if is_same { Ok(()) } else { Err(wrong_memory(kernel, arguments)) }
}

#[cold]
fn wrong_memory(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Error {
    let (mut index, mut first) = (0, None);
    arguments.each_allocation(|allocation| {
        if first.is_none() && !kernel.context().is_same(allocation.context()) {
            first = Some((index, allocation.context()));
        }
        index += 1;
    });
    let (index, found) = first.unwrap_or((0, kernel.context()));
    let what = format!("the memory of {} of kernel `{}`", arguments.name_of(index), kernel.name());
    let error = WrongContext::new(what, found, "the kernel", kernel.context());
    Error::Handles(error.advise(WrongContext::MEMORY).into())
}
