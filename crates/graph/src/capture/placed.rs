//! Nodes that no call on a stream makes, and their places among the captured nodes.
//!
//! Such a node is added to the target at once, without edges. A host function is captured in its
//! place: the driver orders it like any other call. When the captured nodes are added to the
//! target, the edges of that host function become edges of the node. The host function itself is
//! never called.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use cuda_handles::Stream;
use cuda_sys::Call;

use crate::error::{Broken, Error, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::host_function::{Host, HostFunction};
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// Nodes in the target that stand in the place of one captured host function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Placed {
    /// The number that the host function has as its data; never used twice.
    number: usize,
    /// Waits for what comes before.
    pub(super) entry: NodeId,
    /// What comes after waits for it.
    pub(super) exit: NodeId,
}

/// Read from here, so that its address is always the same.
static MARKER: HostFunction = marker;

unsafe extern "C" fn marker(_: *mut c_void) {}

impl Placed {
    pub(super) fn new(entry: &Node, exit: &Node) -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { number, entry: entry.id(), exit: exit.id() }
    }

    /// Captures the host function that marks the place, in the capture with this number; false if
    /// another thread has ended that.
    pub(super) fn capture_on(&self, stream: &Stream, capture: u64) -> Result<bool> {
        let context = stream.context();
        context.ensure_usable()?;
        let access = stream.enqueue()?;
        if stream.capture_id() != Some(capture) {
            return Ok(false);
        }
        let data = core::ptr::without_provenance_mut(self.number);
        // SAFETY: the stream is alive, and the function does nothing with its argument.
        let code = unsafe { context.driver().cuLaunchHostFunc(stream.as_raw(), Some(MARKER), data) };
        drop(access);
        context.check(Call::cuLaunchHostFunc, code)?;
        Ok(true)
    }

    /// The nodes that stand in the place of a captured node, if it marks one.
    pub(super) fn find<'p>(placed: &'p [Self], node_params: &NodeParams) -> Option<&'p Self> {
        match node_params {
            NodeParams::Host(Host::Raw(function, data)) if *function as usize == MARKER as usize => {
                placed.iter().find(|placed| placed.number == data.0.addr())
            }
            _ => None,
        }
    }

    /// Removes the nodes from the target.
    pub(super) fn remove(&self, target: &Graph) -> Result<()> {
        let node = |id| {
            let kind = target.look().ok()?.record(id)?.node_params.kind();
            Some(Node::new(target.clone(), id, kind))
        };
        remove_all(node(self.entry).as_ref(), node(self.exit).as_ref())
    }
}

/// Removes nodes that were added to a target, where they are left, and those between them: the
/// kernel that decides about a ready-made loop or branch.
pub(super) fn remove_all(entry: Option<&Node>, exit: Option<&Node>) -> Result<()> {
    let is_left = |node: &&Node| !node.is_removed();
    let between = match entry.filter(is_left) {
        Some(entry) if exit.is_some_and(|exit| exit != entry) => match entry.successors() {
            // Another thread has just removed it.
            Err(_) if entry.is_removed() => Vec::new(),
            successors => successors?,
        },
        _ => Vec::new(),
    };
    exit.into_iter().chain(&between).chain(entry).try_for_each(remove_once)
}

/// Removes a node that another thread may be removing at the same time.
fn remove_once(node: &Node) -> Result<()> {
    if node.is_removed() {
        return Ok(());
    }
    match node.remove() {
        Err(_) if node.is_removed() => Ok(()),
        removed => removed,
    }
}

/// Breaks a graph, as nodes that were added to it could not be removed again.
pub(super) fn broken(target: &Graph, cause: Error, undo: Error) -> Error {
    match target.context().ensure_usable() {
        // Without the lock, which may be why the undo failed.
        Ok(()) => target.hierarchy().mark_broken(Broken { cause, undo }),
        Err(_) => cause,
    }
}
