//! Hints for managed memory, which have no effect but that they can be asked for, and calls that
//! move or discard it.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use cuda_sys::{
    CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUresult, CUstream,
};

use super::table::Entries;
use crate::device::context::check_device;
use crate::driver;
use crate::driver::handle::number;
use crate::driver::pointer::{put, required, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::memory::fill::Fill;
use crate::memory::hint::{Hint, Place};
use crate::memory::{self, Allocation, UNWRITTEN};
use crate::stream::{self, Stream, StreamKind};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuMemPrefetchAsync,
        cuMemPrefetchBatchAsync,
        cuMemDiscardBatchAsync,
        cuMemDiscardAndPrefetchBatchAsync,
        cuMemAdvise,
        cuMemRangeGetAttribute,
        cuMemRangeGetAttributes,
        cuStreamAttachMemAsync,
        ..entries
    }
}

/// The number of no device.
const NO_DEVICE: c_int = -2;

/// A range of managed memory.
struct Managed {
    allocation: Arc<Allocation>,
    address: u64,
    len: usize,
}

impl Managed {
    fn find(address: u64, len: usize) -> Answer<Self> {
        let found = memory::find_range(address, len).filter(|found| found.origin.is_managed());
        let allocation = found.filter(|_| len > 0).ok_or(INVALID_VALUE)?;
        Ok(Self { allocation, address, len })
    }

    fn range(&self) -> core::ops::Range<u64> {
        self.address..self.address + self.len as u64
    }

    fn give(&self, hint: Hint) {
        lock(&self.allocation.hints).give(self.range(), hint);
    }
}

/// The place of a location.
fn place(location: &CUmemLocation) -> Answer<Place> {
    // SAFETY: whichever field counts, all begin with the number.
    let id = unsafe { location.__bindgen_anon_1.id };
    match location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => check_device(id)?,
        CUmemLocationType(2..=4) => {}
        _ => return Err(INVALID_VALUE),
    }
    Ok(Place { kind: location.type_, id })
}

/// The ranges of a batch and its stream, which is not the legacy one.
///
/// # Safety
/// The arrays are null or valid for `count` elements.
unsafe fn batch(
    addresses: *const CUdeviceptr,
    sizes: *const usize,
    count: usize,
    flags: c_ulonglong,
    h_stream: CUstream,
) -> Answer<(Vec<Managed>, Arc<Stream>)> {
    let stream = stream::get(number(h_stream))?;
    if count == 0 || flags != 0 || stream.kind == StreamKind::Legacy {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    let (addresses, sizes) = unsafe { (slice(addresses, count)?, slice(sizes, count)?) };
    let ranges = addresses.iter().zip(sizes).map(|(address, len)| Managed::find(*address, *len));
    Ok((ranges.collect::<Answer<Vec<_>>>()?, stream))
}

/// The place of each of `count` ranges. A place counts from the range that `firsts` names up to the
/// next one. As on a GPU, the numbers need not rise: after the first, each is looked for only once
/// the one before has come, and places whose number never comes have no effect.
///
/// # Safety
/// The arrays are null or valid for `len` elements.
unsafe fn places(
    locations: *const CUmemLocation,
    firsts: *const usize,
    len: usize,
    count: usize,
) -> Answer<Vec<Place>> {
    // SAFETY: the caller's promise.
    let (locations, firsts) = unsafe { (slice(locations, len)?, slice(firsts, len)?) };
    let places = locations.iter().map(place).collect::<Answer<Vec<_>>>()?;
    let fits = len <= count && firsts.first() == Some(&0) && firsts.iter().all(|first| *first < count);
    let mut next = firsts.iter().zip(places).peekable();
    let (_, mut current) = next.next().filter(|_| fits).ok_or(INVALID_VALUE)?;
    let of_range = |index: usize| {
        if let Some((_, place)) = next.next_if(|(first, _)| index > 0 && **first == index) {
            current = place;
        }
        current
    };
    Ok((0..count).map(of_range).collect())
}

/// Enqueues a discard: the content is lost.
fn discard(range: &Managed, stream: &Arc<Stream>) {
    let bytes = Fill {
        address: range.address,
        pitch: 0,
        value: UNWRITTEN.into(),
        element: 1,
        width: range.len,
        height: 1,
    };
    stream.push(move || bytes.run(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
}

/// Enqueues prefetches.
fn prefetch(ranges: &[Managed], places: &[Place], stream: &Arc<Stream>) {
    for (range, place) in ranges.iter().zip(places) {
        range.give(Hint::Prefetched(*place));
    }
    stream.push(|| Ok(()));
}

type A = CUmem_range_attribute;

/// Fails unless the attribute exists and has `len` bytes, for which there is a place.
fn check_attribute(data: *mut c_void, len: usize, attribute: CUmem_range_attribute) -> Answer {
    required(data)?;
    let fits = match attribute {
        // As many devices as the caller has room for.
        A::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => len > 0 && len.is_multiple_of(4),
        A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY
        | A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION
        | A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE
        | A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID
        | A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
        | A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE
        | A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => len == 4,
        _ => false,
    };
    if fits { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Writes an attribute of a range, which was checked.
///
/// # Safety
/// `data` is valid for a write of `len` bytes.
unsafe fn write(data: *mut c_void, len: usize, attribute: CUmem_range_attribute, range: &Managed) -> Answer {
    let (hints, bytes) = (lock(&range.allocation.hints), range.range());
    let number = |place: Option<Place>| place.map_or(NO_DEVICE, Place::number);
    let kind =
        |place: Option<Place>| place.map_or(0, |place| c_int::try_from(place.kind.0).unwrap_or_default());
    let id = |place: Option<Place>| place.map_or(NO_DEVICE, |place| place.id);
    let value = match attribute {
        A::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => {
            let devices = c_int::try_from(driver::config().devices).unwrap_or(c_int::MAX);
            let mut known = (-1..devices).filter(|device| hints.is_accessed_by(&bytes, *device));
            for index in 0..len / 4 {
                let next = known.next().unwrap_or(NO_DEVICE);
                // SAFETY: inside the bytes that the caller promised.
                unsafe { data.cast::<c_int>().add(index).write_unaligned(next) };
            }
            return Ok(());
        }
        A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY => hints.is_read_mostly(&bytes).into(),
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION => number(hints.preferred(&bytes)),
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE => kind(hints.preferred(&bytes)),
        A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID => id(hints.preferred(&bytes)),
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION => number(hints.prefetched(&bytes)),
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE => kind(hints.prefetched(&bytes)),
        A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => id(hints.prefetched(&bytes)),
        _ => return Err(INVALID_VALUE),
    };
    // SAFETY: four bytes, as the caller promised.
    unsafe { put(data.cast::<c_int>(), value) }
}

entries! {
    owned fn cuMemPrefetchAsync(
        dev_ptr: CUdeviceptr,
        count: usize,
        location: CUmemLocation,
        flags: c_uint,
        h_stream: CUstream,
    ) {
        let stream = stream::get(number(h_stream))?;
        let range = Managed::find(dev_ptr, count)?;
        let place = place(&location)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        capture::refuse_on(&stream)?;
        prefetch(&[range], &[place], &stream);
        Ok(())
    }

    owned fn cuMemPrefetchBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        firsts: *mut usize,
        len: usize,
        flags: c_ulonglong,
        h_stream: CUstream,
    ) {
        let (ranges, stream) = batch(addresses, sizes, count, flags, h_stream)?;
        let places = places(locations, firsts, len, ranges.len())?;
        capture::refuse_on(&stream)?;
        prefetch(&ranges, &places, &stream);
        Ok(())
    }

    owned fn cuMemDiscardBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        flags: c_ulonglong,
        h_stream: CUstream,
    ) {
        let (ranges, stream) = batch(addresses, sizes, count, flags, h_stream)?;
        capture::refuse_on(&stream)?;
        ranges.iter().for_each(|range| discard(range, &stream));
        Ok(())
    }

    owned fn cuMemDiscardAndPrefetchBatchAsync(
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        firsts: *mut usize,
        len: usize,
        flags: c_ulonglong,
        h_stream: CUstream,
    ) {
        let (ranges, stream) = batch(addresses, sizes, count, flags, h_stream)?;
        let places = places(locations, firsts, len, ranges.len())?;
        capture::refuse_on(&stream)?;
        ranges.iter().for_each(|range| discard(range, &stream));
        prefetch(&ranges, &places, &stream);
        Ok(())
    }

    live fn cuMemAdvise(dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation) {
        type A = CUmem_advise;
        let range = Managed::find(dev_ptr, count)?;
        range.give(match advice {
            // These have no location.
            A::CU_MEM_ADVISE_SET_READ_MOSTLY => Hint::ReadMostly(true),
            A::CU_MEM_ADVISE_UNSET_READ_MOSTLY => Hint::ReadMostly(false),
            A::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION => Hint::Preferred(None),
            A::CU_MEM_ADVISE_SET_PREFERRED_LOCATION => Hint::Preferred(Some(place(&location)?)),
            A::CU_MEM_ADVISE_SET_ACCESSED_BY => Hint::AccessedBy(place(&location)?, true),
            A::CU_MEM_ADVISE_UNSET_ACCESSED_BY => Hint::AccessedBy(place(&location)?, false),
            _ => return Err(INVALID_VALUE),
        });
        Ok(())
    }

    live fn cuMemRangeGetAttribute(
        data: *mut c_void,
        data_size: usize,
        attribute: CUmem_range_attribute,
        dev_ptr: CUdeviceptr,
        count: usize,
    ) {
        let range = Managed::find(dev_ptr, count)?;
        check_attribute(data, data_size, attribute)?;
        write(data, data_size, attribute, &range)
    }

    live fn cuMemRangeGetAttributes(
        data: *mut *mut c_void,
        data_sizes: *mut usize,
        attributes: *mut CUmem_range_attribute,
        len: usize,
        dev_ptr: CUdeviceptr,
        count: usize,
    ) {
        let range = Managed::find(dev_ptr, count)?;
        if len == 0 {
            return Err(INVALID_VALUE);
        }
        let (data, sizes, attributes) = (slice(data, len)?, slice(data_sizes, len)?, slice(attributes, len)?);
        let wanted = || data.iter().zip(sizes).zip(attributes);
        wanted().try_for_each(|((data, size), attribute)| check_attribute(*data, *size, *attribute))?;
        for ((data, size), attribute) in wanted() {
            write(*data, *size, *attribute, &range)?;
        }
        Ok(())
    }

    owned fn cuStreamAttachMemAsync(h_stream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        let found = memory::find_start(dptr).filter(|found| found.origin.is_managed()).ok_or(INVALID_VALUE)?;
        if !matches!(flags, 1 | 2 | 4) || (length != 0 && length != found.len) {
            return Err(INVALID_VALUE);
        }
        stream.push(|| Ok(()));
        Ok(())
    }
}
