//! Memory given by addresses, for copies and fills. The driver is asked which kind of memory it is.

use core::ffi::c_void;

use cuda_handles::{Context, CopyLayout, CopySide, Error as HandleError, FillLayout, MemorySpace, Owner};
use cuda_sys::CUdeviceptr;

use crate::error::{Error, NodeError, Result};
use crate::state::owners::Owners;

/// Memory at an address, for a [`RawCopy`] or a [`RawFill`].
#[derive(Clone, Debug)]
pub struct RawMemory {
    address: CUdeviceptr,
    steps: Option<[usize; 2]>,
    owner: Option<Owner>,
    is_pageable: bool,
}

impl RawMemory {
    /// Device, pinned, registered or managed memory at an address.
    #[must_use]
    pub fn at(address: CUdeviceptr) -> Self {
        Self { address, steps: None, owner: None, is_pageable: false }
    }

    /// Host memory at a pointer, whose provenance is exposed.
    #[must_use]
    pub fn at_host<T: ?Sized>(pointer: *const T) -> Self {
        Self::at(pointer.cast::<c_void>().expose_provenance() as CUdeviceptr)
    }

    /// Sets the pitch, in bytes from one row to the next, and the number of rows from one layer to
    /// the next. By default, rows and layers are contiguous.
    #[must_use]
    pub fn steps(self, pitch: usize, rows: usize) -> Self {
        Self { steps: Some([pitch, rows]), ..self }
    }

    /// Makes the node keep an owner of the memory alive.
    #[must_use]
    pub fn keep(self, owner: impl Into<Owner>) -> Self {
        Self { owner: Some(owner.into()), ..self }
    }

    /// Allows pageable host memory, which is neither pinned nor registered. Copies only.
    ///
    /// The call that launches the graph reads a pageable source. If the destination is pageable,
    /// that call blocks until the copy has ended.
    #[must_use]
    pub fn pageable(self) -> Self {
        Self { is_pageable: true, ..self }
    }

    fn pitch(&self, width: usize) -> usize {
        self.steps.map_or(width, |[pitch, _]| pitch)
    }

    fn side(&self, width: usize, height: usize) -> CopySide {
        let [pitch, rows] = self.steps.unwrap_or([width, height]);
        CopySide { address: self.address, space: MemorySpace::Found, pitch, rows }
    }

    /// Asks the driver for the kind of the memory, and checks that `bytes` bytes follow the
    /// address.
    fn classify(&self, context: &Context, what: &'static str, bytes: Option<usize>) -> Result<MemorySpace> {
        let address = self.address;
        let bytes = bytes.filter(|&bytes| address.checked_add(bytes as u64).is_some());
        let need = bytes.unwrap_or(usize::MAX);
        let info = context.address_info(address)?;
        if info.space == MemorySpace::Pageable {
            return match self.is_pageable && address != 0 && bytes.is_some() {
                true => Ok(MemorySpace::Pageable),
                false => Err(Error::Node(NodeError::UnknownMemory { what, address })),
            };
        }
        match info.room_at(address) {
            Some(room) if room < need => Err(Error::Node(NodeError::PastEnd { what, address, need, room })),
            // The driver does not know the end of the memory, but no memory is that large.
            None if bytes.is_none() => Err(Error::Node(NodeError::UnknownMemory { what, address })),
            _ => Ok(info.space),
        }
    }
}

/// A copy between addresses, in bytes: one row, or a [box](Self::extent). For
/// [`Frontier::copy_raw`](crate::Frontier::copy_raw).
#[doc(alias = "CUDA_MEMCPY3D")]
#[doc(alias = "cudaMemcpy3DParms")]
#[derive(Clone, Debug)]
pub struct RawCopy {
    source: RawMemory,
    destination: RawMemory,
    extent: [usize; 3],
}

impl RawCopy {
    /// A copy of `bytes` bytes.
    #[must_use]
    pub fn new(source: RawMemory, destination: RawMemory, bytes: usize) -> Self {
        Self { source, destination, extent: [bytes, 1, 1] }
    }

    /// Makes it a copy of `depth` layers of `height` rows of `width` bytes; see
    /// [`RawMemory::steps`].
    #[must_use]
    pub fn extent(self, width: usize, height: usize, depth: usize) -> Self {
        Self { extent: [width, height, depth], ..self }
    }

    pub(crate) fn prepare(self, context: &Context) -> Result<(CopyLayout, Owners)> {
        const SOURCE: &str = "the source of a copy";
        const DESTINATION: &str = "the destination of a copy";
        let Self { source, destination, extent: [width, height, depth] } = self;
        if [width, height, depth].contains(&0) {
            return Err(Error::Node(NodeError::NoElements { what: "memcpy" }));
        }
        let (from, to) = (source.side(width, height), destination.side(width, height));
        let mut layout = CopyLayout { source: from, destination: to, width, height, depth };
        let reaches = [layout.reach(SOURCE, &from)?, layout.reach(DESTINATION, &to)?];
        layout.source.space = source.classify(context, SOURCE, reaches[0])?;
        layout.destination.space = destination.classify(context, DESTINATION, reaches[1])?;
        let layout = layout.plain();
        match layout.overlap() {
            0 => {}
            bytes => return Err(HandleError::Overlap { bytes }.into()),
        }
        let owners = [source.owner, destination.owner].into_iter().flatten().collect();
        Ok((layout, owners))
    }
}

/// A fill of memory at an address: one row of elements, or a [rectangle](Self::extent). For
/// [`Frontier::fill_raw`](crate::Frontier::fill_raw).
#[doc(alias = "CUDA_MEMSET_NODE_PARAMS")]
#[doc(alias = "cudaMemsetParams")]
#[derive(Clone, Debug)]
pub struct RawFill {
    target: RawMemory,
    value: u32,
    element: u8,
    extent: [usize; 2],
}

impl RawFill {
    /// A fill of `count` elements of `element` bytes (1, 2 or 4) with the lowest bytes of `value`.
    #[must_use]
    pub fn new(target: RawMemory, element: u8, value: u32, count: usize) -> Self {
        Self { target, value, element, extent: [count, 1] }
    }

    /// Makes it a fill of `height` rows of `width` elements. [`RawMemory::steps`] sets the pitch;
    /// its rows per layer have no meaning here.
    #[must_use]
    pub fn extent(self, width: usize, height: usize) -> Self {
        Self { extent: [width, height], ..self }
    }

    pub(crate) fn prepare(self, context: &Context) -> Result<(FillLayout, Owners)> {
        const WHAT: &str = "the memory of a fill";
        let Self { target, value, element, extent: [width, height] } = self;
        if width == 0 || height == 0 {
            return Err(Error::Node(NodeError::NoElements { what: "memset" }));
        }
        let size = usize::from(element);
        if !matches!(size, 1 | 2 | 4) {
            return Err(HandleError::FillSize { bytes: size }.into());
        }
        let address = target.address;
        let align = u64::from(element);
        let row = width.saturating_mul(size);
        let pitch = if height == 1 { row } else { target.pitch(row) };
        if pitch < row {
            return Err(HandleError::Pitch { what: WHAT, need: row, found: pitch }.into());
        }
        let second = if height == 1 { address } else { address.wrapping_add(pitch as u64) };
        for start in [address, second] {
            if !start.is_multiple_of(align) {
                return Err(HandleError::Unaligned { address: start, align }.into());
            }
        }
        let reach = pitch.checked_mul(height - 1).and_then(|rows| rows.checked_add(row));
        let space = target.classify(context, WHAT, reach)?;
        if space == MemorySpace::Pageable {
            return Err(Error::Node(NodeError::UnknownMemory { what: WHAT, address }));
        }
        let value = value & (u32::MAX >> (32 - 8 * u32::from(element)));
        let layout = FillLayout { address, space, element, value, pitch, width, height };
        Ok((layout, target.owner.into_iter().collect()))
    }
}
