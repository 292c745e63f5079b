//! Attributes of kernel nodes, one by one.

use std::borrow::Cow;

use cuda_handles::{Context, Kernel, Slice};
use cuda_launch::{Dim, LaunchConfig, MemorySyncDomain};
use cuda_sys::{
    CUaccessProperty, CUclusterSchedulingPolicy, CUdevice_attribute, CUdeviceptr, CUgraphNode,
    CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue, CUlaunchMemSyncDomain, Call,
};

use crate::error::{Error, Result};
use crate::node::kernel::KernelNode;
use crate::state::params::NodeParams;

/// How long what a kernel touches is to stay in the second-level cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum CacheUse {
    /// As usual.
    #[default]
    Normal,
    /// It goes first.
    Streaming,
    /// It goes last.
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

/// Memory that a kernel uses in a special way, a hint for the second-level cache.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AccessPolicyWindow {
    /// Where it starts. Nothing is kept alive by this, and nothing is accessed.
    pub address: CUdeviceptr,
    /// Its bytes; none for no window.
    pub bytes: usize,
    /// The part of the accesses that `hit` is for, from 0 to 1; the rest goes by `miss`. What is no
    /// number is refused by this library: the driver takes it.
    pub hit_ratio: f32,
    /// For the accesses that are hits.
    pub hit: CacheUse,
    /// For the others; not [`CacheUse::Persisting`].
    pub miss: CacheUse,
}

impl AccessPolicyWindow {
    /// All accesses to a slice are to have this use.
    pub fn of<'a, T: 'a>(memory: impl Into<Slice<'a, T>>, hit: CacheUse) -> Self {
        let memory = memory.into();
        let bytes = memory.len() * size_of::<T>();
        Self { address: memory.address(), bytes, hit_ratio: 1.0, hit, miss: CacheUse::Normal }
    }
}

/// How the blocks of a cluster are put on the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ClusterScheduling {
    /// As the driver likes.
    #[default]
    Default,
    /// On as many multiprocessors as can be.
    Spread,
    /// Wherever there is room.
    LoadBalancing,
}

/// An attribute of a kernel node with its value.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum NodeAttribute {
    /// See [`LaunchConfig::cluster`]; `None` without clusters.
    Cluster(Option<Dim>),
    /// See [`LaunchConfig::cooperative`].
    Cooperative(bool),
    /// See [`LaunchConfig::priority`].
    Priority(i32),
    /// See [`LaunchConfig::memory_sync_domain`].
    MemorySyncDomain(MemorySyncDomain),
    /// See [`LaunchConfig::memory_sync_domain_map`].
    MemorySyncDomainMap {
        /// The device's domain for the default one.
        default: u8,
        /// The device's domain for the remote one.
        remote: u8,
    },
    /// See [`LaunchConfig::shared_carveout`]; `None` for that of the kernel. The driver has one
    /// value for none and for 0 percent, which is read back as `None`.
    SharedCarveout(Option<u8>),
    /// A hint for the second-level cache.
    AccessPolicyWindow(AccessPolicyWindow),
    /// How the blocks of a cluster are put on the device.
    ClusterScheduling(ClusterScheduling),
}

/// The attributes that a kernel node has; see [`KernelNode::attribute`].
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
        // SAFETY: the driver gave the value for this attribute; numbers all, so that any bits are a
        // value.
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
    /// Which attribute it is.
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

    /// The driver's form; all bytes but those of the value are zero.
    fn raw(self) -> CUlaunchAttribute {
        let mut raw = CUlaunchAttribute { id: self.kind().id(), ..CUlaunchAttribute::default() };
        let to = &mut raw.value;
        match self {
            Self::Cluster(cluster) => {
                let cluster = cluster.unwrap_or(Dim { x: 0, y: 0, z: 0 });
                to.clusterDim.x = cluster.x;
                to.clusterDim.y = cluster.y;
                to.clusterDim.z = cluster.z;
            }
            Self::Cooperative(is_set) => to.cooperative = i32::from(is_set),
            Self::Priority(priority) => to.priority = priority,
            Self::MemorySyncDomain(domain) => to.memSyncDomain = domain.raw(),
            Self::MemorySyncDomainMap { default, remote } => {
                to.memSyncDomainMap.default_ = default;
                to.memSyncDomainMap.remote = remote;
            }
            Self::SharedCarveout(percent) => to.sharedMemCarveout = percent.map_or(0, u32::from),
            Self::AccessPolicyWindow(window) => {
                to.accessPolicyWindow.base_ptr =
                    core::ptr::with_exposed_provenance_mut(window.address as usize);
                to.accessPolicyWindow.num_bytes = window.bytes;
                to.accessPolicyWindow.hitRatio = window.hit_ratio;
                to.accessPolicyWindow.hitProp = window.hit.raw();
                to.accessPolicyWindow.missProp = window.miss.raw();
            }
            Self::ClusterScheduling(policy) => {
                to.clusterSchedulingPolicyPreference = match policy {
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

    /// The configuration with this attribute, as far as configurations have it; or why a node
    /// cannot have it.
    fn put_into(self, config: LaunchConfig, kernel: &Kernel) -> Result<LaunchConfig> {
        Ok(match self {
            Self::Cluster(_) => return Err(Error::FixedAttribute { what: "the cluster" }),
            Self::Cooperative(_) => return Err(Error::FixedAttribute { what: "cooperation of all blocks" }),
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
        let refused = |why: Cow<'static, str>| Err(Error::AccessPolicyWindow { why });
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
    /// An attribute of the node as the driver has it. A priority is brought into the device's range
    /// by the driver.
    ///
    /// Stands on `cuGraphKernelNodeGetAttribute`, CUDA 11.0.
    ///
    /// # Errors
    /// The node was removed, or what the driver answers.
    #[doc(alias = "cuGraphKernelNodeGetAttribute")]
    pub fn attribute(&self, kind: NodeAttributeKind) -> Result<NodeAttribute> {
        let guard = self.graph().enter()?;
        let raw = guard.record(self.id()).ok_or_else(|| self.removed())?.raw.0;
        let mut value = CUlaunchAttributeValue::default();
        // SAFETY: the table says that the kernel node is live; the lock is held, and the out
        // pointer is valid.
        let result = unsafe { guard.driver().cuGraphKernelNodeGetAttribute(raw, kind.id(), &raw mut value) };
        guard.answer(Call::cuGraphKernelNodeGetAttribute, result)?;
        Ok(kind.value(value))
    }

    /// Gives the node an attribute. Executables made before go on as they are.
    ///
    /// Cluster and cooperation are part of what makes a launch right, so they go with a whole
    /// launch: [`set`](Self::set).
    ///
    /// Stands on `cuGraphKernelNodeSetAttribute`, CUDA 11.0.
    ///
    /// # Errors
    /// The kernel or the device cannot have it; a cluster or cooperation
    /// ([`Error::FixedAttribute`]); the node was removed; or what the driver answers. The node is
    /// as it was then.
    #[doc(alias = "cuGraphKernelNodeSetAttribute")]
    pub fn set_attribute(&self, attribute: NodeAttribute) -> Result<()> {
        // The launch that it is checked for is that of the call: another thread may set the node
        // meanwhile.
        let mut guard = self.graph().enter()?;
        let record = guard.record(self.id()).ok_or_else(|| self.removed())?;
        let NodeParams::Kernel { kernel, config, .. } = &record.node_params else {
            return Err(self.removed());
        };
        let checked = attribute.put_into(config.get(), kernel)?;
        checked.check(kernel)?;
        checked.node_attributes(kernel)?;
        set_all(guard.context(), record.raw.0, [attribute.raw()].iter())?;
        if let Some(NodeParams::Kernel { config, .. }) =
            guard.record_mut(self.id()).map(|record| &mut record.node_params)
        {
            *config = checked.into();
        }
        Ok(())
    }

    /// Gives the node all attributes of another one, of this or another graph, in place of its own;
    /// grid, block and shared memory stay.
    ///
    /// Stands on `cuGraphKernelNodeCopyAttributes`, CUDA 11.0.
    ///
    /// # Safety
    /// With cluster and cooperation of the other node, what was promised of this node's launch
    /// still holds: the kernel accesses no memory but that of its buffers, within their bounds. The
    /// conditions of a typed kernel may speak of the cluster.
    ///
    /// # Errors
    /// The kernel cannot have one of the attributes with the sizes of this node; one of the nodes
    /// was removed; or what the driver answers. The node is as it was then.
    #[doc(alias = "cuGraphKernelNodeCopyAttributes")]
    pub unsafe fn copy_attributes_from(&self, other: &Self) -> Result<()> {
        let mut two = self.graph().enter_with(other.graph())?;
        let (source, config) = {
            let record = two.second().0.record(other.id()).ok_or_else(|| other.removed())?;
            let NodeParams::Kernel { config, .. } = &record.node_params else { return Err(other.removed()) };
            (record.raw.0, config.get())
        };
        let record = two.first.record(self.id()).ok_or_else(|| self.removed())?;
        let NodeParams::Kernel { kernel, config: own, .. } = &record.node_params else {
            return Err(self.removed());
        };
        let (raw, config) = (record.raw.0, own.get().attributes_of(&config));
        config.check(kernel)?;
        config.node_attributes(kernel)?;
        // SAFETY: the tables say that both kernel nodes are live, and both locks are held.
        let result = unsafe { two.first.driver().cuGraphKernelNodeCopyAttributes(raw, source) };
        two.first.answer(Call::cuGraphKernelNodeCopyAttributes, result)?;
        if let Some(NodeParams::Kernel { config: own, .. }) =
            two.first.record_mut(self.id()).map(|record| &mut record.node_params)
        {
            *own = config.into();
        }
        Ok(())
    }
}

/// Whether the driver compares an attribute with the sizes of the launch.
pub(crate) fn is_structural(id: Id) -> bool {
    matches!(id, Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
}

/// The value of an attribute of a [`LaunchConfig`] where none was set.
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
        // SAFETY: the node is live and its graph locked; the value is of the attribute's kind.
        let result = unsafe {
            context.driver().cuGraphKernelNodeSetAttribute(raw, attribute.id, &raw const attribute.value)
        };
        Ok(context.check(Call::cuGraphKernelNodeSetAttribute, result)?)
    })
}
