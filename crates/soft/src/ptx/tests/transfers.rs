//! Asynchronous copies and barriers in shared memory.

use super::matrices::{kernel, run};
use crate::ptx::error::Fault;
use crate::ptx::{FaultKind, Image};

/// The words `0x100, 0x101, ...`.
fn input() -> Vec<u32> {
    (0x100..0x200).collect()
}

/// What one thread writes to `%to`: `%r10` and so on, `count` of them. `%r1` is the address of
/// shared memory, whose first words are 1, 2, 3, ....
fn words(body: &str, count: usize) -> Result<Vec<u32>, Fault> {
    let fill: String = (0..16).map(|i| format!("st.shared.u32 [s+{}], {};", 4 * i, i + 1)).collect();
    let store: String = (0..count).map(|i| format!("st.global.u32 [%to+{}], %r{};", 4 * i, 10 + i)).collect();
    run(&format!("mov.u32 %r1, s; {fill}\n{body}\n{store}"), &input(), count, 1)
}

fn fault(body: &str) -> Fault {
    words(body, 0).unwrap_err()
}

#[test]
fn copies_arrive_at_the_wait() {
    for (bytes, how) in [(4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")] {
        let body = format!(
            "cp.async.{how}.shared.global [%r1], [%from+{bytes}], {bytes};\nld.shared.u32 %r10, [%r1]; ld.shared.u32 %r11, [%r1+{0}];\n\
             cp.async.wait_all; ld.shared.u32 %r12, [%r1]; ld.shared.u32 %r13, [%r1+{0}]; ld.shared.u32 %r14, [%r1+{bytes}];",
            bytes - 4
        );
        let words_of = bytes / 4;
        let old_next = words_of + 1;
        let expected = [1, words_of, 0x100 + words_of, 0x100 + 2 * words_of - 1, old_next];
        assert_eq!(words(&body, 5).unwrap(), expected, "{body}");
    }
}

#[test]
fn groups_of_copies() {
    let body = "cp.async.ca.shared::cta.global.L2::128B [s], [%from], 4; cp.async.commit_group;\n\
                cp.async.ca.shared.global [s+4], [%from+4], 4; cp.async.commit_group;\n\
                cp.async.ca.shared.global [s+8], [%from+8], 4; cp.async.commit_group;\n\
                cp.async.ca.shared.global [s+12], [%from+12], 4;\n\
                cp.async.wait_group 2; ld.shared.u32 %r10, [s]; ld.shared.u32 %r11, [s+4];\n\
                cp.async.wait_group 0; ld.shared.u32 %r12, [s+4]; ld.shared.u32 %r13, [s+8]; ld.shared.u32 %r14, [s+12];\n\
                cp.async.wait_all; ld.shared.u32 %r15, [s+12];";
    assert_eq!(words(body, 6).unwrap(), [0x100, 2, 0x101, 0x102, 4, 0x103]);
    // Empty groups count.
    let body = "cp.async.ca.shared.global [s], [%from], 4; cp.async.commit_group; cp.async.commit_group; cp.async.commit_group;\n\
                cp.async.wait_group 3; ld.shared.u32 %r10, [s]; cp.async.wait_group 2; ld.shared.u32 %r11, [s];";
    assert_eq!(words(body, 2).unwrap(), [1, 0x100]);
}

#[test]
fn the_rest_of_a_short_copy_is_zero() {
    let load = "cp.async.wait_all; ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [s];";
    for (size, expected) in [
        ("8", [0x100, 0x101, 0, 0]),
        ("%r2", [0x100, 1, 0, 0]),
        ("0", [0; 4]),
        ("%q1", [0; 4]),
        ("!%q1", [0x100, 0x101, 0x102, 0x103]),
        ("16", [0x100, 0x101, 0x102, 0x103]),
    ] {
        let body = format!(
            "mov.u32 %r2, 5; setp.eq.u32 %q1, %r2, 5; createpolicy.fractional.L2::evict_first.b64 %p1, 1.0;\n\
             cp.async.cg.shared.global.L2::cache_hint.L2::256B [s], [%from], 16, {size}, %p1;\n{load}"
        );
        assert_eq!(words(&body, 4).unwrap(), expected, "{size}");
    }
    // Without a size, the source of an ignored copy may be anywhere.
    let body = format!(
        "mov.u64 %p1, 0; setp.eq.u64 %q1, %p1, 0; cp.async.cg.shared.global [s], [%p1], 16, %q1; {load}"
    );
    assert_eq!(words(&body, 4).unwrap(), [0; 4]);
}

#[test]
fn wrong_copies_are_found_where_they_begin() {
    let found = fault("cp.async.cg.shared.global [s], [%from+8], 16;");
    assert_eq!((found.kind, found.line), (FaultKind::MisalignedAddress, 10));
    let found = fault("cp.async.ca.shared.global [s+32768], [%from], 4;");
    assert_eq!((found.kind, found.line, found.write), (FaultKind::IllegalAddress, 10, true));
    let found = fault("mov.u64 %p1, 4096;\ncp.async.ca.shared.global [s], [%p1], 4;\ncp.async.wait_all;");
    assert_eq!((found.kind, found.line), (FaultKind::IllegalAddress, 11));
    assert_eq!(
        fault("mov.u32 %r2, 8; cp.async.ca.shared.global [s], [%from], 4, %r2;").kind,
        FaultKind::IllegalInstruction
    );
    for (text, message) in [
        ("cp.async.ca.shared.global [s], [%from], 12;", "copies 4, 8 or 16 bytes, not 12"),
        ("cp.async.cg.shared.global [s], [%from], 8;", "copies 16 bytes, not 8"),
        ("cp.async.ca.shared.global [s], [%from], 4, 8;", "8 bytes of a copy of 4"),
        ("cp.async.wait_group %r1;", "expected a number"),
        ("cp.async.bulk.commit_group.foo;", "not supported"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%from], [s], 24;", "not a multiple of 16"),
        ("cp.async.bulk.global.global.bulk_group [%from], [%to], 16;", "not supported"),
        ("mbarrier.foo.b64 [s];", "not supported"),
    ] {
        let errors = Image::parse(&kernel(text)).map(|_| ()).unwrap_err();
        assert_eq!((errors.len(), errors[0].line), (1, 9), "{text}");
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    }
}

/// `%r{d}` is 1 if the wait succeeds.
fn test_wait(d: u32, wait: &str) -> String {
    format!("mbarrier.{wait}; selp.u32 %r{d}, 1, 0, %q1;")
}

#[test]
fn phases_of_a_barrier() {
    let test = |d, state: &str| test_wait(d, &format!("test_wait.shared::cta.b64 %q1, [s], {state}"));
    let parity = |d, bit: u32| test_wait(d, &format!("test_wait.parity.shared.b64 %q1, [s], {bit}"));
    let body = [
        "mbarrier.init.shared::cta.b64 [s], 3;".to_owned(),
        parity(10, 0),
        parity(11, 1),
        "mbarrier.arrive.shared.b64 %p1, [s];".into(),
        "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %p2, [s], 1;".into(),
        test(12, "%p1"),
        "mbarrier.arrive.shared.b64 _, [s], 1;".into(),
        test(13, "%p1"),
        test(14, "%p2"),
        parity(15, 0),
        parity(16, 1),
        "mbarrier.pending_count.b64 %r17, %p1; mbarrier.pending_count.b64 %r18, %p2;".into(),
        // One arrival less from now on.
        "mbarrier.arrive_drop.shared.b64 %p3, [s]; mbarrier.arrive.shared.b64 %p4, [s], 2;".into(),
        test(19, "%p4"),
        "mbarrier.arrive.shared.b64 %p5, [s], 2;".into(),
        test(20, "%p5"),
        "mbarrier.pending_count.b64 %r21, %p5; mbarrier.inval.shared::cta.b64 [s];".into(),
    ];
    assert_eq!(words(&body.join("\n"), 12).unwrap(), [0, 1, 0, 1, 1, 1, 0, 3, 2, 1, 1, 2]);
}

#[test]
fn bytes_of_a_barrier() {
    let parity = |d, bit: u32| {
        test_wait(d, &format!("try_wait.parity.acquire.cta.shared::cta.b64 %q1, [s], {bit}, 0x989680"))
    };
    let body = [
        "mbarrier.init.shared.b64 [s], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s], 100;"
            .to_owned(),
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [s], 20;".into(),
        parity(10, 0),
        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [s], 119;".into(),
        parity(11, 0),
        "mbarrier.complete_tx.shared::cta.b64 [s], 1;".into(),
        parity(12, 0),
        // Bytes may come before they are expected.
        "mbarrier.complete_tx.shared.b64 [s], 8; mbarrier.arrive.shared.b64 %p1, [s];".into(),
        parity(13, 1),
        "mbarrier.expect_tx.shared.b64 [s], 9; mbarrier.complete_tx.shared.b64 [s], 1;".into(),
        parity(14, 1),
    ];
    assert_eq!(words(&body.join("\n"), 5).unwrap(), [0, 0, 1, 0, 1]);
}

#[test]
fn barriers_that_are_used_wrongly() {
    let init = "mbarrier.init.shared.b64 [s], 1;\n";
    for body in [
        "mbarrier.arrive.shared.b64 %p1, [s+64];",
        "mbarrier.test_wait.parity.shared.b64 %q1, [s+64], 0;",
        "mbarrier.inval.shared.b64 [s+64];",
        "mbarrier.init.shared.b64 [s], 0;",
        "mbarrier.init.shared.b64 [s], 1048576;",
    ] {
        let found = fault(body);
        assert_eq!((found.kind, found.line), (FaultKind::IllegalInstruction, 10), "{body}");
    }
    for body in [
        "mbarrier.arrive.shared.b64 %p1, [s], 2;",
        "mbarrier.arrive.noComplete.shared.b64 %p1, [s], 1;",
        "mbarrier.expect_tx.shared.b64 [s], 1048576;",
    ] {
        let found = fault(&format!("{init}{body}"));
        assert_eq!((found.kind, found.line), (FaultKind::IllegalInstruction, 11), "{body}");
    }
    assert_eq!(fault("mbarrier.init.shared.b64 [s+4], 1;").kind, FaultKind::MisalignedAddress);
    assert_eq!(fault("mbarrier.init.b64 [%to], 1;").kind, FaultKind::IllegalAddress);
}

/// A copy that arrives at a barrier which is no longer the same would end a phase of the new one.
#[test]
fn barriers_end_after_their_copies() {
    let init = "mbarrier.init.shared.b64 [s+512], 1;\n";
    let bulk = "mbarrier.arrive.expect_tx.shared.b64 _, [s+512], 32;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%from], 32, [s+512];\n";
    let send = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], %r2, [s+512];\n";
    let copy = "cp.async.ca.shared.global [s], [%from], 4; cp.async.mbarrier.arrive.shared.b64 [s+512];\n";
    let ends = ["mbarrier.init.shared.b64 [s+512], 1;\n", "mbarrier.inval.shared.b64 [s+512];\n"];
    for (begin, copies) in [(bulk, "1 copy"), (send, "1 copy"), (copy, "1 copy")] {
        for (end, verb) in ends.into_iter().zip(["initialised", "invalidated"]) {
            let found = fault(&format!("{init}{begin}{end}"));
            assert_eq!(found.kind, FaultKind::IllegalInstruction, "{begin}{end}");
            let sentence = found.to_string();
            for part in ["the mbarrier at 0x200", verb, copies, "wait for its phase first"] {
                assert!(sentence.contains(part), "{part}: {sentence}");
            }
        }
    }
    let wait = wait_for("W", "s+512", "0");
    let nothing = "cp.async.mbarrier.arrive.shared.b64 [s+512]; mbarrier.arrive.shared.b64 _, [s+512];\n";
    let waited = format!("{copy}cp.async.wait_all; mbarrier.arrive.shared.b64 _, [s+512];\n");
    for begin in [format!("{bulk}{wait}"), nothing.into(), waited] {
        for end in ends {
            // The new barrier hears of its own copies alone.
            let body = format!(
                "{init}{begin}{end}mbarrier.init.shared.b64 [s+512], 2; mbarrier.arrive.shared.b64 %p1, [s+512];\n{}",
                test_wait(10, "test_wait.shared::cta.b64 %q1, [s+512], %p1")
            );
            assert_eq!(words(&body, 1).unwrap(), [0], "{body}");
        }
    }
}

/// A loop until the phase with this parity has ended.
fn wait_for(label: &str, barrier: &str, parity: &str) -> String {
    format!("{label}: mbarrier.try_wait.parity.shared.b64 %q2, [{barrier}], {parity}; @!%q2 bra {label};\n")
}

#[test]
fn copies_arrive_at_a_barrier() {
    for (arrive, count) in
        [("cp.async.mbarrier.arrive.shared.b64", 64), ("cp.async.mbarrier.arrive.noinc.shared::cta.b64", 128)]
    {
        // Each of 64 threads copies a word. With `.noinc`, the barrier expects two arrivals of
        // each.
        let body = format!(
            "mov.u32 %r30, %tid.x; mov.u32 %r1, s; mad.lo.u32 %r2, %r30, 4, %r1; mad.wide.u32 %p1, %r30, 4, %from;\n\
             setp.eq.u32 %q1, %r30, 0; @%q1 mbarrier.init.shared.b64 [s+1024], {count}; bar.sync 0;\n\
             cp.async.ca.shared.global [%r2], [%p1], 4; {arrive} [s+1024]; ld.shared.u32 %r5, [%r2];\n\
             mbarrier.arrive.shared.b64 %p3, [s+1024];\n{}\
             xor.b32 %r3, %r30, 63; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2];\n\
             mad.wide.u32 %p2, %r30, 8, %to; st.global.v2.u32 [%p2], {{%r4, %r5}};",
            wait_for("W", "s+1024", "0")
        );
        let found: Vec<u32> = run(&body, &input(), 128, 64).unwrap();
        let expected: Vec<u32> = (0..64).flat_map(|thread| [0x100 + (thread ^ 63), 0]).collect();
        assert_eq!(found, expected, "{arrive}");
    }
}

#[test]
fn bulk_copies_to_shared_memory() {
    let begin = "mbarrier.init.shared::cta.b64 [s+512], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;\n";
    for copy in [
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%from+16], 32, [s+512];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%from+16], %r2, [s+512];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%from+16], 32, [s+512], %h1, %p1;",
    ] {
        let body = format!(
            "{begin}.reg .b16 %h<2>; mov.u16 %h1, 1; mov.u32 %r2, 32; mov.u64 %p1, 0;\n\
             mbarrier.arrive.expect_tx.shared.b64 _, [s+512], 32; {copy}\n ld.shared.u32 %r10, [s];\n{}\
             ld.shared.u32 %r11, [s]; ld.shared.u32 %r12, [s+28]; ld.shared.u32 %r13, [s+32];",
            wait_for("W", "s+512", "0")
        );
        assert_eq!(words(&body, 4).unwrap(), [1, 0x104, 0x10b, 9], "{copy}");
    }
    // Within the cluster, also with a sum.
    let body = format!(
        "{begin}mbarrier.arrive.expect_tx.shared.b64 _, [s+512], 32;\n\
         cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s+64], [s], 16, [s+512];\n\
         cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [s+64], [s+16], 16, [s+512];\n\
         {}ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [s+64];",
        wait_for("W", "s+512", "0")
    );
    assert_eq!(words(&body, 4).unwrap(), [6, 8, 10, 12]);
    let found = fault(&format!(
        "{begin}mov.u32 %r2, 24;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%from], %r2, [s+512];"
    ));
    assert_eq!((found.kind, found.line), (FaultKind::IllegalInstruction, 12));
    let found = fault(&format!(
        "{begin}cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%from], 2048, [s+512];"
    ));
    assert_eq!((found.kind, found.line), (FaultKind::IllegalAddress, 11));
}

#[test]
fn bulk_copies_to_global_memory() {
    // The source may change after `.read`; the destination changes at the wait.
    let body = "cp.async.bulk.global.shared::cta.bulk_group [%from], [s], 16; cp.async.bulk.commit_group;\n\
                cp.async.bulk.wait_group.read 0; st.shared.u32 [s], 99; ld.global.u32 %r10, [%from];\n\
                cp.async.bulk.wait_group 0; ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%from]; ld.global.u32 %r15, [%from+16];";
    assert_eq!(words(body, 6).unwrap(), [0x100, 1, 2, 3, 4, 0x104]);
    let body = "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%from], [s], 16, %p1; st.shared.u32 [s], 99;\n\
                cp.async.bulk.commit_group; cp.async.bulk.commit_group; cp.async.bulk.wait_group 1; ld.global.u32 %r10, [%from];";
    assert_eq!(words(body, 1).unwrap(), [99]);
    let body = "cp.async.bulk.prefetch.L2.global [%from], 64; cp.async.bulk.global.shared::cta.bulk_group [%from], [s], 16;\n\
                cp.async.bulk.commit_group; cp.async.bulk.wait_group 1; ld.global.u32 %r10, [%from];";
    assert_eq!(words(body, 1).unwrap(), [0x100]);
    // Copies that nothing waits for take place by the end.
    let body =
        "mov.u32 %r1, s; st.shared.u32 [s], 7; cp.async.bulk.global.shared::cta.bulk_group [%to], [s], 16;";
    assert_eq!(run::<u32, u32>(body, &input(), 4, 1).unwrap(), [7, 0, 0, 0]);
}

#[test]
fn bulk_reductions() {
    for (op, expected) in [
        ("add.u32", 0x101_u32),
        ("max.s32", 0x100),
        ("min.u32", 1),
        ("and.b32", 0),
        ("xor.b32", 0x101),
        ("inc.u32", 0),
    ] {
        let body = format!(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%from], [s], 16; cp.async.bulk.commit_group;\n\
             cp.async.bulk.wait_group 0; ld.global.u32 %r10, [%from];"
        );
        assert_eq!(words(&body, 1).unwrap(), [expected], "{op}");
    }
    // Singles, doubles and halves.
    let sums = "st.shared.f32 [s], 0f3f800000; st.shared.f32 [s+4], 0f40000000; st.global.f32 [%from], 0f3f800000; st.global.f32 [%from+4], 0f00000000;\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%from], [s], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n\
         ld.global.v2.u32 {%r10, %r11}, [%from];";
    assert_eq!(words(sums, 2).unwrap(), [2_f32.to_bits(), 2_f32.to_bits()]);
    let sums = "st.shared.u32 [s], 0x40003c00; st.global.u32 [%from], 0x3c003c00;\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%from], [s], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n\
         ld.global.u32 %r10, [%from];";
    assert_eq!(words(sums, 1).unwrap(), [0x4200_4000]);
}

#[test]
fn producers_and_consumers() {
    // One warp fills two buffers in turn, 8 times; two warps sum them up. Consumers meet at a named
    // barrier while the producer waits in a loop.
    let body = format!(
        "mov.u32 %r30, %tid.x; mov.u32 %r20, 0; mov.u32 %r21, 0; setp.eq.u32 %q1, %r30, 0;\n\
         @!%q1 bra READY;\nmbarrier.init.shared.b64 [s+2048], 1; mbarrier.init.shared.b64 [s+2056], 1;\n\
         mbarrier.init.shared.b64 [s+2064], 64; mbarrier.init.shared.b64 [s+2072], 64;\nREADY: bar.sync 0;\n\
         mov.u32 %r1, s; shr.u32 %r2, %r30, 5; setp.ne.u32 %q3, %r2, 2; @%q3 bra CONSUME;\n\
         setp.ne.u32 %q1, %lane, 0; @%q1 bra END;\n\
         PRODUCE: and.b32 %r3, %r20, 1; mad.lo.u32 %r4, %r3, 8, %r1; shr.u32 %r5, %r20, 1; and.b32 %r6, %r5, 1; xor.b32 %r7, %r6, 1;\n\
         {}mbarrier.arrive.expect_tx.shared.b64 _, [%r4+2048], 64; mad.lo.u32 %r8, %r3, 256, %r1;\n\
         mad.wide.u32 %p1, %r20, 64, %from;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%p1], 64, [%r4+2048];\n\
         add.u32 %r20, %r20, 1; setp.lt.u32 %q1, %r20, 8; @%q1 bra PRODUCE;\nbra END;\n\
         CONSUME: and.b32 %r3, %r20, 1; mad.lo.u32 %r4, %r3, 8, %r1; shr.u32 %r5, %r20, 1; and.b32 %r6, %r5, 1;\n\
         {}mad.lo.u32 %r8, %r3, 256, %r1; and.b32 %r9, %r30, 15; mad.lo.u32 %r8, %r9, 4, %r8; ld.shared.u32 %r10, [%r8];\n\
         add.u32 %r21, %r21, %r10; bar.sync 1, 64; mbarrier.arrive.shared.b64 _, [%r4+2064];\n\
         add.u32 %r20, %r20, 1; setp.lt.u32 %q1, %r20, 8; @%q1 bra CONSUME;\n\
         mad.wide.u32 %p2, %r30, 4, %to; st.global.u32 [%p2], %r21;\nEND:",
        wait_for("EMPTY", "%r4+2064", "%r7"),
        wait_for("FULL", "%r4+2048", "%r6"),
    );
    let found: Vec<u32> = run(&body, &input(), 64, 96).unwrap();
    let sum = |column: u32| (0..8).map(|row| 0x100 + row * 16 + column).sum();
    assert_eq!(found, (0..64).map(|thread| sum(thread % 16)).collect::<Vec<u32>>());
}

#[test]
fn values_that_are_sent() {
    let body = format!(
        "mbarrier.init.shared.b64 [s+512], 1; mov.u32 %r2, 50; mov.u64 %p1, 0x700000006;\n\
         mbarrier.arrive.expect_tx.shared.b64 _, [s+512], 32;\n\
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], %r2, [s+512];\n\
         st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [s+16], {{%p1, %p1}}, [s+512];\n\
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s+4], %r2, [s+512];\n\
         ld.shared.u32 %r10, [s]; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [s+8], %r2, [s+512];\n\
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.xor.b32 [s+8], %r2, [s+512];\n\
         {}ld.shared.v4.u32 {{%r11, %r12, %r13, %r14}}, [s]; ld.shared.v4.u32 {{%r15, %r16, %r17, %r18}}, [s+16];",
        wait_for("W", "s+512", "0")
    );
    assert_eq!(words(&body, 9).unwrap(), [1, 50, 52, 3 ^ 50, 4, 6, 7, 6, 7]);
}
