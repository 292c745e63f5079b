//! Tensor maps: boxes of tensors in global memory.

use super::matrices::kernel;
use super::{Memory, arg, launch, load};
use crate::ptx::error::Fault;
use crate::ptx::{FaultKind, Image};

/// `CU_TENSOR_MAP_DATA_TYPE_UINT32`, `FLOAT16` and `FLOAT32`.
const U32: u8 = 2;
pub(super) const F16: u8 = 6;
const F32: u8 = 7;

/// A map in the format of `abi/tensor_map.rs`.
pub(super) struct Map {
    pub(super) ty: u8,
    pub(super) dims: Vec<u64>,
    pub(super) strides: Vec<u64>,
    pub(super) boxes: Vec<u64>,
    pub(super) steps: Vec<u64>,
    pub(super) swizzle: u8,
    pub(super) fill: u8,
}

impl Map {
    /// A tensor of words without gaps, whose box has these elements.
    fn of_words(dims: &[u64], boxes: &[u64]) -> Map {
        let strides = (1..dims.len()).map(|count| 4 * dims[..count].iter().product::<u64>()).collect();
        let steps = vec![1; dims.len()];
        let (dims, boxes) = (dims.to_vec(), boxes.to_vec());
        Map { ty: U32, dims, strides, boxes, steps, swizzle: 0, fill: 0 }
    }

    pub(super) fn words(&self, address: u64) -> [u64; 16] {
        let mut words = [0; 16];
        words[0] = address;
        let kinds = [1, self.ty, self.dims.len() as u8, 0, self.swizzle, 0, self.fill];
        words[1] = kinds.iter().fold(0, |word, &kind| word << 8 | u64::from(kind));
        words[2..2 + self.dims.len()].copy_from_slice(&self.dims);
        words[7..7 + self.strides.len()].copy_from_slice(&self.strides);
        for (index, (size, step)) in self.boxes.iter().zip(&self.steps).enumerate() {
            words[11 + index] = size << 32 | step;
        }
        words
    }
}

/// Runs a body with `%p1` at the map of a tensor that holds `tensor`; returns the tensor and the
/// first words of shared memory.
fn run(map: &Map, tensor: &[u32], body: &str, shared: usize) -> Result<(Vec<u32>, Vec<u32>), Fault> {
    let text = kernel(&format!(
        "mov.u64 %p1, %from; mov.u32 %r1, s;\n{body}\nmov.u32 %r30, 0;\n\
         COPY: mad.lo.u32 %r31, %r30, 4, %r1; ld.shared.u32 %r32, [%r31]; mad.wide.u32 %p2, %r30, 4, %to; st.global.u32 [%p2], %r32;\n\
         add.u32 %r30, %r30, 1; setp.lt.u32 %q1, %r30, {shared}; @%q1 bra COPY;"
    ));
    let mut memory = Memory::default();
    let (at, to) = (memory.put(tensor), memory.put(&vec![0_u32; shared]));
    let map = memory.put(&map.words(at));
    launch(&load(&text), &mut memory, "k", [1, 1, 1], [1, 1, 1], 0, &[arg(map), arg(to)])?;
    Ok((memory.get(at), memory.get(to)))
}

/// Loads the box at these coordinates to `s`, whose barrier lies at `s+16384`.
fn load_box(at: &[i32], bytes: u64) -> String {
    let list = at.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let rank = at.len();
    format!(
        "mbarrier.init.shared.b64 [s+16384], 1; mbarrier.arrive.expect_tx.shared.b64 _, [s+16384], {bytes};\n\
         st.shared.u32 [s], 77; prefetch.tensormap [%p1]; fence.proxy.tensormap::generic.acquire.gpu [%p1], 128;\n\
         cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%p1, {{{list}}}];\n\
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%p1, {{{list}}}], [s+16384];\n\
         ld.shared.u32 %r5, [s]; setp.ne.u32 %q1, %r5, 77; @%q1 trap;\n\
         W: mbarrier.try_wait.parity.shared.b64 %q2, [s+16384], 0; @!%q2 bra W;\n"
    )
}

/// Every position in a box, the first dimension fastest.
fn positions(boxes: &[u64]) -> Vec<Vec<i64>> {
    let count: u64 = boxes.iter().product();
    let one = |mut index: u64| {
        boxes
            .iter()
            .map(|size| {
                let at = index % size;
                index /= size;
                at as i64
            })
            .collect()
    };
    (0..count).map(one).collect()
}

#[test]
fn boxes_inside_and_outside_of_the_tensor() {
    for (dims, boxes, corners) in [
        (vec![40], vec![8], vec![vec![0], vec![8], vec![36], vec![-4], vec![100]]),
        (vec![20, 6], vec![8, 3], vec![vec![4, 1], vec![-3, -1], vec![17, 5], vec![0, 6]]),
        (vec![12, 5, 4], vec![4, 2, 3], vec![vec![0, 0, 0], vec![9, 4, 2], vec![-1, -1, -1]]),
        (vec![8, 3, 3, 3], vec![4, 2, 2, 2], vec![vec![1, 1, 1, 1], vec![6, 2, -1, 2]]),
        (vec![4, 3, 2, 3, 2], vec![4, 2, 2, 2, 2], vec![vec![0, 0, 0, 0, 0], vec![2, 2, 1, -1, 1]]),
    ] {
        let tensor: Vec<u32> = (0..dims.iter().product::<u64>() as u32).map(|index| 1000 + index).collect();
        let map = Map::of_words(&dims, &boxes);
        let count = boxes.iter().product::<u64>();
        for corner in corners {
            let body = load_box(&corner, count * 4);
            let (_, shared) = run(&map, &tensor, &body, count as usize).unwrap();
            let wanted: Vec<u32> = positions(&boxes)
                .iter()
                .map(|position| {
                    let mut index = 0;
                    for (dim, size) in dims.iter().enumerate().rev() {
                        let at = position[dim] + i64::from(corner[dim]);
                        if !(0..*size as i64).contains(&at) {
                            return 0;
                        }
                        index = index * size + at as u64;
                    }
                    1000 + index as u32
                })
                .collect();
            assert_eq!(shared, wanted, "{dims:?} {boxes:?} {corner:?}");
        }
    }
}

#[test]
fn swizzled_boxes() {
    for (swizzle, width) in [(1, 32), (2, 64), (3, 128)] {
        let words = width / 4;
        let tensor: Vec<u32> = (0..words * 16).map(|index| index as u32 + 5).collect();
        let mut map = Map::of_words(&[words, 16], &[words, 16]);
        map.swizzle = swizzle;
        let (_, shared) = run(&map, &tensor, &load_box(&[0, 0], width * 16), tensor.len()).unwrap();
        for (index, &word) in tensor.iter().enumerate() {
            let byte = index as u64 * 4;
            let at = byte ^ (byte / 128 % (width / 16) * 16);
            assert_eq!(shared[at as usize / 4], word, "swizzle of {width} bytes, word {index}");
        }
        // A store undoes it.
        let body = load_box(&[0, 0], width * 16)
            + "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%p1, {0, 2}], [s]; cp.async.bulk.commit_group;\n\
               cp.async.bulk.wait_group 0;";
        let (stored, _) = run(&map, &tensor, &body, 4).unwrap();
        let words = words as usize;
        assert_eq!(stored[..2 * words], tensor[..2 * words]);
        assert_eq!(stored[2 * words..], tensor[..14 * words]);
    }
}

#[test]
fn steps_and_fills() {
    // Every other row.
    let tensor: Vec<u32> = (0..64).collect();
    let mut map = Map::of_words(&[8, 8], &[4, 6]);
    map.steps = vec![1, 2];
    let (_, shared) = run(&map, &tensor, &load_box(&[4, 1], 48), 12).unwrap();
    assert_eq!(shared, [12, 13, 14, 15, 28, 29, 30, 31, 44, 45, 46, 47]);
    for (ty, width, nan) in [(F16, 8, 0x7fff_7fff), (F32, 4, 0x7fff_ffff)] {
        let mut map = Map::of_words(&[4, 2], &[width, 1]);
        (map.ty, map.fill) = (ty, 1);
        let (_, shared) = run(&map, &[0; 8], &load_box(&[0, 2], 16), 4).unwrap();
        assert_eq!(shared, [nan; 4]);
    }
}

#[test]
fn stores_leave_out_what_lies_outside() {
    let tensor: Vec<u32> = (0..24).collect();
    let map = Map::of_words(&[6, 4], &[4, 2]);
    let fill: String = (0..8).map(|i| format!("st.shared.u32 [s+{}], {};", 4 * i, 100 + i)).collect();
    let commit = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
    let body = format!(
        "{fill} cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p1, {{4, 3}}], [s]; {commit}"
    );
    let (stored, _) = run(&map, &tensor, &body, 4).unwrap();
    let mut wanted = tensor.clone();
    wanted[22..].copy_from_slice(&[100, 101]);
    assert_eq!(stored, wanted);
    let body = format!(
        "{fill} mov.u32 %r2, -2; cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%p1, {{%r2, 1}}], [s]; {commit}"
    );
    let (stored, _) = run(&map, &tensor, &body, 4).unwrap();
    let mut wanted = tensor;
    for (at, by) in [(6, 102), (7, 103), (12, 106), (13, 107)] {
        wanted[at] += by;
    }
    assert_eq!(stored, wanted);
}

#[test]
fn wrong_maps_are_found() {
    let map = Map::of_words(&[8, 8], &[4, 1]);
    let tensor = [0; 64];
    let found = run(&map, &tensor, &load_box(&[0], 16), 1).unwrap_err();
    assert_eq!((found.kind, found.line), (FaultKind::IllegalInstruction, 13));
    assert!(found.detail.contains("not a tensor map of this rank"), "{found}");
    // A tensor that is larger than its memory.
    let larger = Map::of_words(&[8, 9], &[4, 1]);
    let found = run(&larger, &tensor, &load_box(&[0, 8], 16), 1).unwrap_err();
    assert_eq!((found.kind, found.line), (FaultKind::IllegalAddress, 13));
    let unaligned = load_box(&[0, 0], 16).replace("bytes [s],", "bytes [s+64],");
    assert_eq!(run(&map, &tensor, &unaligned, 1).unwrap_err().kind, FaultKind::MisalignedAddress);
    for text in [
        "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [s], [%p1, {0, 0}], [s];",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.mbarrier::complete_tx::bytes [%p1, {0, 0}], [s];",
    ] {
        let errors = Image::parse(&kernel(text)).map(|_| ()).unwrap_err();
        assert!(errors[0].message.contains("not supported"), "{}", errors[0]);
    }
    let text = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%p1, {0}], [s];";
    let errors = Image::parse(&kernel(text)).map(|_| ()).unwrap_err();
    assert!(errors[0].message.contains("expected 2 coordinates, found 1"), "{}", errors[0]);
}

#[test]
fn maps_that_a_kernel_makes() {
    let tensor: Vec<u32> = (0..64).collect();
    let mut map = Map::of_words(&[8, 8], &[4, 2]);
    let load = load_box(&[2, 3], 32).replace("[%p1", "[%p3");
    // From zeros in shared memory, to global memory behind the tensor's map.
    let replace = |field: &str, ty: &str, rest: &str| {
        format!("tensormap.replace.tile.{field}.shared::cta.b1024.{ty} [s+8192], {rest};\n")
    };
    let body = [
        "ld.global.u64 %p4, [%p1]; mov.u64 %p5, 32; mov.u32 %r2, 8; add.u64 %p3, %p1, 0;\n".to_owned(),
        replace("global_address", "b64", "%p4"),
        replace("rank", "b32", "1"),
        replace("box_dim", "b32", "0, 4"),
        replace("box_dim", "b32", "1, 2"),
        replace("global_dim", "b32", "0, %r2"),
        replace("global_dim", "b32", "1, %r2"),
        replace("global_stride", "b64", "0, %p5"),
        replace("element_stride", "b32", "0, 1"),
        replace("element_stride", "b32", "1, 1"),
        replace("elemtype", "b32", "2"),
        replace("interleave_layout", "b32", "0"),
        replace("swizzle_mode", "b32", "0"),
        replace("fill_mode", "b32", "0"),
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%p3], [s+8192], 128;\n".into(),
        load,
    ];
    // Nothing but the address is there before.
    map.dims = Vec::new();
    (map.strides, map.boxes, map.ty) = (Vec::new(), Vec::new(), 0);
    let (_, shared) = run(&map, &tensor, &body.concat(), 8).unwrap();
    assert_eq!(shared, [26, 27, 28, 29, 34, 35, 36, 37]);
    for (text, message) in [
        ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 5, 1;", "there is no dimension 5"),
        ("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [s], 13;", "no such element type"),
        ("tensormap.replace.tile.rank.shared::cta.b1024.b64 [s], %p1;", "not supported"),
        ("tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [s], 0;", "not supported"),
    ] {
        let errors = Image::parse(&kernel(text)).map(|_| ()).unwrap_err();
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    }
}
