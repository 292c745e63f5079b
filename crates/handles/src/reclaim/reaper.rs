//! The drop rules, in one place.
//!
//! A drop never waits for the device and never fails loudly. A panic in the destructor of a value
//! that was given to this library never comes out of a drop of this library, on whatever thread, in
//! a call that replaces or refuses the value as little as in a drop by hand: it ends there, and the
//! [hook](set_hook) is told; see [`Kept`](crate::Kept). What does come out is the panic of a value
//! that the caller drops by a reference of its own.
//!
//! What a drop does depends on what it finds:
//!
//! - A buffer that only its home stream used is freed in that stream's order, with the thread's
//!   capture mode relaxed around the call.
//! - A buffer that other streams used is freed by the reaper behind a fence over all streams that
//!   ever used memory of another home: the reaper's own stream waits for them and then frees in
//!   stream order.
//! - Streams, events, graphs, executables, user objects and linkers are destroyed at once. Streams
//!   that are part of the fence are left to the reaper.
//! - Where the driver does not permit a call (inside a host function, or a free while the home
//!   stream is capturing), the reaper makes it. A capture that cannot be ended in a host function,
//!   as somebody uses its streams, it ends as well.
//! - What a user object owns is dropped by the reaper, never by the driver's thread. What an
//!   executable owns is dropped with it, on that thread, if its runs are over; else by the reaper
//!   when they are.
//! - Who asks (whether host memory is unique, how much memory is in use) finds released what was
//!   dropped and is idle: for that the question waits some milliseconds at most.
//! - Pinned memory of small writes is kept by its stream; [`drain`] takes that of idle streams.
//! - Pinned and managed memory goes to a free list once the work that used it is done, and the next
//!   who asks gets it; foreign memory is given back to its owner then. Plain device memory goes the
//!   way of buffers that other streams used.
//! - A pool is destroyed at once if the host has seen all frees of its memory done, else by the
//!   reaper once it has: drivers crash otherwise.
//! - Libraries are unloaded, executables with conditional nodes are destroyed, and the free list is
//!   freed, by [`drain`] alone, since all these make the launches of every thread wait. What such
//!   an executable kept is dropped once its runs are over. Where the device has no memory left, or
//!   the graph is instantiated again, the executables go, too, while no stream has work. That of a
//!   graph which other code knows goes as soon as none has.
//! - After its context was lost, in a forked child and while the process exits, a drop makes no
//!   driver call.
//!
//! Calls of this library wait for each other for a set time only:
//! [`set_patience`](crate::set_patience).
//!
//! The reaper is a thread, started when something first waits for it, and a second one for
//! destructors of other code, which may be slow. It keeps one stream per context. The end of the
//! process stops it in bounded time.

pub use super::worker::drain;
pub use crate::destroy::{DropCause, DropFailure, manual, pending, set_hook};
