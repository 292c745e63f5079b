//! Errors about captures.

use crate::node_name::NodeName;
use crate::wording::Count;

/// A capture cannot go on or end as asked.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The capture of a builder has ended, so its calls would run instead of being captured.
    #[error(
        "the capture of this {kind} builder has ended, so the call would run at once; make it before the \
         primary builder ends"
    )]
    Over {
        /// The kind of the builder: primary, fork or body.
        kind: &'static str,
    },
    /// The primary or body builder ended while forks with work of their own were not joined. The
    /// captured work is discarded.
    #[error(
        "the {kind} builder ended with {} not joined; join each one before the end (GraphBuilder::join)",
        Count(*forks, "fork")
    )]
    Unjoined {
        /// The kind of the builder.
        kind: &'static str,
        /// The number of forks that were not joined.
        forks: usize,
    },
    /// The primary or body builder ended while bodies were being captured. They ended first, and
    /// all captured work is discarded.
    #[error(
        "the {kind} builder ended with {} not ended; end each body builder first (GraphBuilder::end)",
        Count(*bodies, "body builder")
    )]
    BodyOpen {
        /// The kind of the builder.
        kind: &'static str,
        /// The number of bodies.
        bodies: usize,
    },
    /// While a body was captured, the builder of the conditional node captured work, too. It would
    /// run once, before the node.
    #[error(
        "while a body was captured, the {kind} builder around it captured work, too, which would run once, \
         before the body's node; capture the body's work with the builder that the closure gets, or on \
         its stream (GraphBuilder::stream)"
    )]
    OutsideBody {
        /// The kind of the builder around the body.
        kind: &'static str,
    },
    /// The capture ended early, and a graph is [broken](crate::Error::Broken) since nodes that were
    /// added to it could not be removed again.
    #[error("a capture into the graph was given up before its end")]
    GivenUp,
    /// A fork was to be joined by a builder of another capture.
    #[error("the fork belongs to another capture than the {kind} builder; join it where it was split")]
    OtherCapture {
        /// The kind of the builder that was to join it.
        kind: &'static str,
    },
    /// Work that was captured again has other nodes or edges than before, so that executables of
    /// the graph could not take it.
    #[error(
        "the work captured again has another shape ({} instead of {}, or other kinds or edges); build \
         the graph anew for it",
        Count(*found, "node"), Count(*expected, "node")
    )]
    OtherShape {
        /// The number of nodes before.
        expected: usize,
        /// The number of nodes now.
        found: usize,
    },
    /// The graph is no body of a conditional node of this capture.
    #[error(
        "the graph is no body of a conditional node of this capture; use a body of a node that this \
         builder has added"
    )]
    NotABody,
    /// The closure that was to add a node returned one that was there before.
    #[error("node `{node}` was in the graph before; return the node that the closure adds")]
    NotNew {
        /// The node's name.
        node: NodeName,
    },
    /// A graph in a node uses the scratch memory of the capture that the node was added in, so it
    /// would overwrite buffers of the capture.
    #[error(
        "the graph in node `{node}` uses the same scratch memory as this capture; capture one of them with \
         other scratch memory"
    )]
    SameScratch {
        /// The node's name.
        node: NodeName,
    },
    /// A captured node cannot be added to the graph that it was captured for.
    #[error(
        "node `{node}` of the captured work cannot be added to the graph it is for: only kernels, copies, \
         fills, host functions, events, batches, semaphores and empty nodes can; capture it into a graph \
         of its own"
    )]
    NotCopied {
        /// The node in the captured work, by name.
        node: NodeName,
    },
    /// Other code changed the node of a captured launch that takes a condition's handle, so no node
    /// is known to set the condition. The captured work is discarded.
    #[error(
        "the captured launch of `{kernel}` takes a condition's handle, but no node of the captured graph is \
         that launch; other code changed the capture: capture again and leave that node as it is"
    )]
    LaunchChanged {
        /// The kernel that was launched, by name.
        kernel: NodeName,
    },
    /// Other code changed the node of a captured call that takes a graph parameter, so no node is
    /// known to follow the parameter. The captured work is discarded.
    #[error(
        "the captured {call} takes a graph parameter as {place}, but no node of the captured graph is that \
         call; other code changed the capture: capture again and leave that node as it is"
    )]
    ParamCallChanged {
        /// The call, with the kernel's name if it is a launch.
        call: NodeName,
        /// The place in the call that the parameter fills.
        place: NodeName,
    },
    /// Other code captured the same call as one that takes a graph parameter, so it is not known
    /// which node follows the parameter. The captured work is discarded.
    #[error(
        "the captured {call} takes a graph parameter as {place}, and other code captured the same call, so its \
         node is not known; add it by hand (GraphBuilder::add)"
    )]
    ParamCallTwice {
        /// The call, with the kernel's name if it is a launch.
        call: NodeName,
        /// The place in the call that the parameter fills.
        place: NodeName,
    },
}

shown!(CaptureError);
