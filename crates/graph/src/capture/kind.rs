//! Kinds and states of builders.

use core::fmt;
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

    /// Whether a builder that captures may change threads: `()`, or a type that is not `Send`.
    type Thread;
}

/// A kind of builder that begins a capture of its own, and ends it.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` builder does not end a capture: it is joined",
    label = "it has no end of its own",
    note = "join a fork where it was split, by `join([fork])`; the capture ends with the builder that began it"
)]
pub trait Origin: Kind {}

/// A state of a builder.
pub trait State: sealed::Sealed + fmt::Debug {
    /// Whether a builder of a kind may change threads in this state: [`Kind::Thread`], or `()`.
    type Thread<K: Kind>;
}

/// Names the rule where a builder was to change threads: the compiler's message begins with the
/// pointer, which is not `Send`.
#[doc(hidden)]
#[derive(Debug)]
pub enum CaptureEndsOnItsThread {}

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
    Primary "primary" *mut CaptureEndsOnItsThread;
    /// The kind of builder that begins a capture in [`CaptureMode::Relaxed`], which any thread may
    /// end.
    AnyThread "primary" ();
    /// The kind of builder that captures on a branch of its own; see
    /// [`split`](crate::GraphBuilder::split). Threads may capture on forks at the same time.
    Fork "fork" ();
    /// The kind of builder that captures into a body of a conditional node.
    Body "body" *mut CaptureEndsOnItsThread;
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
    /// How many calls match no node; `None` if the nodes are read later.
    pub(super) unmatched: Option<usize>,
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
