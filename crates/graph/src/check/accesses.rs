//! The memory accesses of a node.
//!
//! Copies, fills and batches state them. For a typed kernel three sources come together: the
//! declaration says which parameters lead to memory, and whether they read or write; the node's
//! record says how much memory that is, if not a whole allocation; and the driver says where it is.
//! So arguments that other code has changed are noticed.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_handles::{Allocation, BatchOperation, Kernel};
use cuda_launch::Access;
use cuda_launch::internal::{AccessRanges, Accesses, MemoryParameter};
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUdeviceptr, CUgraphNodeParams, CUkernel};

use super::model::{AddressSpace, MemoryAccess, Opaqueness};
use super::region::Region;
use crate::error::Result;
use crate::node_kind::NodeKind;
use crate::state::loop_control::LoopControl;
use crate::state::params::{ConditionSource, NodeParams};

/// The packed arguments of a launch.
///
/// There is a pointer to the value of each parameter of the kernel, or none at all, as long as the
/// accesses are collected. In a node of the driver they lead into its own block, which nobody
/// changes while the lock is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedLaunch {
    pub(crate) kernel: CUkernel,
    /// Null if there are none.
    pub(crate) values: *mut *mut c_void,
}

impl PackedLaunch {
    /// Of a node that is about to get these parameters; the second are the driver's form of the
    /// first, complete for their type.
    pub(crate) fn of_new(node_params: &NodeParams, raw: &CUgraphNodeParams) -> Self {
        match node_params {
            NodeParams::Kernel { kernel, .. } => {
                // SAFETY: these are the parameters of a kernel.
                let values = unsafe { raw.__bindgen_anon_1.kernel.kernelParams };
                Self { kernel: kernel.as_raw(), values }
            }
            _ => Self { kernel: core::ptr::null_mut(), values: core::ptr::null_mut() },
        }
    }
}

impl From<CUDA_KERNEL_NODE_PARAMS_v2> for PackedLaunch {
    fn from(params: CUDA_KERNEL_NODE_PARAMS_v2) -> Self {
        Self { kernel: params.kern, values: params.kernelParams }
    }
}

/// Collects the accesses of one node.
pub(crate) struct AccessCollector<'t, 'o> {
    pub(crate) node: u32,
    /// The memory that the node keeps alive.
    pub(crate) used: Vec<&'t Arc<Allocation>>,
    /// The ranges of its arguments, if they are kept apart from the declaration.
    pub(crate) ranges: Option<&'t AccessRanges>,
    pub(crate) accesses: &'o mut Vec<MemoryAccess>,
    /// The accesses whose allocation is known.
    pub(crate) found: Vec<(usize, &'t Arc<Allocation>)>,
}

impl<'t> AccessCollector<'t, '_> {
    /// Collects the accesses of a node with these parameters. `launch` returns the arguments of its
    /// kernel.
    pub(crate) fn node(
        &mut self,
        launch: impl FnOnce() -> Result<PackedLaunch>,
        node_params: &NodeParams,
        conditions: &[u64],
    ) -> Result<Option<Opaqueness>> {
        match node_params {
            NodeParams::Kernel { kernel, accesses, .. } => {
                self.conditions(conditions);
                return self.kernel(launch, kernel, *accesses);
            }
            NodeParams::Memcpy(layout) => {
                let (from, to) = (&layout.source, &layout.destination);
                self.push(Region::of_copy(layout, from), Access::Read, "source", false);
                self.push(Region::of_copy(layout, to), Access::Write, "destination", false);
            }
            NodeParams::Memset(layout) => self.push(Region::of_fill(layout), Access::Write, "target", false),
            NodeParams::Batch(operations) => {
                let before = self.accesses.len();
                if !operations.iter().all(|operation| self.operation(operation)) {
                    self.forget_from(before);
                    return Ok(Some(Opaqueness::Foreign));
                }
            }
            NodeParams::Host(_) => return Ok(Some(Opaqueness::Host)),
            NodeParams::Other { kind } => return Ok(opaqueness_of(NodeKind::of(*kind))),
            NodeParams::Empty
            | NodeParams::Alloc { .. }
            | NodeParams::Free { .. }
            | NodeParams::EventRecord(_)
            | NodeParams::EventWait(_)
            | NodeParams::SignalSemaphores(_)
            | NodeParams::WaitSemaphores(_)
            | NodeParams::Child { .. } => {}
            NodeParams::Conditional(conditional) => match conditional.source {
                ConditionSource::Condition(number) | ConditionSource::Foreign(number) => {
                    self.condition(number, Access::Read)
                }
                // The nodes at which the host decides have the accesses.
                ConditionSource::Host => {}
            },
        }
        Ok(None)
    }

    /// The accesses of the host, where it decides in place of a kernel.
    pub(super) fn decision(&mut self, ready: &LoopControl) {
        let tested = ready.tested();
        self.push(Region::linear(tested.start, tested.bytes), Access::Read, "tested number", false);
        if let Some(counted) = ready.counted() {
            self.push(Region::linear(counted.start, counted.bytes), Access::Write, "count of rounds", false);
        }
    }

    /// The conditions that a kernel may set. Several kernels may set one concurrently.
    fn conditions(&mut self, numbers: &[u64]) {
        for &number in numbers {
            self.condition(number, Access::Write);
            if let Some(access) = self.accesses.last_mut() {
                access.synchronizes = true;
            }
        }
    }

    fn condition(&mut self, number: u64, access: Access) {
        self.push(Region::linear(0, 1), access, "condition", false);
        if let Some(access) = self.accesses.last_mut() {
            access.space = AddressSpace::Condition(number);
        }
    }

    fn kernel(
        &mut self,
        launch: impl FnOnce() -> Result<PackedLaunch>,
        kernel: &Kernel,
        accesses: Accesses,
    ) -> Result<Option<Opaqueness>> {
        let Some(declaration) = accesses.declaration() else { return Ok(Some(Opaqueness::Kernel)) };
        if declaration.each().next().is_none() {
            return Ok(None);
        }
        let packed = launch()?;
        let ranges = if accesses.are_apart() { self.ranges } else { None };
        let is_kept = ranges.is_some() || !accesses.are_apart();
        if packed.kernel != kernel.as_raw() || packed.values.is_null() || !is_kept {
            return Ok(Some(Opaqueness::Changed));
        }
        let before = self.accesses.len();
        for (position, parameter) in declaration.each() {
            // SAFETY: there is a pointer to each parameter of the kernel, as `PackedLaunch` says;
            // the declaration promises that this parameter is there and an address, of eight bytes.
            let given = || unsafe {
                let value = *packed.values.add(position);
                value.cast::<CUdeviceptr>().read_unaligned()
            };
            let known = ranges.and_then(|ranges| ranges.find(position));
            let start = if parameter.by_address { Some(given()) } else { known.map(|(start, _)| start) };
            let bytes =
                if accesses.are_apart() { known.map(|(_, bytes)| bytes) } else { accesses.bytes(position) };
            let name = declaration.names.get(position).copied().unwrap_or("?");
            let is_known = known.is_none_or(|(known, _)| start == Some(known))
                && start.is_some_and(|start| self.argument(start, bytes, parameter, name));
            if !is_known {
                self.forget_from(before);
                return Ok(Some(Opaqueness::Changed));
            }
        }
        Ok(None)
    }

    /// Adds the access by a parameter; `bytes` is `None` for a whole allocation. Returns false if
    /// the memory is not what was given here.
    fn argument(
        &mut self,
        start: u64,
        bytes: Option<u64>,
        parameter: MemoryParameter,
        name: &'static str,
    ) -> bool {
        let bytes = match bytes {
            Some(0) => return true,
            Some(bytes) => bytes,
            // Two owners may have the same address.
            None => {
                match self.used.iter().filter(|used| used.address() == start).map(|used| used.bytes()).max() {
                    Some(bytes) => bytes as u64,
                    None => return false,
                }
            }
        };
        if self.allocation(start, start.saturating_add(bytes)).is_none() {
            return false;
        }
        self.push(Region::linear(start, bytes), parameter.access, name, true);
        true
    }

    /// Adds the access of an operation. Returns false if the operation is unknown here.
    fn operation(&mut self, operation: &BatchOperation) -> bool {
        let (address, wide, access) = match *operation {
            BatchOperation::Write { address, wide, .. } => (address, wide, Access::Write),
            BatchOperation::Wait { address, wide, .. } => (address, wide, Access::Read),
            BatchOperation::Barrier { .. } | BatchOperation::Flush => return true,
            // The enum is of another crate and `#[non_exhaustive]`.
            _ => return false,
        };
        self.push(Region::linear(address, if wide { 8 } else { 4 }), access, "number", false);
        if let Some(access) = self.accesses.last_mut() {
            access.synchronizes = true;
        }
        true
    }

    /// Removes the accesses from this number on.
    fn forget_from(&mut self, first: usize) {
        self.accesses.truncate(first);
        self.found.retain(|(access, _)| *access < first);
    }

    fn push(&mut self, region: Region, access: Access, role: &'static str, is_argument: bool) {
        if region.is_empty() {
            return;
        }
        let (start, end) = region.bounds();
        self.found.extend(self.allocation(start, end).map(|allocation| (self.accesses.len(), allocation)));
        let node = self.node;
        self.accesses.push(MemoryAccess {
            node,
            region,
            kind: access,
            role,
            is_argument,
            space: AddressSpace::Memory,
            memory: None,
            synchronizes: false,
        });
    }

    /// The memory, among what the node keeps alive, that contains these bytes.
    fn allocation(&self, start: u64, end: u64) -> Option<&'t Arc<Allocation>> {
        let has = |used: &Allocation| {
            used.address() <= start && end <= used.address().saturating_add(used.bytes() as u64)
        };
        self.used.iter().copied().find(|used| has(used))
    }
}

/// Why the accesses of a node of other code are unknown, if its type can have any.
fn opaqueness_of(kind: NodeKind) -> Option<Opaqueness> {
    match kind {
        NodeKind::Kernel => Some(Opaqueness::Kernel),
        NodeKind::HostCallback => Some(Opaqueness::Host),
        NodeKind::Memcpy | NodeKind::Memset | NodeKind::Batch | NodeKind::Other(_) => {
            Some(Opaqueness::Foreign)
        }
        NodeKind::Empty
        | NodeKind::ChildGraph
        | NodeKind::If
        | NodeKind::IfElse
        | NodeKind::While
        | NodeKind::Switch
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Alloc
        | NodeKind::Free
        | NodeKind::SemaphoreSignal
        | NodeKind::SemaphoreWait => None,
    }
}
