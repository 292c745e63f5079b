//! Launch attributes, and their list in the driver's form.

use core::fmt;
use core::ops::{Deref, DerefMut};

use cuda_sys::{CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue, CUlaunchMemSyncDomain};
use smallvec::SmallVec;

use crate::config::dim::Dim;

/// The memory synchronization domain of a kernel. A fence in one domain does not wait for writes of
/// the other.
#[doc(alias = "cudaLaunchMemSyncDomain")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MemorySyncDomain {
    /// The domain of ordinary kernels.
    #[default]
    Default,
    /// The domain of kernels that write to memory of other devices, so that fences of ordinary
    /// kernels need not wait for those writes.
    Remote,
}

impl MemorySyncDomain {
    /// The driver's value.
    #[must_use]
    pub fn raw(self) -> CUlaunchMemSyncDomain {
        match self {
            Self::Default => CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT,
            Self::Remote => CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
        }
    }
}

/// The attributes of a launch configuration. `None` and `false` are the driver's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) cluster: Option<Dim>,
    pub(crate) preferred_cluster: Option<Dim>,
    pub(crate) cooperative: bool,
    pub(crate) priority: Option<i32>,
    pub(crate) domain: Option<MemorySyncDomain>,
    /// The physical domains of the default and the remote domain.
    pub(crate) domain_map: Option<(u8, u8)>,
    pub(crate) carveout: Option<u8>,
}

impl Attributes {
    /// The attributes in the driver's form, in the order of their numbers.
    pub(crate) fn list(&self) -> AttributeList {
        let mut list = AttributeList::default();
        if self.cooperative {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, |value| value.cooperative = 1);
        }
        if let Some(cluster) = self.cluster {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, |value| {
                value.clusterDim.x = cluster.x;
                value.clusterDim.y = cluster.y;
                value.clusterDim.z = cluster.z;
            });
        }
        if let Some(priority) = self.priority {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, |value| value.priority = priority);
        }
        if let Some((default, remote)) = self.domain_map {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, |value| {
                value.memSyncDomainMap.default_ = default;
                value.memSyncDomainMap.remote = remote;
            });
        }
        if let Some(domain) = self.domain {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, |value| value.memSyncDomain = domain.raw());
        }
        if let Some(cluster) = self.preferred_cluster {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, |value| {
                value.preferredClusterDim.x = cluster.x;
                value.preferredClusterDim.y = cluster.y;
                value.preferredClusterDim.z = cluster.z;
            });
        }
        if let Some(percent) = self.carveout {
            list.push(Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, |value| {
                value.sharedMemCarveout = u32::from(percent);
            });
        }
        list
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = self.cluster {
            write!(formatter, ", cluster {cluster}")?;
        }
        if let Some(cluster) = self.preferred_cluster {
            write!(formatter, ", preferred cluster {cluster}")?;
        }
        if self.cooperative {
            write!(formatter, ", cooperative")?;
        }
        if let Some(priority) = self.priority {
            write!(formatter, ", priority {priority}")?;
        }
        if let Some(domain) = self.domain {
            write!(formatter, ", memory synchronization domain {domain:?}")?;
        }
        if let Some((default, remote)) = self.domain_map {
            write!(formatter, ", memory synchronization domains ({default}, {remote})")?;
        }
        if let Some(percent) = self.carveout {
            write!(formatter, ", shared-memory carve-out {percent} %")?;
        }
        Ok(())
    }
}

/// Launch attributes in the driver's form. Up to 8 need no heap allocation.
#[derive(Clone, Default)]
pub struct AttributeList(SmallVec<[CUlaunchAttribute; 8]>);

impl AttributeList {
    /// Appends an attribute. The bytes of its value that `set` does not write are zero.
    pub(crate) fn push(&mut self, id: Id, set: impl FnOnce(&mut CUlaunchAttributeValue)) {
        let mut attribute = CUlaunchAttribute { id, ..CUlaunchAttribute::default() };
        set(&mut attribute.value);
        self.0.push(attribute);
    }
}

impl Deref for AttributeList {
    type Target = [CUlaunchAttribute];

    fn deref(&self) -> &[CUlaunchAttribute] {
        &self.0
    }
}

impl DerefMut for AttributeList {
    fn deref_mut(&mut self) -> &mut [CUlaunchAttribute] {
        &mut self.0
    }
}

impl fmt::Debug for AttributeList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|attribute| attribute.id)).finish()
    }
}
