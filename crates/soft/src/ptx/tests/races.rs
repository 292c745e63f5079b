//! Checks of global memory: races between blocks and between the threads of a block.

use super::{Memory, arg, launch, load};
use crate::ptx::FaultKind;
use crate::ptx::error::Fault;

/// Runs a body, which begins in line 6, in 4 blocks of `threads`. `%r1` is the thread, `%r2` the
/// block, `%r3` the number of the thread in the grid, `%rd1` the address of 1024 words that are 0,
/// `%rd2` that of the thread's word; `%p1` is true for the first thread of a block.
fn check(body: &str, threads: u32) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .b32 s; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; \
         mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r3, %r2, %r3, %r1; mad.wide.u32 %rd2, %r3, 4, %rd1; setp.eq.u32 %p1, %r1, 0;\n\
         {body}\nret;\n}}\n"
    );
    let image = load(&text);
    let mut memory = Memory::default();
    let out = memory.put(&vec![0_u32; 1024]);
    launch(&image, &mut memory, "k", [4, 1, 1], [threads, 1, 1], 0, &[arg(out)])?;
    Ok(memory.get(out))
}

#[test]
fn blocks_race() {
    let found = check("st.global.u32 [%rd2], %r3;\n@!%p1 ret;\nld.global.u32 %r4, [%rd1];", 32).unwrap_err();
    let text = "data race in kernel `k` at ptx line 8, block (1, 0, 0), thread (0, 0, 0): read of 4 bytes at \
                0x700000000: thread (0, 0, 0) of block (0, 0, 0) has written some of these bytes at ptx line 6, and \
                nothing orders the two accesses";
    assert_eq!(found.to_string(), text);
    for body in [
        "st.global.u32 [%rd1], %r3;",
        // A barrier of the block orders no other block.
        "@%p1 st.global.u32 [%rd1], %r2; bar.sync 0;",
        "ld.global.u32 %r4, [%rd1]; setp.eq.u32 %p2, %r3, 100; @%p2 st.global.u32 [%rd1], 7;",
        // An update without atomics, and one beside atomics.
        "ld.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4;",
        "red.global.add.u32 [%rd1], 1; setp.eq.u32 %p2, %r3, 100; @%p2 st.global.u32 [%rd1], 7;",
        "red.global.add.u32 [%rd1], 1; ld.global.u32 %r4, [%rd1];",
        // Atomics of the block's scope from several blocks.
        "@%p1 atom.global.cta.add.u32 %r4, [%rd1], 1;",
        // A missing barrier of the block.
        "xor.b32 %r4, %r1, 1; st.global.u32 [%rd2], 5; sub.u32 %r5, %r3, %r1; add.u32 %r5, %r5, %r4; mad.wide.u32 %rd3, %r5, 4, %rd1; ld.global.u32 %r6, [%rd3];",
        // A flag without a fence.
        "@!%p1 ret; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;\nL: ld.acquire.gpu.global.u32 %r4, [%rd1+512]; setp.eq.u32 %p3, %r4, 0; @%p3 bra L;\n\
         ld.global.u32 %r5, [%rd1]; ret;\nW: st.global.u32 [%rd1], 8; st.relaxed.gpu.global.u32 [%rd1+512], 1;",
        // The fence of one thread is none for the others: a barrier is missing in front of it.
        "st.global.u32 [%rd2], 3; @!%p1 ret; membar.gl; atom.global.add.u32 %r4, [%rd1+1024], 1; setp.ne.u32 %p2, %r4, 3; @%p2 ret; ld.global.u32 %r5, [%rd1+4];",
    ] {
        let found = check(body, 32).err().unwrap_or_else(|| panic!("this is wrong: {body}"));
        assert_eq!(found.kind, FaultKind::Race, "{body}: {found}");
    }
}

#[test]
fn right_kernels_have_no_races() {
    for body in [
        "st.global.u32 [%rd2], %r3; ld.global.u32 %r4, [%rd2];",
        "ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd2+512], %r4;",
        "red.global.add.u32 [%rd1], 1;",
        "st.global.u32 [%rd1], 1;",
        // Within a block, with a barrier.
        "st.global.u32 [%rd2], 5; bar.sync 0; xor.b32 %r4, %r3, 31; mad.wide.u32 %rd3, %r4, 4, %rd1; ld.global.u32 %r6, [%rd3];",
        // Bytes of a word from two blocks.
        "cvt.u64.u32 %rd3, %r3; add.u64 %rd3, %rd1, %rd3; st.global.u8 [%rd3], %r1;",
        // A flag with release and acquire.
        "@!%p1 ret; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;\nL: ld.acquire.gpu.global.u32 %r4, [%rd1+512]; setp.eq.u32 %p3, %r4, 0; @%p3 bra L;\n\
         ld.global.u32 %r5, [%rd1]; ret;\nW: st.global.u32 [%rd1], 8; st.release.gpu.global.u32 [%rd1+512], 1;",
        // The last block adds up what all have written, and resets the counter.
        "st.global.u32 [%rd2], 3; bar.sync 0; @!%p1 bra S; membar.gl; atom.global.inc.u32 %r4, [%rd1+1024], 3; st.shared.u32 [s], %r4;\n\
         S: bar.sync 0; ld.shared.u32 %r4, [s]; setp.ne.u32 %p2, %r4, 3; @%p2 ret;\nxor.b32 %r5, %r3, 96; mad.wide.u32 %rd3, %r5, 4, %rd1;\n\
         ld.global.u32 %r6, [%rd3]; @%p1 st.global.u32 [%rd1+1024], 0;",
        // Each block waits for the one in front, in turn, and adds to its sum.
        "@!%p1 ret; mad.wide.u32 %rd3, %r2, 8, %rd1; setp.eq.u32 %p2, %r2, 0; mov.u32 %r4, 0; @%p2 bra F;\n\
         L: ld.volatile.global.u32 %r5, [%rd3+-8]; setp.eq.u32 %p3, %r5, 0; @%p3 bra L;\nmembar.gl; ld.global.u32 %r4, [%rd3+-4];\n\
         F: add.u32 %r4, %r4, 5; st.global.u32 [%rd3+4], %r4; membar.gl; st.volatile.global.u32 [%rd3], 1;",
        // A barrier of the grid, twice, with the counter in memory.
        "mov.u32 %r9, 0;\nR: st.global.u32 [%rd2], %r9; bar.sync 0; add.u32 %r9, %r9, 4; @!%p1 bra J; membar.gl; red.global.add.u32 [%rd1+2048], 1;\n\
         L: ld.volatile.global.u32 %r5, [%rd1+2048]; setp.lt.u32 %p3, %r5, %r9; @%p3 bra L; membar.gl;\nJ: bar.sync 0;\n\
         xor.b32 %r4, %r3, 96; mad.wide.u32 %rd3, %r4, 4, %rd1; ld.global.u32 %r6, [%rd3]; bar.sync 0; setp.lt.u32 %p4, %r9, 8;\n\
         @!%p1 bra K; membar.gl; red.global.add.u32 [%rd1+3072], 1;\nM: ld.volatile.global.u32 %r5, [%rd1+3072]; setp.lt.u32 %p3, %r5, %r9; @%p3 bra M;\n\
         membar.gl;\nK: bar.sync 0; @%p4 bra R;",
        // A lock with acquire and release.
        "@!%p1 ret;\nL: atom.acquire.gpu.global.cas.b32 %r4, [%rd1], 0, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra L;\nld.global.u32 %r5, [%rd1+256];\n\
         add.u32 %r5, %r5, 1; st.global.u32 [%rd1+256], %r5; atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;",
        // A guess before compare-and-swap.
        "ld.global.u32 %r4, [%rd1];\nL: add.u32 %r5, %r4, 3; atom.global.cas.b32 %r6, [%rd1], %r4, %r5; setp.ne.u32 %p2, %r6, %r4; mov.u32 %r4, %r6; @%p2 bra L;",
        // Atomics of the block's scope, each block on its own word.
        "mad.wide.u32 %rd3, %r2, 4, %rd1; atom.global.cta.add.u32 %r4, [%rd3], 1;",
    ] {
        if let Err(fault) = check(body, 32) {
            panic!("{fault}\n{body}");
        }
    }
}

#[test]
fn what_a_lock_guards_is_complete() {
    let lock = "@!%p1 ret;\nL: atom.global.cas.b32 %r4, [%rd1], 0, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra L;\nmembar.gl; ld.global.u32 %r5, [%rd1+256];\n\
                add.u32 %r5, %r5, 1; st.global.u32 [%rd1+256], %r5; membar.gl; atom.global.exch.b32 %r4, [%rd1], 0;";
    assert_eq!(check(lock, 32).unwrap()[64], 4);
    // Without the fence in front of the release, the sum may be read before it is there.
    let found = check(&lock.replace("membar.gl; atom", "atom"), 32).unwrap_err();
    assert_eq!((found.kind, found.block), (FaultKind::Race, [1, 0, 0]));
}
