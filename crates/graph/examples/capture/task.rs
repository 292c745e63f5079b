//! The sizes of the transformer.

/// The sizes of the transformer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    /// Numbers of each head.
    pub(crate) size: usize,
    pub(crate) layers: usize,
}

impl Task {
    /// Numbers of a row.
    pub(crate) fn width(self) -> usize {
        self.heads * self.size
    }

    /// Numbers of a row between the last two matrices of a layer.
    pub(crate) fn hidden(self) -> usize {
        4 * self.width()
    }

    /// The factor of each product of a query and a key.
    pub(crate) fn scale(self) -> f32 {
        1.0 / (self.size as f32).sqrt()
    }
}
