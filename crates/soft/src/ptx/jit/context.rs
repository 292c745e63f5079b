//! The data that native code shares with the interpreter.

use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

/// The most elements of one access.
pub(super) const MOST_ELEMENTS: usize = 8;

/// The state of a host thread that native code reads and writes. Its layout is part of the code.
#[repr(C)]
pub(in crate::ptx) struct Context {
    /// Instructions executed so far.
    pub(in crate::ptx) steps: u64,
    /// The number of instructions at which backward jumps stop.
    pub(in crate::ptx) end: u64,
    /// Where the thread resumes.
    pub(in crate::ptx) pc: u64,
    /// The thread in its block.
    pub(in crate::ptx) linear: u32,
    pub(in crate::ptx) index: [u32; 3],
    pub(in crate::ptx) block: [u32; 3],
    pub(in crate::ptx) block_size: [u32; 3],
    pub(in crate::ptx) grid_size: [u32; 3],
    pub(in crate::ptx) shared: *mut u8,
    pub(in crate::ptx) shared_len: u64,
    pub(in crate::ptx) local: *mut u8,
    pub(in crate::ptx) local_len: u64,
    pub(in crate::ptx) local_base: u64,
    pub(in crate::ptx) params: *const u8,
    /// The addresses of the image's variables.
    pub(in crate::ptx) globals: *const u64,
    /// The offsets of the image's shared variables.
    pub(in crate::ptx) shared_offsets: *const u32,
    /// A cache of allocations, one slot for each access of the function to global memory.
    pub(in crate::ptx) slots: *mut Slot,
    /// The first of them among those of the image.
    pub(in crate::ptx) first_slot: u64,
    /// The counter of the epoch, and the epoch of the slots.
    pub(in crate::ptx) epoch_now: *const AtomicU64,
    pub(in crate::ptx) epoch: u64,
    /// Special registers of the launch.
    pub(in crate::ptx) warps: u64,
    pub(in crate::ptx) dynamic_shared: u64,
    pub(in crate::ptx) total_shared: u64,
    pub(in crate::ptx) reserved_shared: u64,
    pub(in crate::ptx) grid_number: u64,
    /// Elements of an access, and the old value of an atomic operation.
    pub(in crate::ptx) values: [u64; MOST_ELEMENTS],
    /// For the functions that native code calls.
    pub(in crate::ptx) worker: *mut c_void,
}

/// An allocation, for the accesses of one instruction.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(in crate::ptx) struct Slot {
    /// First device address, a multiple of the size of the access.
    pub(in crate::ptx) start: u64,
    /// How many accesses fit in side by side.
    pub(in crate::ptx) count: u64,
    /// Host pointer to the first byte, aligned for the elements.
    pub(in crate::ptx) host: *mut u8,
}

impl Slot {
    /// A slot that holds no access.
    pub(in crate::ptx) const EMPTY: Slot = Slot { start: 0, count: 0, host: std::ptr::null_mut() };
}

/// Why native code returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::ptx) enum Status {
    Exited,
    /// Returned from the function.
    Returned,
    /// The share is used up.
    Yielded,
    /// The interpreter has to execute the next instruction.
    Stopped,
    /// A function that the code called has found a fault.
    Faulted,
}

/// The functions that native code calls for memory accesses. Both return 0, or 1 for a fault.
#[derive(Clone, Copy)]
pub(in crate::ptx) struct Helpers {
    /// A load or store, of [`Context::values`].
    pub(in crate::ptx) access: unsafe extern "C" fn(*mut Context, address: u64, at: u64, slot: u64) -> u64,
    /// An atomic operation. The old value is the first of [`Context::values`].
    pub(in crate::ptx) atomic:
        unsafe extern "C" fn(*mut Context, address: u64, at: u64, b: u64, c: u64) -> u64,
}

/// The position of an instruction as one number.
pub(super) fn pack(function: u32, pc: usize) -> u64 {
    (u64::from(function) << 32) | pc as u64
}

/// The function and the instruction of a position.
pub(in crate::ptx) fn unpack(at: u64) -> (u32, usize) {
    ((at >> 32) as u32, (at & u64::from(u32::MAX)) as usize)
}
