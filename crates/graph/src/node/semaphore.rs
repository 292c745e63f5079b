//! Semaphore nodes: signal semaphores of other graphics and compute interfaces, and wait for them.

use std::sync::Arc;

use cuda_handles::{Context, ExternalSemaphore, Owner};
use cuda_sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore,
    CUgraphNodeParams, CUgraphNodeType,
};

use crate::build::frontier::Frontier;
use crate::error::wrong_context::ensure_of_graph;
use crate::error::{Error, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::{NodeParams, Semaphores};
use crate::state::raw_params::blank;

typed! {
    /// A node that signals [external semaphores](ExternalSemaphore), such as those of Vulkan or
    /// Direct3D.
    ///
    /// The node keeps the semaphores alive. Add one with [`Frontier::signal`].
    #[doc(alias = "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS")]
    #[doc(alias = "cudaExternalSemaphoreSignalNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeExtSemaphoreSignal")]
    SemaphoreSignalNode, SemaphoreSignal
}

typed! {
    /// A node that waits for [external semaphores](ExternalSemaphore), such as those of Vulkan or
    /// Direct3D.
    ///
    /// The node keeps the semaphores alive. Add one with [`Frontier::wait_semaphores`].
    #[doc(alias = "CUDA_EXT_SEM_WAIT_NODE_PARAMS")]
    #[doc(alias = "cudaExternalSemaphoreWaitNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeExtSemaphoreWait")]
    SemaphoreWaitNode, SemaphoreWait
}

impl SemaphoreSignalNode {
    /// The semaphores, each with the value that it is signalled with. Binary semaphores ignore the
    /// value.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeGetParams")]
    #[doc(alias = "cudaGraphExternalSemaphoresSignalNodeGetParams")]
    pub fn semaphores(&self) -> Result<Arc<[(ExternalSemaphore, u64)]>> {
        match self.node_params()? {
            NodeParams::SignalSemaphores(semaphores) => Ok(semaphores),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Replaces the semaphores that the node signals. Existing executables keep the old ones.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::signal`]. The
    /// node is then unchanged.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphExternalSemaphoresSignalNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set<'a>(&self, signals: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>) -> Result<()> {
        let semaphores = self.getting(to_signal(self.graph(), signals))?;
        with_signals(semaphores, |node_params, owners, raw| self.replace(node_params, owners, raw))
    }

    /// Replaces the value of one semaphore, by its index. The others stay, and so does the
    /// semaphore. Existing executables keep the old value.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::NoEntry`]: there is no semaphore with this index, which counts from 0.
    /// [`NodeError::Removed`], or the driver's error. The node is then unchanged.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_value(&self, index: usize, value: u64) -> Result<()> {
        self.change_entry(index, |entry| entry.1 = value)
    }

    /// Replaces one semaphore, by its index. The others stay, and so does its value. Existing
    /// executables keep the old one.
    ///
    /// # Errors
    /// The errors of [`set_value`](Self::set_value); and the semaphore is of another context.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_semaphore(&self, index: usize, semaphore: &ExternalSemaphore) -> Result<()> {
        let what = || format!("semaphore {} of a semaphore signal", index + 1);
        self.getting(ensure_of_graph(self.graph().context(), semaphore.context(), what))?;
        self.change_entry(index, |entry| entry.0 = semaphore.clone())
    }

    fn change_entry(&self, index: usize, change: impl FnOnce(&mut (ExternalSemaphore, u64))) -> Result<()> {
        let name = self.name();
        self.change(
            |node_params, owners| match node_params {
                NodeParams::SignalSemaphores(semaphores) => changed(semaphores, owners, index, &name, change),
                _ => Err(self.removed()),
            },
            |node_params, give| match node_params {
                NodeParams::SignalSemaphores(semaphores) => {
                    with_signals(Arc::clone(semaphores), |_, _, params| give(params))
                }
                _ => Err(self.removed()),
            },
        )
    }
}

impl SemaphoreWaitNode {
    /// The semaphores, each with the value that the node waits for. Binary semaphores ignore the
    /// value.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeGetParams")]
    #[doc(alias = "cudaGraphExternalSemaphoresWaitNodeGetParams")]
    pub fn semaphores(&self) -> Result<Arc<[(ExternalSemaphore, u64)]>> {
        match self.node_params()? {
            NodeParams::WaitSemaphores(semaphores) => Ok(semaphores),
            _ => Err(self.removed()),
        }
    }

    /// Replaces the semaphores that the node waits for. Existing executables keep the old ones.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of
    /// [`Frontier::wait_semaphores`]. The node is then unchanged.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphExternalSemaphoresWaitNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set<'a>(&self, waits: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>) -> Result<()> {
        let semaphores = self.getting(to_wait_for(self.graph(), waits))?;
        with_waits(semaphores, |node_params, owners, raw| self.replace(node_params, owners, raw))
    }

    /// Replaces the value of one semaphore, by its index. The others stay, and so does the
    /// semaphore. Existing executables keep the old value.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::NoEntry`]: there is no semaphore with this index, which counts from 0.
    /// [`NodeError::Removed`], or the driver's error. The node is then unchanged.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_value(&self, index: usize, value: u64) -> Result<()> {
        self.change_entry(index, |entry| entry.1 = value)
    }

    /// Replaces one semaphore, by its index. The others stay, and so does its value. Existing
    /// executables keep the old one.
    ///
    /// # Errors
    /// The errors of [`set_value`](Self::set_value); and the semaphore is of another context.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_semaphore(&self, index: usize, semaphore: &ExternalSemaphore) -> Result<()> {
        let what = || format!("semaphore {} of a semaphore wait", index + 1);
        self.getting(ensure_of_graph(self.graph().context(), semaphore.context(), what))?;
        self.change_entry(index, |entry| entry.0 = semaphore.clone())
    }

    fn change_entry(&self, index: usize, change: impl FnOnce(&mut (ExternalSemaphore, u64))) -> Result<()> {
        let name = self.name();
        self.change(
            |node_params, owners| match node_params {
                NodeParams::WaitSemaphores(semaphores) => changed(semaphores, owners, index, &name, change),
                _ => Err(self.removed()),
            },
            |node_params, give| match node_params {
                NodeParams::WaitSemaphores(semaphores) => {
                    with_waits(Arc::clone(semaphores), |_, _, params| give(params))
                }
                _ => Err(self.removed()),
            },
        )
    }
}

impl Frontier<'_> {
    /// Adds a node that signals external semaphores: it raises each timeline semaphore to its value
    /// and signals each binary one.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there are no semaphores.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    /// - [`Error::Handles`], if a semaphore belongs to another context, or the driver reports an
    ///   error.
    #[doc(alias = "cuGraphAddExternalSemaphoresSignalNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresSignalNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaSignalExternalSemaphoresAsync")]
    pub fn signal<'a>(
        &self,
        signals: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
    ) -> Result<SemaphoreSignalNode> {
        let semaphores = to_signal(self.graph(), signals)?;
        let node = with_signals(semaphores, |node_params, owners, raw| self.add(node_params, owners, raw))?;
        Ok(SemaphoreSignalNode::wrap(node))
    }

    /// Adds a node that waits for external semaphores: until each timeline semaphore has reached
    /// its value and each binary one was signalled. The wait resets the binary ones.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if there are no semaphores.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    /// - [`Error::Handles`], if a semaphore belongs to another context, or the driver reports an
    ///   error.
    #[doc(alias = "cuGraphAddExternalSemaphoresWaitNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresWaitNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cudaWaitExternalSemaphoresAsync")]
    pub fn wait_semaphores<'a>(
        &self,
        waits: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
    ) -> Result<SemaphoreWaitNode> {
        let semaphores = to_wait_for(self.graph(), waits)?;
        let node = with_waits(semaphores, |node_params, owners, raw| self.add(node_params, owners, raw))?;
        Ok(SemaphoreWaitNode::wrap(node))
    }
}

/// Changes one semaphore of a list, or its value.
fn changed(
    semaphores: &mut Semaphores,
    owners: &mut Owners,
    index: usize,
    node: &str,
    change: impl FnOnce(&mut (ExternalSemaphore, u64)),
) -> Result<()> {
    let mut list = semaphores.to_vec();
    let count = list.len();
    let Some(entry) = list.get_mut(index) else {
        return Err(NodeError::NoEntry { node: node.into(), what: "semaphore", index, count }.into());
    };
    change(entry);
    *semaphores = list.into();
    *owners = self::owners(semaphores);
    Ok(())
}

fn taken<'a>(
    context: &Context,
    what: &'static str,
    given: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
) -> Result<Semaphores> {
    let semaphores: Semaphores =
        given.into_iter().map(|(semaphore, number)| (semaphore.clone(), number)).collect();
    if semaphores.is_empty() {
        return Err(Error::Node(NodeError::NoElements { what }));
    }
    for (index, (semaphore, _)) in semaphores.iter().enumerate() {
        ensure_of_graph(context, semaphore.context(), || format!("semaphore {} of a {what}", index + 1))?;
    }
    Ok(semaphores)
}

/// The semaphores to signal at a node of a graph, checked.
pub(crate) fn to_signal<'a>(
    graph: &Graph,
    signals: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
) -> Result<Semaphores> {
    taken(graph.context(), "semaphore signal", signals)
}

/// The semaphores to wait for at a node of a graph, checked.
pub(crate) fn to_wait_for<'a>(
    graph: &Graph,
    waits: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
) -> Result<Semaphores> {
    taken(graph.context(), "semaphore wait", waits)
}

/// Passes the parameters of a signal node, what they use, and their driver's form.
pub(crate) fn with_signals<R>(
    semaphores: Semaphores,
    give: impl FnOnce(NodeParams, Owners, &mut CUgraphNodeParams) -> Result<R>,
) -> Result<R> {
    let owners = owners(&semaphores);
    let mut lists = Lists::of(&semaphores, signal);
    give(NodeParams::SignalSemaphores(semaphores), owners, &mut lists.signals())
}

/// Passes the parameters of a wait node, what they use, and their driver's form.
pub(crate) fn with_waits<R>(
    semaphores: Semaphores,
    give: impl FnOnce(NodeParams, Owners, &mut CUgraphNodeParams) -> Result<R>,
) -> Result<R> {
    let owners = owners(&semaphores);
    let mut lists = Lists::of(&semaphores, wait);
    give(NodeParams::WaitSemaphores(semaphores), owners, &mut lists.waits())
}

fn owners(semaphores: &Semaphores) -> Owners {
    semaphores.iter().map(|(semaphore, _)| Owner::from(semaphore)).collect()
}

/// The arrays that the driver's parameters point to. They have to outlive the call.
struct Lists<P> {
    raws: Vec<CUexternalSemaphore>,
    params: Vec<P>,
}

impl<P> Lists<P> {
    fn of(semaphores: &Semaphores, param: impl Fn(u64) -> P) -> Self {
        Self {
            raws: semaphores.iter().map(|(semaphore, _)| semaphore.as_raw()).collect(),
            params: semaphores.iter().map(|&(_, number)| param(number)).collect(),
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.raws.len()).unwrap_or(u32::MAX)
    }
}

impl Lists<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> {
    fn signals(&mut self) -> CUgraphNodeParams {
        let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
        let fields = &mut params.__bindgen_anon_1;
        fields.extSemSignal.numExtSems = self.count();
        fields.extSemSignal.extSemArray = self.raws.as_mut_ptr();
        fields.extSemSignal.paramsArray = self.params.as_ptr();
        params
    }
}

impl Lists<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> {
    fn waits(&mut self) -> CUgraphNodeParams {
        let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
        let fields = &mut params.__bindgen_anon_1;
        fields.extSemWait.numExtSems = self.count();
        fields.extSemWait.extSemArray = self.raws.as_mut_ptr();
        fields.extSemWait.paramsArray = self.params.as_ptr();
        params
    }
}

fn signal(number: u64) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = number;
    params
}

fn wait(number: u64) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = number;
    params
}
