//! Threads that wait for each other: barriers, warps, loops on memory.

use super::{Checks, Memory, arg, launch, load};
use crate::ptx::FaultKind;
use crate::ptx::error::Fault;

/// Runs a body, which begins in line 9, over `grid` blocks of `block` threads, with 64-bit `%rd1`
/// at the 4-byte word of the thread and `%rd2` at the first. Returns the words.
fn words(body: &str, grid: u32, block: u32) -> Result<Vec<u32>, Fault> {
    words_in(Memory::default(), body, grid, block)
}

fn words_in(mut memory: Memory, body: &str, grid: u32, block: u32) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .align 8 .b32 s[64];\n\
         ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n\
         mad.lo.u32 %r4, %r2, %r3, %r1;\nmad.wide.u32 %rd1, %r4, 4, %rd2;\n{body}\nst.global.u32 [%rd1], %r5;\nret;\n}}\n"
    );
    let image = load(&text);
    let out = memory.put(&vec![0_u32; (grid * block) as usize + 8]);
    launch(&image, &mut memory, "k", [grid, 1, 1], [block, 1, 1], 0, &[arg(out)])?;
    let mut words = memory.get::<u32>(out);
    words.truncate((grid * block) as usize);
    Ok(words)
}

fn kind(body: &str, block: u32) -> FaultKind {
    words(body, 1, block).unwrap_err().kind
}

#[test]
fn named_barriers_count_warps() {
    // Two pairs of warps meet at barriers of their own; each thread then sees what the other warp
    // of its pair wrote.
    let body = "shr.u32 %r6, %r1, 6; shr.u32 %r7, %r1, 5; and.b32 %r8, %r1, 31;\n\
                mov.u32 %r9, s; mad.lo.u32 %r10, %r7, 4, %r9; setp.eq.u32 %p1, %r8, 31;\n\
                add.u32 %r11, %r7, 100; @%p1 st.shared.u32 [%r10], %r11;\n\
                add.u32 %r12, %r6, 1; bar.sync %r12, 64;\n\
                xor.b32 %r13, %r7, 1; mad.lo.u32 %r10, %r13, 4, %r9; ld.shared.u32 %r5, [%r10];";
    let expected: Vec<u32> = (0..128).map(|t| 100 + ((t / 32) ^ 1)).collect();
    assert_eq!(words(body, 1, 128).unwrap(), expected);
}

#[test]
fn producers_arrive_and_consumers_wait() {
    let body = "setp.lt.u32 %p1, %r1, 32; mov.u32 %r9, s; and.b32 %r8, %r1, 31; mad.lo.u32 %r10, %r8, 4, %r9;\n\
                @%p1 bra PRODUCE;\nbar.sync 3, 64;\nld.shared.u32 %r5, [%r10];\nbra END;\n\
                PRODUCE:\nmul.lo.u32 %r6, %r1, 7;\nst.shared.u32 [%r10], %r6;\nbar.arrive 3, 64;\nEND:";
    let found = words(body, 1, 64).unwrap();
    assert_eq!(found[32..], (0..32).map(|lane| 7 * lane).collect::<Vec<u32>>());
}

#[test]
fn a_block_that_is_no_multiple_of_a_warp() {
    // The last warp has 8 lanes and counts as a whole one.
    assert_eq!(words("bar.sync 1, 64; mov.u32 %r5, 1;", 1, 40).unwrap(), vec![1; 40]);
    assert_eq!(words("barrier.cta.sync.aligned 0; mov.u32 %r5, 1;", 1, 33).unwrap(), vec![1; 33]);
    let body = "setp.gt.u32 %p1, %r1, 5; barrier.red.popc.aligned.u32 %r5, 0, %p1;";
    assert_eq!(words(body, 1, 40).unwrap(), vec![34; 40]);
    let body = "setp.gt.u32 %p1, %r1, 5; bar.red.and.pred %p2, 0, 64, !%p1; selp.b32 %r5, 1, 2, %p2;";
    assert_eq!(words(body, 1, 64).unwrap(), vec![2; 64]);
    let body = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; mov.u32 %r5, %cluster_nctaid.x;";
    assert_eq!(words(body, 2, 40).unwrap(), vec![1; 80]);
}

#[test]
fn lanes_meet_in_divergent_code() {
    // Each half of the warp shuffles on its own side of a branch.
    let body = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nshfl.sync.idx.b32 %r5, %r1, 20, 31, 0xffff0000;\nbra END;\n\
                LOW:\nshfl.sync.idx.b32 %r5, %r1, 3, 31, 0x0000ffff;\nEND:";
    let expected: Vec<u32> = (0..32).map(|t| if t < 16 { 3 } else { 20 }).collect();
    assert_eq!(words(body, 1, 32).unwrap(), expected);
    // The same mask from two places in the text.
    let body = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nvote.sync.ballot.b32 %r5, 0, 0xffffffff;\nbra END;\n\
                LOW:\nvote.sync.ballot.b32 %r5, 1, 0xffffffff;\nEND:";
    assert_eq!(words(body, 1, 32).unwrap(), vec![0xffff; 32]);
    // Lanes that have ended are not waited for.
    let body = "setp.lt.u32 %p1, %r1, 8;\n@%p1 ret;\nvote.sync.ballot.b32 %r5, 1, 0xffffffff;";
    assert_eq!(words(body, 1, 32).unwrap()[8..], vec![0xffff_ff00; 24]);
}

#[test]
fn active_lanes() {
    assert_eq!(
        words("activemask.b32 %r5;", 1, 48).unwrap()[..33],
        [vec![u32::MAX; 32], vec![0xffff]].concat()
    );
    let body = "setp.lt.u32 %p1, %r1, 4;\n@%p1 bra LOW;\nactivemask.b32 %r5;\nbra END;\nLOW:\nactivemask.b32 %r5;\nEND:";
    let expected: Vec<u32> = (0..32).map(|t| if t < 4 { 15 } else { !15 }).collect();
    assert_eq!(words(body, 1, 32).unwrap(), expected);
    let body = "elect.sync %r6|%p1, 0xffffffff; selp.b32 %r5, %r6, 77, %p1;";
    assert_eq!(
        words(body, 1, 32).unwrap(),
        (0..32).map(|t| if t == 0 { 0 } else { 77 }).collect::<Vec<u32>>()
    );
}

#[test]
fn matches() {
    let body = "and.b32 %r6, %r1, 3; cvt.u64.u32 %rd3, %r6; match.any.sync.b64 %r5, %rd3, 0xffffffff;";
    assert_eq!(words(body, 1, 32).unwrap(), (0..32).map(|t| 0x1111_1111 << (t & 3)).collect::<Vec<u32>>());
    let body = "match.all.sync.b32 %r6|%p1, 5, 0xffffffff; selp.b32 %r5, %r6, 1, %p1;";
    assert_eq!(words(body, 1, 32).unwrap(), vec![u32::MAX; 32]);
    let body = "match.all.sync.b32 %r6|%p1, %r1, 0xffffffff; selp.b32 %r5, %r6, 1, %p1;";
    assert_eq!(words(body, 1, 32).unwrap(), vec![1; 32]);
}

#[test]
fn special_registers() {
    let lane = |name: &str| words(&format!("mov.u32 %r6, s; mov.u32 %r5, {name};"), 1, 70).unwrap()[69];
    assert_eq!((lane("%laneid"), lane("%warpid"), lane("%nwarpid")), (5, 2, 3));
    assert_eq!((lane("%lanemask_eq"), lane("%lanemask_lt"), lane("%lanemask_le")), (32, 31, 63));
    assert_eq!((lane("%lanemask_ge"), lane("%lanemask_gt")), (!31, !63));
    assert_eq!(
        (lane("%total_smem_size"), lane("%dynamic_smem_size"), lane("%nsmid"), lane("%ntid.y")),
        (256, 0, 1, 1)
    );
    let body = "mov.u64 %rd3, %clock64; add.u32 %r6, %r6, 1; add.u32 %r6, %r6, 1; mov.u64 %rd4, %clock64; sub.u64 %rd3, %rd4, %rd3; cvt.u32.u64 %r5, %rd3;";
    assert_eq!(words(body, 1, 1).unwrap(), [3]);
    let body = "mov.u64 %rd3, %globaltimer; setp.gt.u64 %p1, %rd3, 1000000000; selp.b32 %r5, 1, 0, %p1;";
    assert_eq!(words(body, 1, 1).unwrap(), [1]);
}

#[test]
fn a_thread_that_spins_lets_others_run() {
    // The first thread waits for the last one of its block, across warps.
    let body = "mov.u32 %r9, s; st.shared.u32 [%r9], 0; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHERS;\n\
                SPIN: ld.volatile.shared.u32 %r5, [%r9]; setp.eq.u32 %p2, %r5, 0; @%p2 bra SPIN;\nbra END;\n\
                OTHERS: setp.eq.u32 %p1, %r1, 99; @%p1 st.volatile.shared.u32 [%r9], 5;\nEND:";
    assert_eq!(words(body, 1, 100).unwrap()[0], 5);
    // A lock that the lanes of one warp take in turn.
    let body = "mov.u32 %r9, s; mov.u64 %rd3, 0; st.shared.u64 [%r9], %rd3; bar.sync 0;\nTAKE: atom.shared.cas.b32 %r6, [%r9], 0, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra TAKE;\n\
                ld.shared.u32 %r5, [%r9+4]; add.u32 %r5, %r5, 1; st.shared.u32 [%r9+4], %r5; membar.cta;\n\
                atom.shared.exch.b32 %r6, [%r9], 0; bar.sync 0; ld.shared.u32 %r5, [%r9+4];";
    assert_eq!(words(body, 1, 64).unwrap(), vec![64; 64]);
}

#[test]
fn blocks_wait_for_each_other() {
    // A barrier of the whole grid, as cooperative kernels have it: the counter lies behind the
    // results.
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;\nmov.u32 %r6, %nctaid.x; mad.lo.u32 %r7, %r6, %r3, 0; mad.wide.u32 %rd3, %r7, 4, %rd2;\n\
                fence.acq_rel.gpu; red.release.gpu.global.add.u32 [%rd3], 1;\n\
                SPIN: ld.acquire.gpu.global.u32 %r8, [%rd3]; setp.lt.u32 %p2, %r8, %r6; @%p2 bra SPIN;\nWAIT: bar.sync 0;\nmov.u32 %r5, 9;";
    assert_eq!(words(body, 20, 32).unwrap(), vec![9; 640]);
}

#[test]
fn a_large_grid_is_spread_over_host_threads() {
    // Enough work per block for the spreading to begin.
    let body = "mov.u32 %r6, 0;\nL: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 400; @%p1 bra L;\nadd.u32 %r5, %r6, %r4;";
    let unchecked = Memory { checks: Checks::default(), ..Memory::default() };
    let found = words_in(unchecked, body, 200, 64).unwrap();
    assert_eq!(found, (0..200 * 64).map(|t| 400 + t).collect::<Vec<u32>>());
}

#[test]
fn deadlocks_are_found() {
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra LOW;\nbar.sync 1;\nbra END;\nLOW:\nbar.sync 2;\nEND:";
    let fault = words(body, 1, 64).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BarrierDivergence);
    let text = "no thread can go on: 32 threads (numbers 0 to 31) wait at barrier 2, which takes all threads \
                that have not ended, at ptx line 14; 32 threads (numbers 32 to 63) wait at barrier 1, which \
                takes all threads that have not ended, at ptx line 11; 0 have ended";
    assert_eq!(fault.detail, text);
    let body = "setp.lt.u32 %p1, %r1, 8;\n@%p1 bra END;\nshfl.sync.idx.b32 %r5, %r1, 0, 31, 0xffffffff;\nEND: bar.sync 0;";
    let fault = words(body, 1, 32).unwrap_err();
    assert_eq!((fault.kind, fault.line), (FaultKind::BarrierDivergence, 11));
    let text = "8 threads (numbers 0 to 7) wait at barrier 0, which takes all threads that have not ended, at \
                ptx line 12; 24 threads (numbers 8 to 31) wait for lanes 0xffffffff of the warp at ptx line 11";
    assert!(fault.detail.contains(text), "{fault}");
    let fault = words("bar.sync 0, 96;", 1, 64).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BarrierDivergence);
    assert!(fault.detail.contains("which takes 96 threads"), "{fault}");
    // A warp that ends instead of coming to the barrier of a number of threads.
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 1, 64;";
    let fault = words(body, 1, 64).unwrap_err();
    assert_eq!((fault.kind, fault.line, fault.thread), (FaultKind::BarrierDivergence, 11, [32, 0, 0]));
    assert!(fault.detail.ends_with("at ptx line 11; 32 have ended"), "{fault}");
    // A consumer that waits for fewer than come, and a producer that comes once too often.
    let body =
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra LOW;\nbar.arrive 1, 96;\nbra END;\nLOW:\nbar.sync 1, 96;\nEND:";
    let fault = words(body, 1, 64).unwrap_err();
    assert!(
        fault.detail.contains("32 threads (numbers 32 to 63) arrived at barrier 1 without waiting"),
        "{fault}"
    );
    assert_eq!(kind("shfl.sync.idx.b32 %r5, %r1, 0, 31, 1;", 32), FaultKind::IllegalInstruction);
}
