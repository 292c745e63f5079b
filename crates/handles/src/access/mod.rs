//! Stream access: many threads enqueue on a stream, or one lets it enter or leave a capture.
//!
//! A thread that enqueues has to know whether the driver will capture the call; if so, the capture
//! has to keep what the call uses. The answer must not change between the question and the driver's
//! answer. So enqueuing *reads* the stream's access, and a change of its capture *writes* it. Every
//! launch reads; captures are rare. The protocol therefore spends everything on readers: a read
//! costs two stores and one load, and no locked instruction.
//!
//! # Fields
//!
//! | field | where | who writes it |
//! | --- | --- | --- |
//! | `number` | [`StreamAccess`] | nobody: one number for each stream, never used again |
//! | `EXCLUSIVE`, bit 31 of `state` | [`StreamAccess`] | a writer, by `fetch_or` and `fetch_and` |
//! | [`CAPTURED`], bit 30 | [`StreamAccess`] | a writer: a capture of this library |
//! | [`FOREIGN`], bit 29 | [`StreamAccess`] | any thread: other code may capture the stream |
//! | [`ONLY_CAPTURES`], bit 28 | [`StreamAccess`] | the creator, once, before others have the stream |
//! | reader count, bits 0 to 27 | [`StreamAccess`] | readers without a slot |
//! | four slots, each 0 or a `number` | `ThreadSlots` of each thread | that thread; any thread empties |
//! | `writers_waiting` | [`RawStream`](crate::raw_stream::RawStream) | writers that found readers |
//!
//! # States
//!
//! | `EXCLUSIVE` | slots and count | state | a new reader | a new writer |
//! | --- | --- | --- | --- | --- |
//! | clear | none | idle | enters | enters |
//! | clear | some | read | enters | sets the bit, looks again a few times, withdraws |
//! | set | some | a writer is looking, or readers are withdrawing | withdraws | withdraws |
//! | set | none | written | withdraws | withdraws |
//!
//! # Rules
//!
//! 1. A reader first **announces** itself (it stores the number in a slot of its thread, or counts
//!    itself in `state`), then passes the light barrier, then **looks** at `EXCLUSIVE`.
//! 2. A writer first announces itself (it sets `EXCLUSIVE`), then passes the heavy barrier, then
//!    looks at the count and at the slots of every thread.
//! 3. Each stores before it looks, so at least one of the two sees the other. A reader that sees
//!    `EXCLUSIVE` withdraws and has no access. A writer that sees a reader withdraws and has none.
//! 4. No thread waits inside the protocol: a refused thread may be inside a host function that the
//!    other thread waits for. Waiting, with a bound, is up to the callers.
//! 5. A reader that tries again stays out while `EXCLUSIVE` is set, so that retries keep no writer
//!    out. A writer looks up to 64 times, so that many short reads do not keep it out.
//! 6. Readers leave by a release store, which writers read by an acquire load. Writers leave by a
//!    release, which readers read by an acquire load. So each sees what the one before it has done.
//! 7. The flags share a word with `EXCLUSIVE`, so that a reader gets them by the load of rule
//!    1. A reader sees the flags as they were when it entered.
//! 8. A guard may be dropped on another thread than the one that took it, and it may be forgotten.
//!    A forgotten read guard keeps writers out for good: they fail with
//!    [`Error::Busy`](crate::Error::Busy), which names the thread.
//!
//! # Who may do what
//!
//! | holder | may | must not |
//! | --- | --- | --- |
//! | nobody | read [`FOREIGN`] and the capture's number as a hint | enqueue |
//! | [`ReadGuard`] | enqueue; wait on the host for the stream | wait for exclusive access |
//! | [`ExclusiveGuard`] | change the capture and [`CAPTURED`] | enqueue other work; wait for another stream |
//!
//! A thread that will hold read access for long (it waits on the host) first lets waiting writers
//! pass, for a second at most. A change of a capture with several streams takes exclusive access of
//! all of them at once or of none.
//!
//! The heavy barrier (`membarrier` on Linux, `FlushProcessWriteBuffers` on Windows) makes every
//! thread of the process pass a full barrier. Where the system has none, no thread gets slots and
//! all readers count themselves. `tests/loom_stream_access.rs` checks the protocol under every
//! interleaving, with full barriers on both sides.
//!
//! Beside the access, a stream has a [gate](launch_gate) that keeps questions whether it is idle
//! apart from launches of graphs.

mod barrier;
pub(crate) mod holders;
mod launch_gate;
mod own_slots;
mod slots;
mod stream_access;

pub(crate) use launch_gate::LaunchGate;
pub use launch_gate::Launching;
pub(crate) use own_slots::{ALL_SLOTS, own_slots};
pub(crate) use stream_access::{CAPTURED, ExclusiveGuard, FOREIGN, ONLY_CAPTURES, ReadGuard, StreamAccess};
