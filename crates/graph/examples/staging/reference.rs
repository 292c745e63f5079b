//! The reference in plain Rust.

/// All blocks but the first add the number of the row.
const BLOCK: usize = 128;

/// The numbers of a row.
pub(crate) fn row(n: usize, row: u32) -> impl Iterator<Item = u32> {
    (0..n as u32).map(move |index| index.wrapping_mul(2_654_435_761).wrapping_add(row))
}

/// The sum of a processed row.
pub(crate) fn sum(n: usize, number: u32) -> u32 {
    let added = |index| if index >= BLOCK { number } else { 0 };
    let worked_on =
        row(n, number).enumerate().map(|(index, one)| one.wrapping_mul(3).wrapping_add(added(index)));
    worked_on.fold(0, u32::wrapping_add)
}
