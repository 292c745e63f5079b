//! Pools and caches: executables that many launches, call sites and threads share.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`pool`] | `ExecPool`: executables of the same work, for parallel runs |
//! | [`graph_cache`] | `GraphCache`: executables by key and stamp |
//! | [`cached_exec`] | an executable that a call has taken from a cache |
//! | [`slots`] | executables that stand for each other, and the choice of one |
//! | [`keys`] | keys and stamps, and what a call has compared with its own |
//! | [`entries`] | the state of a cache, and the next step of a call |
//! | [`executable`] | the kinds of executables, and how one is brought up to date |
//! | [`verify`] | constants that differ between an executable's graph and a new build |
//! | [`options`], [`statistics`] | their public types |
//!
//! # Rules
//!
//! 1. A pool and a cache have one lock each. It is held for moments: over no driver call, no code
//!    of users and no drop. Keys and stamps are hashed, compared and cloned without it.
//! 2. A call **takes** an executable out of the state and puts it back when its guard is dropped,
//!    so an executable is with one call at a time. A call that finds none free waits for another
//!    thread, but not for its own: that is an error.
//! 3. No call waits for the device, except that a full cache whose executables' destruction is
//!    deferred waits for that, for a second.
//! 4. A call proceeds in [steps](entries::Step). Each is decided under the lock and taken without
//!    it; then the next is decided anew. So nothing that was seen before is relied on.
//! 5. The bound counts executables in the cache, those that calls have taken, places of executables
//!    about to be made, and dropped ones whose destruction is deferred. A place is taken before the
//!    driver is called.
//! 6. A failed call leaves the cache as it was, apart from what was dropped to make room. An
//!    executable that was given up, for another one that could not be made, leaves the cache when
//!    it is put back.

pub(crate) mod cached_exec;
pub(crate) mod entries;
pub(crate) mod executable;
pub(crate) mod graph_cache;
pub(crate) mod keys;
pub(crate) mod options;
pub(crate) mod pool;
pub(crate) mod slots;
pub(crate) mod statistics;
pub(crate) mod verify;

/// What to do with a stream of another context than the home of the graphs.
const STREAM_OF_HOME: &str = "take a stream of the graph's home, or an executable of your own \
                              (`Graph::instantiate`), which takes streams of all contexts that its graph spans";
