//! Advice on an answer of the driver: a sentence behind the driver's own.

use core::fmt;

use cuda_sys::{CUresult, Call};

/// The driver's own sentence about a code.
pub(super) fn sentence(code: CUresult) -> Option<&'static str> {
    cuda_sys::installed()?.describe(code)
}

/// Advice on a code, as a sentence behind the driver's.
pub(super) struct Advice(pub(super) Call, pub(super) CUresult);

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match advice_on_call(self.0, self.1).or_else(|| advice(self.1)) {
            Some(advice) => write!(formatter, ". {advice}"),
            None => Ok(()),
        }
    }
}

/// The meaning of a code for one call.
fn advice_on_call(call: Call, code: CUresult) -> Option<&'static str> {
    match (call, code) {
        (Call::cuEventElapsedTime, CUresult::CUDA_ERROR_INVALID_HANDLE) => {
            Some("One of the events was never recorded, or was created without timing")
        }
        (Call::cuEventElapsedTime, CUresult::CUDA_ERROR_INVALID_VALUE) => {
            Some("One of the events was last recorded in a capture; record it anew")
        }
        _ => None,
    }
}

fn advice(code: CUresult) -> Option<&'static str> {
    Some(match code {
        CUresult::CUDA_ERROR_NO_DEVICE => {
            "The driver sees no device: check that one is installed and that CUDA_VISIBLE_DEVICES does not hide it"
        }
        CUresult::CUDA_ERROR_NOT_INITIALIZED => {
            "CUDA was not initialised in this process; begin with Device::new, and not in a child made by fork"
        }
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => "Drop buffers that are no longer needed, or use smaller ones",
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "The PTX is newer than the driver: compile it with an older toolkit, or install a newer driver"
        }
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | CUresult::CUDA_ERROR_INVALID_IMAGE => {
            "The image is neither PTX without errors, which the log lists, nor machine code for this device: compile it for its compute capability, or ship PTX"
        }
        CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "The driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed"
        }
        CUresult::CUDA_ERROR_NOT_PERMITTED => {
            "The driver allows no such call inside a host function or a destructor that it runs; make it on another thread"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => {
            "A stream in a capture takes no such call: make it before or after the capture, or on another stream; beside captures of other \
             streams it can be made if those are in relaxed mode"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED => {
            "A call during the capture could not be captured; end the capture and look for the first error"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => {
            "A capturing stream can only wait for events that were recorded in the same capture"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED => {
            "Every stream that was drawn into a capture must be waited for by the first one before the end"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => {
            "The legacy default stream was used while a stream that waits for it is capturing; use another stream, or make the capturing one \
             non-blocking"
        }
        CUresult::CUDA_ERROR_CAPTURED_EVENT => "The event was last recorded in a capture; record it anew",
        CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            "The kernel needs more registers or shared memory than a block can have: use smaller blocks"
        }
        CUresult::CUDA_ERROR_INVALID_HANDLE => "The object was destroyed, or is of another kind",
        CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED => {
            "The memory, or a part of it, is pinned or registered already: use the buffer that it was registered as"
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "The kernel module and the driver library have different versions: reboot after a driver update"
        }
        _ => return None,
    })
}
