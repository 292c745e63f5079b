//! Kinds and states of builders.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use cuda_handles::Stream;
#[cfg(doc)]
use cuda_handles::capture::CaptureMode;
use cuda_handles::capture::CaptureOptions;

use crate::capture::session::Session;
use crate::graph::Graph;

mod sealed {
    pub trait Sealed {}
}

/// A kind of builder.
pub trait Kind: sealed::Sealed + 'static {
    /// The kind in error messages.
    const NAME: &'static str;

    /// Whether the builder may change threads: `()`, or a type that is not `Send`.
    #[doc(hidden)]
    type Thread;
}

/// A kind of builder that begins a capture of its own, and ends it.
pub trait Origin: Kind {}

/// A state of a builder.
pub trait State: sealed::Sealed + fmt::Debug {
    /// Whether a builder of a kind may change threads in this state: as [`Kind::Thread`].
    #[doc(hidden)]
    type Thread<K: Kind>;
}

/// Binds a builder that captures to the thread that began the capture.
#[doc(hidden)]
#[derive(Debug)]
pub struct EndsOnItsThread(PhantomData<*mut ()>);

macro_rules! kinds {
    ($($(#[$docs:meta])* $kind:ident $name:literal $thread:ty;)*) => { $(
        $(#[$docs])*
        #[derive(Debug)]
        pub enum $kind {}

        impl sealed::Sealed for $kind {}

        impl Kind for $kind {
            const NAME: &'static str = $name;
            type Thread = $thread;
        }
    )* };
}

kinds! {
    /// The kind of builder that begins a capture and ends it on the same thread.
    Primary "primary" EndsOnItsThread;
    /// The kind of builder that begins a capture in [`CaptureMode::Relaxed`], which any thread may
    /// end.
    AnyThread "primary" ();
    /// The kind of builder that captures on a branch of its own; see
    /// [`split`](crate::GraphBuilder::split). Threads may capture on forks at the same time.
    Fork "fork" ();
    /// The kind of builder that captures into a body of a conditional node.
    Body "body" EndsOnItsThread;
}

impl Origin for Primary {}
impl Origin for AnyThread {}
impl Origin for Body {}

/// The state of a builder that has not begun to capture.
#[derive(Debug)]
pub struct NotBegun {
    pub(super) stream: Stream,
    pub(super) options: CaptureOptions,
}

/// The state of a builder that captures.
#[derive(Debug)]
pub struct Capturing {
    pub(super) session: Arc<Session>,
    pub(super) stream: Stream,
    /// Ends the capture; a fork has none.
    pub(super) ends: Option<EndOnDrop>,
}

/// The state of a builder whose capture has ended: it has the graph.
#[derive(Debug)]
pub struct Ended {
    pub(super) graph: Graph,
    pub(super) unmatched: usize,
}

impl sealed::Sealed for NotBegun {}
impl sealed::Sealed for Capturing {}
impl sealed::Sealed for Ended {}

impl State for NotBegun {
    type Thread<K: Kind> = ();
}

impl State for Capturing {
    type Thread<K: Kind> = K::Thread;
}

impl State for Ended {
    type Thread<K: Kind> = ();
}

/// Ends a capture when it is dropped, and discards what was captured.
#[derive(Debug)]
pub(super) struct EndOnDrop(pub(super) Arc<Session>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.discard();
    }
}
