//! Updates of host, event, batch and semaphore nodes.

use core::ffi::c_void;

use cuda_handles::{Batch, Event, ExternalSemaphore, Owner, Viewable};
use cuda_sys::CUgraphNodeParams;

use crate::error::Result;
use crate::graph::node::Node;
use crate::node::{
    BatchNode, EventRecordNode, EventWaitNode, HostCallbackNode, HostFunction, SemaphoreSignalNode,
    SemaphoreWaitNode, batch, event, host, semaphore,
};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::update::exec_node::{ExecNode, NewParams, not_possible};
use crate::update::rules::are_alike;

impl<N: core::ops::Deref<Target = Node>> ExecNode<'_, N> {
    /// Gives the node new parameters of its kind.
    fn replace(
        &mut self,
        node_params: NodeParams,
        owners: Owners,
        raw: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let node: &Node = self.node;
        let mut new = NewParams::new(node_params, owners, raw);
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        self.exec.replace_params(&found, &mut new)
    }
}

impl ExecNode<'_, HostCallbackNode> {
    /// Calls another closure at later launches of the executable; as [`HostCallbackNode::set`] does
    /// for the graph's node.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    /// [`UpdateError::Lent`](crate::UpdateError::Lent),
    /// [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated. Or the
    /// driver's error. The executable is then unchanged.
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecHostNodeSetParams")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set<F: Fn() + Send + Sync + 'static>(&mut self, call: F) -> Result<()> {
        self.replace_call(host::closure(self.node.graph(), call)?)
    }

    /// Calls another closure, with views of host memory; see [`set`](Self::set) and
    /// [`HostCallbackNode::set_with`].
    ///
    /// # Errors
    /// The errors of [`set`](Self::set) and of [`Frontier::host_with`](crate::Frontier::host_with).
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub fn set_with<M, F>(&mut self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.replace_call(host::looking(self.node.graph(), memory, call)?)
    }

    /// Calls a C function; see [`set`](Self::set) and [`HostCallbackNode::set_function`].
    ///
    /// # Safety
    /// As for [`Frontier::host_function`](crate::Frontier::host_function).
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_function<T: Send + Sync + 'static>(
        &mut self,
        function: HostFunction,
        data: T,
    ) -> Result<()> {
        // SAFETY: the caller promises this.
        self.replace_call(unsafe { host::with_data(self.node.graph(), function, data) }?)
    }

    /// Calls another C function; see [`set`](Self::set) and [`HostCallbackNode::set_raw`].
    ///
    /// # Safety
    /// As for [`Frontier::host_raw`](crate::Frontier::host_raw).
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub unsafe fn set_raw(
        &mut self,
        function: HostFunction,
        data: *mut c_void,
        owner: impl Into<Owner>,
    ) -> Result<()> {
        self.replace_call(host::raw(function, data, owner.into()))
    }

    fn replace_call(&mut self, host::Prepared { host, owner, function, data }: host::Prepared) -> Result<()> {
        let mut raw = host::params(function, data);
        self.replace(NodeParams::Host(host), Owners::from_iter([owner]), &mut raw)
    }
}

impl ExecNode<'_, EventRecordNode> {
    /// Records another event at later launches of the executable; as
    /// [`EventRecordNode::set_event`] does for the graph's node.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// The event is of another context ([`WrongContext`](cuda_handles::Error::WrongContext)).
    /// [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): the node is in a child graph
    /// that [`set_graph`](ExecNode::set_graph) has replaced.
    /// [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    /// [`UpdateError::Lent`](crate::UpdateError::Lent),
    /// [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated. Or the
    /// driver's error. The executable is then unchanged.
    #[doc(alias = "cuGraphExecEventRecordNodeSetEvent")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecEventRecordNodeSetEvent")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set_event(&mut self, event: &Event) -> Result<()> {
        let node: &Node = self.node;
        node.getting(event::ensure_own(node.graph(), event))?;
        let mut raw = event::record(event);
        let mut new = NewParams::new(NodeParams::EventRecord(event.clone()), Owners::new(), &mut raw);
        let former_event;
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        if self.exec.updates.is_replaced(found.key) {
            let why = "the child graph around it was replaced, and it is not known which node of that it is now; \
                       set the child graph node to a graph that records this event";
            return Err(not_possible(found.named(), why));
        }
        self.exec.replace_params(&found, &mut new)?;
        // The executable has kept the one before with what its launches may use.
        former_event = self.exec.launches.events.set(found.counterpart, event.clone());
        drop(found);
        drop(former_event);
        Ok(())
    }
}

impl ExecNode<'_, EventWaitNode> {
    /// Waits for another event at later launches of the executable; as
    /// [`EventWaitNode::set_event`] does for the graph's node.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    /// [`UpdateError::Lent`](crate::UpdateError::Lent),
    /// [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated. Or the
    /// driver's error. The executable is then unchanged.
    #[doc(alias = "cuGraphExecEventWaitNodeSetEvent")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecEventWaitNodeSetEvent")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    pub fn set_event(&mut self, event: &Event) -> Result<()> {
        let mut raw = event::wait(event.as_raw());
        self.replace(NodeParams::EventWait(event.clone()), Owners::new(), &mut raw)
    }
}

impl ExecNode<'_, BatchNode> {
    /// Replaces the operations for later launches of the executable, by as many of the same kinds;
    /// as [`BatchNode::set`] does for the graph's node.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2), and `cuGraphBatchMemOpNodeGetParams` (CUDA
    /// 11.7) in a graph that spans several contexts.
    ///
    /// # Errors
    /// - The errors of [`Frontier::batch`](crate::Frontier::batch).
    /// - [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): there are more or fewer
    ///   operations than before, or of other kinds.
    /// - [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
    ///   [`UpdateError::Lent`](crate::UpdateError::Lent),
    ///   [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated.
    ///
    /// The executable is then unchanged.
    #[doc(alias = "cuGraphExecBatchMemOpNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub fn set(&mut self, batch: &Batch) -> Result<()> {
        let node: &Node = self.node;
        let context = batch::context_of(node)?;
        batch::check(context, batch)?;
        let mut list = batch.params();
        let mut raw = batch::params(context, &mut list);
        let mut new = NewParams::new(batch::node_params(batch), batch::owners(batch), &mut raw);
        let graphs = self.exec.graphs_of(node)?;
        let found = graphs.locate(self.exec, node)?;
        if let Some(NodeParams::Batch(before)) = found.params(&self.exec.updates)
            && !are_alike(before, batch.operations())
        {
            let why = "a batch of an executable keeps the number and the kinds of its operations; set the \
                       graph's node, and instantiate again";
            return Err(not_possible(found.named(), why));
        }
        self.exec.replace_params(&found, &mut new)
    }
}

macro_rules! semaphore_updates {
    ($node:ident $taken:ident $params:ident $does:literal $single:literal $runtime:literal) => {
        impl ExecNode<'_, $node> {
            #[doc = concat!($does, " other semaphores or values at later launches of the executable; as")]
            #[doc = concat!("[`", stringify!($node), "::set`] does for the graph's node.")]
            ///
            /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2).
            ///
            /// # Errors
            #[doc = concat!("The errors of [`", stringify!($node), "::set`].")]
            /// [`UpdateError::NotInExecutable`](crate::UpdateError::NotInExecutable),
            /// [`UpdateError::Lent`](crate::UpdateError::Lent),
            /// [`NodeError::Removed`](crate::NodeError::Removed): the node cannot be updated. The
            /// executable is then unchanged.
            #[doc(alias = $single)]
            #[doc(alias = "cuGraphExecNodeSetParams")]
            #[doc(alias = $runtime)]
            pub fn set<'a>(
                &mut self,
                semaphores: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
            ) -> Result<()> {
                let node: &Node = self.node;
                let semaphores = node.getting(semaphore::$taken(node.graph(), semaphores))?;
                semaphore::$params(semaphores, |node_params, owners, raw| {
                    self.replace(node_params, owners, raw)
                })
            }
        }
    };
}

semaphore_updates! {
    SemaphoreSignalNode to_signal with_signals "Signals"
    "cuGraphExecExternalSemaphoresSignalNodeSetParams"
    "cudaGraphExecExternalSemaphoresSignalNodeSetParams"
}
semaphore_updates! {
    SemaphoreWaitNode to_wait_for with_waits "Waits for"
    "cuGraphExecExternalSemaphoresWaitNodeSetParams"
    "cudaGraphExecExternalSemaphoresWaitNodeSetParams"
}
