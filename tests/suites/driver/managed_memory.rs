//! Hints about managed memory, and batches that move, discard or copy memory.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::skip;

use crate::common::*;

type A = CUmem_range_attribute;

const LEN: usize = 4 << 20;
const NO_DEVICE: i32 = -2;

fn managed(s: &Session) -> CUdeviceptr {
    let mut address = 0;
    let global = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
    assert_eq!(unsafe { s.cuMemAllocManaged(&mut address, LEN, global) }, OK);
    address
}

fn location(type_: CUmemLocationType) -> CUmemLocation {
    CUmemLocation { type_, ..Default::default() }
}

fn device() -> CUmemLocation {
    location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE)
}

fn host() -> CUmemLocation {
    location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST)
}

fn attribute<const N: usize>(s: &Session, attribute: A, address: CUdeviceptr, len: usize) -> [i32; N] {
    let mut values = [7; N];
    let data: *mut c_void = values.as_mut_ptr().cast();
    assert_eq!(
        unsafe { s.cuMemRangeGetAttribute(data, N * 4, attribute, address, len) },
        OK,
        "{attribute:?}"
    );
    values
}

#[test]
fn hints_are_told_of_ranges_that_have_them_throughout() {
    let s = session();
    let address = managed(&s);
    let half = (LEN / 2) as u64;
    let preferred = A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
    let advise = |advice, address, len, place| unsafe {
        assert_eq!(s.cuMemAdvise(address, len, advice, place), OK);
    };
    assert_eq!(attribute(&s, preferred, address, LEN), [NO_DEVICE]);
    assert_eq!(attribute(&s, A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, LEN), [0]);
    advise(CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, address, LEN, device());
    assert_eq!(attribute(&s, preferred, address, LEN), [0]);
    advise(CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, address + half, LEN / 2, host());
    assert_eq!(attribute(&s, preferred, address, LEN), [NO_DEVICE]);
    assert_eq!(attribute(&s, preferred, address + half, LEN / 2), [-1]);
    advise(CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, address, LEN / 2, device());
    assert_eq!(attribute(&s, A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, LEN / 2), [1]);
    assert_eq!(attribute(&s, A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, LEN), [0]);
    advise(CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, address, LEN, device());
    let readers = attribute(&s, A::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, LEN);
    assert_eq!(readers, [0, NO_DEVICE]);
    s.free(address);
}

#[test]
fn a_prefetch_is_told_at_once() {
    let s = session();
    let address = managed(&s);
    let last = A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
    assert_eq!(attribute(&s, last, address, LEN), [NO_DEVICE]);
    assert_eq!(unsafe { s.cuMemPrefetchAsync(address, LEN, device(), 0, s.stream) }, OK);
    assert_eq!(attribute(&s, last, address, LEN), [0]);
    assert_eq!(unsafe { s.cuMemPrefetchAsync(address, LEN, host(), 0, s.stream) }, OK);
    assert_eq!(attribute(&s, last, address, LEN), [-1]);
    s.wait();
    s.free(address);
}

#[test]
fn managed_memory_is_freed_by_the_plain_call_alone() {
    let s = session();
    let address = managed(&s);
    unsafe {
        assert_eq!(s.cuMemFreeAsync(address, s.stream), NS);
        assert_eq!((s.cuMemFree(address + 512), s.cuMemFreeAsync(address + 512, s.stream)), (IV, IV));
        assert_eq!((s.cuMemFree(address), s.cuMemFree(address)), (OK, IV));
    }
}

#[test]
fn attributes_are_asked_for_together() {
    let s = session();
    let address = managed(&s);
    let (mut mostly, mut preferred) = (7, 7);
    let mut data: [*mut c_void; 2] = [(&raw mut mostly).cast(), (&raw mut preferred).cast()];
    let mut which = [A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, A::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION];
    let mut ask = |sizes: &mut [usize; 2], address| unsafe {
        let (data, which) = (data.as_mut_ptr(), which.as_mut_ptr());
        s.cuMemRangeGetAttributes(data, sizes.as_mut_ptr(), which, 2, address, LEN)
    };
    assert_eq!(ask(&mut [4, 4], address), OK);
    assert_eq!((mostly, preferred), (0, NO_DEVICE));
    // A size that the attribute does not have.
    assert_eq!(ask(&mut [4, 8], address), IV);
    // Memory that is not managed.
    let plain = s.words(LEN / 4);
    assert_eq!(ask(&mut [4, 4], plain), IV);
    s.free(plain);
    s.free(address);
}

#[test]
fn a_batch_prefetches_each_range_to_its_place() {
    let s = session();
    if !s.has(13, 0) {
        skip!("batches of prefetches came with 13.0");
    }
    let address = managed(&s);
    let quarter = LEN / 4;
    let mut starts = [0, 1, 2, 3].map(|index| address + (index * quarter) as u64);
    let (mut sizes, mut places, mut firsts) = ([quarter; 4], [device(), host(), device()], [0, 3]);
    let mut batch = |count, firsts: &mut [usize], stream| unsafe {
        let (starts, sizes, places) = (starts.as_mut_ptr(), sizes.as_mut_ptr(), places.as_mut_ptr());
        let (firsts, len) = (firsts.as_mut_ptr(), firsts.len());
        s.cuMemPrefetchBatchAsync(starts, sizes, count, places, firsts, len, 0, stream).unwrap()
    };
    assert_eq!(batch(4, &mut firsts, s.stream), OK);
    let last = A::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
    assert_eq!(attribute(&s, last, address, 3 * quarter), [0]);
    assert_eq!(attribute(&s, last, address + 3 * quarter as u64, quarter), [-1]);
    // Numbers of ranges that do not rise have no effect.
    for (mut firsts, found) in [
        (vec![0, 0], [0; 4]),
        (vec![0, 3, 3], [0, 0, 0, -1]),
        (vec![0, 0, 2], [0; 4]),
        (vec![0, 2, 1], [0, 0, -1, -1]),
        (vec![0, 1, 1], [0, -1, -1, -1]),
    ] {
        assert_eq!(batch(4, &mut firsts, s.stream), OK, "{firsts:?}");
        let place = |index| attribute(&s, last, address + (index * quarter) as u64, quarter);
        assert_eq!([0, 1, 2, 3].map(place), found.map(|place| [place]), "{firsts:?}");
    }
    for mut firsts in [vec![1, 3], vec![0, 4], vec![0, 3, 4], vec![]] {
        assert_eq!(batch(4, &mut firsts, s.stream), IV, "{firsts:?}");
    }
    assert_eq!(batch(1, &mut [0, 0], s.stream), IV, "more places than ranges");
    assert_eq!(batch(0, &mut firsts, s.stream), IV);
    assert_eq!(batch(4, &mut firsts, null_mut()), IV, "the legacy stream");
    s.wait();
    s.free(address);
}

#[test]
fn discarded_memory_is_written_anew() {
    let s = session();
    if !s.has(13, 0) {
        skip!("discards came with 13.0");
    }
    let address = managed(&s);
    let (mut starts, mut sizes, mut places) = ([address], [LEN], [device()]);
    unsafe {
        let (starts, sizes) = (starts.as_mut_ptr(), sizes.as_mut_ptr());
        assert_eq!(s.cuMemDiscardBatchAsync(starts, sizes, 1, 0, s.stream).unwrap(), OK);
        assert_eq!(s.cuMemDiscardBatchAsync(starts, sizes, 1, 1, s.stream).unwrap(), IV, "flags");
        let (places, mut first) = (places.as_mut_ptr(), 0);
        let both = s.cuMemDiscardAndPrefetchBatchAsync(starts, sizes, 1, places, &mut first, 1, 0, s.stream);
        assert_eq!(both.unwrap(), OK);
        assert_eq!(s.cuMemsetD32Async(address, 7, 1, s.stream), OK);
    }
    s.wait();
    assert_eq!(s.read(address), 7);
    s.free(address);
}

#[test]
fn a_batch_copies_in_both_directions() {
    let s = session();
    if !s.has(13, 0) {
        skip!("its layout came with 13.0");
    }
    let (device, mut to_host, from_host) = (s.words(2), 0u32, 7u32);
    s.write(device, 5);
    let mut dsts = [(&raw mut to_host).expose_provenance() as u64, device + 4];
    let mut srcs = [device, (&raw const from_host).expose_provenance() as u64];
    let mut sizes = [4, 4];
    let mut attributes = [CUmemcpyAttributes {
        srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        ..Default::default()
    }];
    let mut batch = |sizes: &mut [usize; 2], attributes: &mut [CUmemcpyAttributes; 1], stream| unsafe {
        let (dsts, srcs, mut first) = (dsts.as_mut_ptr(), srcs.as_mut_ptr(), 0);
        let (sizes, attributes) = (sizes.as_mut_ptr(), attributes.as_mut_ptr());
        s.cuMemcpyBatchAsync_v13000(dsts, srcs, sizes, 2, attributes, &mut first, 1, stream).unwrap()
    };
    assert_eq!(batch(&mut sizes, &mut attributes, s.stream), OK);
    s.wait();
    assert_eq!((to_host, s.read(device + 4)), (5, 7));
    assert_eq!(batch(&mut sizes, &mut [CUmemcpyAttributes::default()], s.stream), IV, "no order");
    assert_eq!(batch(&mut sizes, &mut attributes, null_mut()), IV, "the legacy stream");
    s.free(device);
}
