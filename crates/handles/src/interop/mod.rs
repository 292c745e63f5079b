//! Working together with other processes, other interfaces and other code.

mod batch;
mod batch_operation;
mod context;
mod ipc;
mod semaphore;

pub use batch::Batch;
pub use batch_operation::{BarrierScope, BatchOperation, BatchWord, Compare};
pub use ipc::{IpcBuffer, IpcEvent};
pub use semaphore::{ExternalSemaphore, SemaphoreKind};
