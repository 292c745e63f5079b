//! Errors of launches whose kernel, stream and arguments are of different contexts.

use cuda_handles::{Context, Kernel, Stream, WrongContext};

use crate::arguments::holder::{Arguments, ensure_memory_of};
use crate::error::Error;

/// The error of a kernel and a stream of different contexts.
#[cold]
pub(crate) fn kernel_and_stream(kernel: &Kernel, stream: &Stream) -> Error {
    wrong_kernel(kernel, "the stream of the launch", stream.context())
}

fn wrong_kernel(kernel: &Kernel, with: &'static str, context: &Context) -> Error {
    let what = format!("the kernel `{}`", kernel.name());
    let error = WrongContext::new(what, kernel.context(), with, context);
    Error::Handles(error.advise("load it for that context, or use a stream of its own").into())
}

/// Names the first argument whose memory is of another context, if that is why `error` arose.
#[cold]
pub(crate) fn name_argument(error: Error, kernel: &Kernel, arguments: &impl Arguments) -> Error {
    match error {
        Error::Handles(cuda_handles::Error::WrongContext(_)) => {
            ensure_memory_of(kernel, arguments).err().unwrap_or(error)
        }
        other => other,
    }
}
