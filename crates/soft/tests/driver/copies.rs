//! Copies of up to three dimensions between all kinds of memory, against a model; fills of rows;
//! accounting of pools.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;
use proptest::prelude::*;

const PITCH: usize = 64;
const ROWS: usize = 6;
const SLICES: usize = 3;
const BYTES: usize = PITCH * ROWS * SLICES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Plain,
    Pooled,
    Managed,
    Pinned,
    Pageable,
}

impl Memory {
    const ALL: [Self; 5] = [Self::Plain, Self::Pooled, Self::Managed, Self::Pinned, Self::Pageable];
}

/// Memory of a kind with its address.
struct Block {
    kind: Memory,
    address: u64,
    _own: Vec<u8>,
}

impl Block {
    fn new(driver: &Driver, kind: Memory, contents: &[u8]) -> Self {
        let (mut address, mut host, mut own) = (0, null_mut(), Vec::new());
        unsafe {
            match kind {
                Memory::Plain => assert_eq!(driver.cuMemAlloc(&mut address, BYTES), OK),
                Memory::Pooled => assert_eq!(driver.cuMemAllocAsync(&mut address, BYTES, null_mut()), OK),
                Memory::Managed => assert_eq!(driver.cuMemAllocManaged(&mut address, BYTES, 1), OK),
                Memory::Pinned => {
                    assert_eq!(driver.cuMemHostAlloc(&mut host, BYTES, 0), OK);
                    address = host.expose_provenance() as u64;
                }
                Memory::Pageable => {
                    own = vec![0; BYTES];
                    address = own.as_mut_ptr().expose_provenance() as u64;
                }
            }
            let from = contents.as_ptr().expose_provenance() as u64;
            assert_eq!(driver.cuMemcpy(address, from, BYTES), OK);
        }
        Self { kind, address, _own: own }
    }

    fn read(&self, driver: &Driver) -> Vec<u8> {
        let mut out = vec![0u8; BYTES];
        let to = out.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(unsafe { driver.cuMemcpy(to, self.address, BYTES) }, OK);
        out
    }

    fn free(self, driver: &Driver) {
        let host: *mut c_void = std::ptr::with_exposed_provenance_mut(self.address as usize);
        unsafe {
            match self.kind {
                Memory::Plain | Memory::Managed => assert_eq!(driver.cuMemFree(self.address), OK),
                Memory::Pooled => assert_eq!(driver.cuMemFreeAsync(self.address, null_mut()), OK),
                Memory::Pinned => assert_eq!(driver.cuMemFreeHost(host), OK),
                Memory::Pageable => {}
            }
        }
    }

    fn is_host(&self) -> bool {
        matches!(self.kind, Memory::Pinned | Memory::Pageable)
    }
}

fn descriptor(
    dst: &Block,
    to: [usize; 3],
    src: &Block,
    from: [usize; 3],
    extent: [usize; 3],
) -> CUDA_MEMCPY3D_v2 {
    let kind = |block: &Block| {
        if block.is_host() { CUmemorytype::CU_MEMORYTYPE_HOST } else { CUmemorytype::CU_MEMORYTYPE_DEVICE }
    };
    CUDA_MEMCPY3D_v2 {
        srcXInBytes: from[0],
        srcY: from[1],
        srcZ: from[2],
        srcMemoryType: kind(src),
        srcHost: std::ptr::with_exposed_provenance(src.address as usize),
        srcDevice: src.address,
        srcPitch: PITCH,
        srcHeight: ROWS,
        dstXInBytes: to[0],
        dstY: to[1],
        dstZ: to[2],
        dstMemoryType: kind(dst),
        dstHost: std::ptr::with_exposed_provenance_mut(dst.address as usize),
        dstDevice: dst.address,
        dstPitch: PITCH,
        dstHeight: ROWS,
        WidthInBytes: extent[0],
        Height: extent[1],
        Depth: extent[2],
        ..Default::default()
    }
}

/// One axis: where it starts on both sides and how far it goes.
fn axis(len: usize) -> impl Strategy<Value = [usize; 3]> {
    (1..=len).prop_flat_map(move |extent| {
        (0..=len - extent, 0..=len - extent).prop_map(move |(to, from)| [to, from, extent])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boxes_of_bytes_go_where_they_should(
        x in axis(PITCH), y in axis(ROWS), z in axis(SLICES),
        kinds in (0..5usize, 0..5usize), waits in any::<bool>(), flat in any::<bool>(),
    ) {
        let driver = &session();
        let z = if flat { [0, 0, 1] } else { z };
        let contents: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let src = Block::new(driver, Memory::ALL[kinds.0], &contents);
        let dst = Block::new(driver, Memory::ALL[kinds.1], &[0xEE; BYTES]);
        let copy = descriptor(&dst, [x[0], y[0], z[0]], &src, [x[1], y[1], z[1]], [x[2], y[2], z[2]]);
        let two = CUDA_MEMCPY2D_v2 {
            srcXInBytes: copy.srcXInBytes, srcY: copy.srcY, srcMemoryType: copy.srcMemoryType, srcHost: copy.srcHost,
            srcDevice: copy.srcDevice, srcPitch: PITCH, dstXInBytes: copy.dstXInBytes, dstY: copy.dstY,
            dstMemoryType: copy.dstMemoryType, dstHost: copy.dstHost, dstDevice: copy.dstDevice, dstPitch: PITCH,
            WidthInBytes: copy.WidthInBytes, Height: copy.Height, ..Default::default()
        };
        unsafe {
            let answer = match (flat, waits) {
                (true, true) => driver.cuMemcpy2D(&two),
                (true, false) => driver.cuMemcpy2DAsync(&two, null_mut()),
                (false, true) => driver.cuMemcpy3D(&copy),
                (false, false) => driver.cuMemcpy3DAsync(&copy, null_mut()),
            };
            prop_assert_eq!(answer, OK);
            prop_assert_eq!(driver.cuStreamSynchronize(null_mut()), OK);
        }
        let mut model = vec![0xEE; BYTES];
        let at = |x: usize, y: usize, z: usize| (z * ROWS + y) * PITCH + x;
        for (k, j, i) in (0..z[2]).flat_map(|k| (0..y[2]).flat_map(move |j| (0..x[2]).map(move |i| (k, j, i)))) {
            model[at(x[0] + i, y[0] + j, z[0] + k)] = contents[at(x[1] + i, y[1] + j, z[1] + k)];
        }
        prop_assert_eq!(dst.read(driver), model);
        src.free(driver);
        dst.free(driver);
    }

    #[test]
    fn rows_are_filled(
        element in 0..3usize, width in 1..16usize, height in 1..ROWS, value in any::<u32>(), waits in any::<bool>(),
    ) {
        let driver = &session();
        let block = Block::new(driver, Memory::Plain, &[0; BYTES]);
        let to = block.address;
        let stream = null_mut();
        let answer = unsafe { match (element, waits) {
            (0, true) => driver.cuMemsetD2D8(to, PITCH, value as u8, width, height),
            (0, false) => driver.cuMemsetD2D8Async(to, PITCH, value as u8, width, height, stream),
            (1, true) => driver.cuMemsetD2D16(to, PITCH, value as u16, width, height),
            (1, false) => driver.cuMemsetD2D16Async(to, PITCH, value as u16, width, height, stream),
            (_, true) => driver.cuMemsetD2D32(to, PITCH, value, width, height),
            (_, false) => driver.cuMemsetD2D32Async(to, PITCH, value, width, height, stream),
        } };
        prop_assert_eq!(answer, OK);
        let mut model = vec![0; BYTES];
        let bytes = value.to_le_bytes();
        for (y, x) in (0..height).flat_map(|y| (0..width << element).map(move |x| (y, x))) {
            model[y * PITCH + x] = bytes[x % (1 << element)];
        }
        prop_assert_eq!(block.read(driver), model);
        block.free(driver);
    }
}

#[test]
fn bytes_go_between_all_kinds_of_memory() {
    let driver = &session();
    let contents: Vec<u8> = (0..BYTES).map(|at| (at % 253) as u8).collect();
    for (from, to) in Memory::ALL.into_iter().flat_map(|from| Memory::ALL.map(|to| (from, to))) {
        let (src, dst) = (Block::new(driver, from, &contents), Block::new(driver, to, &[0; BYTES]));
        let stream = stream(driver);
        unsafe {
            // Pool memory is usable once its stream has reached the allocation.
            assert_eq!(driver.cuStreamSynchronize(null_mut()), OK);
            assert_eq!(driver.cuMemcpyAsync(dst.address, src.address, BYTES, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
        assert!(dst.read(driver) == contents, "{from:?} to {to:?}");
        src.free(driver);
        dst.free(driver);
    }
}

#[test]
fn a_source_for_which_the_host_has_no_memory_is_refused() {
    alone("copies::a_source_for_which_the_host_has_no_memory_is_refused", || {
        const FAR_TOO_MUCH: usize = 1 << 62;
        let driver = &session();
        let short = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let (src, mut dst) = ([1_u8; 8], [0_u8; 8]);
        let addresses =
            [dst.as_mut_ptr().expose_provenance() as u64, src.as_ptr().expose_provenance() as u64];
        let (stream, graph) = (stream(driver), graph(driver));
        let raw = CUDA_MEMCPY3D_v2 {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: src.as_ptr().cast(),
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: dst.as_mut_ptr().cast(),
            WidthInBytes: FAR_TOO_MUCH,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let mut node = null_mut();
        unsafe {
            assert_eq!(driver.cuMemcpy(addresses[0], addresses[1], FAR_TOO_MUCH), short);
            assert_eq!(driver.cuMemcpyAsync(addresses[0], addresses[1], FAR_TOO_MUCH, stream), short);
            assert_eq!(driver.cuMemcpy3D(&raw), short);
            assert_eq!(
                driver.cuGraphAddMemcpyNode(&mut node, graph, null_mut(), 0, &raw, context(driver)),
                OK
            );
            let exec = instantiate(driver, graph);
            assert_eq!(driver.cuGraphLaunch(exec, stream), short);
            let small = CUDA_MEMCPY3D_v2 { WidthInBytes: 8, ..raw };
            assert_eq!(driver.cuGraphExecMemcpyNodeSetParams(exec, node, &small, context(driver)), OK);
            run(driver, exec, stream);
            assert_eq!(dst, src);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(graph), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn pools_count_what_they_give() {
    let driver = &session();
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        maxSize: 64 << 20,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (mut pool, stream) = (null_mut(), stream(driver));
    assert_eq!(unsafe { driver.cuMemPoolCreate(&mut pool, &props) }, OK);
    type A = CUmemPool_attribute;
    let read = |attribute: A| {
        let mut value = 0u64;
        assert_eq!(unsafe { driver.cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()) }, OK);
        value
    };
    let write = |attribute: A, mut value: u64| unsafe {
        driver.cuMemPoolSetAttribute(pool, attribute, (&raw mut value).cast())
    };
    let (mut one, mut two) = (0, 0);
    unsafe {
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut one, 1000, pool, stream), OK);
        assert_eq!(
            driver.cuMemAllocFromPoolAsync(&mut two, 100 << 20, pool, stream),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut two, 40 << 20, pool, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(two, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
    assert_eq!(read(A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
    assert_eq!(read(A::CU_MEMPOOL_ATTR_USED_MEM_HIGH), (40 << 20) + 1000);
    assert_eq!(read(A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 64 << 20);
    assert_eq!(write(A::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 5), IV);
    assert_eq!(write(A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 0), IV);
    assert_eq!(write(A::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0), OK);
    assert_eq!(read(A::CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000);
    assert_eq!(write(A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1 << 30), OK);
    assert_eq!(read(A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 1 << 30);
    unsafe {
        assert_eq!(driver.cuMemPoolTrimTo(pool, 0), OK);
        assert_eq!(read(A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 << 20);
        assert_eq!(driver.cuMemFreeAsync(one, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuMemPoolTrimTo(pool, 0), OK);
        assert_eq!(read(A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
        assert_eq!(driver.cuMemPoolDestroy(pool), OK);
        assert_eq!(driver.cuStreamDestroy(stream), OK);
    }
}

#[test]
fn pitches_beyond_the_greatest_are_refused() {
    let driver = session();
    let (row, mut device) = ([1_u8; 8], 0);
    unsafe { assert_eq!(driver.cuMemAlloc(&mut device, 64), OK) };
    // Two rows of one byte, of which the second would be far behind the memory.
    let copy = |pitch| CUDA_MEMCPY2D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: row.as_ptr().cast(),
        srcPitch: pitch,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 4,
        WidthInBytes: 1,
        Height: 2,
        ..Default::default()
    };
    for (pitch, expected) in [(4, OK), (1 << 31, IV), (1 << 33, IV), (1 << 62, IV)] {
        assert_eq!(unsafe { driver.cuMemcpy2D(&copy(pitch)) }, expected, "{pitch}");
    }
    unsafe { assert_eq!(driver.cuMemFree(device), OK) };
}

#[test]
fn addresses_of_kernels_alone_are_no_host_memory() {
    let driver = session();
    let mut device = 0;
    unsafe {
        assert_eq!(driver.cuMemAlloc(&mut device, 64), OK);
        // The windows of shared memory, of local memory and of the heap.
        for window in [1_u64 << 60, (1 << 60) + (1 << 32), 5 << 60] {
            assert_eq!(driver.cuMemcpy(device, window, 4), IV, "{window:#x}");
            assert_eq!(driver.cuMemcpy(window, device, 4), IV, "{window:#x}");
        }
        assert_eq!(driver.cuMemFree(device), OK);
    }
}
