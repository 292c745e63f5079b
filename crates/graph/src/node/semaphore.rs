//! Nodes that signal semaphores of other interfaces, and wait for them.

use std::sync::Arc;

use cuda_handles::{Context, ExternalSemaphore, Owner};
use cuda_sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore,
    CUgraphNodeParams, CUgraphNodeType,
};

use crate::build::frontier::Frontier;
use crate::error::wrong_context::ensure_of_graph;
use crate::error::{Error, Result};
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::{NodeParams, Semaphores};
use crate::state::raw_params::blank;

typed! {
    /// A node that signals [semaphores of other interfaces](ExternalSemaphore).
    SemaphoreSignalNode, SemaphoreSignal
}

typed! {
    /// A node that waits for [semaphores of other interfaces](ExternalSemaphore).
    SemaphoreWaitNode, SemaphoreWait
}

impl SemaphoreSignalNode {
    /// The semaphores, each with the number that it is raised to; the number has no meaning for a
    /// binary one.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeGetParams")]
    pub fn semaphores(&self) -> Result<Arc<[(ExternalSemaphore, u64)]>> {
        match self.node_params()? {
            NodeParams::SignalSemaphores(semaphores) => Ok(semaphores),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Signals other semaphores from now on. Executables made before go on as they are.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::signal`]; the node is as it was then.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<'a>(&self, signals: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>) -> Result<()> {
        let semaphores = self.getting(taken(self.graph().context(), "semaphore signal", signals))?;
        let owners = owners(&semaphores);
        let mut lists = Lists::of(&semaphores, signal);
        self.replace(NodeParams::SignalSemaphores(semaphores), owners, &mut lists.signals())
    }
}

impl SemaphoreWaitNode {
    /// The semaphores, each with the number that is waited for; the number has no meaning for a
    /// binary one.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeGetParams")]
    pub fn semaphores(&self) -> Result<Arc<[(ExternalSemaphore, u64)]>> {
        match self.node_params()? {
            NodeParams::WaitSemaphores(semaphores) => Ok(semaphores),
            _ => Err(self.removed()),
        }
    }

    /// Waits for other semaphores from now on. Executables made before go on as they are.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::wait_semaphores`]; the node is as it was then.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<'a>(&self, waits: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>) -> Result<()> {
        let semaphores = self.getting(taken(self.graph().context(), "semaphore wait", waits))?;
        let owners = owners(&semaphores);
        let mut lists = Lists::of(&semaphores, wait);
        self.replace(NodeParams::WaitSemaphores(semaphores), owners, &mut lists.waits())
    }
}

impl Frontier<'_> {
    /// Adds a node that signals semaphores of other interfaces: each timeline is raised to its
    /// number, each binary one is signalled.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// No semaphores, one of another context; a node of the frontier was removed; or what the
    /// driver answers.
    #[doc(alias = "cuGraphAddExternalSemaphoresSignalNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn signal<'a>(
        &self,
        signals: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
    ) -> Result<SemaphoreSignalNode> {
        let semaphores = taken(self.graph().context(), "semaphore signal", signals)?;
        let owners = owners(&semaphores);
        let mut lists = Lists::of(&semaphores, signal);
        let node_params = NodeParams::SignalSemaphores(semaphores);
        self.add(node_params, owners, &mut lists.signals()).map(SemaphoreSignalNode::wrap)
    }

    /// Adds a node that waits for semaphores of other interfaces: until each timeline has reached
    /// its number, and for the signal of each binary one, which it takes away.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// No semaphores, one of another context; a node of the frontier was removed; or what the
    /// driver answers.
    #[doc(alias = "cuGraphAddExternalSemaphoresWaitNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn wait_semaphores<'a>(
        &self,
        waits: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
    ) -> Result<SemaphoreWaitNode> {
        let semaphores = taken(self.graph().context(), "semaphore wait", waits)?;
        let owners = owners(&semaphores);
        let mut lists = Lists::of(&semaphores, wait);
        let node_params = NodeParams::WaitSemaphores(semaphores);
        self.add(node_params, owners, &mut lists.waits()).map(SemaphoreWaitNode::wrap)
    }
}

fn taken<'a>(
    context: &Context,
    what: &'static str,
    given: impl IntoIterator<Item = (&'a ExternalSemaphore, u64)>,
) -> Result<Semaphores> {
    let semaphores: Semaphores =
        given.into_iter().map(|(semaphore, number)| (semaphore.clone(), number)).collect();
    if semaphores.is_empty() {
        return Err(Error::NoElements { what });
    }
    for (index, (semaphore, _)) in semaphores.iter().enumerate() {
        ensure_of_graph(context, semaphore.context(), || format!("semaphore {} of a {what}", index + 1))?;
    }
    Ok(semaphores)
}

fn owners(semaphores: &Semaphores) -> Owners {
    semaphores.iter().map(|(semaphore, _)| Owner::from(semaphore)).collect()
}

/// The driver's lists, which have to live over the call.
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
        let to = &mut params.__bindgen_anon_1;
        to.extSemSignal.numExtSems = self.count();
        to.extSemSignal.extSemArray = self.raws.as_mut_ptr();
        to.extSemSignal.paramsArray = self.params.as_ptr();
        params
    }
}

impl Lists<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> {
    fn waits(&mut self) -> CUgraphNodeParams {
        let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
        let to = &mut params.__bindgen_anon_1;
        to.extSemWait.numExtSems = self.count();
        to.extSemWait.extSemArray = self.raws.as_mut_ptr();
        to.extSemWait.paramsArray = self.params.as_ptr();
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
