//! Any operations on streams, events and captures, compared with a model that is plain data.
//!
//! Streams begin captures, and are drawn into them by events. The model ([`model`]) knows of each
//! capture which streams are in it, which nodes it has and after which others each comes, and what
//! a run of its graph does to memory. The world ([`world`]) holds the driver's objects beside their
//! models, and makes each operation in both. Calls fail on demand in between, and then change
//! nothing.

mod ends;
mod expected;
mod model;
mod ops;
mod order;
mod work;
mod world;

use cuda_handles::Context;

use super::operations;
use ops::Op;
use world::World;

/// Reads operations from the bytes and makes them one after the other.
///
/// # Panics
/// Captures and model disagree.
pub fn capture(context: &Context, bytes: &[u8]) {
    let mut world = World::new(context);
    for op in operations::<Op>(bytes) {
        world.step(op);
        world.check_states();
    }
    world.finish();
}
