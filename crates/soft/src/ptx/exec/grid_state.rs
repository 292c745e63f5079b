//! What the blocks of one launch share beyond their memory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ptx::memory::Span;
use crate::ptx::windows::WORKSPACE_WINDOW;

/// The bytes of a workspace.
const BYTES: u64 = 16;

/// The number of a grid, and the workspace of barriers of the whole grid: its size, then the count
/// of blocks that have arrived.
#[derive(Debug)]
pub(super) struct GridState {
    pub(super) number: u64,
    workspace: [AtomicU64; 2],
}

impl Default for GridState {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        GridState { number, workspace: [AtomicU64::new(BYTES), AtomicU64::new(0)] }
    }
}

impl GridState {
    /// The workspace, if the address lies in it.
    pub(super) fn span(&self, address: u64) -> Option<Span> {
        (address.wrapping_sub(WORKSPACE_WINDOW) < BYTES).then(|| Span {
            device_start: WORKSPACE_WINDOW,
            len: BYTES,
            host: self.workspace.as_ptr().cast::<u8>().cast_mut(),
            writable: true,
        })
    }
}
