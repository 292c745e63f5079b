//! How fast instructions run, interpreted and natively, beside the same work as Rust.

use std::hint::black_box;

use super::{BASIC, COOPERATION, Checks, Memory, arg, launch, load};
use crate::ptx::Image;

/// Loops of 7 and 8 instructions: with a special register, and with local memory by generic
/// addresses. A thread writes its result to its place in `out`.
const LOOPS: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry masks(.param .u64 out, .param .u32 rounds) {\n\
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p;\n\
    ld.param.u64 %d1, [out]; ld.param.u32 %r1, [rounds]; mov.u32 %r2, %tid.x; mad.wide.u32 %d1, %r2, 4, %d1;\n\
    mov.u32 %r3, 0; mov.u32 %r4, 0;\n\
    L: mov.u32 %r5, %lanemask_lt; and.b32 %r6, %r5, %r3; popc.b32 %r6, %r6; add.u32 %r4, %r4, %r6;\n\
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, %r1; @%p bra L;\n\
    st.global.u32 [%d1], %r4; ret;\n}\n\
    .visible .entry locals(.param .u64 out, .param .u32 rounds) {\n\
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p; .local .align 16 .b8 l[64];\n\
    ld.param.u64 %d1, [out]; ld.param.u32 %r1, [rounds]; mov.u32 %r2, %tid.x; mad.wide.u32 %d1, %r2, 4, %d1;\n\
    mov.u32 %r3, 0; mov.u64 %d2, l; cvta.local.u64 %d2, %d2;\n\
    L: and.b32 %r5, %r3, 15; mad.wide.u32 %d3, %r5, 4, %d2; ld.u32 %r6, [%d3]; add.u32 %r6, %r6, %r3; st.u32 [%d3], %r6;\n\
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, %r1; @%p bra L;\n\
    ld.u32 %r6, [%d2]; st.global.u32 [%d1], %r6; ret;\n}\n";

/// The processor time of this process, in seconds: other processes do not change it much.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The rate of the last of several rounds, in millions a second: the first may compile.
fn rate(instructions: f64, mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..8 {
        let start = now();
        round();
        best = best.min(now() - start);
    }
    instructions / best / 1e6
}

/// Reports the rates of a kernel; asserts only what any build reaches on any machine, so that a
/// slow one fails no test.
fn report(what: &str, text: &str, instructions: f64, mut kernel: impl FnMut(&Image), rust: impl FnMut()) {
    let image = load(text);
    let mut rates = Vec::new();
    for threshold in [None, Some(0)] {
        image.compile_after(threshold);
        rates.push(rate(instructions, || kernel(&image)));
    }
    rates.push(rate(instructions, rust));
    println!(
        "{what}: {:.0} million thread instructions a second interpreted, {:.0} natively, {:.0} as Rust",
        rates[0], rates[1], rates[2]
    );
    assert!(rates[0] > 1.0 && rates[1] > 1.0);
}

#[test]
fn rates() {
    let (threads, rounds) = (32_u32, 50_000_u32);
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let out = memory.put(&[0_u32; 256]);
    let busy = |thread: u32| {
        (0..rounds).fold(thread, |v, k| v.wrapping_mul(1_664_525).wrapping_add(v >> 7).wrapping_add(k))
    };
    let args = [arg(out), arg(rounds)];
    // Six instructions a round.
    report(
        "arithmetic",
        BASIC,
        f64::from(rounds) * 6.0 * f64::from(threads),
        |image| {
            launch(image, &mut memory, "busy", [1; 3], [threads, 1, 1], 0, &args).unwrap();
        },
        || assert_ne!((0..threads).fold(0, |all, thread| all | busy(black_box(thread))), 0),
    );
    assert_eq!(memory.get::<u32>(out)[5], busy(5));

    let n = 1 << 17;
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let (x, y) = (memory.put(&vec![1_f32; n]), memory.put(&vec![2_f32; n]));
    let args = [arg(n as u32), arg(0_f32), arg(x), arg(y)];
    let (host_x, mut host_y) = (vec![1_f32; n], vec![2_f32; n]);
    report(
        "saxpy",
        BASIC,
        n as f64 * 19.0,
        |image| {
            launch(image, &mut memory, "saxpy", [n as u32 / 256, 1, 1], [256, 1, 1], 0, &args).unwrap();
        },
        || {
            let a = black_box(3_f32);
            black_box(&mut host_y).iter_mut().zip(&host_x).for_each(|(y, x)| *y += a * x);
        },
    );
    assert_eq!(memory.get::<f32>(y), vec![2_f32; n]);

    let sums = memory.put(&vec![0_f32; n / 256]);
    let args = [arg(x), arg(sums), arg(n as i32)];
    let mut host_sums = vec![0_f32; n / 256];
    report(
        "block_sum",
        COOPERATION,
        n as f64 * 32.0,
        |image| {
            launch(image, &mut memory, "block_sum", [n as u32 / 256, 1, 1], [256, 1, 1], 0, &args).unwrap();
        },
        || {
            for (sum, part) in black_box(&mut host_sums).iter_mut().zip(host_x.chunks(256)) {
                *sum = part.iter().sum();
            }
        },
    );
    assert_eq!(memory.get::<f32>(sums), vec![256_f32; n / 256]);
    // In the same test, since tests that run beside each other share the processor time.
    rates_of_loops();
}

fn rates_of_loops() {
    let (threads, rounds) = (32_u32, 20_000_u32);
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let out = memory.put(&[0_u32; 32]);
    let args = [arg(out), arg(rounds)];
    let below = |thread: u32| (1_u32 << thread) - 1;
    let masks = |thread| (0..rounds).fold(0, |sum, k| sum + (below(thread) & k).count_ones());
    let locals = |_: u32| {
        let mut cells = [0_u32; 16];
        (0..rounds).for_each(|k| cells[black_box(k as usize % 16)] += k);
        cells[0]
    };
    let loops: [(_, _, &dyn Fn(u32) -> u32); 2] = [("masks", 7, &masks), ("locals", 8, &locals)];
    for (name, length, rust) in loops {
        report(
            name,
            LOOPS,
            f64::from(rounds) * f64::from(length) * f64::from(threads),
            |image| {
                launch(image, &mut memory, name, [1; 3], [threads, 1, 1], 0, &args).unwrap();
            },
            || assert_ne!((0..threads).fold(0, |all, thread| all | rust(black_box(thread))), 0),
        );
        assert_eq!(memory.get::<u32>(out), (0..threads).map(rust).collect::<Vec<_>>());
    }
}
