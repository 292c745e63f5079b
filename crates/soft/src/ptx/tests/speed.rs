//! How fast instructions run, interpreted and natively, beside the same work as Rust.

use std::hint::black_box;

use super::{BASIC, COOPERATION, Checks, Memory, arg, launch, load};
use crate::ptx::Image;

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
}
