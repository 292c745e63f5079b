//! Attributes of kernel nodes.

use std::borrow::Cow;

use cuda_handles::{Context, Kernel, Slice};
use cuda_launch::{Dim, LaunchConfig, MemorySyncDomain};
use cuda_sys::{
    CUaccessProperty, CUclusterSchedulingPolicy, CUdevice_attribute, CUdeviceptr, CUgraphNode,
    CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue, CUlaunchMemSyncDomain, Call,
};

use crate::error::{Error, NodeError, Result};
use crate::node::kernel::KernelNode;
use crate::state::params::NodeParams;

/// How long data stays in the L2 cache.
#[doc(alias = "cudaAccessProperty")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum CacheUse {
    /// The default policy.
    #[default]
    Normal,
    /// Evicted first.
    Streaming,
    /// Evicted last.
    Persisting,
}

impl CacheUse {
    fn raw(self) -> CUaccessProperty {
        match self {
            Self::Normal => CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL,
            Self::Streaming => CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
            Self::Persisting => CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
        }
    }

    fn of(raw: CUaccessProperty) -> Self {
        match raw {
            CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING => Self::Streaming,
            CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING => Self::Persisting,
            _ => Self::Normal,
        }
    }
}

/// A range of memory with an L2 cache policy: a hint for the accesses of a kernel.
#[doc(alias = "CUaccessPolicyWindow")]
#[doc(alias = "cudaAccessPolicyWindow")]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AccessPolicyWindow {
    /// The start of the range. The window neither accesses the memory nor keeps it alive.
    pub address: CUdeviceptr,
    /// The length of the range in bytes; 0 for no window.
    pub bytes: usize,
    /// The fraction of the accesses that are hits, from 0 to 1. The others are misses. This library
    /// refuses NaN, which the driver accepts.
    pub hit_ratio: f32,
    /// The policy of hits.
    pub hit: CacheUse,
    /// The policy of misses; not [`CacheUse::Persisting`].
    pub miss: CacheUse,
}

impl AccessPolicyWindow {
    /// A window over a slice, in which every access is a hit.
    pub fn of<'a, T: 'a>(memory: impl Into<Slice<'a, T>>, hit: CacheUse) -> Self {
        let memory = memory.into();
        let bytes = memory.len() * size_of::<T>();
        Self { address: memory.address(), bytes, hit_ratio: 1.0, hit, miss: CacheUse::Normal }
    }
}

/// How the device places the blocks of a cluster.
#[doc(alias = "cudaClusterSchedulingPolicy")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ClusterScheduling {
    /// The driver's choice.
    #[default]
    Default,
    /// Spread over the multiprocessors.
    Spread,
    /// Wherever there is room.
    LoadBalancing,
}

/// An attribute of a kernel node with its value; see [`KernelNode::set_attribute`].
#[doc(alias = "CUlaunchAttributeValue")]
#[doc(alias = "cudaLaunchAttributeValue")]
#[doc(alias = "cudaKernelNodeAttrValue")]
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum NodeAttribute {
    /// The cluster size ([`LaunchConfig::cluster`]); `None` without clusters.
    Cluster(Option<Dim>),
    /// Whether the launch is cooperative ([`LaunchConfig::cooperative`]).
    Cooperative(bool),
    /// The priority ([`LaunchConfig::priority`]).
    Priority(i32),
    /// The memory synchronization domain ([`LaunchConfig::memory_sync_domain`]).
    MemorySyncDomain(MemorySyncDomain),
    /// The device's memory synchronization domains ([`LaunchConfig::memory_sync_domain_map`]).
    MemorySyncDomainMap {
        /// The device's domain for the default one.
        default: u8,
        /// The device's domain for the remote one.
        remote: u8,
    },
    /// The shared memory carve-out in percent ([`LaunchConfig::shared_carveout`]); `None` for the
    /// kernel's own. The driver does not distinguish 0 from `None`: it is read back as `None`.
    SharedCarveout(Option<u8>),
    /// An L2 cache policy.
    AccessPolicyWindow(AccessPolicyWindow),
    /// How the device places the blocks of a cluster.
    ClusterScheduling(ClusterScheduling),
}

/// The attributes of a kernel node; see [`KernelNode::attribute`].
#[doc(alias = "CUlaunchAttributeID")]
#[doc(alias = "cudaLaunchAttributeID")]
#[doc(alias = "cudaKernelNodeAttrID")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NodeAttributeKind {
    /// [`NodeAttribute::Cluster`].
    Cluster,
    /// [`NodeAttribute::Cooperative`].
    Cooperative,
    /// [`NodeAttribute::Priority`].
    Priority,
    /// [`NodeAttribute::MemorySyncDomain`].
    MemorySyncDomain,
    /// [`NodeAttribute::MemorySyncDomainMap`].
    MemorySyncDomainMap,
    /// [`NodeAttribute::SharedCarveout`].
    SharedCarveout,
    /// [`NodeAttribute::AccessPolicyWindow`].
    AccessPolicyWindow,
    /// [`NodeAttribute::ClusterScheduling`].
    ClusterScheduling,
}

impl NodeAttributeKind {
    fn id(self) -> Id {
        match self {
            Self::Cluster => Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            Self::Cooperative => Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            Self::Priority => Id::CU_LAUNCH_ATTRIBUTE_PRIORITY,
            Self::MemorySyncDomain => Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
            Self::MemorySyncDomainMap => Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
            Self::SharedCarveout => Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            Self::AccessPolicyWindow => Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
            Self::ClusterScheduling => Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        }
    }

    fn value(self, value: CUlaunchAttributeValue) -> NodeAttribute {
        // SAFETY: the driver wrote the value of this attribute. All fields are numbers, so that any
        // bits are valid.
        unsafe {
            match self {
                Self::Cluster => {
                    let dim = value.clusterDim;
                    let is_set = dim.x > 0;
                    NodeAttribute::Cluster(is_set.then_some(Dim { x: dim.x, y: dim.y, z: dim.z }))
                }
                Self::Cooperative => NodeAttribute::Cooperative(value.cooperative != 0),
                Self::Priority => NodeAttribute::Priority(value.priority),
                Self::MemorySyncDomain => NodeAttribute::MemorySyncDomain(match value.memSyncDomain {
                    CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE => MemorySyncDomain::Remote,
                    _ => MemorySyncDomain::Default,
                }),
                Self::MemorySyncDomainMap => NodeAttribute::MemorySyncDomainMap {
                    default: value.memSyncDomainMap.default_,
                    remote: value.memSyncDomainMap.remote,
                },
                Self::SharedCarveout => NodeAttribute::SharedCarveout(
                    u8::try_from(value.sharedMemCarveout).ok().filter(|percent| (1..=100).contains(percent)),
                ),
                Self::AccessPolicyWindow => {
                    let window = value.accessPolicyWindow;
                    NodeAttribute::AccessPolicyWindow(AccessPolicyWindow {
                        address: window.base_ptr.addr() as CUdeviceptr,
                        bytes: window.num_bytes,
                        hit_ratio: window.hitRatio,
                        hit: CacheUse::of(window.hitProp),
                        miss: CacheUse::of(window.missProp),
                    })
                }
                Self::ClusterScheduling => {
                    NodeAttribute::ClusterScheduling(match value.clusterSchedulingPolicyPreference {
                        CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD => {
                            ClusterScheduling::Spread
                        }
                        CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING => {
                            ClusterScheduling::LoadBalancing
                        }
                        _ => ClusterScheduling::Default,
                    })
                }
            }
        }
    }
}

impl NodeAttribute {
    /// The kind of the attribute.
    #[must_use]
    pub fn kind(&self) -> NodeAttributeKind {
        match self {
            Self::Cluster(_) => NodeAttributeKind::Cluster,
            Self::Cooperative(_) => NodeAttributeKind::Cooperative,
            Self::Priority(_) => NodeAttributeKind::Priority,
            Self::MemorySyncDomain(_) => NodeAttributeKind::MemorySyncDomain,
            Self::MemorySyncDomainMap { .. } => NodeAttributeKind::MemorySyncDomainMap,
            Self::SharedCarveout(_) => NodeAttributeKind::SharedCarveout,
            Self::AccessPolicyWindow(_) => NodeAttributeKind::AccessPolicyWindow,
            Self::ClusterScheduling(_) => NodeAttributeKind::ClusterScheduling,
        }
    }

    /// The driver's form. All bytes after the value are zero.
    fn raw(self) -> CUlaunchAttribute {
        let mut raw = CUlaunchAttribute { id: self.kind().id(), ..CUlaunchAttribute::default() };
        let value = &mut raw.value;
        match self {
            Self::Cluster(cluster) => {
                let cluster = cluster.unwrap_or(Dim { x: 0, y: 0, z: 0 });
                value.clusterDim.x = cluster.x;
                value.clusterDim.y = cluster.y;
                value.clusterDim.z = cluster.z;
            }
            Self::Cooperative(is_set) => value.cooperative = i32::from(is_set),
            Self::Priority(priority) => value.priority = priority,
            Self::MemorySyncDomain(domain) => value.memSyncDomain = domain.raw(),
            Self::MemorySyncDomainMap { default, remote } => {
                value.memSyncDomainMap.default_ = default;
                value.memSyncDomainMap.remote = remote;
            }
            Self::SharedCarveout(percent) => value.sharedMemCarveout = percent.map_or(0, u32::from),
            Self::AccessPolicyWindow(window) => {
                value.accessPolicyWindow.base_ptr =
                    core::ptr::with_exposed_provenance_mut(window.address as usize);
                value.accessPolicyWindow.num_bytes = window.bytes;
                value.accessPolicyWindow.hitRatio = window.hit_ratio;
                value.accessPolicyWindow.hitProp = window.hit.raw();
                value.accessPolicyWindow.missProp = window.miss.raw();
            }
            Self::ClusterScheduling(policy) => {
                value.clusterSchedulingPolicyPreference = match policy {
                    ClusterScheduling::Default => {
                        CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_DEFAULT
                    }
                    ClusterScheduling::Spread => {
                        CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD
                    }
                    ClusterScheduling::LoadBalancing => {
                        CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
                    }
                };
            }
        }
        raw
    }

    /// Sets the attribute in a configuration, if configurations have it. Refuses attributes that a
    /// node cannot change by itself.
    fn put_into(self, config: LaunchConfig, kernel: &Kernel) -> Result<LaunchConfig> {
        Ok(match self {
            Self::Cluster(_) => return Err(Error::Node(NodeError::FixedAttribute { what: "the cluster" })),
            Self::Cooperative(_) => {
                return Err(Error::Node(NodeError::FixedAttribute { what: "cooperation of all blocks" }));
            }
            Self::Priority(priority) => config.priority(priority),
            Self::MemorySyncDomain(domain) => config.memory_sync_domain(domain),
            Self::MemorySyncDomainMap { default, remote } => config.memory_sync_domain_map(default, remote),
            Self::SharedCarveout(Some(percent)) => config.shared_carveout(percent),
            Self::SharedCarveout(None) => config.default_shared_carveout(),
            Self::AccessPolicyWindow(window) => {
                window.check(kernel)?;
                config
            }
            Self::ClusterScheduling(_) => config,
        })
    }
}

impl AccessPolicyWindow {
    fn check(&self, kernel: &Kernel) -> Result<()> {
        const LIMIT: CUdevice_attribute =
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
        let refused = |why: Cow<'static, str>| Err(Error::Node(NodeError::AccessPolicyWindow { why }));
        if !(0.0..=1.0).contains(&self.hit_ratio) {
            return refused("the ratio of hits must lie between 0 and 1".into());
        }
        if self.miss == CacheUse::Persisting {
            return refused("only hits can be persisting".into());
        }
        if self.bytes == 0 {
            return Ok(());
        }
        let context = kernel.context();
        match usize::try_from(context.device().attribute(LIMIT)?).unwrap_or(0) {
            0 => {
                let (major, minor) = context.limits().compute_capability;
                refused(
                    format!("it needs compute capability 8.0 or higher; the device has {major}.{minor}")
                        .into(),
                )
            }
            most if self.bytes > most => {
                refused(format!("it has {} bytes, and the device's limit is {most}", self.bytes).into())
            }
            _ => Ok(()),
        }
    }
}

impl KernelNode {
    /// Reads an attribute of the node from the driver. The driver clamps priorities to the range of
    /// the device.
    ///
    /// Calls `cuGraphKernelNodeGetAttribute` (CUDA 11.0).
    ///
    /// # Errors
    /// - [`NodeError::Removed`], if the node was removed.
    /// - [`Error::Handles`], if the driver reports an error.
    #[doc(alias = "cuGraphKernelNodeGetAttribute")]
    #[doc(alias = "cudaGraphKernelNodeGetAttribute")]
    pub fn attribute(&self, kind: NodeAttributeKind) -> Result<NodeAttribute> {
        let guard = self.graph().enter()?;
        let raw = guard.record(self.id()).ok_or_else(|| self.removed())?.raw.0;
        let mut value = CUlaunchAttributeValue::default();
        // SAFETY: the kernel node is live, as its record says; the lock is held, and the out
        // pointer is valid.
        let result = unsafe { guard.driver().cuGraphKernelNodeGetAttribute(raw, kind.id(), &raw mut value) };
        guard.answer(Call::cuGraphKernelNodeGetAttribute, result)?;
        Ok(kind.value(value))
    }

    /// Sets an attribute of the node. Existing executables keep the old value.
    ///
    /// A kernel may rely on its cluster size and on a cooperative launch, so that these two change
    /// only with the whole launch ([`set`](Self::set)).
    ///
    /// ```no_run
    /// # use cuda_graph::{KernelNode, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(node: &KernelNode, weights: &Buffer<f32>) -> Result<()> {
    /// use cuda_graph::{AccessPolicyWindow, CacheUse, NodeAttribute};
    ///
    /// let window = AccessPolicyWindow::of(weights, CacheUse::Persisting);
    /// node.set_attribute(NodeAttribute::AccessPolicyWindow(window))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphKernelNodeSetAttribute` (CUDA 11.0).
    ///
    /// # Errors
    /// - [`NodeError::FixedAttribute`], if the attribute is the cluster size or cooperation.
    /// - [`NodeError::AccessPolicyWindow`], if the window is not valid or the device has no such
    ///   windows.
    /// - [`Error::Launch`], if the kernel or the device does not allow the attribute.
    /// - [`NodeError::Removed`], if the node was removed.
    /// - [`Error::Handles`], if the driver reports an error.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphKernelNodeSetAttribute")]
    #[doc(alias = "cudaGraphKernelNodeSetAttribute")]
    pub fn set_attribute(&self, attribute: NodeAttribute) -> Result<()> {
        // Check and call happen under one lock, since another thread may set the node meanwhile.
        let mut guard = self.graph().enter()?;
        let record = guard.record(self.id()).ok_or_else(|| self.removed())?;
        let NodeParams::Kernel { kernel, config, .. } = &record.node_params else {
            return Err(self.removed());
        };
        let checked = attribute.put_into(config.get(), kernel)?;
        checked.check(kernel)?;
        checked.node_attributes(kernel)?;
        set_all(guard.context(), record.raw.0, [attribute.raw()].iter())?;
        guard.changes.note(self.id());
        if let Some(NodeParams::Kernel { config, .. }) =
            guard.record_mut(self.id()).map(|record| &mut record.node_params)
        {
            *config = checked.into();
        }
        Ok(())
    }

    /// Replaces all attributes of the node with those of another node, of this graph or another
    /// one. Grid, block and shared memory stay. Existing executables keep the old attributes.
    ///
    /// Calls `cuGraphKernelNodeCopyAttributes` (CUDA 11.0).
    ///
    /// # Safety
    /// With the cluster size and the cooperation of `other`, the safety conditions of this node's
    /// launch still hold: the kernel accesses only the memory of its arguments, within their
    /// bounds. Conditions in the declaration of a typed kernel are not checked again, though they
    /// may depend on the cluster.
    ///
    /// # Errors
    /// - [`Error::Launch`], if the kernel does not allow an attribute, with the sizes of this node.
    /// - [`NodeError::Removed`], if one of the nodes was removed.
    /// - [`Error::Handles`], if the driver reports an error.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphKernelNodeCopyAttributes")]
    #[doc(alias = "cudaGraphKernelNodeCopyAttributes")]
    pub unsafe fn copy_attributes_from(&self, other: &Self) -> Result<()> {
        let mut guards = self.graph().enter_with(other.graph())?;
        let (source, config) = {
            let record = guards.other().0.record(other.id()).ok_or_else(|| other.removed())?;
            let NodeParams::Kernel { config, .. } = &record.node_params else { return Err(other.removed()) };
            (record.raw.0, config.get())
        };
        let record = guards.ours.record(self.id()).ok_or_else(|| self.removed())?;
        let NodeParams::Kernel { kernel, config: own, .. } = &record.node_params else {
            return Err(self.removed());
        };
        let (raw, config) = (record.raw.0, own.get().attributes_of(&config));
        config.check(kernel)?;
        config.node_attributes(kernel)?;
        // SAFETY: both kernel nodes are live, as their records say, and both locks are held.
        let result = unsafe { guards.ours.driver().cuGraphKernelNodeCopyAttributes(raw, source) };
        guards.ours.answer(Call::cuGraphKernelNodeCopyAttributes, result)?;
        if let Some(NodeParams::Kernel { config: own, .. }) =
            guards.ours.record_mut(self.id()).map(|record| &mut record.node_params)
        {
            *own = config.into();
        }
        Ok(())
    }
}

/// Whether the driver compares the attribute with the sizes of the launch.
pub(crate) fn is_structural(id: Id) -> bool {
    matches!(id, Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
}

/// The attribute with the value that it has if a [`LaunchConfig`] does not set it.
pub(crate) fn neutral(id: Id) -> CUlaunchAttribute {
    let value = match id {
        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => NodeAttribute::Cluster(None),
        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => NodeAttribute::Cooperative(false),
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => NodeAttribute::MemorySyncDomain(MemorySyncDomain::Default),
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
            NodeAttribute::MemorySyncDomainMap { default: 0, remote: 1 }
        }
        Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => NodeAttribute::SharedCarveout(None),
        _ => NodeAttribute::Priority(0),
    };
    CUlaunchAttribute { id, ..value.raw() }
}

/// Sets attributes of a live node, whose graph the caller has locked.
pub(crate) fn set_all<'a>(
    context: &Context,
    raw: CUgraphNode,
    mut attributes: impl Iterator<Item = &'a CUlaunchAttribute>,
) -> Result<()> {
    attributes.try_for_each(|attribute| {
        // SAFETY: the node is live and its graph locked; the value belongs to the attribute.
        let result = unsafe {
            context.driver().cuGraphKernelNodeSetAttribute(raw, attribute.id, &raw const attribute.value)
        };
        Ok(context.check(Call::cuGraphKernelNodeSetAttribute, result)?)
    })
}
