//! A stand-in for NCCL, by calls of the driver that is installed in this process.
//!
//! It has NCCL's rules: calls are queued between the start and the end of a group, by thread; the
//! end enqueues them on the given streams; groups of one set of communicators run one after the
//! other, by events of its own; a captured graph holds a user object with the memory of its
//! nodes, and communicators are destroyed when no graph does any more. The rest is as simple as can
//! be: each rank copies the numbers of all ranks and adds them by a kernel.

mod communicator;
mod driver;
mod enqueue;

use core::cell::RefCell;
use core::ffi::{c_char, c_int, c_void};

use cuda_sys::CUstream;

use crate::api::{Api, OLDEST, RawCommunicator, SUCCESS, SUM};
use crate::number::{FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64};
use communicator::Rank;

/// `ncclUnhandledCudaError`.
const UNHANDLED_CUDA_ERROR: c_int = 1;
/// `ncclInternalError`.
const INTERNAL_ERROR: c_int = 3;
/// `ncclInvalidArgument`.
const INVALID_ARGUMENT: c_int = 4;
/// `ncclInvalidUsage`.
const INVALID_USAGE: c_int = 5;

/// The result of calls inside of the stand-in: what the outer call answers.
type Answer<T = ()> = Result<T, c_int>;

pub(crate) const API: Api = Api {
    version,
    unique_id,
    init_all,
    destroy,
    abort,
    error_string,
    last_error,
    group_start,
    group_end,
    all_reduce,
    send,
    recv,
};

/// A queued call.
struct Queued {
    /// A pointer to a live [`Rank`].
    rank: RawCommunicator,
    stream: CUstream,
    work: Work,
}

/// What a call does. Addresses, and the size of all numbers in bytes.
#[derive(Clone, Copy)]
enum Work {
    Sum { from: u64, to: u64, count: usize, kernel: Kernel },
    Send { from: u64, bytes: usize, peer: usize },
    Recv { to: u64, bytes: usize, peer: usize },
}

/// The kernel that adds numbers of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    F32,
    F64,
    U32,
    U64,
}

impl Kernel {
    fn of(type_: c_int) -> Answer<Self> {
        match type_ {
            FLOAT32 => Ok(Self::F32),
            FLOAT64 => Ok(Self::F64),
            INT32 | UINT32 => Ok(Self::U32),
            INT64 | UINT64 => Ok(Self::U64),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    fn size(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F64 | Self::U64 => 8,
        }
    }
}

/// The group of a thread.
#[derive(Default)]
struct Group {
    depth: usize,
    calls: Vec<Queued>,
    failure: Option<c_int>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

fn code(answer: Answer) -> c_int {
    answer.err().unwrap_or(SUCCESS)
}

/// Queues a call. One outside of a group, or with wrong arguments, makes the group fail.
fn queue(made: Answer<Queued>) -> c_int {
    GROUP.with_borrow_mut(|group| {
        let made = if group.depth == 0 { Err(INVALID_USAGE) } else { made };
        match made {
            Ok(call) => {
                group.calls.push(call);
                SUCCESS
            }
            Err(failure) => {
                group.failure.get_or_insert(failure);
                failure
            }
        }
    })
}

unsafe extern "C" fn version(version: *mut c_int) -> c_int {
    // SAFETY: the caller's out pointer.
    unsafe { *version = OLDEST };
    SUCCESS
}

unsafe extern "C" fn unique_id(_: *mut [u8; 128]) -> c_int {
    INVALID_USAGE
}

unsafe extern "C" fn init_all(ranks: *mut RawCommunicator, count: c_int, devices: *const c_int) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's array.
    let devices = unsafe { core::slice::from_raw_parts(devices, count) };
    match communicator::create(devices) {
        Ok(made) => {
            for (index, rank) in made.into_iter().enumerate() {
                // SAFETY: the caller's array has an element for each device.
                unsafe { *ranks.add(index) = Box::into_raw(Box::new(rank)).cast() };
            }
            SUCCESS
        }
        Err(failure) => failure,
    }
}

unsafe extern "C" fn destroy(rank: RawCommunicator) -> c_int {
    // SAFETY: made by `init_all`, and this is the last use.
    code(unsafe { Box::from_raw(rank.cast::<Rank>()) }.end())
}

unsafe extern "C" fn abort(rank: RawCommunicator) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { destroy(rank) }
}

unsafe extern "C" fn error_string(status: c_int) -> *const c_char {
    let text = match status {
        SUCCESS => c"no error",
        UNHANDLED_CUDA_ERROR => c"unhandled cuda error",
        INTERNAL_ERROR => c"internal error",
        INVALID_ARGUMENT => c"invalid argument",
        INVALID_USAGE => c"invalid usage",
        _ => c"unknown result code",
    };
    text.as_ptr()
}

unsafe extern "C" fn last_error(_: RawCommunicator) -> *const c_char {
    c"".as_ptr()
}

unsafe extern "C" fn group_start() -> c_int {
    GROUP.with_borrow_mut(|group| group.depth += 1);
    SUCCESS
}

unsafe extern "C" fn group_end() -> c_int {
    let ended = GROUP.with_borrow_mut(|group| {
        let Some(depth) = group.depth.checked_sub(1) else { return Err(INVALID_USAGE) };
        group.depth = depth;
        Ok(if depth == 0 { core::mem::take(group) } else { Group::default() })
    });
    code(ended.and_then(|Group { calls, failure, .. }| match failure {
        Some(failure) => Err(failure),
        // SAFETY: each call has a communicator that lives as long as its group.
        None => unsafe { enqueue::all(&calls) },
    }))
}

unsafe extern "C" fn all_reduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    type_: c_int,
    operation: c_int,
    rank: RawCommunicator,
    stream: CUstream,
) -> c_int {
    let kernel = if operation == SUM { Kernel::of(type_) } else { Err(INVALID_ARGUMENT) };
    let (from, to) = (from.expose_provenance() as u64, to.expose_provenance() as u64);
    queue(kernel.map(|kernel| Queued { rank, stream, work: Work::Sum { from, to, count, kernel } }))
}

unsafe extern "C" fn send(
    from: *const c_void,
    count: usize,
    type_: c_int,
    peer: c_int,
    rank: RawCommunicator,
    stream: CUstream,
) -> c_int {
    let from = from.expose_provenance() as u64;
    let message = message(count, type_, peer);
    queue(message.map(|(bytes, peer)| Queued { rank, stream, work: Work::Send { from, bytes, peer } }))
}

unsafe extern "C" fn recv(
    to: *mut c_void,
    count: usize,
    type_: c_int,
    peer: c_int,
    rank: RawCommunicator,
    stream: CUstream,
) -> c_int {
    let to = to.expose_provenance() as u64;
    let message = message(count, type_, peer);
    queue(message.map(|(bytes, peer)| Queued { rank, stream, work: Work::Recv { to, bytes, peer } }))
}

/// The bytes of a message, and the other rank.
fn message(count: usize, type_: c_int, peer: c_int) -> Answer<(usize, usize)> {
    Ok((count * Kernel::of(type_)?.size(), usize::try_from(peer).map_err(|_| INVALID_ARGUMENT)?))
}
