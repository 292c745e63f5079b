//! Copies and fills of linear memory: described at the call, carried out when their turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use cuda_sys::{CUDA_MEMCPY2D_v2, CUDA_MEMCPY3D_v2, CUmemorytype, CUresult};

use crate::device::loss::Loss;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::memory::{self, Allocation};

/// What kind of memory one side of a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Memory of a device, or managed.
    Device,
    /// Host memory that the driver knows.
    Pinned,
    /// Any other host memory.
    Pageable,
}

impl Place {
    /// Where an address points to, as far as the driver knows.
    pub(crate) fn of(address: u64) -> Option<Self> {
        match memory::find(address) {
            Some(found) if found.origin.is_on_device() => Some(Self::Device),
            Some(_) => Some(Self::Pinned),
            None if memory::is_promised(address, 1) => Some(Self::Device),
            None if memory::is_device_address(address) => None,
            None => Some(Self::Pageable),
        }
    }

    pub(crate) fn is_host(self) -> bool {
        self != Self::Device
    }
}

/// Whether memory counts that a graph will allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promised {
    /// It counts: for nodes.
    Yes,
    /// Only memory that is there: for calls.
    No,
}

impl Promised {
    fn is_there(self, address: u64, len: usize) -> bool {
        memory::find_range(address, len).is_some_and(|found| found.is_visible())
            || (self == Self::Yes && memory::is_promised(address, len))
    }
}

/// One side of a copy: the address of the first byte and the distances between rows and between
/// slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
    pub(crate) place: Place,
}

/// A copy of up to three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy3 {
    pub(crate) src: Side,
    pub(crate) dst: Side,
    /// Bytes of a row, rows, slices.
    pub(crate) extent: [usize; 3],
}

impl Copy3 {
    /// `len` bytes from one address to another.
    ///
    /// # Errors
    /// An address of a device that no allocation holds, or a range that leaves its allocation.
    pub(crate) fn linear(dst: u64, src: u64, len: usize, promised: Promised) -> Answer<Self> {
        let side = |address| {
            let place = Place::of(address).ok_or(INVALID_VALUE)?;
            Ok(Side { address, pitch: len, slice: len, place })
        };
        let copy = Self { src: side(src)?, dst: side(dst)?, extent: [len, 1, 1] };
        copy.check_ranges(promised)?;
        Ok(copy)
    }

    /// The copy as a node's parameters describe it.
    pub(crate) fn describe(&self) -> CUDA_MEMCPY3D_v2 {
        let [width, height, depth] = self.extent;
        let mut raw =
            CUDA_MEMCPY3D_v2 { WidthInBytes: width, Height: height, Depth: depth, ..Default::default() };
        let rows = |side: &Side| side.slice.checked_div(side.pitch).unwrap_or(height);
        let kind = |place: Place| match place {
            Place::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Place::Pinned | Place::Pageable => CUmemorytype::CU_MEMORYTYPE_HOST,
        };
        (raw.srcMemoryType, raw.srcPitch, raw.srcHeight) =
            (kind(self.src.place), self.src.pitch, rows(&self.src));
        (raw.dstMemoryType, raw.dstPitch, raw.dstHeight) =
            (kind(self.dst.place), self.dst.pitch, rows(&self.dst));
        if self.src.place == Place::Device {
            raw.srcDevice = self.src.address;
        } else {
            raw.srcHost = core::ptr::with_exposed_provenance(self.src.address as usize);
        }
        if self.dst.place == Place::Device {
            raw.dstDevice = self.dst.address;
        } else {
            raw.dstHost = core::ptr::with_exposed_provenance_mut(self.dst.address as usize);
        }
        raw
    }

    /// The bytes from the first to the last that one side touches, as `check_ranges` found them.
    fn reach(&self, side: &Side) -> usize {
        self.checked_reach(side).unwrap_or(0)
    }

    /// As [`reach`](Self::reach); `None` where no memory holds as many.
    fn checked_reach(&self, side: &Side) -> Option<usize> {
        let [width, height, depth] = self.extent;
        let slices = side.slice.checked_mul(depth.checked_sub(1)?)?;
        let rows = side.pitch.checked_mul(height.checked_sub(1)?)?;
        let reach = slices.checked_add(rows)?.checked_add(width)?;
        side.address.checked_add(reach as u64)?;
        isize::try_from(reach).is_ok().then_some(reach)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extent.contains(&0)
    }

    /// Whether the copy is of one row.
    pub(crate) fn is_linear(&self) -> bool {
        self.extent[1] == 1 && self.extent[2] == 1
    }

    fn check_ranges(&self, promised: Promised) -> Answer {
        if self.is_empty() {
            return Ok(());
        }
        for side in [&self.src, &self.dst] {
            let reach = self.checked_reach(side).ok_or(INVALID_VALUE)?;
            if side.place != Place::Pageable && !promised.is_there(side.address, reach) {
                return Err(INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Reads the source now if it is pageable, so that the caller may change it afterwards.
    ///
    /// # Safety
    /// A pageable source is readable over the copy's whole reach.
    pub(crate) unsafe fn stage(&self) -> Option<Vec<u8>> {
        if self.src.place != Place::Pageable || self.is_empty() {
            return None;
        }
        let len = self.reach(&self.src);
        let from: *const u8 = core::ptr::with_exposed_provenance(self.src.address as usize);
        let mut bytes = vec![0; len];
        // SAFETY: readable by the caller's promise; the vector has `len` bytes.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(from, len) };
        Some(bytes)
    }

    /// Carries the copy out; `staged` replaces a pageable source.
    ///
    /// # Safety
    /// Pageable memory is valid over the copy's reach, the destination for writes.
    pub(crate) unsafe fn run(&self, staged: Option<&[u8]>) -> Result<(), Loss> {
        if self.is_empty() {
            return Ok(());
        }
        let src = match staged {
            Some(bytes) => Reached { base: bytes.as_ptr().cast_mut(), _held: None },
            None => self.reached(&self.src, false)?,
        };
        let dst = self.reached(&self.dst, true)?;
        let [width, height, depth] = self.extent;
        for z in 0..depth {
            for y in 0..height {
                // SAFETY: both sides reach over all rows: checked against the allocations, or
                // promised for pageable memory.
                unsafe {
                    let from = src.base.add(z * self.src.slice + y * self.src.pitch);
                    let to = dst.base.add(z * self.dst.slice + y * self.dst.pitch);
                    copy_row(to, from, width);
                }
            }
        }
        Ok(())
    }

    fn reached(&self, side: &Side, write: bool) -> Result<Reached, Loss> {
        let len = self.reach(side);
        if side.place == Place::Pageable {
            return Ok(Reached {
                base: core::ptr::with_exposed_provenance_mut(side.address as usize),
                _held: None,
            });
        }
        reach(side.address, len, write).map_err(|sentence| {
            let verb = if write { "writes to" } else { "reads from" };
            let text = format!("a copy {verb} {len} bytes at {:#x}: {sentence}", side.address);
            Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, text)
        })
    }
}

struct Reached {
    base: *mut u8,
    _held: Option<Arc<Allocation>>,
}

fn reach(address: u64, len: usize, write: bool) -> Result<Reached, String> {
    let allocation = memory::access(address, len, write)?;
    // SAFETY: `access` found the range inside the allocation.
    let base = unsafe { allocation.host().add((address - allocation.start) as usize) };
    Ok(Reached { base, _held: Some(allocation) })
}

/// Copies a row by relaxed atomics, as other streams may use the same memory.
///
/// # Safety
/// Both pointers are valid for `len` bytes.
unsafe fn copy_row(to: *mut u8, from: *mut u8, len: usize) {
    // SAFETY (of all blocks): inside the rows, and aligned as the accesses need, by the arithmetic
    // around them.
    let mut at = 0;
    let together = to.addr() % 8 == from.addr() % 8;
    let head = if together { len.min(to.align_offset(8)) } else { len };
    // SAFETY: as above.
    let byte = |at: usize| unsafe {
        AtomicU8::from_ptr(to.add(at))
            .store(AtomicU8::from_ptr(from.add(at)).load(Ordering::Relaxed), Ordering::Relaxed);
    };
    while at < head {
        byte(at);
        at += 1;
    }
    while at + 8 <= len {
        // SAFETY: as above.
        unsafe {
            let word = AtomicU64::from_ptr(from.add(at).cast()).load(Ordering::Relaxed);
            AtomicU64::from_ptr(to.add(at).cast()).store(word, Ordering::Relaxed);
        }
        at += 8;
    }
    while at < len {
        byte(at);
        at += 1;
    }
}

/// A fill of one or two dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub(crate) element: u32,
    /// Elements of a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Fill {
    /// The bytes from the first to the last that it writes; `None` where no memory holds as many.
    fn checked_reach(&self) -> Option<usize> {
        let row = self.width.checked_mul(self.element as usize)?;
        self.pitch.checked_mul(self.height.checked_sub(1)?)?.checked_add(row)
    }

    /// As `check` found it, or more than there is in a fill that was captured without it.
    fn reach(&self) -> usize {
        self.checked_reach().unwrap_or(usize::MAX)
    }

    pub(crate) fn is_aligned(&self) -> bool {
        self.address.is_multiple_of(u64::from(self.element))
    }

    /// The rules for a memset node; a call with nothing to do is checked before.
    pub(crate) fn check(&self, promised: Promised) -> Answer {
        let element = u64::from(self.element);
        let sizes = matches!(self.element, 1 | 2 | 4) && self.width > 0 && self.height > 0;
        if !sizes || !self.address.is_multiple_of(element) {
            return Err(INVALID_VALUE);
        }
        let row = self.width.checked_mul(self.element as usize).ok_or(INVALID_VALUE)?;
        if self.height > 1 && (self.pitch < row || !(self.pitch as u64).is_multiple_of(element)) {
            return Err(INVALID_VALUE);
        }
        let reach = self.checked_reach().ok_or(INVALID_VALUE)?;
        if promised.is_there(self.address, reach) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    pub(crate) fn run(&self, lost_as: CUresult) -> Result<(), Loss> {
        let reached = reach(self.address, self.reach(), true).map_err(|sentence| {
            let text = format!("a fill writes {} bytes at {:#x}: {sentence}", self.reach(), self.address);
            Loss::new(lost_as, text)
        })?;
        for y in 0..self.height {
            for x in 0..self.width {
                let offset = y * self.pitch + x * self.element as usize;
                // SAFETY: inside the reach that was found in one allocation; aligned to the
                // element, as was checked at the call.
                unsafe {
                    let to = reached.base.add(offset);
                    match self.element {
                        1 => AtomicU8::from_ptr(to).store(self.value as u8, Ordering::Relaxed),
                        2 => AtomicU16::from_ptr(to.cast()).store(self.value as u16, Ordering::Relaxed),
                        _ => AtomicU32::from_ptr(to.cast()).store(self.value, Ordering::Relaxed),
                    }
                }
            }
        }
        Ok(())
    }
}

/// One side as the interface's structures give it.
struct RawSide {
    kind: CUmemorytype,
    host: u64,
    device: u64,
    at: [usize; 3],
    pitch: usize,
    rows: usize,
}

impl RawSide {
    fn resolve(&self, extent: [usize; 3]) -> Answer<Side> {
        let (base, place) = match self.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                // Host memory is taken as it is, also unmapped; a device pointer given as host
                // works.
                (self.host, Place::of(self.host).ok_or(INVALID_VALUE)?)
            }
            CUmemorytype::CU_MEMORYTYPE_DEVICE => match Place::of(self.device) {
                Some(Place::Pageable) | None => return Err(INVALID_VALUE),
                Some(place) => (self.device, place),
            },
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => {
                (self.device, Place::of(self.device).ok_or(INVALID_VALUE)?)
            }
            _ => return Err(INVALID_VALUE),
        };
        let [width, height, depth] = extent;
        if base == 0 {
            return Err(INVALID_VALUE);
        }
        let [x, y, z] = self.at;
        let row_end = x.checked_add(width).ok_or(INVALID_VALUE)?;
        let last_row = y.checked_add(height).ok_or(INVALID_VALUE)?;
        let pitch = if self.pitch == 0 { row_end } else { self.pitch };
        if (height > 1 || depth > 1) && pitch < row_end {
            return Err(INVALID_VALUE);
        }
        let rows = if self.rows == 0 { last_row } else { self.rows };
        if depth > 1 && rows < last_row {
            return Err(INVALID_VALUE);
        }
        let slice = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
        let offset = z.checked_mul(slice).and_then(|z| z.checked_add(y.checked_mul(pitch)?)?.checked_add(x));
        let address = base.checked_add(offset.ok_or(INVALID_VALUE)? as u64).ok_or(INVALID_VALUE)?;
        Ok(Side { address, pitch, slice, place })
    }
}

/// Reads the description of a copy. For a node an extent of 0 is an invalid value, for a call it is
/// nothing to do.
pub(crate) fn parse(raw: &CUDA_MEMCPY3D_v2, promised: Promised) -> Answer<Copy3> {
    let extent = [raw.WidthInBytes, raw.Height, raw.Depth];
    if promised == Promised::Yes && extent.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let src = RawSide {
        kind: raw.srcMemoryType,
        host: raw.srcHost.expose_provenance() as u64,
        device: raw.srcDevice,
        at: [raw.srcXInBytes, raw.srcY, raw.srcZ],
        pitch: raw.srcPitch,
        rows: raw.srcHeight,
    };
    let dst = RawSide {
        kind: raw.dstMemoryType,
        host: raw.dstHost.expose_provenance() as u64,
        device: raw.dstDevice,
        at: [raw.dstXInBytes, raw.dstY, raw.dstZ],
        pitch: raw.dstPitch,
        rows: raw.dstHeight,
    };
    let copy = Copy3 { src: src.resolve(extent)?, dst: dst.resolve(extent)?, extent };
    copy.check_ranges(promised)?;
    Ok(copy)
}

/// The three-dimensional form of a two-dimensional description.
pub(crate) fn widen(raw: &CUDA_MEMCPY2D_v2) -> CUDA_MEMCPY3D_v2 {
    CUDA_MEMCPY3D_v2 {
        srcXInBytes: raw.srcXInBytes,
        srcY: raw.srcY,
        srcMemoryType: raw.srcMemoryType,
        srcHost: raw.srcHost,
        srcDevice: raw.srcDevice,
        srcArray: raw.srcArray,
        srcPitch: raw.srcPitch,
        dstXInBytes: raw.dstXInBytes,
        dstY: raw.dstY,
        dstMemoryType: raw.dstMemoryType,
        dstHost: raw.dstHost,
        dstDevice: raw.dstDevice,
        dstArray: raw.dstArray,
        dstPitch: raw.dstPitch,
        WidthInBytes: raw.WidthInBytes,
        Height: raw.Height,
        Depth: 1,
        ..CUDA_MEMCPY3D_v2::default()
    }
}
