//! The variants of an executable.

use core::num::NonZeroU16;

use cuda_graph::{InstantiateOptions, Order, Shape};

/// A variant.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) options: fn() -> InstantiateOptions,
    /// The colour of its dots.
    pub(super) colour: [u8; 3],
}

/// The first is the graph as drawn.
pub(super) const VARIANTS: &[Variant] = &[
    Variant { name: "as drawn", options: InstantiateOptions::new, colour: [0x66; 3] },
    Variant { name: "Reduced", options: || shape(Shape::Reduced), colour: [0x00, 0x72, 0xb2] },
    Variant { name: "Lanes(37)", options: || shape(lanes()), colour: [0x56, 0xb4, 0xe9] },
    Variant { name: "Auto, edges and lanes alone", options: edges_and_lanes, colour: [0xe6, 0x9f, 0x00] },
    Variant {
        name: "Auto, full edges",
        options: || shape(Shape::Auto).programmatic_edges(false),
        colour: [0x00, 0x9e, 0x73],
    },
    Variant { name: "Auto", options: || shape(Shape::Auto), colour: [0xd5, 0x5e, 0x00] },
    Variant {
        name: "Auto, by data",
        options: || shape(Shape::Auto).order(Order::ByData),
        colour: [0xcc, 0x79, 0xa7],
    },
];

fn edges_and_lanes() -> InstantiateOptions {
    shape(Shape::Auto).programmatic_edges(false).fills_by_kernels(false).copies_by_kernels(false)
}

fn shape(shape: Shape) -> InstantiateOptions {
    InstantiateOptions::new().shape(shape)
}

fn lanes() -> Shape {
    Shape::Lanes(NonZeroU16::new(37).unwrap_or(NonZeroU16::MIN))
}
