//! Fragments: which elements of a matrix each lane of a warp holds.

use crate::ptx::code::matrix::{Element, Layout, Role, Shape};

/// Row and column of the element `index` of the fragment of `lane`.
pub(in crate::ptx) fn place(
    layout: Layout,
    role: Role,
    shape: Shape,
    element: Element,
    lane: u32,
    index: u32,
) -> (u32, u32) {
    match layout {
        Layout::Mma => mma(role, shape, element, lane, index),
        Layout::QuadPairs { a_is_row, b_is_row } => match role {
            Role::A => quad_pair(a_is_row, lane, index),
            Role::B => {
                let (column, row) = quad_pair(!b_is_row, lane, index);
                (row, column)
            }
            Role::C => quad_pair_sum(element, lane, index),
        },
        Layout::Wmma => {
            let extent = shape.extent(role);
            // Fragments may have room for more elements than a lane's share: these repeat.
            let share = extent.len() / 32;
            let at = lane * share + index % share;
            (at / extent.columns, at % extent.columns)
        }
    }
}

/// Four lanes share a row of `a` and a column of `b`. Each register has neighbours along the sum.
fn mma(role: Role, shape: Shape, element: Element, lane: u32, index: u32) -> (u32, u32) {
    let (group, member) = (lane / 4, lane % 4);
    if role == Role::C {
        return (group + 8 * (index / 2 % 2), 2 * member + index % 2 + 8 * (index / 4));
    }
    let each = element.per_register();
    let (register, part) = (index / each, index % each);
    let along = member * each + part;
    match role {
        Role::A if shape.m == 16 => (group + 8 * (register % 2), along + 4 * each * (register / 2)),
        Role::A => (group, along + 4 * each * register),
        _ => (along + 4 * each * register, group),
    }
}

/// Row and column of `a` in the product of a quad pair, whose upper lanes hold the lower half.
fn quad_pair(is_row: bool, lane: u32, index: u32) -> (u32, u32) {
    let half = 4 * (lane / 16);
    if is_row { (lane % 4 + half, index) } else { (index + half, lane % 4) }
}

fn quad_pair_sum(element: Element, lane: u32, index: u32) -> (u32, u32) {
    let half = 4 * (lane / 16);
    if element == Element::F16 {
        return (lane % 4 + half, index);
    }
    ((lane & 1) + (index & 2) + half, (index & 4) + (lane & 2) + (index & 1))
}
