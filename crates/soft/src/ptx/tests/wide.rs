//! Registers of 128 bits, vectors of atomics, and the stack of a thread.

use super::{Memory, arg, launch, load};
use crate::ptx::FaultKind;
use crate::ptx::error::Fault;

/// Runs one thread with 16 double words at `%d1`, which hold 100 to 115.
fn run(body: &str) -> Result<Vec<u64>, Fault> {
    let text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 at) {{\n\
         .reg .pred %p<4>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b128 %q<6>; .shared .align 16 .b8 s[64];\n\
         ld.param.u64 %d1, [at];\n{body}\nret;\n}}\n"
    );
    let image = load(&text);
    let mut memory = Memory::default();
    let at = memory.put(&(100..116).collect::<Vec<u64>>());
    launch(&image, &mut memory, "k", [1, 1, 1], [1, 1, 1], 0, &[arg(at)])?;
    Ok(memory.get::<u64>(at))
}

#[test]
fn registers_of_two_words() {
    let found = run("ld.global.b128 %q1, [%d1+16]; mov.b128 %q2, %q1; mov.b128 {%d2, %d3}, %q2; mov.b128 %q3, {%d3, %d2};\n\
         st.shared.b128 [s+16], %q3; ld.shared.b128 %q4, [s+16]; st.global.b128 [%d1], %q4; mov.b128 %q5, 7;\n\
         mov.b128 {_, %d4}, %q5; st.global.u64 [%d1+32], %d4; mov.b128 %q2, %q3; mov.b128 {%d3, %d2}, %q2; st.global.v2.u64 [%d1+48], {%d2, %d3};")
    .unwrap();
    assert_eq!(found[..8], [103, 102, 102, 103, 0, 105, 102, 103]);
    let fault = run("ld.global.b128 %q1, [%d1+8];").unwrap_err();
    assert_eq!((fault.kind, fault.size), (FaultKind::MisalignedAddress, Some(16)));
}

#[test]
fn variables_and_parameters_of_two_words() {
    let text = ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .global .align 16 .b128 g;\n.shared .b128 s;\n\
        .func (.param .b128 r) f(.param .b128 a) { .reg .b128 %q<3>; ld.param.b128 %q1, [a]; st.param.b128 [r], %q1; ret; }\n\
        .visible .entry k(.param .u64 at) { .local .b128 l; .reg .b128 %q<4>; .reg .b64 %d<6>;\n\
        ld.param.u64 %d1, [at]; ld.global.b128 %q1, [%d1];\n\
        { .param .b128 p; .param .b128 x; st.param.b128 [p], %q1; call (x), f, (p); ld.param.b128 %q2, [x]; }\n\
        st.local.b128 [l], %q2; ld.local.b128 %q3, [l]; st.global.b128 [%d1+16], %q3; st.shared.b128 [s], %q3; st.global.b128 [g], %q3; ret; }\n";
    let image = load(text);
    let mut memory = Memory::default();
    let at = memory.put(&[5_u64, 6, 0, 0]);
    let globals = launch(&image, &mut memory, "k", [1, 1, 1], [1, 1, 1], 0, &[arg(at)]).unwrap();
    assert_eq!(memory.get::<u64>(at), [5, 6, 5, 6]);
    assert_eq!(memory.get::<u64>(globals[0]), [5, 6]);
}

#[test]
fn atomics_of_two_words() {
    let found = run("mov.b64 %d2, 100; mov.b64 %d3, 101; mov.b128 %q1, {%d2, %d3}; mov.b64 %d4, 7; mov.b128 %q2, {%d4, %d2};\n\
         atom.global.cas.b128 %q3, [%d1], %q1, %q2; st.global.b128 [%d1+32], %q3;\n\
         atom.relaxed.gpu.global.cas.b128 %q3, [%d1+16], %q1, %q2; st.release.gpu.global.b128 [%d1+48], %q3;\n\
         atom.exch.b128 %q4, [%d1+64], %q1; ld.acquire.gpu.global.b128 %q5, [%d1+64]; st.global.b128 [%d1+80], %q4; st.volatile.global.b128 [%d1+96], %q5;")
    .unwrap();
    assert_eq!(found[..14], [7, 100, 102, 103, 100, 101, 102, 103, 100, 101, 108, 109, 100, 101]);
}

#[test]
fn vectors_of_atomics() {
    let bits = |x: f32| u64::from(x.to_bits());
    let body = "mov.f32 %r1, 0f3F800000; mov.f32 %r2, 0f40000000; st.global.v4.f32 [%d1], {%r1, %r2, %r1, %r2};\n\
         atom.global.add.v2.f32 {%r2, %r1}, [%d1], {%r1, %r2}; st.global.v2.f32 [%d1+16], {%r2, %r1};\n\
         red.global.v4.f32.add [%d1], {%r2, %r1, %r2, %r1};";
    let found = run(body).unwrap();
    let pair = |low: f32, high: f32| bits(low) | (bits(high) << 32);
    assert_eq!(found[..3], [pair(3.0, 6.0), pair(2.0, 4.0), pair(1.0, 2.0)]);
    let fault = run("red.global.add.v4.f32 [%d1+8], {%r1, %r1, %r1, %r1};").unwrap_err();
    assert_eq!((fault.kind, fault.size), (FaultKind::MisalignedAddress, Some(16)));
    let found = run("mov.b32 %r1, 0x40003c00; st.global.v2.u32 [%d1], {%r1, %r1}; red.global.max.noftz.v2.f16x2 [%d1], {0x3c004000, 0xbc003c00};").unwrap();
    assert_eq!(found[0], 0x4000_3c00_4000_4000);
}

#[test]
fn sums_in_global_memory_lose_subnormal_numbers() {
    let body = "st.global.u32 [%d1], 5; red.global.add.f32 [%d1], 0f00000000; st.global.u32 [%d1+4], 0x80000001; red.add.f32 [%d1+4], 0f80000000;\n\
         st.shared.u32 [s], 5; red.shared.add.f32 [s], 0f00000000; ld.shared.u32 %r1, [s]; st.global.u32 [%d1+8], %r1;";
    let found = run(body).unwrap();
    assert_eq!((found[0], found[1] & 0xffff_ffff), (0x8000_0000_0000_0000, 5));
}

#[test]
fn memory_of_the_stack() {
    let body = "stacksave.u64 %d2; alloca.u64 %d3, 40, 64; alloca.u64 %d4, 8; st.local.u64 [%d3+32], 11; st.local.u64 [%d4], 22;\n\
         stacksave.u64 %d5; alloca.u64 %d6, 4096; cvta.local.u64 %d7, %d6; st.u64 [%d7+4088], 33; ld.local.u64 %d8, [%d6+4088];\n\
         stackrestore.u64 %d5; ld.local.u64 %d9, [%d3+32]; ld.local.u64 %d10, [%d4]; stacksave.u64 %d11; stackrestore.u64 %d2; stacksave.u64 %d12;\n\
         and.b64 %d13, %d3, 63; sub.u64 %d11, %d11, %d5; sub.u64 %d12, %d12, %d2;\n\
         st.global.v2.u64 [%d1], {%d8, %d9}; st.global.v2.u64 [%d1+16], {%d10, %d11}; st.global.v2.u64 [%d1+32], {%d12, %d13};";
    assert_eq!(run(body).unwrap()[..6], [33, 11, 22, 0, 0, 0]);
    for (body, kind) in [
        ("alloca.u64 %d2, 100000000;", FaultKind::StackOverflow),
        ("stacksave.u64 %d2; add.u64 %d2, %d2, 8; stackrestore.u64 %d2;", FaultKind::IllegalInstruction),
        ("stackrestore.u64 -8;", FaultKind::IllegalInstruction),
        (
            "stacksave.u64 %d2; alloca.u64 %d3, 8; stackrestore.u64 %d2; ld.local.u64 %d4, [%d3];",
            FaultKind::IllegalAddress,
        ),
    ] {
        let fault = run(body).unwrap_err();
        assert_eq!(fault.kind, kind, "{body}: {fault}");
    }
}

#[test]
fn hints_have_no_effect() {
    let found = run("prefetch.global.L2 [%d1]; discard.global.L2 [%d1], 128; applypriority.global.L2::evict_normal [%d1], 128;\n\
         createpolicy.fractional.L2::evict_last.b64 %d2, 0.5; ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v2.u64 {%d3, %d4}, [%d1], %d2;\n\
         st.global.L2::cache_hint.v2.u64 [%d1+16], {%d3, %d4}, %d2; fence.proxy.async; fence.proxy.tensormap::generic.release.gpu; membar.gl; setmaxnreg.inc.sync.aligned.u32 64; pmevent 3;")
    .unwrap();
    assert_eq!(found[..4], [100, 101, 100, 101]);
}
