//! NCCL's entry points, with the signatures of its documentation.

use core::ffi::{c_char, c_int, c_void};

use cuda_sys::CUstream;
use libloading::Library;

/// `ncclComm_t`.
pub type RawCommunicator = *mut c_void;

/// `ncclSuccess`.
pub(crate) const SUCCESS: c_int = 0;
/// `ncclSum`.
pub const SUM: c_int = 0;
/// The first version that has all of these calls, 2.13.4.
pub(crate) const OLDEST: c_int = 21304;

/// A table of NCCL's functions. Each is as its C function of the same name; all results but
/// [`error_string`](Self::error_string) and [`last_error`](Self::last_error) are an `ncclResult_t`.
#[allow(clippy::type_complexity)]
#[derive(Clone, Copy, Debug)]
pub struct Api {
    /// `ncclGetVersion`.
    pub version: unsafe extern "C" fn(*mut c_int) -> c_int,
    /// `ncclGetUniqueId`, with a `ncclUniqueId` of 128 bytes.
    pub unique_id: unsafe extern "C" fn(*mut [u8; 128]) -> c_int,
    /// `ncclCommInitAll`.
    pub init_all: unsafe extern "C" fn(*mut RawCommunicator, c_int, *const c_int) -> c_int,
    /// `ncclCommDestroy`.
    pub destroy: unsafe extern "C" fn(RawCommunicator) -> c_int,
    /// `ncclCommAbort`.
    pub abort: unsafe extern "C" fn(RawCommunicator) -> c_int,
    /// `ncclGetErrorString`.
    pub error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    /// `ncclGetLastError`.
    pub last_error: unsafe extern "C" fn(RawCommunicator) -> *const c_char,
    /// `ncclGroupStart`.
    pub group_start: unsafe extern "C" fn() -> c_int,
    /// `ncclGroupEnd`.
    pub group_end: unsafe extern "C" fn() -> c_int,
    /// `ncclAllReduce`: source, destination, count, type, operation.
    pub all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        RawCommunicator,
        CUstream,
    ) -> c_int,
    /// `ncclSend`: source, count, type, peer.
    pub send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, RawCommunicator, CUstream) -> c_int,
    /// `ncclRecv`: destination, count, type, peer.
    pub recv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, RawCommunicator, CUstream) -> c_int,
}

impl Api {
    /// The functions of an open library.
    ///
    /// # Safety
    /// The library is NCCL, and stays open.
    pub(crate) unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: each symbol has the type that NCCL's documentation gives it.
        unsafe {
            Ok(Self {
                version: *library.get("ncclGetVersion")?,
                unique_id: *library.get("ncclGetUniqueId")?,
                init_all: *library.get("ncclCommInitAll")?,
                destroy: *library.get("ncclCommDestroy")?,
                abort: *library.get("ncclCommAbort")?,
                error_string: *library.get("ncclGetErrorString")?,
                last_error: *library.get("ncclGetLastError")?,
                group_start: *library.get("ncclGroupStart")?,
                group_end: *library.get("ncclGroupEnd")?,
                all_reduce: *library.get("ncclAllReduce")?,
                send: *library.get("ncclSend")?,
                recv: *library.get("ncclRecv")?,
            })
        }
    }
}
