//! Blocks of one grid that wait for each other: barriers of the whole grid, sleep, loops.

use std::time::{Duration, Instant};

use super::{Memory, arg, launch, load};
use crate::ptx::Checks;

const GRID: &str = include_str!("data/grid.ptx");
const TILES: &str = include_str!("data/tiles.ptx");

#[test]
fn barriers_of_the_whole_grid() {
    let image = load(GRID);
    // More blocks than one host thread keeps active, unless all of them wait.
    for (blocks, threads, rounds) in [(1, 64, 3_u32), (40, 96, 5), (1100, 32, 2)] {
        let mut memory = Memory::default();
        let total = blocks * threads;
        let (partial, out) = (memory.put(&vec![0_u32; total]), memory.put(&vec![0_u32; total]));
        let dims = [[blocks as u32, 1, 1], [threads as u32, 1, 1]];
        launch(&image, &mut memory, "sums", dims[0], dims[1], 0, &[arg(partial), arg(out), arg(rounds)])
            .unwrap();
        // Every thread adds the number of the round, and takes one more than its neighbour has.
        let expected: u32 = (0..rounds).map(|round| round + 1).sum();
        assert_eq!(memory.get::<u32>(out), vec![expected; total], "{blocks} blocks");
    }
}

#[test]
fn groups_of_several_warps() {
    let image = load(TILES);
    let input: Vec<u32> = (0..256).map(|me| me * 37 % 101 + if me >= 192 { 950 } else { 0 }).collect();
    let mut memory = Memory::default();
    let (from, to) = (memory.put(&input), memory.put(&[0_u32; 256]));
    launch(&image, &mut memory, "tiles", [1, 1, 1], [256, 1, 1], 0, &[arg(from), arg(to)]).unwrap();
    let expected: Vec<u32> = (0..256)
        .map(|me| {
            let tile = &input[me / 64 * 64..][..64];
            let warp = &input[me / 32 * 32..][..32];
            let all = u32::from(tile.iter().all(|value| *value < 1000));
            let any = if tile.contains(&70) { 7 } else { 0 };
            let sum: u32 = tile.iter().sum();
            input[me ^ 63] + sum * 1000 + tile[5] + all + any + warp.iter().max().unwrap() * 3 + 32
        })
        .collect();
    assert_eq!(memory.get::<u32>(to), expected);
}

/// Runs a body of a kernel with one pointer at `%rd1` and 16 words there.
fn words(body: &str, grid: u32, block: u32) -> Vec<u32> {
    let text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 at) {{\n\
         .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .align 16 .b8 s[64];\n\
         ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n{body}\nret;\n}}\n"
    );
    let image = load(&text);
    // Threads wait in loops for shared memory that starts as zeros, and for other blocks.
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let at = memory.put(&[0_u32; 16]);
    launch(&image, &mut memory, "k", [grid, 1, 1], [block, 1, 1], 0, &[arg(at)]).unwrap();
    memory.get::<u32>(at)
}

#[test]
fn sleep_takes_time_and_leaves_others_running() {
    let begin = Instant::now();
    // A millisecond each, side by side; longer ones are cut.
    words("nanosleep.u32 4000000000; nanosleep.u32 1000000;", 4, 64);
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(2), "{took:?}");
    let found = words(
        "mov.u64 %rd2, %globaltimer; nanosleep.u32 500000; mov.u64 %rd3, %globaltimer; sub.u64 %rd2, %rd3, %rd2; st.global.u64 [%rd1], %rd2;",
        1,
        1,
    );
    assert!(found[0] >= 500_000, "{found:?}");
    // The first block sleeps until the last one has written.
    let body = "setp.ne.u32 %p1, %r2, 0; @%p1 bra OTHER;\n\
                WAIT: nanosleep.u32 20; ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n\
                st.global.u32 [%rd1+4], %r3; ret;\n\
                OTHER: setp.ne.u32 %p1, %r2, 30; @%p1 ret; st.release.gpu.global.u32 [%rd1], 5;";
    assert_eq!(words(body, 31, 32)[..2], [5, 5]);
}

#[test]
fn warps_at_a_barrier_go_on_while_another_spins() {
    // The first warp waits in a loop for what the others write behind their own barrier.
    let body = "mov.u32 %r9, s; setp.ge.u32 %p1, %r1, 32; @%p1 bra OTHER;\n\
                WAIT: ld.volatile.shared.u32 %r3, [%r9]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n\
                st.global.u32 [%rd1], %r3; ret;\n\
                OTHER: bar.sync 1, 64; st.volatile.shared.u32 [%r9], 6;";
    assert_eq!(words(body, 1, 96)[0], 6);
}

#[test]
fn many_blocks_wait_for_each_other() {
    // Each block waits for the one after it.
    let body = "mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; sub.u32 %r5, %r4, %r2;\n\
                WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, %r5; @%p2 bra WAIT;\n\
                bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 atom.release.gpu.global.add.u32 %r6, [%rd1], 1;";
    assert_eq!(words(body, 200, 32)[0], 200);
}

#[test]
fn registers_of_the_grid() {
    let found = words(
        "mov.u32 %r3, %envreg0; mov.u32 %r4, %envreg1; mov.u32 %r5, %envreg2; mov.b64 %rd2, {%r5, %r4}; ld.global.u32 %r6, [%rd2];\n\
         ld.u32 %r7, [%rd2+4]; atom.add.u32 %r8, [%rd2+4], 3; mov.u64 %rd3, %gridid; mov.u32 %r9, %pm3; mov.u64 %rd4, %pm1_64;\n\
         cvt.u32.u64 %r10, %rd4; mov.u32 %r11, %aggr_smem_size; mov.u32 %r12, %cluster_nctarank; mov.u32 %r13, s; getctarank.shared::cluster.u32 %r14, %r13;\n\
         mapa.shared::cluster.u32 %r15, %r13, 0; sub.u32 %r15, %r15, %r13;\n\
         st.global.v4.u32 [%rd1], {%r3, %r6, %r7, %r8}; st.global.v4.u32 [%rd1+16], {%r9, %r10, %r11, %r12}; st.global.v2.u32 [%rd1+32], {%r14, %r15}; st.global.u64 [%rd1+40], %rd3;",
        1,
        1,
    );
    assert_eq!(found[..10], [0, 16, 0, 0, 0, 0, 1088, 1, 0, 0]);
    assert_ne!(found[10], 0);
}
