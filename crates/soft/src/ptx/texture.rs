//! Textures and surfaces, as the driver describes them to the interpreter.

/// The format of one channel of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TexelFormat {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl TexelFormat {
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            TexelFormat::U8 | TexelFormat::S8 => 1,
            TexelFormat::U16 | TexelFormat::S16 | TexelFormat::F16 => 2,
            TexelFormat::U32 | TexelFormat::S32 | TexelFormat::F32 => 4,
        }
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, TexelFormat::F16 | TexelFormat::F32)
    }
}

/// How texels are arranged. Ranks are numbers of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Linear memory: no filter, and no address modes.
    Linear,
    Plain {
        rank: u8,
    },
    Layered {
        rank: u8,
    },
    /// Layers of six faces, one layer if it is not layered.
    Cube {
        is_layered: bool,
    },
}

impl Shape {
    /// The number of dimensions, without layers.
    pub(crate) fn rank(self) -> usize {
        match self {
            Shape::Linear => 1,
            Shape::Plain { rank } | Shape::Layered { rank } => rank.into(),
            Shape::Cube { .. } => 2,
        }
    }
}

/// Texels in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Texels {
    pub(crate) address: u64,
    pub(crate) format: TexelFormat,
    pub(crate) channels: u32,
    pub(crate) shape: Shape,
    /// Width, height, depth; 1 for a dimension that is not there.
    pub(crate) size: [u32; 3],
    /// Layers, each face of a cube counted; 1 without layers.
    pub(crate) layers: u32,
    /// Bytes from a row to the next.
    pub(crate) pitch: u64,
    /// Bytes from a slice or layer to the next.
    pub(crate) slice: u64,
}

impl Texels {
    pub(crate) const fn texel_bytes(&self) -> u32 {
        self.format.bytes() * self.channels
    }
}

/// What a coordinate outside of the texture stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressMode {
    Wrap,
    Clamp,
    Mirror,
    Border,
}

/// How a texture is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    pub(crate) modes: [AddressMode; 3],
    pub(crate) is_linear: bool,
    /// Coordinates go from 0 to 1.
    pub(crate) is_normalised: bool,
    /// Integers of 8 and 16 bits are read as numbers from 0 or -1 to 1.
    pub(crate) reads_numbers: bool,
    pub(crate) border: [f32; 4],
}

/// A texture object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Texture {
    pub(crate) texels: Texels,
    pub(crate) sampler: Sampler,
}
