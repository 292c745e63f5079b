//! Giving a kernel node another launch where attributes are concerned: several driver calls, all or
//! none.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use cuda_handles::{Kernel, Owner};
use cuda_launch::{Accesses, AttributeList, LaunchConfig};
use cuda_sys::{CUgraphNode, CUgraphNodeParams, CUlaunchAttribute, Call};

use super::attribute::{attribute_of, is_structural, neutral, set_all, with_attributes};
use crate::error::{Error, HalfDone, Result};
use crate::node::kernel::KernelNode;
use crate::state::guard::GraphGuard;
use crate::state::owners::Owners;
use crate::state::params::KernelHandles;
use crate::state::params::NodeParams;
use crate::state::raw_params::kernel_params;

/// The launch that a node is to have.
pub(crate) struct Relaunch {
    pub(crate) node_params: NodeParams,
    pub(crate) owners: Owners,
    pub(crate) attributes: AttributeList,
    /// Of conditions, among the arguments.
    pub(crate) handles: KernelHandles,
}

/// The bytes of each argument.
type Values = Vec<Box<[MaybeUninit<u8>]>>;

/// What the node has, so that it can be given back.
struct Before {
    kernel: Kernel,
    config: LaunchConfig,
    attributes: AttributeList,
    /// `None` where they cannot be read.
    arguments: Option<Values>,
    /// Whether the node has another kernel or other arguments now, though something else failed.
    is_replaced: bool,
}

impl Relaunch {
    /// All under one lock: another thread may set the node meanwhile.
    pub(crate) fn apply(mut self, node: &KernelNode, params: &mut CUgraphNodeParams) -> Result<()> {
        // What goes, and what the node had before, is dropped after the lock.
        let mut before = None;
        let mut guard = node.graph().enter()?;
        guard.ensure_own_memory(&self.owners, &self.node_params)?;
        let outcome = if self.handles.is_empty() && !guard.is_deciding(node.id()) {
            self.set(&mut before, &mut guard, node, params)
        } else {
            let new = guard.let_decide(node.id(), &self.handles, &self.node_params)?;
            let outcome = self.set(&mut before, &mut guard, node, params);
            let is_given = outcome.is_ok() || before.as_ref().is_some_and(|before| before.is_replaced);
            guard.decided(node.id(), &self.handles, &new, is_given, outcome)
        };
        if outcome.is_ok() {
            guard.incomplete.remove(&node.id().index);
        }
        outcome
    }

    /// By one call where neither the launch before nor this one has attributes.
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
        self.apply_after(before, guard, node, params)
    }

    /// Cluster and cooperation go first, as the driver compares them with the sizes at every call;
    /// then come the parameters, then all attributes.
    #[cold]
    fn apply_after(
        &mut self,
        before: &mut Before,
        guard: &mut GraphGuard<'_>,
        node: &KernelNode,
        params: &mut CUgraphNodeParams,
    ) -> Result<()> {
        let Self { node_params, owners, attributes, .. } = self;
        let record = guard.record(node.id()).ok_or_else(|| node.removed())?;
        let (raw, name) = (record.raw.0, record.display_name(node.id()));
        let NodeParams::Kernel { kernel, config, .. } = &*node_params else { return Err(node.removed()) };
        let mut now = Now::of(before);
        let new = (kernel, config.get(), &*attributes);
        match before.give_way(guard, raw, &mut now, new, params) {
            Ok(()) => {
                if let Some(record) = guard.record_mut(node.id()) {
                    core::mem::swap(&mut record.node_params, node_params);
                }
                guard.swap_owners(node.id(), owners);
                Ok(())
            }
            Err(Failure { cause, .. }) if now.is_as(before) => Err(cause),
            Err(Failure { cause, undo }) => {
                let has = match now.is_new {
                    true => "a part of its new launch, and what both use stays alive",
                    false => "its old launch without all of its attributes",
                };
                if let Some(record) = guard.record_mut(node.id()) {
                    record.node_params = now.node_params();
                }
                before.is_replaced = now.is_new;
                if now.is_new {
                    owners.push(Owner::Kernel(before.kernel.clone()));
                    guard.add_owners(node.id(), owners);
                }
                guard.incomplete.insert(node.id().index);
                Err(HalfDone::error(cause, undo, vec![format!("node `{name}` has {has}")]))
            }
        }
    }
}

/// Why the new launch was not set, and why the old one was not given back, if the driver was asked.
struct Failure {
    cause: Error,
    undo: Option<Error>,
}

/// What the node has: what the driver took last.
struct Now {
    kernel: Kernel,
    /// Grid, block and shared memory count.
    config: LaunchConfig,
    attributes: Vec<CUlaunchAttribute>,
    /// Whether kernel and arguments are the new ones.
    is_new: bool,
}

impl Now {
    fn of(before: &Before) -> Self {
        let attributes = before.attributes.to_vec();
        Self { kernel: before.kernel.clone(), config: before.config, attributes, is_new: false }
    }

    /// Sets attributes, until one fails.
    fn set_all<'a>(
        &mut self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        mut attributes: impl Iterator<Item = &'a CUlaunchAttribute>,
    ) -> Result<()> {
        attributes.try_for_each(|one| {
            set_all(guard, raw, core::iter::once(one))?;
            self.attributes.retain(|known| known.id != one.id);
            self.attributes.push(*one);
            Ok(())
        })
    }

    fn node_params(&self) -> NodeParams {
        let config = with_attributes(self.config, &self.attributes);
        NodeParams::Kernel {
            kernel: self.kernel.clone(),
            config: config.into(),
            accesses: Accesses::unknown(),
        }
    }

    /// Whether nothing is other than it was.
    fn is_as(&self, before: &Before) -> bool {
        let value = |list: &[CUlaunchAttribute], id| {
            list.iter().find(|one| one.id == id).map_or_else(|| attribute_of(&neutral(id)), attribute_of)
        };
        let mut ids = self.attributes.iter().chain(before.attributes.iter()).map(|one| one.id);
        !self.is_new && ids.all(|id| value(&self.attributes, id) == value(&before.attributes, id))
    }
}

impl Before {
    #[cold]
    fn read(guard: &GraphGuard<'_>, raw: CUgraphNode, kernel: &Kernel, config: LaunchConfig) -> Result<Self> {
        Ok(Self {
            arguments: guard.arguments(raw, kernel)?,
            is_replaced: false,
            attributes: config.attributes(),
            kernel: kernel.clone(),
            config,
        })
    }

    fn give_way(
        &self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        now: &mut Now,
        (kernel, config, new): (&Kernel, LaunchConfig, &AttributeList),
        params: &mut CUgraphNodeParams,
    ) -> Result<(), Failure> {
        let old = &self.attributes;
        let relaxed = now.set_all(guard, raw, relax(old).iter());
        if let Err(cause) = relaxed.and_then(|()| guard.set_launch(raw, params)) {
            let structural = old.iter().filter(|one| is_structural(one.id));
            return Err(Failure { cause, undo: now.set_all(guard, raw, structural).err() });
        }
        (now.kernel, now.config, now.is_new) = (kernel.clone(), config, true);
        now.set_all(guard, raw, transition(old, new).iter())
            .map_err(|cause| Failure { cause, undo: self.restore(guard, raw, now, new).err().flatten() })
    }

    /// After the parameters are the new ones and some of the new attributes are set.
    fn restore(
        &self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        now: &mut Now,
        new: &AttributeList,
    ) -> Result<(), Option<Error>> {
        let Some(arguments) = &self.arguments else { return Err(None) };
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let mut params = kernel_params(&self.kernel, self.config, pointers.as_mut_ptr());
        now.set_all(guard, raw, relax(new).iter())?;
        guard.set_launch(raw, &mut params)?;
        (now.kernel, now.config, now.is_new) = (self.kernel.clone(), self.config, false);
        Ok(now.set_all(guard, raw, transition(new, &self.attributes).iter())?)
    }
}

impl GraphGuard<'_> {
    fn set_launch(&self, raw: CUgraphNode, params: &mut CUgraphNodeParams) -> Result<()> {
        // SAFETY: a live kernel node of this graph, whose lock is held; the parameters are
        // complete, and what they point to outlives the call.
        let result = unsafe { self.driver().cuGraphNodeSetParams(raw, params) };
        self.answer(Call::cuGraphNodeSetParams, result)
    }

    /// A copy of a kernel node's arguments; `None` where their sizes are not known (before CUDA
    /// 12.4), where they are packed, or where the node has another kernel.
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
            // SAFETY: the driver gives a pointer to each parameter of the kernel, to as many bytes
            // as it has, in the node's own block; nobody changes that while the lock is held.
            let bytes = unsafe {
                let value: *const MaybeUninit<u8> = (*found.kernelParams.add(at)).cast();
                core::slice::from_raw_parts(value, size)
            };
            bytes.into()
        };
        Ok(Some(parameters.iter().map(|parameter| parameter.size).enumerate().map(copy).collect()))
    }
}

/// Those of a list that the driver compares with the sizes, with the values that fit all sizes.
fn relax(list: &AttributeList) -> Vec<CUlaunchAttribute> {
    list.iter().filter(|one| is_structural(one.id)).map(|one| neutral(one.id)).collect()
}

/// What leads from some attributes to others.
fn transition(from: &AttributeList, to: &AttributeList) -> Vec<CUlaunchAttribute> {
    let gone = from.iter().filter(|old| to.iter().all(|new| new.id != old.id)).map(|old| neutral(old.id));
    gone.chain(to.iter().copied()).collect()
}
