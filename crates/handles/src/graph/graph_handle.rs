//! Owners of graphs and executable graphs. cuda-graph adds the nodes.

use core::any::{Any, TypeId};
use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use cuda_sys::{CUgraph, CUgraph_st, CUgraphExec, CUgraphExec_st, Call};
use smallvec::SmallVec;

use crate::context::{Context, lock_unless_inside};
use crate::destroy::{self, Object};
use crate::error::Result;
use crate::reclaim;
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::{Lock, LockGuard, Rank, process};

static GRAPHS: LazyLock<Registry<Sharded<GraphBox>>> = LazyLock::new(|| Registry::with_map(Sharded::new()));

struct GraphBox {
    raw: Raw<CUgraph_st>,
    context: Context,
    /// Whether the last handle destroys it.
    owned: AtomicBool,
    /// Values that crates above this one have attached; one for each type.
    knowledge: Lock<SmallVec<[Attachment; 1]>>,
    /// Keeps this crate's own calls on the graph apart.
    calls: Lock<()>,
}

/// An attached value and its type. Values are looked up by type, so a crate can replace only values
/// of types that it can name.
type Attachment = (TypeId, Weak<dyn Any + Send + Sync>);

/// The owner of a graph of the driver. Calls on one graph must not overlap, not even reading ones;
/// the holder has to see to that.
#[derive(Clone)]
pub struct GraphHandle(Arc<GraphBox>);

identity!(GraphHandle);

impl GraphHandle {
    /// An empty graph.
    ///
    /// Calls `cuGraphCreate` (CUDA 10.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "cudaGraphCreate")]
    pub fn create(context: &Context) -> Result<Self> {
        context.ensure_usable()?;
        let mut raw = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { context.driver().cuGraphCreate(&raw mut raw, 0) };
        context.check(Call::cuGraphCreate, code)?;
        // SAFETY: the graph is new and has no other owner.
        Ok(unsafe { Self::from_raw_owned(context, raw) })
    }

    /// Takes over a graph; it is destroyed with the last handle.
    ///
    /// # Safety
    /// `raw` is a graph whose work is of `context`. It has no other owner, now or later, and is no
    /// body and no child of another graph.
    #[must_use]
    #[doc(alias = "cuGraphDestroy")]
    #[doc(alias = "cudaGraphDestroy")]
    pub unsafe fn from_raw_owned(context: &Context, raw: CUgraph) -> Self {
        let graph = GraphBox::new(context, raw, true);
        // In a forked child the registry may be locked forever.
        if !process::is_forked() {
            GRAPHS.register(raw.addr(), Arc::downgrade(&graph));
        }
        Self(graph)
    }

    /// The graph behind a raw handle: its owner, if this library knows one, or else a handle that
    /// does not own the graph.
    ///
    /// # Safety
    /// `raw` is a graph whose work is of `context`, and it lives as long as the result is used.
    /// Calls with the result do not overlap with other calls on the graph, including those of
    /// [`UserObject`](crate::UserObject).
    ///
    /// # Errors
    /// The graph is known and belongs to another context
    /// ([`WrongContext`](crate::Error::WrongContext)).
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Result<Self> {
        process::ensure_not_forked()?;
        if let Some(known) = GRAPHS.find(&raw.addr()).map(Self) {
            context.ensure_same(known.context(), "the graph")?;
            return Ok(known);
        }
        Ok(Self(GraphBox::new(context, raw, false)))
    }

    /// The driver's own handle.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUgraph {
        self.0.raw.get()
    }

    /// The context.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Whether the last handle destroys the graph.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        self.0.owned.load(Ordering::Acquire)
    }

    /// Gives up the ownership of the graph: no handle destroys it any more, and
    /// [`from_raw`](Self::from_raw) no longer finds it.
    ///
    /// For the crates above this one.
    ///
    /// ```compile_fail,E0133
    /// # fn ask(graph: cuda_handles::GraphHandle) {
    /// graph.disown();
    /// # }
    /// ```
    ///
    /// # Safety
    /// A caller that looks up the graph by its raw value from now on finds the values that are
    /// [attached](Self::tie) to the handle and still used by other means than the handle; or no
    /// attached value is used any more. Otherwise the caller gets a second handle, whose calls are
    /// not kept apart from those of the first.
    #[doc(hidden)]
    pub unsafe fn disown(&self) {
        if self.0.owned.swap(false, Ordering::AcqRel) {
            GRAPHS.forget(self.0.raw.key(), &self.0);
        }
    }

    /// Attaches a value to the handle, for [`knowledge`](Self::knowledge) on any handle that is
    /// found by the raw value. If a value of this type is attached already and alive, it stays and
    /// is returned.
    #[doc(hidden)]
    pub fn tie<K: Any + Send + Sync>(&self, knowledge: &Arc<K>) -> Option<Arc<K>> {
        let mut tied = self.tied();
        let known = find(&tied);
        if known.is_none() {
            tied.retain(|(of, _)| *of != TypeId::of::<K>());
            let weak: Weak<K> = Arc::downgrade(knowledge);
            tied.push((TypeId::of::<K>(), weak));
        }
        known
    }

    /// The attached value of this type, while it lives.
    #[doc(hidden)]
    #[must_use]
    pub fn knowledge<K: Any + Send + Sync>(&self) -> Option<Arc<K>> {
        find(&self.tied())
    }

    fn tied(&self) -> LockGuard<'_, SmallVec<[Attachment; 1]>> {
        self.0.knowledge.lock()
    }
}

/// The attached value of a type. Values of other types are not upgraded: they would be dropped
/// under the lock.
fn find<K: Any + Send + Sync>(tied: &[Attachment]) -> Option<Arc<K>> {
    let (_, found) = tied.iter().find(|(of, _)| *of == TypeId::of::<K>())?;
    found.upgrade()?.downcast().ok()
}

impl GraphHandle {
    /// Keeps this crate's own calls on the graph apart; safe code reaches no others.
    pub(crate) fn call_alone(&self) -> Result<LockGuard<'_, ()>> {
        lock_unless_inside(self.context(), "the graph", &self.0.calls)
    }

    /// This graph, without keeping it alive.
    pub(crate) fn identity(&self) -> GraphIdentity {
        GraphIdentity(Arc::downgrade(&self.0))
    }
}

/// Which graph something was done to; not mistaken for a later one at the same address.
pub(crate) struct GraphIdentity(Weak<GraphBox>);

impl GraphIdentity {
    pub(crate) fn is(&self, graph: &GraphHandle) -> bool {
        core::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&graph.0))
    }

    /// Whether no handle of the graph is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl GraphBox {
    fn new(context: &Context, raw: CUgraph, owned: bool) -> Arc<Self> {
        Arc::new(Self {
            raw: Raw::new(raw),
            context: context.clone(),
            owned: AtomicBool::new(owned),
            knowledge: Lock::new(Rank::Attachments, SmallVec::new()),
            calls: Lock::new(Rank::GraphCalls, ()),
        })
    }
}

impl Drop for GraphBox {
    fn drop(&mut self) {
        if *self.owned.get_mut() {
            GRAPHS.forget(self.raw.key(), self);
            destroy::destroy(&self.context, Object::Graph(self.raw));
        }
    }
}

impl fmt::Debug for GraphHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GraphHandle").field(&self.0.raw).finish()
    }
}

struct ExecBox {
    raw: Raw<CUgraphExec_st>,
    context: Context,
    keep: Option<Arc<()>>,
    end: ExecEnd,
}

/// When the driver is asked to destroy an executable graph whose last handle is dropped.
///
/// The driver waits for all work of the device when it destroys an executable with conditional
/// nodes, and the launches of all threads wait meanwhile. The destruction of such an executable is
/// therefore **deferred**; see the [drop rules](crate::reaper).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecEnd {
    /// In the drop of the last handle, or soon after where the driver does not permit it there.
    /// Runs in flight go on.
    #[default]
    AtOnce,
    /// Deferred until a [drain](crate::reaper::drain), or until its memory or its graph is needed.
    Deferred,
    /// Deferred until no stream of this library has work in the context: in the drop itself, if
    /// none has. For graphs that other code may instantiate next.
    WhenIdle,
}

#[doc(hidden)]
/// The owner of an executable graph of the driver. Destroying one that is queued or running is
/// allowed: it still runs.
#[derive(Clone)]
pub struct GraphExecHandle(Arc<ExecBox>);

identity!(GraphExecHandle);

impl GraphExecHandle {
    /// Takes over an executable graph; it is destroyed with the last handle, with the thread's
    /// capture mode relaxed.
    ///
    /// # Safety
    /// `raw` is an executable graph whose work is of `context`, and it has no other owner, now or
    /// later.
    #[must_use]
    #[doc(alias = "cuGraphExecDestroy")]
    pub unsafe fn from_raw_owned(context: &Context, raw: CUgraphExec) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw_owned_with(context, raw, None, ExecEnd::AtOnce) }
    }

    /// [`from_raw_owned`](Self::from_raw_owned) with the choice of [when](ExecEnd) it is destroyed,
    /// and something that is kept until the driver has done so: that may be after the last handle
    /// is gone.
    ///
    /// # Safety
    /// As [`from_raw_owned`](Self::from_raw_owned).
    #[must_use]
    pub unsafe fn from_raw_owned_with(
        context: &Context,
        raw: CUgraphExec,
        keep: Option<Arc<()>>,
        end: ExecEnd,
    ) -> Self {
        Self(Arc::new(ExecBox { raw: Raw::new(raw), context: context.clone(), keep, end }))
    }

    /// Destroys the deferred executable that keeps this, if there is one.
    ///
    /// # Errors
    /// The driver does not permit it here, or would wait for work that runs.
    #[doc(hidden)]
    pub fn destroy_deferred(context: &Context, kept: &Weak<()>) -> Result<()> {
        context.refuse_in_callback()?;
        reclaim::destroy_keeping(kept)
    }

    /// Destroys all deferred executables, for memory that the driver lacks. Returns whether there
    /// were some; `false` where the driver does not permit it.
    #[doc(hidden)]
    #[must_use]
    pub fn destroy_all_deferred() -> bool {
        reclaim::free_pending();
        reclaim::destroy_all_deferred()
    }

    /// The driver's own handle.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUgraphExec {
        self.0.raw.get()
    }

    /// The context.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}

impl Drop for ExecBox {
    fn drop(&mut self) {
        let end = match self.end {
            ExecEnd::AtOnce => destroy::destroy_with,
            ExecEnd::Deferred => destroy::defer_destroy,
            ExecEnd::WhenIdle => reclaim::destroy_when_idle,
        };
        end(&self.context, Object::GraphExec(self.raw), self.keep.take().map(|keep| keep as _));
    }
}

impl fmt::Debug for GraphExecHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GraphExecHandle").field(&self.0.raw).finish()
    }
}
