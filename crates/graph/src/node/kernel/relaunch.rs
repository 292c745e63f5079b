//! Replaces the launch of a kernel node. Launches with attributes take several driver calls: either
//! all of them take effect, or none.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use cuda_handles::Kernel;
use cuda_launch::LaunchConfig;
use cuda_launch::internal::{AttributeList, Observed};
use cuda_sys::{CUgraphNode, CUgraphNodeParams, CUlaunchAttribute, Call};

use super::attribute::{is_structural, neutral, set_all};
use crate::error::{Error, NodeError, Result};
use crate::node::kernel::KernelNode;
use crate::state::guard::GraphGuard;
use crate::state::owners::Owners;
use crate::state::params::{KernelHandles, NodeParams};
use crate::state::raw_params::kernel_params;

/// The new launch of a node.
pub(crate) struct Relaunch {
    pub(crate) node_params: NodeParams,
    pub(crate) owners: Owners,
    pub(crate) attributes: AttributeList,
    /// The handles of conditions among the arguments.
    pub(crate) handles: KernelHandles,
}

/// The bytes of each argument.
type Values = Vec<Box<[MaybeUninit<u8>]>>;

/// The old launch of a node, to be restored if the new one fails.
pub(super) struct Before {
    kernel: Kernel,
    config: LaunchConfig,
    attributes: AttributeList,
    /// `None` if they cannot be read.
    arguments: Option<Values>,
}

/// A failed replacement.
struct Failure {
    cause: Error,
    /// The outcome of restoring the old launch.
    undone: Result<()>,
}

impl Relaunch {
    /// Replaces the launch under one lock: another thread may set the node meanwhile.
    pub(crate) fn apply(mut self, node: &KernelNode, params: &mut CUgraphNodeParams) -> Result<()> {
        // Declared before the guard: the old launch is dropped after the lock.
        let mut before = None;
        let mut guard = node.graph().enter()?;
        self.apply_under(&mut before, &mut guard, node, params)
    }

    /// [`apply`](Self::apply) for a caller that holds the graph's lock. It drops `self` and
    /// `before`, which then have the old launch, after the lock.
    pub(super) fn apply_under(
        &mut self,
        before: &mut Option<Before>,
        guard: &mut GraphGuard<'_>,
        node: &KernelNode,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        guard.ensure_not_bound(node.id())?;
        guard.ensure_own_memory(&self.owners, &self.node_params)?;
        if self.handles.is_empty() && !guard.is_deciding(node.id()) {
            return self.set(before, guard, node, params);
        }
        let new = guard.let_decide(node.id(), &self.handles, &self.node_params)?;
        let outcome = self.set(before, guard, node, params);
        guard.decided(node.id(), &self.handles, &new, outcome)
    }

    /// Takes one driver call, if neither launch has attributes.
    fn set(
        &mut self,
        before: &mut Option<Before>,
        guard: &mut GraphGuard<'_>,
        node: &KernelNode,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let record = guard.record(node.id()).ok_or_else(|| node.removed())?;
        let NodeParams::Kernel { kernel, config, .. } = &record.node_params else {
            return Err(node.removed());
        };
        if self.attributes.is_empty() && !config.get().has_attributes() {
            return node.replace_under(guard, &mut self.node_params, &mut self.owners, params);
        }
        let before = before.insert(Before::read(guard, record.raw.0, kernel, config.get())?);
        guard.retain_if_adopted()?;
        self.set_with_attributes(before, guard, node, params)
    }

    /// The driver compares cluster size and cooperation with the sizes at every call. So the old
    /// ones are reset first; then come the parameters, then all attributes.
    #[cold]
    fn set_with_attributes(
        &mut self,
        before: &Before,
        guard: &mut GraphGuard<'_>,
        node: &KernelNode,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let record = guard.record(node.id()).ok_or_else(|| node.removed())?;
        let (raw, name) = (record.raw.0, record.display_name(node.id()));
        match before.replace(guard, raw, &self.attributes, params, &name) {
            Ok(()) => {
                guard.changes.note(node.id());
                if let Some(record) = guard.record_mut(node.id()) {
                    core::mem::swap(&mut record.node_params, &mut self.node_params);
                }
                guard.swap_owners(node.id(), &mut self.owners);
                Ok(())
            }
            Err(Failure { cause, undone: Ok(()) }) => Err(cause),
            Err(Failure { cause, undone: Err(undo) }) => {
                // The driver's node may have either launch.
                let mut owners = core::mem::take(&mut self.owners);
                owners.extend(self.node_params.owner());
                Err(guard.broken(cause, undo, owners))
            }
        }
    }
}

impl Before {
    #[cold]
    fn read(guard: &GraphGuard<'_>, raw: CUgraphNode, kernel: &Kernel, config: LaunchConfig) -> Result<Self> {
        let arguments = guard.arguments(raw, kernel)?;
        Ok(Self { arguments, attributes: config.attributes(), kernel: kernel.clone(), config })
    }

    /// Sets the launch of `params` with the attributes `new`, or restores the old one.
    fn replace(
        &self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        new: &AttributeList,
        params: &mut CUgraphNodeParams,
        name: &str,
    ) -> Result<(), Failure> {
        let old = &self.attributes;
        let relaxed = set_all(guard.context(), raw, relax(old).iter());
        if let Err(cause) = relaxed.and_then(|()| guard.set_launch(raw, params)) {
            let structural = old.iter().filter(|attribute| is_structural(attribute.id));
            return Err(Failure { cause, undone: set_all(guard.context(), raw, structural) });
        }
        set_all(guard.context(), raw, transition(old, new).iter())
            .map_err(|cause| Failure { cause, undone: self.restore(guard, raw, new, name) })
    }

    /// Restores the old launch of a node that has new parameters and some of the attributes `new`.
    fn restore(
        &self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        new: &AttributeList,
        name: &str,
    ) -> Result<()> {
        // The observed launch is the new one.
        let _undeclared = Observed::nothing();
        let Some(arguments) = &self.arguments else {
            return Err(Error::Node(NodeError::NotRestored { node: name.into() }));
        };
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let mut params = kernel_params(&self.kernel, self.config, pointers.as_mut_ptr());
        set_all(guard.context(), raw, relax(new).iter())?;
        guard.set_launch(raw, &mut params)?;
        set_all(guard.context(), raw, transition(new, &self.attributes).iter())
    }
}

impl GraphGuard<'_> {
    fn set_launch(&self, raw: CUgraphNode, params: &mut CUgraphNodeParams) -> Result<()> {
        // SAFETY: the kernel node is live and of this graph, whose lock is held. The parameters are
        // complete, and their pointers outlive the call.
        let result = unsafe { self.driver().cuGraphNodeSetParams(raw, params) };
        self.answer(Call::cuGraphNodeSetParams, result)
    }

    /// A copy of a kernel node's arguments. `None` if their sizes are unknown (before CUDA 12.4),
    /// if they are packed, or if the node has another kernel.
    fn arguments(&self, raw: CUgraphNode, kernel: &Kernel) -> Result<Option<Values>> {
        let Some(parameters) = kernel.parameters() else { return Ok(None) };
        let found = self.kernel_params(raw)?;
        // Other code may have given the node another kernel, with other parameters.
        if found.kern != kernel.as_raw() {
            return Ok(None);
        }
        if parameters.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if found.kernelParams.is_null() {
            return Ok(None);
        }
        let copy = |(at, size): (usize, usize)| {
            // SAFETY: the driver returns one pointer per parameter of the kernel, to as many bytes
            // as the parameter has. They lie in the node, which no other code changes while the
            // lock is held.
            let bytes = unsafe {
                let value: *const MaybeUninit<u8> = (*found.kernelParams.add(at)).cast();
                core::slice::from_raw_parts(value, size)
            };
            bytes.into()
        };
        Ok(Some(parameters.iter().map(|parameter| parameter.size).enumerate().map(copy).collect()))
    }
}

/// Resets of the attributes in a list that the driver compares with the sizes.
fn relax(list: &AttributeList) -> Vec<CUlaunchAttribute> {
    list.iter()
        .filter(|attribute| is_structural(attribute.id))
        .map(|attribute| neutral(attribute.id))
        .collect()
}

/// The attributes to set to get from one list to another.
fn transition(from: &AttributeList, to: &AttributeList) -> Vec<CUlaunchAttribute> {
    let gone = from.iter().filter(|old| to.iter().all(|new| new.id != old.id)).map(|old| neutral(old.id));
    gone.chain(to.iter().copied()).collect()
}
