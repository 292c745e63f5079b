//! Instructions on textures and surfaces.

use super::{AtomicOp, AtomicType, Cell, NONE, Reg};

/// The coordinates of an access. Ranks are numbers of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Geometry {
    Plain { rank: u8 },
    Layered { rank: u8 },
    Cube { is_layered: bool },
}

impl Geometry {
    pub(in crate::ptx) fn is_layered(self) -> bool {
        matches!(self, Geometry::Layered { .. } | Geometry::Cube { is_layered: true })
    }

    /// The number of coordinates beside the layer.
    pub(in crate::ptx) fn coordinates(self) -> usize {
        match self {
            Geometry::Plain { rank } | Geometry::Layered { rank } => rank.into(),
            Geometry::Cube { .. } => 3,
        }
    }
}

/// What a surface access does with coordinates outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Outside {
    Trap,
    Clamp,
    Zero,
}

/// The form of the values that a texture returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Values {
    Words,
    Halves,
    /// Two halves in a register.
    Pairs,
}

/// A property of a texture or surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Query {
    Width,
    Height,
    Depth,
    ArraySize,
    IsNormalised,
    /// The levels of a texture with mipmaps, and the samples of a texel: one each.
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum TextureOp {
    /// `tex`; the coordinates are singles or integers.
    Sample {
        from_singles: bool,
        values: Values,
    },
    /// `tld4` of a channel.
    Gather {
        channel: u8,
        values: Values,
    },
    QueryTexture(Query),
    QuerySurface(Query),
    /// `suld.b`. The first coordinate counts bytes.
    Load {
        cell: Cell,
        outside: Outside,
    },
    /// `sust.b`. The first coordinate counts bytes.
    Store {
        cell: Cell,
        outside: Outside,
    },
    /// `sust.p`.
    StoreTexel {
        outside: Outside,
    },
    /// `sured`; the first coordinate counts bytes or texels.
    Reduce {
        op: AtomicOp,
        ty: AtomicType,
        in_bytes: bool,
        outside: Outside,
    },
}

/// An instruction on a texture or surface. Registers lie in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct TextureInst {
    pub(in crate::ptx) op: TextureOp,
    pub(in crate::ptx) geometry: Geometry,
    /// The handle of the object.
    pub(in crate::ptx) object: Reg,
    /// Where the coordinates begin, after the layer if there is one.
    pub(in crate::ptx) at: u32,
    pub(in crate::ptx) layer: Reg,
    /// Where the offsets in texels begin, or [`NONE`].
    pub(in crate::ptx) offsets: u32,
    /// Where the results, or the values to store, begin.
    pub(in crate::ptx) values: u32,
    pub(in crate::ptx) count: u8,
}

impl TextureInst {
    pub(in crate::ptx) fn new(op: TextureOp, object: Reg) -> TextureInst {
        let geometry = Geometry::Plain { rank: 1 };
        TextureInst { op, geometry, object, at: 0, layer: NONE, offsets: NONE, values: 0, count: 0 }
    }
}
