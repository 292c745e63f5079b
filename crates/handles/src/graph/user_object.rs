//! User objects: values that the driver keeps alive for graphs and executables.

use core::ffi::c_void;
use core::fmt;
use std::sync::Arc;

use cuda_sys::{CUuserObject, CUuserObject_flags, CUuserObject_st, Call};
use smallvec::SmallVec;

use super::graph_handle::{GraphHandle, GraphIdentity};
use crate::context::{Context, lock_unless_inside};
use crate::destroy::{self, Node, Object, Payload};
use crate::error::{Error, Result};
use crate::registry::Raw;
use crate::sync::{Lock, Rank};

/// A value under the driver's reference counts. It lives while this handle, a graph that
/// [retains](Self::retain_on) it, an executable made from such a graph, or a launch in flight does.
///
/// The reaper drops the value some time after the last reference is gone, never on the driver's
/// thread. If the context is lost, the drop of this handle releases the value without a driver
/// call. If the handle was dropped before the loss, so that only graphs or executables hold the
/// value, it stays until the end of the process.
pub struct UserObject {
    raw: Raw<CUuserObject_st>,
    context: Context,
    payload: Arc<Payload>,
    /// The graphs that hold references given by this handle, once for each.
    held_by: Lock<SmallVec<[GraphIdentity; 1]>>,
}

impl UserObject {
    /// Puts `value` under the driver's reference counts. A panic in its destructor is caught and
    /// reported to the [hook](crate::reaper::set_hook).
    ///
    /// Calls `cuUserObjectCreate` (CUDA 11.3).
    ///
    /// # Errors
    /// The driver refuses the call; `value` is dropped then.
    #[doc(alias = "cuUserObjectCreate")]
    #[doc(alias = "cudaUserObjectCreate")]
    pub fn new(context: &Context, value: Box<dyn Send>) -> Result<Self> {
        context.ensure_usable()?;
        // The destructor must not start the thread: it may run inside the driver.
        destroy::start();
        let payload = Arc::new(Payload::new(value));
        let node: *mut Node<Arc<Payload>> = Box::into_raw(Node::new(Arc::clone(&payload)));
        let mut raw = core::ptr::null_mut();
        // SAFETY: the out pointer is valid; the destructor takes the node back, once.
        let code = unsafe {
            context.driver().cuUserObjectCreate(
                &raw mut raw,
                node.cast(),
                Some(destructor),
                1,
                CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0,
            )
        };
        if let Err(error) = context.check(Call::cuUserObjectCreate, code) {
            // SAFETY: the driver did not take the node.
            drop(unsafe { Box::from_raw(node) });
            return Err(error);
        }
        Ok(Self {
            raw: Raw::new(raw),
            context: context.clone(),
            payload,
            held_by: Lock::new(Rank::UserObject, Default::default()),
        })
    }

    /// Lets `graph` hold one reference more. Executables made of it, and graphs cloned from it, get
    /// their own.
    ///
    /// Calls `cuGraphRetainUserObject` (CUDA 11.3). This is a call on the graph; see
    /// [`GraphHandle`].
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuGraphRetainUserObject")]
    #[doc(alias = "cudaGraphRetainUserObject")]
    pub fn retain_on(&self, graph: &GraphHandle) -> Result<()> {
        self.context.ensure_usable()?;
        self.context.ensure_same(graph.context(), "the graph")?;
        let mut held_by = lock_unless_inside(&self.context, "the user object", &self.held_by)?;
        // Graphs that are gone hold nothing.
        held_by.retain(|held| !held.is_gone());
        held_by.reserve(1);
        let _alone = graph.call_alone()?;
        // SAFETY: graph and object are alive; our own reference stays with this handle.
        let code =
            unsafe { self.context.driver().cuGraphRetainUserObject(graph.as_raw(), self.raw.get(), 1, 0) };
        self.context.check(Call::cuGraphRetainUserObject, code)?;
        held_by.push(graph.identity());
        Ok(())
    }

    /// Takes one reference from `graph` that [`retain_on`](Self::retain_on) gave it. The driver
    /// would not notice if there was none.
    ///
    /// Calls `cuGraphReleaseUserObject` (CUDA 11.3). This is a call on the graph; see
    /// [`GraphHandle`].
    ///
    /// # Errors
    /// The graph has no reference from this handle, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuGraphReleaseUserObject")]
    #[doc(alias = "cudaGraphReleaseUserObject")]
    pub fn release_from(&self, graph: &GraphHandle) -> Result<()> {
        self.context.ensure_usable()?;
        let mut held_by = lock_unless_inside(&self.context, "the user object", &self.held_by)?;
        let held = held_by.iter().position(|held| held.is(graph)).ok_or(Error::NotHeld)?;
        let _alone = graph.call_alone()?;
        // SAFETY: graph and object are alive, and the graph has the reference.
        let code =
            unsafe { self.context.driver().cuGraphReleaseUserObject(graph.as_raw(), self.raw.get(), 1) };
        self.context.check(Call::cuGraphReleaseUserObject, code)?;
        held_by.swap_remove(held);
        Ok(())
    }

    /// The driver's own handle.
    #[must_use]
    pub fn as_raw(&self) -> CUuserObject {
        self.raw.get()
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// Runs on a thread of the driver, or inside one of its calls: no driver call, no lock, no
/// allocation.
unsafe extern "C" fn destructor(node: *mut c_void) {
    // SAFETY: `new` gave the driver this node, and the driver runs the destructor once.
    destroy::push_payload(unsafe { Box::from_raw(node.cast()) });
}

impl Drop for UserObject {
    fn drop(&mut self) {
        if self.context.lost().is_some() {
            destroy::push_payload(Node::new(Arc::clone(&self.payload)));
            return;
        }
        destroy::destroy(&self.context, Object::UserReference(self.raw));
    }
}

impl fmt::Debug for UserObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("UserObject").field(&self.raw).finish()
    }
}
