//! Driver objects that one call destroys.

use cuda_sys::{
    CUevent_st, CUextSemaphore_st, CUgraph_st, CUgraphExec_st, CUlinkState_st, CUmemPoolHandle_st, CUresult,
    CUstream_st, CUuserObject_st, Call, Driver,
};

use super::clones;
use crate::context::capture_mode;
use crate::registry::Raw;

/// A driver object that one call destroys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    Stream(Raw<CUstream_st>),
    Event(Raw<CUevent_st>),
    Graph(Raw<CUgraph_st>),
    GraphExec(Raw<CUgraphExec_st>),
    /// A pool whose memory is free, or was never freed: pending frees crash the driver.
    Pool(Raw<CUmemPoolHandle_st>),
    /// A reference to a user object.
    UserReference(Raw<CUuserObject_st>),
    /// A semaphore of another interface.
    Semaphore(Raw<CUextSemaphore_st>),
    /// A linker, with options that live as long.
    Linker(Raw<CUlinkState_st>),
}

impl Object {
    /// Whether its destruction may run destructors of user objects. The driver permits that inside
    /// a host function, but once it has run a destructor there, it permits every call on that
    /// thread from then on, even calls that wait forever.
    pub(super) fn may_run_destructors(&self) -> bool {
        match self {
            Self::Graph(_) | Self::GraphExec(_) | Self::UserReference(_) => true,
            Self::Stream(_) | Self::Event(_) | Self::Pool(_) | Self::Semaphore(_) | Self::Linker(_) => false,
        }
    }

    /// The lock that is held over its destruction; `None` if another thread has it for more than a
    /// moment.
    pub(super) fn alone(&self) -> Option<Option<clones::Alone>> {
        match self {
            Self::Graph(_) => clones::alone_soon().map(Some),
            Self::Stream(_)
            | Self::Event(_)
            | Self::GraphExec(_)
            | Self::Pool(_)
            | Self::UserReference(_)
            | Self::Semaphore(_)
            | Self::Linker(_) => Some(None),
        }
    }
}

pub(super) fn call_destroy(driver: &'static Driver, object: Object) -> (Call, CUresult) {
    // SAFETY: the object is alive, it is ours, and this is the last use of it.
    unsafe {
        match object {
            Object::Stream(raw) => (Call::cuStreamDestroy, driver.cuStreamDestroy(raw.get())),
            Object::Event(raw) => (Call::cuEventDestroy, driver.cuEventDestroy(raw.get())),
            Object::Graph(raw) => (Call::cuGraphDestroy, driver.cuGraphDestroy(raw.get())),
            Object::GraphExec(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuGraphExecDestroy, driver.cuGraphExecDestroy(raw.get()))
            }
            Object::Pool(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuMemPoolDestroy, driver.cuMemPoolDestroy(raw.get()))
            }
            Object::UserReference(raw) => {
                (Call::cuUserObjectRelease, driver.cuUserObjectRelease(raw.get(), 1))
            }
            Object::Semaphore(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuDestroyExternalSemaphore, driver.cuDestroyExternalSemaphore(raw.get()))
            }
            Object::Linker(raw) => {
                let _mode = capture_mode::relaxed(driver);
                (Call::cuLinkDestroy, driver.cuLinkDestroy(raw.get()))
            }
        }
    }
}

pub(super) fn what(object: Object) -> &'static str {
    match object {
        Object::Stream(_) => "destroying a stream",
        Object::Event(_) => "destroying an event",
        Object::Graph(_) => "destroying a graph",
        Object::GraphExec(_) => "destroying an executable graph",
        Object::Pool(_) => "destroying a memory pool",
        Object::UserReference(_) => "releasing a user object",
        Object::Semaphore(_) => "destroying an external semaphore",
        Object::Linker(_) => "destroying a linker",
    }
}
