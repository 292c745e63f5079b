//! The model: its sizes, its weights and the row that it starts from.

/// Two speakers take turns. Each hears the other's last row, and remembers in a cache of its own.
pub(crate) const SPEAKERS: u32 = 2;

/// The sizes of the model and of the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) layers: u32,
    /// The numbers of a row.
    pub(crate) width: u32,
    /// The tokens of both speakers together.
    pub(crate) tokens: u32,
}

impl Sizes {
    /// The speaker of a token, and the position of the token in that speaker's cache.
    pub(crate) fn turn(self, token: u32) -> (usize, u32) {
        ((token % SPEAKERS) as usize, token / SPEAKERS)
    }

    /// The positions that a cache has room for.
    pub(crate) fn capacity(self) -> u32 {
        self.tokens.div_ceil(SPEAKERS)
    }

    /// The numbers of a cache: in each layer and at each position a key and a value.
    pub(crate) fn cache_len(self) -> usize {
        (self.layers * self.capacity() * 2 * self.width) as usize
    }
}

/// The matrices of a layer, row by row: numbers on the host, or buffers on the device.
pub(crate) struct Layer<M> {
    /// From a row to its query, key and value.
    pub(crate) project: M,
    pub(crate) mix: M,
}

/// The weights of all layers, always the same for the same sizes.
pub(crate) fn layers(sizes: Sizes) -> Vec<Layer<Vec<f32>>> {
    let (width, spread) = (sizes.width, (3.0 / sizes.width as f32).sqrt());
    let layer = |seed| Layer {
        project: numbers(2 * seed, 3 * width * width, spread),
        mix: numbers(2 * seed + 1, width * width, spread),
    };
    (1..=sizes.layers).map(layer).collect()
}

/// The row that the first token hears.
pub(crate) fn first_row(sizes: Sizes) -> Vec<f32> {
    numbers(0, sizes.width, 1.0)
}

/// Numbers between `-spread` and `spread`, in no apparent order.
fn numbers(seed: u32, len: u32, spread: f32) -> Vec<f32> {
    let number = |index: u32| {
        let mixed = (index ^ seed << 20).wrapping_mul(0x9E37_79B1);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA77);
        spread * ((mixed >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..len).map(number).collect()
}
