//! The same calls in plain Rust.

use super::program::Site;

/// The numbers of a site after so many calls.
pub(crate) fn run(site: &Site, calls: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..).take(site.n).collect();
    for call in 0..calls {
        for _ in 0..site.rounds(call) {
            numbers.iter_mut().for_each(|number| *number = number.wrapping_mul(site.factor).wrapping_add(1));
            numbers.iter_mut().for_each(|number| *number = number.wrapping_add(call));
        }
    }
    numbers
}
