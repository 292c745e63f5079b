//! Counts of nodes that limit what can be done with a graph.

use super::task::KernelSpec;
use crate::stream::attribute;

/// The counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LimitingNodes {
    /// Allocation and free nodes.
    pub(crate) memory: usize,
    pub(crate) conditional: usize,
    /// Kernel nodes that the device may update.
    pub(crate) updatable: usize,
}

impl LimitingNodes {
    pub(crate) fn plus(&mut self, other: Self) {
        self.memory += other.memory;
        self.conditional += other.conditional;
        self.updatable += other.updatable;
    }

    pub(crate) fn minus(&mut self, other: Self) {
        self.memory = self.memory.saturating_sub(other.memory);
        self.conditional = self.conditional.saturating_sub(other.conditional);
        self.updatable = self.updatable.saturating_sub(other.updatable);
    }

    /// The count of one kernel node.
    pub(crate) fn of_kernel(spec: &KernelSpec) -> Self {
        Self { updatable: usize::from(attribute::is_device_updatable(&spec.attributes)), ..Self::default() }
    }
}
