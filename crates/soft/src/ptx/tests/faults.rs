//! Stray kernels: each stops with a fault that says who did what, where.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Memory, arg, launch, load};
use crate::ptx::error::Fault;
use crate::ptx::{DeviceMemory, FaultKind, Launch, MemoryFault, Span, run};

fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_70\n.address_size 64 .func f() {{ ret; }} .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .entry k(.param .u64 at) {{\n\
         .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .local .align 8 .b8 depot[16]; .shared .align 8 .b8 s[16];\n\
         ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n"
    )
}

/// The fault of a body, which begins in line 7, with 64 bytes at `%rd1`.
fn fault(body: &str) -> Fault {
    let image = load(&kernel(body));
    let mut memory = Memory::default();
    let at = memory.put(&[u64::from_le_bytes(*b"%d %lld\0"), 0, 0, 0, 0, 0, 0, 0]);
    match launch(&image, &mut memory, "k", [2, 1, 1], [4, 2, 1], 0, &[arg(at)]) {
        Ok(_) => panic!("this is wrong: {body}"),
        Err(fault) => fault,
    }
}

#[test]
fn addresses() {
    let found = fault("setp.ne.u32 %p1, %r1, 3;\n@%p1 bra L;\nst.global.u32 [%rd1+64], 1;\nL:");
    assert_eq!(
        (found.kind, found.line, found.block, found.thread),
        (FaultKind::IllegalAddress, 9, [0; 3], [3, 0, 0])
    );
    assert_eq!((found.address, found.size, found.write), (Some(0x7_0000_0040), Some(4), true));
    let text = "illegal address in kernel `k` at ptx line 9, block (0, 0, 0), thread (3, 0, 0): write of 4 bytes at \
                0x700000040: no allocation there";
    assert_eq!(found.to_string(), text);
    for body in [
        "ld.global.u8 %r2, [0];",
        "ld.u32 %r2, [%rd1+-4];",
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+64];",
        "atom.global.add.u32 %r2, [%rd1+4096], 1;",
        "red.global.add.u32 [%rd1+64], 1;",
        "ld.shared.u32 %r2, [s+16];",
        "st.shared.u64 [s+-8], 1;",
        "mov.u64 %rd2, depot; st.local.u64 [%rd2+16], 1;",
        "mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; st.u64 [%rd2+4294967288], 1;",
        "mov.b64 %rd2, at; ld.param.u64 %rd3, [%rd2+8];",
        "mov.b64 %rd2, at; cvta.param.u64 %rd2, %rd2; st.u64 [%rd2], 1;",
        "ld.u64 %rd2, [-8];",
        // Null, in every way.
        "mov.u64 %rd2, 0; ld.u32 %r2, [%rd2];",
        "mov.u64 %rd2, 0; st.u32 [%rd2], %r2;",
        "mov.u64 %rd2, 0; atom.add.u32 %r2, [%rd2], 1;",
        "mov.u64 %rd2, 0; cvta.to.local.u64 %rd2, %rd2; ld.local.u32 %r2, [%rd2];",
        // The edges of the windows, from inside and from outside.
        "cvta.shared.u64 %rd2, s; ld.u32 %r2, [%rd2+16];",
        "cvta.shared.u64 %rd2, s; ld.u32 %r2, [%rd2+-4];",
        "cvta.shared.u64 %rd2, s; ld.u8 %r2, [%rd2+16777215];",
        "cvta.shared.u64 %rd2, s; ld.u8 %r2, [%rd2+16777216];",
        "cvta.shared.u64 %rd2, s; add.u64 %rd2, %rd2, 4294967296; ld.u8 %r2, [%rd2];",
        "mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; ld.u32 %r2, [%rd2+16];",
        "mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; ld.u32 %r2, [%rd2+-4];",
        "mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; ld.u8 %r2, [%rd2+16777216];",
        "cvta.param.u64 %rd2, at; ld.u64 %rd3, [%rd2+8];",
        "cvta.param.u64 %rd2, at; ld.u64 %rd3, [%rd2+-8];",
        "cvta.shared.u64 %rd2, s; ld.global.u32 %r2, [%rd2];",
        "cvta.param.u64 %rd2, at; ld.global.u64 %rd3, [%rd2];",
        // Device memory by the instructions of other spaces.
        "ld.shared.u32 %r2, [%rd1];",
        "ld.local.u32 %r2, [%rd1];",
        "cvta.to.shared.u64 %rd2, %rd1; ld.shared.u32 %r2, [%rd2];",
        // What a print refers to.
        "{ .param .b32 p; mov.u64 %rd2, -1; call (p), vprintf, (%rd1, %rd2); }",
        "{ .param .b32 p; mov.u64 %rd2, -1; call (p), vprintf, (%rd2, %rd1); }",
        // Code is no data.
        "mov.u64 %rd2, f; ld.u32 %r2, [%rd2];",
    ] {
        assert_eq!(fault(body).kind, FaultKind::IllegalAddress, "{body}");
    }
}

#[test]
fn variables_in_shared_memory_are_named() {
    for (body, words) in [
        ("ld.shared.u32 %r2, [s+16];", ", at the end of `s`, which has 16 bytes"),
        ("ld.shared.u32 %r2, [s+24];", ", 8 bytes behind the end of `s`, which has 16 bytes"),
        ("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [s+16];", ", at the end of `s`, which has 16 bytes"),
    ] {
        let found = fault(body);
        assert!(found.detail.ends_with(words), "{body}: {found}");
    }
}

#[test]
fn places_in_the_source_are_reported() {
    let text = |line: &str| {
        format!(
            ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry k() {{\n.reg .b32 %r<3>;\n.loc 2 10 0\n\
             mov.u32 %r1, 1;\n{line}\ntrap;\nret;\n}}\n.file 1 \"other.cu\"\n.file 2 \"k.cu\", 1234, 56\n"
        )
    };
    for (line, source) in [
        ("", Some("k.cu:10")),
        (".loc 2 12 7", Some("k.cu:12")),
        (".loc 1 7 1, function_name $info0, inlined_at 2 12 7", Some("other.cu:7")),
        // Line 0 belongs to no line, file 3 is not there, and the last is no place at all.
        (".loc 1 0 0", None),
        (".loc 3 5 0", Some("k.cu:10")),
        (".loc what", Some("k.cu:10")),
    ] {
        let image = load(&text(line));
        let fault = launch(&image, &mut Memory::default(), "k", [1; 3], [1; 3], 0, &[]).unwrap_err();
        assert_eq!((fault.line, fault.source.as_deref()), (9, source), "{line}");
        let place = source.map_or(String::new(), |source| format!(" ({source})"));
        assert!(
            fault.to_string().starts_with(&format!("trap in kernel `k` at ptx line 9{place}, block")),
            "{fault}"
        );
    }
}

#[test]
fn alignment() {
    for body in [
        "ld.global.u32 %r2, [%rd1+2];",
        "st.global.u64 [%rd1+4], 1;",
        "ld.global.v2.u32 {%r2, %r3}, [%rd1+4];",
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+8];",
        "ld.shared.u32 %r2, [s+1];",
        "mov.u64 %rd2, depot; ld.local.u16 %r2, [%rd2+1];",
        "atom.global.add.u32 %r2, [%rd1+1], 1;",
    ] {
        let found = fault(body);
        assert_eq!((found.kind, found.line), (FaultKind::MisalignedAddress, 7), "{body}");
    }
}

#[test]
fn control() {
    assert_eq!(fault("trap;").kind, FaultKind::Trap);
    let found = fault("ts: .branchtargets A, B;\nbrx.idx 7, ts;\nA:\nB:");
    assert_eq!((found.kind, found.line), (FaultKind::InvalidProgramCounter, 8));
    let found = fault("proto: .callprototype _ ();\nmov.u64 %rd2, 12345;\ncall %rd2, proto;");
    assert_eq!((found.kind, found.line), (FaultKind::InvalidProgramCounter, 9));
    assert_eq!(fault("mov.u32 %r2, 16; bar.sync %r2;").kind, FaultKind::IllegalInstruction);
    assert_eq!(fault("bar.sync 1, 5;").kind, FaultKind::IllegalInstruction);
    assert_eq!(fault("bar.warp.sync 0;").kind, FaultKind::IllegalInstruction);
}

#[test]
fn endless_recursion() {
    let text = ".version 8.0\n.target sm_70\n.address_size 64\n.func f() { .reg .b64 %x<3>; .local .b64 y[2]; mov.u64 %x1, y; st.local.u64 [%x1], 1;\n\
                call f; ret; }\n.entry k() { call f; ret; }\n";
    let image = load(text);
    let fault = launch(&image, &mut Memory::default(), "k", [1, 1, 1], [64, 1, 1], 0, &[]).unwrap_err();
    assert_eq!((fault.kind, fault.line), (FaultKind::StackOverflow, 5));
}

#[test]
fn launches_that_do_not_fit() {
    let image = load(&kernel(""));
    let kernel = image.kernel("k").unwrap();
    let memory = Memory::default();
    let good =
        Launch { kernel, grid: [1; 3], block: [1; 3], dynamic_shared: 0, params: &[0; 8], globals: &[] };
    run(&good, &memory).unwrap();
    for wrong in [
        Launch { params: &[0; 7], ..good },
        Launch { globals: &[1], ..good },
        Launch { block: [32, 33, 1], ..good },
        Launch { block: [0, 1, 1], ..good },
        Launch { grid: [1, 0, 1], ..good },
        Launch { grid: [u32::MAX; 3], ..good },
        Launch { block: [u32::MAX; 3], ..good },
        Launch { dynamic_shared: u32::MAX, ..good },
    ] {
        assert_eq!(run(&wrong, &memory).unwrap_err().kind, FaultKind::LaunchFailed);
    }
}

/// One allocation that disappears, becomes read-only, or ends the grid.
struct Fickle {
    words: Vec<AtomicU64>,
    looks: AtomicU32,
    gone_after: u32,
    writable: bool,
    cancels: bool,
}

impl DeviceMemory for Fickle {
    fn translate(&self, address: u64, len: usize, _write: bool) -> Result<Span, MemoryFault> {
        let size = self.words.len() as u64 * 8;
        if address < 4096
            || address + len as u64 > 4096 + size
            || self.looks.load(Ordering::Relaxed) > self.gone_after
        {
            return Err(MemoryFault { kind: FaultKind::IllegalAddress, message: "freed".into() });
        }
        let host = self.words.as_ptr().cast::<u8>().cast_mut();
        Ok(Span { device_start: 4096, len: size, host, writable: self.writable })
    }

    fn epoch(&self) -> u64 {
        u64::from(self.looks.fetch_add(1, Ordering::Relaxed) >= self.gone_after)
    }

    fn set_conditional(&self, _handle: u64, _value: u32) -> Result<(), MemoryFault> {
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.cancels
    }
}

fn fickle(body: &str, gone_after: u32, writable: bool, cancels: bool) -> Result<(), Fault> {
    let image = load(&kernel(body));
    let words = (0..8).map(AtomicU64::new).collect();
    let memory = Fickle { words, looks: AtomicU32::new(0), gone_after, writable, cancels };
    let params = 4096_u64.to_le_bytes();
    let kernel = image.kernel("k").unwrap();
    run(
        &Launch { kernel, grid: [1; 3], block: [1; 3], dynamic_shared: 0, params: &params, globals: &[] },
        &memory,
    )
}

#[test]
fn freed_memory_is_not_reached_through_the_cache() {
    let body = "L:\nld.global.u32 %r2, [%rd1];\nbra L;";
    let fault = fickle(body, 100, true, false).unwrap_err();
    assert_eq!((fault.kind, fault.detail.as_str()), (FaultKind::IllegalAddress, "freed"));
}

#[test]
fn read_only_memory_is_not_written() {
    let body = "ld.global.u32 %r2, [%rd1];";
    fickle(body, u32::MAX, false, false).unwrap();
    let fault = fickle("st.global.u32 [%rd1], 1;", u32::MAX, false, false).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
}

#[test]
fn an_endless_kernel_can_be_cancelled() {
    for body in [
        "L:\nbra L;",
        "L:\nnanosleep.u32 10;\nbra L;",
        "L:\nbar.sync 0;\nbra L;",
        // Lanes that set each other free again and again.
        "L:\nbar.warp.sync 1;\nbra L;",
        "setp.eq.u32 %p1, %r1, 0;\nL:\nvote.sync.any.pred %p2, %p1, 1;\nbra L;",
        "L:\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 1;\nbra L;",
    ] {
        let fault = fickle(body, u32::MAX, true, true).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Cancelled, "{body}");
    }
}

#[test]
fn a_warp_that_waits_for_another_one_in_step_lets_it_run() {
    let body = "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra SET;\nL:\nbar.warp.sync 0xffffffff;\nld.volatile.global.u32 %r2, [%rd1];\n\
                setp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nret;\nSET:\nst.volatile.global.u32 [%rd1], 1;";
    let image = load(&kernel(body));
    let mut memory = Memory::default();
    let at = memory.put(&[0_u64; 8]);
    launch(&image, &mut memory, "k", [2, 1, 1], [64, 1, 1], 0, &[arg(at)]).unwrap();
}
