//! How the memory of an allocation node is.

use core::fmt;

use cuda_handles::{Context, Device, MemorySpace, PoolAccess};
use cuda_sys::{
    CUgraphNodeParams, CUgraphNodeType, CUmemAccessDesc, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPoolProps,
};

/// Where the memory of an allocation node lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum AllocPlace {
    /// On the device of the graph's context.
    #[default]
    Here,
    /// On a device.
    Device(Device),
    /// On the host. Drivers up to CUDA 13.0 were seen to refuse it.
    Host,
    /// Wherever it is used. CUDA 13.0.
    Managed,
}

/// How the memory of an allocation node is; see
/// [`Frontier::alloc_with`](crate::Frontier::alloc_with).
///
/// ```no_run
/// # use cuda_graph::{AllocOptions, AllocPlace};
/// # use cuda_handles::{Device, PoolAccess};
/// # fn example(graph: &cuda_graph::Graph, other: Device) -> cuda_graph::Result<()> {
/// let options = AllocOptions::new().accessible_from(other, PoolAccess::ReadWrite);
/// let (node, memory) = graph.root().alloc_with::<f32>(1024, options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct AllocOptions {
    place: AllocPlace,
    access: Vec<(Device, PoolAccess)>,
}

impl AllocOptions {
    /// Those of [`Frontier::alloc`](crate::Frontier::alloc): memory on the device of the graph's
    /// context, for that device.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the memory lies. The device of the graph's context can use it wherever it is.
    pub fn on(mut self, place: AllocPlace) -> Self {
        self.place = place;
        self
    }

    /// What another device may do with the memory. Given twice for a device, the last counts. The
    /// device that the memory lies on, and that of the graph's context, can read and write it in
    /// any case.
    #[doc(alias = "CUmemAccessDesc")]
    pub fn accessible_from(mut self, device: Device, access: PoolAccess) -> Self {
        self.access.retain(|(known, _)| *known != device);
        self.access.push((device, access));
        self
    }

    /// Where the memory lies.
    #[must_use]
    pub fn place(&self) -> AllocPlace {
        self.place
    }

    /// What other devices may do with it.
    #[must_use]
    pub fn access(&self) -> &[(Device, PoolAccess)] {
        &self.access
    }

    /// Where copies and fills find it.
    pub(crate) fn space(&self, context: &Context) -> MemorySpace {
        match self.place {
            AllocPlace::Here => MemorySpace::Device,
            AllocPlace::Device(device) if device == context.device() => MemorySpace::Device,
            AllocPlace::Device(_) => MemorySpace::Peer,
            AllocPlace::Host => MemorySpace::Pinned,
            AllocPlace::Managed => MemorySpace::Managed,
        }
    }

    /// What is known of a node of other code.
    pub(crate) fn read(props: &CUmemPoolProps, access: &[CUmemAccessDesc], context: &Context) -> Self {
        // SAFETY: every place but one of a locality domain has a number, and any bits are one.
        let number = |location: &CUmemLocation| unsafe { location.__bindgen_anon_1.id };
        let here = context.device();
        let device = |location: &CUmemLocation| match number(location) {
            number if number == here.as_raw() => Some(here),
            number => Device::all().ok()?.into_iter().find(|device| device.as_raw() == number),
        };
        let is_managed = props.allocType != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        let place = match props.location.type_ {
            _ if is_managed => AllocPlace::Managed,
            CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => match device(&props.location) {
                Some(device) if device != here => AllocPlace::Device(device),
                _ => AllocPlace::Here,
            },
            _ => AllocPlace::Host,
        };
        let access = access.iter().filter_map(|one| {
            let may = match PoolAccess::from_raw(one.flags) {
                PoolAccess::None => return None,
                may => may,
            };
            device(&one.location).map(|device| (device, may))
        });
        Self { place, access: access.collect() }
    }

    /// What the driver is told of other devices.
    pub(crate) fn access_params(&self, context: &Context) -> Vec<CUmemAccessDesc> {
        let here = context.device();
        let home = match self.place {
            AllocPlace::Here => Some(here),
            AllocPlace::Device(device) => Some(device),
            AllocPlace::Host | AllocPlace::Managed => None,
        };
        let own = (home != Some(here)).then_some((here, PoolAccess::ReadWrite));
        // The driver knows of the others; what they may do with their own memory it does not want
        // to be told otherwise.
        let others = self.access.iter().filter(|(device, _)| *device != here && Some(*device) != home);
        let desc = |(device, access): (Device, PoolAccess)| CUmemAccessDesc {
            location: location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, device.as_raw()),
            flags: access.as_raw(),
        };
        own.into_iter().chain(others.copied()).map(desc).collect()
    }

    /// The driver's form of an allocation node, as long as `access` is there.
    pub(crate) fn params(
        &self,
        context: &Context,
        bytes: usize,
        access: &[CUmemAccessDesc],
    ) -> CUgraphNodeParams {
        let type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        let mut params = CUgraphNodeParams { type_, ..CUgraphNodeParams::default() };
        let (kind, place) = match self.place {
            AllocPlace::Here => (PINNED, location(DEVICE, context.device().as_raw())),
            AllocPlace::Device(device) => (PINNED, location(DEVICE, device.as_raw())),
            AllocPlace::Host => (PINNED, location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0)),
            AllocPlace::Managed => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
                location(DEVICE, context.device().as_raw()),
            ),
        };
        let to = &mut params.__bindgen_anon_1;
        to.alloc.poolProps.allocType = kind;
        to.alloc.poolProps.location.type_ = place.type_;
        // SAFETY: written above as a number.
        to.alloc.poolProps.location.__bindgen_anon_1.id = unsafe { place.__bindgen_anon_1.id };
        to.alloc.bytesize = bytes;
        if !access.is_empty() {
            to.alloc.accessDescs = access.as_ptr();
            to.alloc.accessDescCount = access.len();
        }
        params
    }
}

const PINNED: CUmemAllocationType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
const DEVICE: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;

fn location(kind: CUmemLocationType, number: i32) -> CUmemLocation {
    let mut location = CUmemLocation { type_: kind, ..Default::default() };
    location.__bindgen_anon_1.id = number;
    location
}

impl fmt::Display for AllocPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => formatter.write_str("device"),
            Self::Device(device) => write!(formatter, "device {}", device.ordinal()),
            Self::Host => formatter.write_str("host"),
            Self::Managed => formatter.write_str("managed"),
        }
    }
}
