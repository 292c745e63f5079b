//! The kinds of executables that a cache can hold.

use core::fmt;

use crate::error::{Refusal, RefusalReason, Result};
use crate::exec::GraphExec;
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::RanOn;
use crate::graph::Graph;
use crate::loops::host::{Fallback, HostLoopExec};

mod sealed {
    pub trait Sealed {}
}

/// An executable that a [`GraphCache`](crate::GraphCache) can hold: [`GraphExec`], or
/// [`HostLoopExec`] for graphs with loops on drivers without conditional nodes.
pub trait Executable: sealed::Sealed + fmt::Debug + Sized + Send {
    /// Makes one.
    ///
    /// # Errors
    /// The errors of instantiation.
    #[doc(hidden)]
    fn make(graph: &Graph, options: &InstantiateOptions, fallback: Fallback) -> Result<Self>;

    /// Lets it do what a graph does.
    ///
    /// # Errors
    /// The errors of updates and of instantiation; it is unchanged then, or was given up.
    #[doc(hidden)]
    fn refresh(&mut self, graph: &Graph) -> Result<Refreshed>;

    /// Whether it can be launched: it was not given up for another one that could not be made.
    #[doc(hidden)]
    fn is_live(&self) -> bool;

    /// Whether the host decides in it.
    #[doc(hidden)]
    fn decides_on_host(&self) -> bool;

    /// The stream of its last run.
    #[doc(hidden)]
    fn last_stream(&self) -> LastStream;
}

/// The stream of an executable's last run.
#[doc(hidden)]
#[derive(Debug)]
pub struct LastStream(pub(crate) RanOn);

/// The way in which an executable was brought up to date.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refreshed {
    /// By an update.
    Updated,
    /// By another instantiation, as the update was refused.
    Rebuilt(RefusalReason),
}

impl Refreshed {
    fn of(refusal: Option<Refusal>) -> Self {
        refusal.map_or(Self::Updated, |refusal| Self::Rebuilt(refusal.reason))
    }
}

impl sealed::Sealed for GraphExec {}

impl Executable for GraphExec {
    fn make(graph: &Graph, options: &InstantiateOptions, _fallback: Fallback) -> Result<Self> {
        graph.instantiate_with(options.clone())
    }

    fn refresh(&mut self, graph: &Graph) -> Result<Refreshed> {
        self.update_or_rebuild(graph).map(Refreshed::of)
    }

    fn is_live(&self) -> bool {
        self.live().is_ok()
    }

    fn decides_on_host(&self) -> bool {
        false
    }

    fn last_stream(&self) -> LastStream {
        LastStream(self.owners.ran_on())
    }
}

impl sealed::Sealed for HostLoopExec {}

impl Executable for HostLoopExec {
    fn make(graph: &Graph, options: &InstantiateOptions, fallback: Fallback) -> Result<Self> {
        graph.instantiate_with_fallback(fallback, options.clone())
    }

    fn refresh(&mut self, graph: &Graph) -> Result<Refreshed> {
        self.update_or_rebuild(graph).map(Refreshed::of)
    }

    fn is_live(&self) -> bool {
        self.is_live()
    }

    fn decides_on_host(&self) -> bool {
        self.is_on_host()
    }

    fn last_stream(&self) -> LastStream {
        // A call that runs it returns once the run has ended.
        LastStream(RanOn::None)
    }
}
