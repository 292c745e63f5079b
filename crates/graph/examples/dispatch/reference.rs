//! The reference in plain Rust.

/// Applies an instruction to the numbers.
pub(crate) fn run(instruction: u32, numbers: &mut [u32]) {
    let half = numbers.len() / 2;
    match instruction {
        0 => (0..).zip(numbers).for_each(|(i, number)| *number = 2 * i + 1),
        1 => {
            let mut sum = 0_u32;
            for number in numbers {
                sum = sum.wrapping_add(*number);
                *number = sum;
            }
        }
        2 => numbers.reverse(),
        3 => {
            let (lower, upper) = numbers.split_at_mut(half);
            scale(lower, 3, 1);
            scale(upper, 5, 2);
            numbers.reverse();
        }
        _ => {}
    }
}

fn scale(numbers: &mut [u32], factor: u32, summand: u32) {
    for number in numbers {
        *number = number.wrapping_mul(factor).wrapping_add(summand);
    }
}
