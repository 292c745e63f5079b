//! Copies of memory and arrays: described at the call, executed by the stream.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use cuda_sys::{CUDA_MEMCPY3D_v2, CUmemorytype, CUresult};

use super::access::{Accessed, access_bytes};
use super::memory_kind::{Accept, MemoryKind, has_context};
use crate::device::loss::Loss;
use crate::driver::handle::to_raw;
use crate::driver::result_code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};

/// One side of a copy: the address of the first byte, and the distances between rows and between
/// slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
    pub(crate) place: MemoryKind,
    /// Whether the memory belongs to a context, as memory of pools does not.
    pub(crate) has_context: bool,
    /// The place in an array, if it is one.
    pub(crate) array: Option<InArray>,
}

/// A place in an array: its handle, and the first byte of a row, row and slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InArray {
    pub(crate) handle: u64,
    pub(crate) at: [usize; 3],
}

impl Side {
    /// Whether an update of an executable may replace it by another one.
    pub(crate) fn may_become(&self, new: &Self) -> bool {
        match (self.place.is_host(), new.place.is_host()) {
            (true, true) => true,
            (false, false) => {
                self.has_context == new.has_context && self.array.is_some() == new.array.is_some()
            }
            (true, false) | (false, true) => false,
        }
    }
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
    /// Returns `INVALID_VALUE` for a device address that no allocation holds and for a range that
    /// leaves its allocation.
    pub(crate) fn linear(dst: u64, src: u64, len: usize, accept: Accept) -> Answer<Self> {
        let side = |address| {
            let place = MemoryKind::of(address).ok_or(INVALID_VALUE)?;
            let has_context = has_context(address);
            Ok(Side { address, pitch: len, slice: len, place, has_context, array: None })
        };
        let copy = Self { src: side(src)?, dst: side(dst)?, extent: [len, 1, 1] };
        copy.check_ranges(accept)?;
        Ok(copy)
    }

    /// The copy as parameters of a node.
    pub(crate) fn describe(&self) -> CUDA_MEMCPY3D_v2 {
        let [width, height, depth] = self.extent;
        let mut raw =
            CUDA_MEMCPY3D_v2 { WidthInBytes: width, Height: height, Depth: depth, ..Default::default() };
        let rows = |side: &Side| side.slice.checked_div(side.pitch).unwrap_or(height);
        let kind = |place: MemoryKind| match place {
            MemoryKind::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            MemoryKind::Pinned | MemoryKind::Pageable => CUmemorytype::CU_MEMORYTYPE_HOST,
        };
        (raw.srcMemoryType, raw.srcPitch, raw.srcHeight) =
            (kind(self.src.place), self.src.pitch, rows(&self.src));
        (raw.dstMemoryType, raw.dstPitch, raw.dstHeight) =
            (kind(self.dst.place), self.dst.pitch, rows(&self.dst));
        if self.src.place == MemoryKind::Device {
            raw.srcDevice = self.src.address;
        } else {
            raw.srcHost = core::ptr::with_exposed_provenance(self.src.address as usize);
        }
        if self.dst.place == MemoryKind::Device {
            raw.dstDevice = self.dst.address;
        } else {
            raw.dstHost = core::ptr::with_exposed_provenance_mut(self.dst.address as usize);
        }
        if let Some(InArray { handle, at: [x, y, z] }) = self.src.array {
            raw.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            (raw.srcArray, raw.srcXInBytes, raw.srcY, raw.srcZ) = (to_raw(handle), x, y, z);
            (raw.srcDevice, raw.srcPitch, raw.srcHeight) = (0, 0, 0);
        }
        if let Some(InArray { handle, at: [x, y, z] }) = self.dst.array {
            raw.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
            (raw.dstArray, raw.dstXInBytes, raw.dstY, raw.dstZ) = (to_raw(handle), x, y, z);
            (raw.dstDevice, raw.dstPitch, raw.dstHeight) = (0, 0, 0);
        }
        raw
    }

    /// As [`describe`](Self::describe), for a call that copies one row: without pitches and
    /// heights.
    pub(crate) fn describe_row(&self) -> CUDA_MEMCPY3D_v2 {
        CUDA_MEMCPY3D_v2 { srcPitch: 0, srcHeight: 0, dstPitch: 0, dstHeight: 0, ..self.describe() }
    }

    /// As [`describe_row`](Self::describe_row), by addresses that do not say which memory they are
    /// of.
    pub(crate) fn describe_unified(&self) -> CUDA_MEMCPY3D_v2 {
        CUDA_MEMCPY3D_v2 {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcDevice: self.src.address,
            srcHost: core::ptr::null(),
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstDevice: self.dst.address,
            dstHost: core::ptr::null_mut(),
            ..self.describe_row()
        }
    }

    /// The bytes from the first to the last that one side touches. `check_ranges` has checked it.
    fn reach(&self, side: &Side) -> usize {
        self.checked_reach(side).unwrap_or(0)
    }

    /// As [`reach`](Self::reach); `None` if it exceeds the address space.
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

    /// Whether it copies one row.
    pub(crate) fn is_linear(&self) -> bool {
        self.extent[1] == 1 && self.extent[2] == 1
    }

    pub(super) fn check_ranges(&self, accept: Accept) -> Answer {
        if self.is_empty() {
            return Ok(());
        }
        for side in [&self.src, &self.dst] {
            let reach = self.checked_reach(side).ok_or(INVALID_VALUE)?;
            if side.place != MemoryKind::Pageable && !accept.is_there(side.address, reach) {
                return Err(INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Slice and row of each row, in the order of addresses.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let [_, height, depth] = self.extent;
        (0..depth).flat_map(move |z| (0..height).map(move |y| (z, y)))
    }

    /// Reads a pageable source immediately, so that the caller may change it afterwards: its rows
    /// without the gaps between them, which may be anybody's memory.
    ///
    /// # Errors
    /// Returns `OUT_OF_MEMORY` if the host has no memory for the rows.
    ///
    /// # Safety
    /// The rows of a pageable source are readable.
    pub(crate) unsafe fn stage(&self) -> Answer<Option<Vec<u8>>> {
        if self.src.place != MemoryKind::Pageable || self.is_empty() {
            return Ok(None);
        }
        let [width, height, depth] = self.extent;
        let len = width.checked_mul(height).and_then(|slice| slice.checked_mul(depth));
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(len.ok_or(OUT_OF_MEMORY)?).map_err(|_| OUT_OF_MEMORY)?;
        let first: *const u8 = core::ptr::with_exposed_provenance(self.src.address as usize);
        for (z, y) in self.rows() {
            // SAFETY: the row is readable by the caller's promise, and there is room for all rows.
            unsafe {
                let row = first.add(z * self.src.slice + y * self.src.pitch);
                bytes.as_mut_ptr().add(bytes.len()).copy_from_nonoverlapping(row, width);
                bytes.set_len(bytes.len() + width);
            }
        }
        Ok(Some(bytes))
    }

    /// Executes the copy; `staged` replaces a pageable source by its rows without gaps.
    ///
    /// # Safety
    /// The rows of pageable memory are valid, those of the destination for writes. `staged` has all
    /// rows of the source.
    pub(crate) unsafe fn run(&self, staged: Option<&[u8]>) -> Result<(), Loss> {
        if self.is_empty() {
            return Ok(());
        }
        let [width, height, _] = self.extent;
        let held;
        let (src, src_pitch, src_slice) = match staged {
            Some(bytes) => (bytes.as_ptr().cast_mut(), width, width * height),
            None => {
                held = self.accessed(&self.src, false)?;
                (held.0, self.src.pitch, self.src.slice)
            }
        };
        let dst = self.accessed(&self.dst, true)?;
        for (z, y) in self.rows() {
            // SAFETY: the rows of both sides are inside the allocations, or valid by the caller's
            // promise.
            unsafe {
                let from = src.add(z * src_slice + y * src_pitch);
                let to = dst.0.add(z * self.dst.slice + y * self.dst.pitch);
                copy_row(to, from, width);
            }
        }
        Ok(())
    }

    /// The first byte of a side, and the reference that keeps its allocation.
    fn accessed(&self, side: &Side, write: bool) -> Result<(*mut u8, Option<Accessed>), Loss> {
        if side.place == MemoryKind::Pageable {
            return Ok((core::ptr::with_exposed_provenance_mut(side.address as usize), None));
        }
        let len = self.reach(side);
        let accessed = access_bytes(side.address, len, write).map_err(|description| {
            let verb = if write { "writes to" } else { "reads from" };
            let text = format!("a copy {verb} {len} bytes at {:#x}: {description}", side.address);
            Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, text)
        })?;
        Ok((accessed.host, Some(accessed)))
    }
}

/// Copies a row with relaxed atomics, since other streams may use the same memory.
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
