//! The drop rules: what happens when an owner is dropped, in one place.
//!
//! 1. A drop does not wait for work of the device. There is one exception, in the table: an
//!    executable that is destroyed when idle, for which its drop waits 100 ms at most.
//! 2. A drop does not fail. If the driver refuses a call, the [hook](set_hook) is called and the
//!    object leaks.
//! 3. A panic in the destructor of a value that was given to this library ends there, on whatever
//!    thread, also in a call that replaces or refuses the value; the hook is called. See
//!    [`Kept`](crate::Kept). A panic of a value that the caller drops by a reference of its own is
//!    the caller's.
//! 4. A drop makes no driver call after its context was lost, in a forked child, and while the
//!    process exits. If one device of several is lost, owners of memory that work of the others may
//!    use stay to the end of the process.
//! 5. Where the driver does not permit a call (inside a host function; a free while the home stream
//!    is capturing), the reaper makes it.
//!
//! | what | where | how |
//! | --- | --- | --- |
//! | buffer that only its home stream used | its drop | freed in the order of the home, with the thread's capture mode relaxed |
//! | buffer that other streams used; plain memory | reaper | freed in stream order, behind a fence: a stream of the reaper waits for all streams that may have used it |
//! | pinned and managed memory | its drop, or the reaper behind a fence | kept in a cache that later allocations take from; [`drain`] frees the cache |
//! | pinned memory of small writes | [`drain`] while the stream is idle; or with the stream | goes to that cache |
//! | registered memory | [`drain`] | unregistered; then its owner is dropped by the reaper |
//! | foreign memory | its drop if no work used it, else the reaper behind a fence | its owner is dropped |
//! | stream, event, graph, user object, linker, semaphore | its drop | destroyed; the driver lets their work end. A stream that fences span is left to the reaper |
//! | pool | its drop if all frees of its memory were seen done, else the reaper | destroyed; drivers crash if a free is pending |
//! | capture | its drop | ended and thrown away. In a host function, while its streams are in use, by the reaper |
//! | library | [`drain`] | unloaded |
//! | executable without conditional nodes | its drop | destroyed; runs in flight go on |
//! | executable with conditional nodes | deferred: see below | destroyed |
//! | value of a user object | reaper | dropped, never on the driver's thread |
//! | owners of an executable | its drop if its runs are over, else the reaper when they are | dropped, also if the destruction of the executable is deferred |
//! | owners that an update of an executable has replaced | the update if there was no run, else the reaper when the last run is over | dropped; in batches, after 64 launches or with 1 MiB, or when a caller wants memory back |
//! | closure of a host function | after its call, on the driver's thread; the reaper if it will not be called | dropped |
//!
//! # Deferred destruction
//!
//! The driver waits for all work of the device when it destroys an executable with conditional
//! nodes, unloads a library, or frees pinned memory, and the launches of every thread wait
//! meanwhile. So none of this happens in a drop if it can be helped. A deferred executable
//! (`ExecEnd::Deferred`) is destroyed by the first of these:
//!
//! | when | if streams of the context have work |
//! | --- | --- |
//! | [`drain`] | the driver waits for it |
//! | an allocation, an instantiation or a launch finds no memory | it stays, and the reaper destroys it once there is none |
//! | its graph is instantiated again, lent, or run by the host loop | waits a second at most, or as long as `patience` says if that is less; then the reaper destroys it once there is none |
//!
//! After that, instantiating and the host loop fail with [`StillRunning`], and lending goes
//! on. The table of `crates/graph/src/exec/destroy.rs` has the rules call by call.
//!
//! [`StillRunning`]: crate::Error::StillRunning
//!
//! If other code knows the graph (it was lent or adopted), that code may instantiate it next. Its
//! executables are destroyed when idle (`ExecEnd::WhenIdle`): in the drop if no stream of
//! this library has work in the context, else by the reaper once none has, or by [`drain`]. The
//! drop makes the call on a thread of its own and waits 100 ms at most for it, since work that this
//! library does not know may hold it up.
//!
//! # Bounded waits
//!
//! A drop takes locks, which are held for moments. It waits longer only here:
//!
//! | drop of | waits for | at most |
//! | --- | --- | --- |
//! | a graph | other threads' calls that make or destroy clones of graphs | 5 ms, then the reaper destroys it |
//! | the last handle of an adopted stream | another thread that is enqueuing on it | [`patience`](crate::patience) |
//! | an executable, or memory that a launch left | another thread that is enqueuing on, or captures, its stream | [`patience`](crate::patience) |
//! | an executable destroyed when idle | the driver, which other code's work may hold up | 100 ms, on a thread of its own |
//!
//! Calls that ask (whether host memory is unique, how much memory is in use) find released what was
//! dropped and is idle; for that they wait some milliseconds.
//!
//! The reaper is a thread, started when something first waits for it, and a second one for
//! destructors of other code, which may be slow. It keeps one stream per context. The end of the
//! process stops it in bounded time.

pub use super::worker::drain;
pub use crate::destroy::{DropCause, DropFailure, manual, pending, set_hook};
