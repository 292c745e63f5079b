//! Launch attributes, as streams, launches and kernel nodes have them: values and rules.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_sys::{
    CUaccessPolicyWindow, CUaccessProperty, CUgraphDeviceNode, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue,
};

use crate::device::properties::{GREATEST_PRIORITY, most_window};
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// Launch attributes by their numbers.
pub(crate) type Attributes = BTreeMap<u32, AttributeValue>;

/// The value of an attribute.
#[derive(Clone, Copy)]
pub(crate) struct AttributeValue(pub(crate) CUlaunchAttributeValue);

// SAFETY: the pointers that some attributes hold (an event, a window's base) are only passed on,
// never followed.
unsafe impl Send for AttributeValue {}
// SAFETY: as above.
unsafe impl Sync for AttributeValue {}

impl std::fmt::Debug for AttributeValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AttributeValue")
    }
}

pub(crate) const COOPERATIVE: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE.0;
pub(crate) const CLUSTER_DIMENSION: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.0;
pub(crate) const DEVICE_UPDATABLE: u32 =
    CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE.0;
pub(crate) const PRIORITY: u32 = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY.0;

/// Whether a launch with these attributes is cooperative.
pub(crate) fn is_cooperative(attributes: &Attributes) -> bool {
    // SAFETY: the attribute of this number holds this field.
    attributes.get(&COOPERATIVE).is_some_and(|value| unsafe { value.0.cooperative } != 0)
}

/// Whether the attributes say that the device may update the node or not.
pub(crate) fn names_device_updatable(attributes: &Attributes) -> bool {
    attributes.contains_key(&DEVICE_UPDATABLE)
}

/// Whether a kernel node with these attributes may be updated by the device.
pub(crate) fn is_device_updatable(attributes: &Attributes) -> bool {
    // SAFETY: the attribute of this number holds this field.
    attributes
        .get(&DEVICE_UPDATABLE)
        .is_some_and(|value| unsafe { value.0.deviceUpdatableKernelNode.deviceUpdatable } != 0)
}

/// Whether the launch may start before the previous kernel has ended.
pub(crate) fn is_programmatic(attributes: &Attributes) -> bool {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.0;
    // SAFETY: the attribute of this number holds this field.
    attributes.get(&id).is_some_and(|value| unsafe { value.0.programmaticStreamSerializationAllowed } != 0)
}

/// An event that a launch records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchEvent {
    /// The event's handle.
    pub(crate) event: u64,
    /// Recorded when all blocks have started, before the kernel is done; otherwise when the blocks
    /// trigger it or end.
    pub(crate) is_early: bool,
    /// The edge from the kernel to captured work that waits for the event: port and type.
    pub(crate) edge: (u8, u8),
}

/// The events that the attributes name.
pub(crate) fn events(attributes: &Attributes) -> Vec<LaunchEvent> {
    let programmatic = attributes.get(&CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT.0);
    let completion = attributes.get(&CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT.0);
    // SAFETY: the attribute of this number holds this field.
    let programmatic = programmatic.map(|value| unsafe { value.0.programmaticEvent }).map(|asked| {
        let is_early = asked.triggerAtBlockStart != 0;
        LaunchEvent { event: number(asked.event), is_early, edge: (if is_early { 2 } else { 1 }, 1) }
    });
    // SAFETY: as above.
    let completion = completion.map(|value| unsafe { value.0.launchCompletionEvent });
    let completion =
        completion.map(|asked| LaunchEvent { event: number(asked.event), is_early: true, edge: (2, 0) });
    programmatic.into_iter().chain(completion).collect()
}

/// Whether kernel nodes have this attribute.
pub(crate) fn is_node_attribute(id: u32) -> bool {
    matches!(id, 1 | 2 | 4 | 5 | 8 | 9 | 10 | 13 | 14)
}

/// Checks the value of an attribute as far as that does not depend on the kernel. Clamps it where
/// the driver does.
pub(crate) fn check_attribute(attribute: CUlaunchAttributeID, value: &mut CUlaunchAttributeValue) -> Answer {
    type A = CUlaunchAttributeID;
    // SAFETY: the attribute of each number holds its field, and all bytes of the value are given.
    let good = unsafe {
        match attribute {
            A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => is_window(&value.accessPolicyWindow),
            A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => (1..=4).contains(&value.syncPolicy.0),
            A::CU_LAUNCH_ATTRIBUTE_PRIORITY => {
                value.priority = value.priority.clamp(GREATEST_PRIORITY, 0);
                true
            }
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => value.memSyncDomain.0 <= 1,
            A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                value.memSyncDomainMap.default_ < 4 && value.memSyncDomainMap.remote < 4
            }
            A::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => value.sharedMemCarveout <= 100,
            A::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
                matches!(value.deviceUpdatableKernelNode.deviceUpdatable, 0 | 1)
            }
            A::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING => value.nvlinkUtilCentricScheduling <= 1,
            _ => true,
        }
    };
    if good { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Whether an access policy window is valid, as on a GPU: the hit ratio is not below 0 and not
/// above 1 (NaN passes), misses are not persisting, and it has no more bytes than the device
/// allows. The hit property and the memory are not checked.
fn is_window(window: &CUaccessPolicyWindow) -> bool {
    let is_outside = window.hitRatio < 0.0 || window.hitRatio > 1.0;
    !is_outside
        && window.num_bytes <= most_window()
        && window.missProp != CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING
}

/// A handle of a node for the device.
pub(crate) fn device_node() -> CUgraphDeviceNode {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    core::ptr::without_provenance_mut((1 << 62) + 64 * COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Gives a handle to the node, if the attributes make it device-updatable.
pub(crate) fn name_device_node(attributes: &mut Attributes) -> Option<CUgraphDeviceNode> {
    let node = is_device_updatable(attributes).then(device_node)?;
    attributes.get_mut(&DEVICE_UPDATABLE)?.0.deviceUpdatableKernelNode.devNode = node;
    Some(node)
}

/// The cluster size that the attributes request.
pub(crate) fn cluster(attributes: &Attributes) -> Option<[u32; 3]> {
    // SAFETY: the attribute of this number holds this field.
    let cluster = attributes.get(&CLUSTER_DIMENSION).map(|value| unsafe { value.0.clusterDim })?;
    Some([cluster.x, cluster.y, cluster.z])
}

/// Reads the attributes of a launch.
pub(crate) fn read_attributes(attrs: &[CUlaunchAttribute]) -> Answer<Attributes> {
    /// Longer lists are refused.
    const MOST: usize = 1024;
    if attrs.len() > MOST {
        return Err(INVALID_VALUE);
    }
    let mut read = Attributes::new();
    for attribute in attrs {
        match attribute.id.0 {
            0 => {}
            1..=14 | 16..=18 => {
                let mut value = attribute.value;
                check_attribute(attribute.id, &mut value)?;
                read.insert(attribute.id.0, AttributeValue(value));
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(read)
}
