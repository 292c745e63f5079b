//! The options of an allocation node.

use core::fmt;

use cuda_handles::{Context, Device, MemorySpace, PoolAccess};
use cuda_sys::{
    CUgraphNodeParams, CUgraphNodeType, CUmemAccessDesc, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPoolProps,
};

/// Where the memory of an allocation node resides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum AllocPlace {
    /// On the device of the graph's context.
    #[default]
    Here,
    /// On another device.
    Device(Device),
    /// On the host. Drivers up to CUDA 13.0 have been seen to refuse it.
    Host,
    /// In managed memory, which migrates to where it is used (CUDA 13.0).
    Managed,
}

/// The options of an allocation node; see [`Frontier::alloc_with`](crate::Frontier::alloc_with).
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
#[doc(alias = "cudaMemPoolProps")]
#[doc(alias = "CUmemPoolProps")]
pub struct AllocOptions {
    place: AllocPlace,
    access: Vec<(Device, PoolAccess)>,
}

impl AllocOptions {
    /// The options of [`Frontier::alloc`](crate::Frontier::alloc): memory on the device of the
    /// graph's context, for use by that device.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where the memory resides. The device of the graph's context can use it in any case.
    pub fn on(mut self, place: AllocPlace) -> Self {
        self.place = place;
        self
    }

    /// Sets how another device may access the memory. The last call for a device counts. The device
    /// of the graph's context and the device on which the memory resides can always read and write
    /// it.
    #[doc(alias = "CUmemAccessDesc")]
    #[doc(alias = "cudaMemAccessDesc")]
    pub fn accessible_from(mut self, device: Device, access: PoolAccess) -> Self {
        self.access.retain(|(known, _)| *known != device);
        self.access.push((device, access));
        self
    }

    /// Where the memory resides.
    #[must_use]
    pub fn place(&self) -> AllocPlace {
        self.place
    }

    /// The access of other devices.
    #[must_use]
    pub fn access(&self) -> &[(Device, PoolAccess)] {
        &self.access
    }

    /// The memory space for copies and fills.
    pub(crate) fn space(&self, context: &Context) -> MemorySpace {
        match self.place {
            AllocPlace::Here => MemorySpace::Device,
            AllocPlace::Device(device) if device == context.device() => MemorySpace::Device,
            AllocPlace::Device(_) => MemorySpace::Peer,
            AllocPlace::Host => MemorySpace::Pinned,
            AllocPlace::Managed => MemorySpace::Managed,
        }
    }

    /// The devices whose kernels may read and write the memory, beside that of the graph's context.
    pub(crate) fn devices(&self) -> Box<[Device]> {
        let there = if let AllocPlace::Device(device) = self.place { Some(device) } else { None };
        let may =
            |(device, access): &(Device, PoolAccess)| (*access == PoolAccess::ReadWrite).then_some(*device);
        there.into_iter().chain(self.access.iter().filter_map(may)).collect()
    }

    /// The options of a node that other code added.
    pub(crate) fn read(props: &CUmemPoolProps, access: &[CUmemAccessDesc], context: &Context) -> Self {
        // SAFETY: every location but a locality domain has a number, and any bits are a valid
        // number.
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

    /// The access descriptors for the driver.
    pub(crate) fn access_params(&self, context: &Context) -> Vec<CUmemAccessDesc> {
        let here = context.device();
        let home = match self.place {
            AllocPlace::Here => Some(here),
            AllocPlace::Device(device) => Some(device),
            AllocPlace::Host | AllocPlace::Managed => None,
        };
        let own = (home != Some(here)).then_some((here, PoolAccess::ReadWrite));
        // The driver accepts no descriptor for the device on which the memory resides.
        let others = self.access.iter().filter(|(device, _)| *device != here && Some(*device) != home);
        let desc = |(device, access): (Device, PoolAccess)| CUmemAccessDesc {
            location: location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, device.as_raw()),
            flags: access.as_raw(),
        };
        own.into_iter().chain(others.copied()).map(desc).collect()
    }

    /// The driver's form of an allocation node; it points into `access`.
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
        // SAFETY: `location` has written it as a number.
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
