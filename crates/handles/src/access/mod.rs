//! Stream access: many threads enqueue, or one lets the stream enter or leave a capture.

mod barrier;
mod blocks;
pub(crate) mod holders;
mod own_block;
mod stream_access;

pub(crate) use own_block::{BLOCKS, own_block};
pub(crate) use stream_access::{Alone, CAPTURED, FOREIGN, Shared, Turns};
