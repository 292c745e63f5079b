//! Tensor maps that kernels use.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

/// Copies the box at `(x, y)` to shared memory, and from there to `out` as it lies there.
const LOAD: &str = "
.version 8.0\n.target sm_90\n.address_size 64\n
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y) {
    .reg .b64 %p<8>; .reg .b32 %r<8>; .reg .pred %q<2>; .shared .align 1024 .b8 s[2048]; .shared .align 8 .b64 full;
    mov.b64 %p1, map; cvta.param.u64 %p2, %p1; ld.param.u64 %p3, [out];
    ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y]; mov.u32 %r3, %tid.x; mov.u32 %r4, s;
    setp.ne.u32 %q1, %r3, 0; @%q1 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%p2, {%r1, %r2}], [full];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %q1, [full], 0; @!%q1 bra WAIT;
    mad.lo.u32 %r5, %r3, 4, %r4; mad.wide.u32 %p4, %r3, 4, %p3; ld.shared.u32 %r6, [%r5]; st.global.u32 [%p4], %r6;
    ret;
}";

fn encode(driver: &Driver, address: u64) -> CUtensorMap {
    let mut map = CUtensorMap { opaque: [0; 16] };
    let (dims, strides, boxes, steps) = ([64_u64, 16], [256_u64], [32_u32, 8], [1_u32, 1]);
    let encoded = unsafe {
        driver.cuTensorMapEncodeTiled(
            &mut map,
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            2,
            std::ptr::without_provenance_mut(address as usize),
            dims.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    assert_eq!(encoded, OK);
    map
}

#[test]
fn a_kernel_loads_a_box_by_its_map() {
    let driver = &session();
    let (mut library, none) = (null_mut(), null_mut());
    let text = CString::new(LOAD).unwrap();
    let (mut tensor, mut out) = (0, words(driver, 256));
    let content: Vec<u32> = (0..1024).collect();
    unsafe {
        let image = text.as_ptr().cast();
        let loaded =
            driver.cuLibraryLoadData(&mut library, image, none, null_mut(), 0, null_mut(), null_mut(), 0);
        assert_eq!(loaded, OK);
        assert_eq!(driver.cuMemAlloc(&mut tensor, 4096), OK);
        assert_eq!(driver.cuMemcpyHtoD(tensor, content.as_ptr().cast(), 4096), OK);
    }
    let mut map = encode(driver, tensor);
    let (mut x, mut y) = (40_i32, 12_i32);
    let mut arguments: [*mut c_void; 4] =
        [(&raw mut map).cast(), (&raw mut out).cast(), (&raw mut x).cast(), (&raw mut y).cast()];
    let function = function(driver, library, "load");
    unsafe {
        let launched = driver.cuLaunchKernel(
            function,
            1,
            1,
            1,
            256,
            1,
            1,
            0,
            null_mut(),
            arguments.as_mut_ptr(),
            null_mut(),
        );
        assert_eq!(launched, OK);
    }
    let found = read(driver, out, 256);
    for row in 0..8 {
        for column in 0..32 {
            let is_inside = 40 + column < 64 && 12 + row < 16;
            let wanted = if is_inside { (12 + row) * 64 + 40 + column } else { 0 };
            // Units of 4 words change places by row.
            let at = row * 32 + ((column / 4) ^ row) * 4 + column % 4;
            assert_eq!(found[at as usize], wanted, "row {row}, column {column}");
        }
    }
    unsafe {
        assert_eq!(driver.cuLibraryUnload(library), OK);
        assert_eq!(driver.cuMemFree(tensor), OK);
        assert_eq!(driver.cuMemFree(out), OK);
    }
}

/// A map for im2col copies of rank `dims.len()`.
fn columns(
    driver: &Driver,
    dims: &[u64],
    lower: &[i32],
    upper: &[i32],
    pixels: u32,
) -> Result<CUtensorMap, CUresult> {
    let mut map = CUtensorMap { opaque: [0; 16] };
    let (strides, steps) = ([256_u64; 4], [1_u32; 5]);
    let encoded = unsafe {
        driver.cuTensorMapEncodeIm2col(
            &mut map,
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            dims.len() as u32,
            std::ptr::without_provenance_mut(4096),
            dims.as_ptr(),
            strides.as_ptr(),
            lower.as_ptr(),
            upper.as_ptr(),
            32,
            pixels,
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    if encoded == OK { Ok(map) } else { Err(encoded) }
}

/// Maps that differ in any argument differ.
#[test]
fn im2col_maps_lose_nothing() {
    let driver = &session();
    let rank = |rank: usize| [64, 16, 17, 18, 19].split_at(rank).0.to_vec();
    let mut maps = Vec::new();
    let mut add = |dims: &[u64], lower: &[i32], upper: &[i32], pixels| {
        let map = columns(driver, dims, lower, upper, pixels).unwrap();
        assert!(!maps.contains(&map.opaque), "{dims:?}, {lower:?}, {upper:?}, {pixels}");
        maps.push(map.opaque);
    };
    for dims in [rank(3), rank(4), rank(5)] {
        let corners = dims.len() - 2;
        let none = vec![0; corners];
        add(&dims, &none, &none, 8);
        add(&dims, &none, &none, 1024);
        for index in 0..dims.len() {
            let mut other = dims.clone();
            other[index] += 1;
            add(&other, &none, &none, 8);
        }
        for index in 0..corners {
            for by in [-1, 1, -15, if corners == 1 { -257 } else { -14 }] {
                let mut other = none.clone();
                other[index] = by;
                add(&dims, &other, &none, 8);
                if by > -16 {
                    add(&dims, &none, &other, 8);
                }
            }
        }
    }
    // Offsets of rank 5 have 5 bits.
    let zero = [0; 3];
    let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(columns(driver, &rank(5), &[-17, 0, 0], &zero, 8).unwrap_err(), invalid);
    assert_eq!(columns(driver, &rank(5), &zero, &[0, 16, 0], 8).unwrap_err(), invalid);
}

#[test]
fn an_im2col_map_is_none_of_tiles() {
    alone("tensor_maps::an_im2col_map_is_none_of_tiles", || {
        let driver = &session();
        let library = load(driver, LOAD);
        let mut map = columns(driver, &[64, 16, 17], &[0], &[0], 8).unwrap();
        let (mut out, mut x, mut y) = (words(driver, 256), 0_i32, 0_i32);
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut map).cast(), (&raw mut out).cast(), (&raw mut x).cast(), (&raw mut y).cast()];
        let function = function(driver, library, "load");
        unsafe {
            let (none, params) = (null_mut(), arguments.as_mut_ptr());
            assert_eq!(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, none, params, null_mut()), OK);
            assert_ne!(driver.cuStreamSynchronize(none), OK);
        }
        let sentence = cuda_soft::control::last_fault().unwrap();
        assert!(sentence.contains("this tensor map is for im2col copies"), "{sentence}");
    });
}
