//! Checks of shared memory: reads that nothing has written, and races between threads of a block.

use super::{Memory, arg, launch, load};
use crate::ptx::FaultKind;
use crate::ptx::error::Fault;

/// Runs a body, which begins in line 7, in a block of `threads`. `%r1` is the thread, `%r2` the
/// address of its word in `s`, and `%r3` that of the next thread's.
fn check(body: &str, threads: u32) -> Result<(), Fault> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 d[];\n.visible .entry k(.param .u64 out) {{ \
         .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .align 16 .b32 s[128]; .shared .b32 flag;\n\
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; add.u32 %r3, %r2, 4; setp.eq.u32 %p1, %r1, 0;\n\
         {body}\nret;\n}}\n"
    );
    let image = load(&text);
    let mut memory = Memory::default();
    let out = memory.put(&vec![0_u32; 128]);
    launch(&image, &mut memory, "k", [2, 1, 1], [threads, 1, 1], 64, &[arg(out)]).map(drop)
}

fn fault(body: &str, threads: u32) -> Fault {
    match check(body, threads) {
        Ok(()) => panic!("this is wrong: {body}"),
        Err(fault) => fault,
    }
}

#[test]
fn reads_of_what_nothing_has_written() {
    let found = fault("ld.shared.u32 %r4, [s+8];", 1);
    assert_eq!((found.kind, found.line, found.address), (FaultKind::UnwrittenShared, 7, Some(8)));
    let text = "unwritten shared memory in kernel `k` at ptx line 7, block (0, 0, 0), thread (0, 0, 0): read of 4 \
                bytes at 0x8: no thread of the block has written there, at byte 8 of `s`";
    assert_eq!(found.to_string(), text);
    for (body, words) in [
        // Of the read bytes one is missing.
        (
            "st.shared.u16 [s], 1; st.shared.u8 [s+2], 1; ld.shared.u32 %r4, [s];",
            "written its byte 3, at byte 3 of `s`",
        ),
        (
            "st.shared.u64 [s], 1; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [s];",
            "written its byte 8, at byte 8 of `s`",
        ),
        // Dynamic shared memory, by a generic address, and an atomic, which reads.
        ("cvta.shared.u64 %rd2, d; ld.u8 %r4, [%rd2+4];", "at byte 4 of `d`"),
        ("mov.u32 %r5, d; atom.shared.add.u32 %r4, [%r5+12], 1;", "at byte 12 of `d`"),
        ("atom.shared.exch.b32 %r4, [flag], 1;", "at the start of `flag`"),
    ] {
        let found = fault(body, 1);
        assert_eq!(found.kind, FaultKind::UnwrittenShared, "{body}");
        assert!(found.detail.ends_with(words), "{body}: {found}");
    }
    // Each block has its own: what the first one wrote does not count for the second.
    let found = fault(
        "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p2, %r4, 0; @%p2 st.shared.u32 [s], 1; ld.shared.u32 %r5, [s];",
        1,
    );
    assert_eq!((found.kind, found.block), (FaultKind::UnwrittenShared, [1, 0, 0]));
}

#[test]
fn a_missing_barrier_is_a_race() {
    let found = fault("st.shared.u32 [%r2], %r1;\nxor.b32 %r4, %r2, 4;\nld.shared.u32 %r5, [%r4];", 2);
    // The first thread reads what is not there yet.
    assert_eq!((found.kind, found.thread, found.line), (FaultKind::UnwrittenShared, [0, 0, 0], 9));
    let write = "st.shared.u32 [%r2], %r1; bar.sync 0;\n";
    let found = fault(&format!("{write}ld.shared.u32 %r4, [%r3+-4];\nst.shared.u32 [%r3], %r4;"), 64);
    let text = "data race in kernel `k` at ptx line 8, block (0, 0, 0), thread (1, 0, 0): read of 4 bytes at 0x4: \
                thread (0, 0, 0) has written some of these bytes at ptx line 9, and no barrier is between the two \
                accesses, at byte 4 of `s`";
    assert_eq!(found.to_string(), text);
    for body in [
        // A write behind a read.
        "ld.shared.u32 %r4, [s];\n@%p1 st.shared.u32 [s], 7;\nbar.sync 0;\n@%p1 bra E;\nst.shared.u32 [s], %r1;\nE:",
        "ld.shared.u32 %r4, [s+4];\nst.shared.u32 [%r2], 99;",
        // Two writes of different values, of one byte, by an atomic and a write.
        "st.shared.u32 [s], %r1;",
        "add.u32 %r4, %r2, %r2; st.shared.u8 [s+3], %r1;",
        "atom.shared.add.u32 %r4, [s], 1;\nst.shared.u32 [s], 1;",
        // A barrier of the warp is none for the block.
        "bar.warp.sync 0xffffffff; xor.b32 %r4, %r1, 32; mov.u32 %r5, s; mad.lo.u32 %r4, %r4, 4, %r5;\n\
         st.shared.u32 [%r2], 5;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r6, [%r4];",
        // A shuffle orders nothing.
        "st.shared.u32 [%r2], 5;\nshfl.sync.bfly.b32 %r5, %r1, 1, 31, 0xffffffff;\nxor.b32 %r4, %r2, 4;\nld.shared.u32 %r6, [%r4];",
        // Two barriers, each of its own warps.
        "shr.u32 %r5, %r1, 5; add.u32 %r5, %r5, 1; st.shared.u32 [%r2], 5; bar.sync %r5, 32;\n\
         xor.b32 %r4, %r1, 32; mov.u32 %r5, s; mad.lo.u32 %r4, %r4, 4, %r5;\nld.shared.u32 %r6, [%r4];",
        // The sum is read before all have added to it.
        "red.shared.add.u32 [s], %r1;\nld.shared.u32 %r5, [s];",
        // A flag without a fence in front.
        "@%p1 bra W;\nL: ld.volatile.shared.u32 %r4, [s+4]; setp.ne.u32 %p2, %r4, 1000; @%p2 bra L;\n\
         ld.shared.u32 %r5, [s];\nbra E;\nW: st.shared.u32 [s], 5;\nst.volatile.shared.u32 [s+4], 1000;\nE:",
    ] {
        let found = fault(&format!("{write}{body}"), 64);
        assert_eq!(found.kind, FaultKind::Race, "{body}: {found}");
    }
}

#[test]
fn right_kernels_have_no_races() {
    let write = "st.shared.u32 [%r2], %r1; bar.sync 0;\n";
    for body in [
        // Each on its own, or all reads.
        "ld.shared.u32 %r4, [%r2]; st.shared.u32 [%r2], 1;",
        "ld.shared.u32 %r4, [s];",
        // Bytes beside each other.
        "bar.sync 0; mov.u32 %r4, s; add.u32 %r4, %r4, %r1; st.shared.u8 [%r4], %r1;",
        // The same value from all threads; threads that have ended.
        "st.shared.u32 [s], 17; bar.sync 0; ld.shared.u32 %r4, [s];",
        "setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r2], 5; @%p2 ret; bar.sync 0; ld.shared.u32 %r4, [s];",
        // A tree of sums.
        "mov.u32 %r4, 32;\nL: setp.ge.u32 %p2, %r1, %r4; @%p2 bra N; mad.lo.u32 %r5, %r4, 4, %r2; ld.shared.u32 %r6, [%r5];\n\
         ld.shared.u32 %r7, [%r2]; add.u32 %r7, %r7, %r6; st.shared.u32 [%r2], %r7;\nN: bar.sync 0; shr.u32 %r4, %r4, 1;\n\
         setp.ne.u32 %p3, %r4, 0; @%p3 bra L;\nld.shared.u32 %r5, [s];",
        // The same within a warp.
        "setp.ge.u32 %p2, %r1, 32; @%p2 ret; mov.u32 %r4, 16;\nL: mad.lo.u32 %r5, %r4, 4, %r2; ld.shared.u32 %r6, [%r5];\n\
         ld.shared.u32 %r7, [%r2]; bar.warp.sync 0xffffffff; add.u32 %r7, %r7, %r6; st.shared.u32 [%r2], %r7;\n\
         bar.warp.sync 0xffffffff; shr.u32 %r4, %r4, 1; setp.ne.u32 %p3, %r4, 0; @%p3 bra L;",
        // Two buffers in turn, with one barrier a round.
        "mov.u32 %r4, 0; mov.u32 %r8, 0;\nL: xor.b32 %r8, %r8, 256; add.u32 %r9, %r2, %r8; st.shared.u32 [%r9], %r4; bar.sync 0;\n\
         xor.b32 %r5, %r1, 63; mov.u32 %r6, s; mad.lo.u32 %r5, %r5, 4, %r6; add.u32 %r5, %r5, %r8; ld.shared.u32 %r7, [%r5];\n\
         add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5; @%p2 bra L;",
        // A histogram, zeroed before and read after.
        "st.shared.u32 [%r2], 0; bar.sync 0; and.b32 %r4, %r1, 3; mov.u32 %r5, s; mad.lo.u32 %r4, %r4, 4, %r5;\n\
         red.shared.add.u32 [%r4], 1; bar.sync 0; ld.shared.u32 %r6, [%r2];",
        // A maximum by compare-and-swap, which begins with a guess.
        "ld.shared.u32 %r4, [s];\nL: max.u32 %r5, %r4, %r1; atom.shared.cas.b32 %r6, [s], %r4, %r5; setp.ne.u32 %p2, %r6, %r4;\n\
         mov.u32 %r4, %r6; @%p2 bra L;",
        // Producers and consumers with named barriers, both ways.
        "setp.lt.u32 %p2, %r1, 32; mov.u32 %r4, 0; @%p2 bra P;\n\
         C: bar.sync 1, 64; xor.b32 %r5, %r1, 32; mov.u32 %r6, s; mad.lo.u32 %r5, %r5, 4, %r6; ld.shared.u32 %r7, [%r5]; bar.arrive 2, 64;\n\
         add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra C; ret;\n\
         P: st.shared.u32 [%r2], %r4; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra P;",
        // A barrier that reduces.
        "st.shared.u32 [%r2], 4; barrier.red.or.pred %p2, 0, %p1; ld.shared.u32 %r4, [s+40];",
        // A flag behind a fence.
        "@%p1 bra W;\nL: ld.volatile.shared.u32 %r4, [s+4]; setp.ne.u32 %p2, %r4, 1000; @%p2 bra L;\n\
         membar.cta; ld.shared.u32 %r5, [s];\nbra E;\nW: st.shared.u32 [s], 5; membar.cta;\nst.volatile.shared.u32 [s+4], 1000;\nE:",
        // Volatile accesses of one place, without a barrier, do not race.
        "st.volatile.shared.u32 [s], %r1; ld.volatile.shared.u32 %r4, [s];",
        // Written by one, read by all, overwritten behind the next barrier.
        "@%p1 st.shared.u32 [flag], 3; bar.sync 0; ld.shared.u32 %r4, [flag]; bar.sync 0; @%p1 st.shared.u32 [flag], 4;",
    ] {
        if let Err(fault) = check(&format!("{write}{body}"), 64) {
            panic!("{fault}\n{body}");
        }
    }
}
