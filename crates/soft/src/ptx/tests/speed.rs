//! How fast instructions run.

use std::time::Instant;

use super::{BASIC, COOPERATION, Checks, Memory, arg, launch, load};

fn report(what: &str, instructions: f64, start: Instant) -> f64 {
    let rate = instructions / start.elapsed().as_secs_f64() / 1e6;
    println!("{what}: {rate:.0} million thread instructions a second");
    rate
}

/// Reports rates; asserts only what any build reaches on any machine, so that a slow one fails no
/// test.
#[test]
fn rate() {
    let image = load(BASIC);
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let out = memory.put(&[0_u32; 256]);
    let rounds = 50_000_u32;
    let start = Instant::now();
    launch(&image, &mut memory, "busy", [1, 1, 1], [32, 1, 1], 0, &[arg(out), arg(rounds)]).unwrap();
    // Six instructions a round.
    let rate = report("arithmetic", f64::from(rounds) * 6.0 * 32.0, start);
    let v = (0..rounds).fold(5_u32, |v, k| v.wrapping_mul(1_664_525).wrapping_add(v >> 7).wrapping_add(k));
    assert_eq!(memory.get::<u32>(out)[5], v);
    assert!(rate > 1.0);

    let n = 1 << 17;
    let (x, y) = (memory.put(&vec![1_f32; n]), memory.put(&vec![2_f32; n]));
    let args = [arg(n as u32), arg(3_f32), arg(x), arg(y)];
    let start = Instant::now();
    launch(&image, &mut memory, "saxpy", [n as u32 / 256, 1, 1], [256, 1, 1], 0, &args).unwrap();
    report("saxpy", n as f64 * 19.0, start);
    assert_eq!(memory.get::<f32>(y), vec![5_f32; n]);

    let image = load(COOPERATION);
    let sums = memory.put(&vec![0_f32; n / 256]);
    let args = [arg(x), arg(sums), arg(n as i32)];
    let start = Instant::now();
    launch(&image, &mut memory, "block_sum", [n as u32 / 256, 1, 1], [256, 1, 1], 0, &args).unwrap();
    report("block_sum", n as f64 * 32.0, start);
    assert_eq!(memory.get::<f32>(sums), vec![256_f32; n / 256]);
}
