//! The device's `malloc` and `free`.

use super::{Memory, arg, launch, load};
use crate::ptx::FaultKind;
use crate::ptx::error::Fault;

const HEAP: &str = include_str!("data/heap.ptx");

#[test]
fn blocks_outlive_their_grid() {
    let image = load(HEAP);
    let mut memory = Memory::default();
    let (lists, sums) = (memory.put(&[0_u64; 256]), memory.put(&[0_u32; 256]));
    for _ in 0..3 {
        launch(&image, &mut memory, "fill", [4, 1, 1], [64, 1, 1], 0, &[arg(lists), arg(10_u32)]).unwrap();
        let heads = memory.get::<u64>(lists);
        assert!(heads.iter().all(|head| head % 16 == 0 && *head != 0));
        launch(&image, &mut memory, "drain", [4, 1, 1], [64, 1, 1], 0, &[arg(lists), arg(sums)]).unwrap();
        let expected: Vec<u32> = (0..256).map(|me| me * 1000 + 45).collect();
        assert_eq!(memory.get::<u32>(sums), expected);
    }
}

#[test]
fn a_full_heap_gives_null() {
    let image = load(HEAP);
    let room = |size: u64| {
        let mut memory = Memory::default();
        let count = memory.put(&[0_u32]);
        launch(&image, &mut memory, "room", [1, 1, 1], [1, 1, 1], 0, &[arg(size), arg(count)]).unwrap();
        memory.get::<u32>(count)[0]
    };
    assert_eq!((room(1 << 20), room(8 << 20), room((8 << 20) - 16), room(u64::MAX)), (7, 0, 1, 0));
    // All was freed again.
    assert_eq!(room(1 << 20), 7);
}

fn fault(how: u32) -> Fault {
    let image = load(HEAP);
    let mut memory = Memory::default();
    let out = memory.put(&[0_u32; 2]);
    launch(&image, &mut memory, "wrong", [1, 1, 1], [1, 1, 1], 0, &[arg(how), arg(out)]).unwrap_err()
}

#[test]
fn wrong_uses_are_told() {
    for (how, words) in [
        (0, "0 bytes behind a block of 20 bytes of `malloc`"),
        (1, "where no block of `malloc` begins: 4 bytes into a block of 20 bytes of `malloc`"),
        (2, "it is not on the heap of `malloc`"),
        (3, "16 bytes into a block of 20 bytes of `malloc` that `free` gave back"),
        (4, "0 bytes into a block of 20 bytes of `malloc` that `free` gave back"),
        (5, "begins: 0 bytes into a block of 20 bytes of `malloc` that `free` gave back"),
    ] {
        let found = fault(how);
        assert_eq!(found.kind, FaultKind::IllegalAddress, "{found}");
        assert!(found.detail.contains(words), "{how}: {found}");
        assert_eq!(found.write, how == 4);
    }
    let image = load(HEAP);
    let mut memory = Memory::default();
    let out = memory.put(&[0_u32; 2]);
    launch(&image, &mut memory, "wrong", [1, 1, 1], [1, 1, 1], 0, &[arg(9_u32), arg(out)]).unwrap();
    assert_eq!(memory.get::<u32>(out), [0, 9]);
}
