//! Working together with other processes, other interfaces and other code.

mod batch;
mod context;
mod ipc;
mod semaphore;

pub use batch::{BarrierScope, Batch, BatchOperation, BatchWord, Compare};
pub use ipc::{IpcBuffer, IpcEvent};
pub use semaphore::{ExternalSemaphore, SemaphoreKind};
