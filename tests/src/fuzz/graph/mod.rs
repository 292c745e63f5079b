//! Any operations on graphs, compared with a model that is plain data.
//!
//! Kernels add to cells of a buffer, fills set them, and child graphs do either. The model
//! ([`plan`]) knows what a graph does to each cell, or that its edges leave this open. The world
//! ([`world`]) holds the driver's objects beside the models of them, and makes each operation in
//! both.

mod cells;
mod edits;
mod executables;
mod hierarchies;
mod ops;
mod plan;
mod world;

use cuda_handles::Context;

use super::operations;
use ops::Op;
use world::World;

/// Reads operations from the bytes and makes them one after the other.
///
/// # Panics
/// Graph and model disagree.
pub fn graph(context: &Context, bytes: &[u8]) {
    let mut world = World::new(context);
    for op in operations::<Op>(bytes) {
        world.step(op);
    }
    world.finish();
}
