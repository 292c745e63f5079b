//! The graph: the driver's object, its table of nodes, and the one lock around both.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_handles::{Context, Error as HandleError, GraphHandle, Owner};
use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call, Driver};

use crate::error::{Error, Result};
use crate::order::Index;
use crate::table::{Place, Table};

/// A CUDA graph: work with an order, to be drawn once and run many times.
///
/// Nodes are added at a [`Frontier`](crate::Frontier): [`root`](Self::root), [`after`](Self::after) or
/// [`Node::then`](crate::Node::then). The graph keeps alive what its nodes use, and so does every executable made by
/// [`instantiate`](Self::instantiate), by itself.
///
/// A `Graph` is a handle: clones are the same graph, and it lives until the last handle of it, of its nodes and of its executables is
/// gone. It can be used from any thread; a lock lets one operation at a time reach the driver, which does not guard graphs itself.
#[derive(Clone)]
pub struct Graph {
    root: Arc<Root>,
    place: Place,
}

/// The graph that was made, with those embedded in its nodes.
struct Root {
    /// Before the table: the driver's graph goes first, then what its nodes used.
    handle: GraphHandle,
    table: Mutex<Table>,
}

/// Graphs of a context.
pub trait ContextExt {
    /// A new graph without nodes; see [`Graph::new`].
    ///
    /// Stands on `cuGraphCreate`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphCreate")]
    fn graph(&self) -> Result<Graph>;
}

impl ContextExt for Context {
    fn graph(&self) -> Result<Graph> {
        Graph::new(self)
    }
}

impl Graph {
    /// A new graph without nodes, for work in `context`.
    ///
    /// Stands on `cuGraphCreate`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphCreate")]
    pub fn new(context: &Context) -> Result<Self> {
        let handle = GraphHandle::create(context)?;
        Ok(Self::of(handle, Table::default()))
    }

    /// The root graph of a handle and the table of its nodes.
    pub(crate) fn of(handle: GraphHandle, table: Table) -> Self {
        Self { root: Arc::new(Root { handle, table: Mutex::new(table) }), place: Place::ROOT }
    }

    /// Another graph of the same hierarchy.
    pub(crate) fn at(&self, place: Place) -> Self {
        Self { root: Arc::clone(&self.root), place }
    }

    /// Which graph of its hierarchy it is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Whether both are graphs of one hierarchy, and so behind one lock.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// The context whose kernels and memory the nodes use.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.root.handle.context()
    }

    /// Keeps `owner` alive for as long as the graph lives, and in every executable made from now on.
    ///
    /// For what the nodes reach in ways that the library cannot see, such as addresses inside structs. A forked child, which can use no graph,
    /// keeps nothing.
    pub fn keep(&self, owner: impl Into<Owner>) {
        let owner = owner.into();
        if let Ok(mut locked) = self.look() {
            locked.keep(self.place, owner);
        }
    }

    /// The number of nodes.
    ///
    /// Stands on `cuGraphGetNodes`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetNodes")]
    pub fn len(&self) -> Result<usize> {
        self.enter()?.count()
    }

    /// Whether there are no nodes.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub(crate) fn handle(&self) -> &GraphHandle {
        &self.root.handle
    }

    /// Takes the lock for work on the driver's graph; refused where the driver cannot be called any more, and where the graph is gone with the
    /// node that it was embedded in.
    pub(crate) fn enter(&self) -> Result<Locked<'_>> {
        self.context().ensure_usable()?;
        let mut locked = self.lock();
        if !self.place.is_root() {
            locked.raw = locked.embedded(self.place).ok_or(Error::GraphRemoved)?.raw.0;
        }
        Ok(locked)
    }

    /// Takes the lock to look into the table, which makes sense after the context was lost, too. Refused in a forked child: the lock may have been
    /// held by a thread that does not exist there.
    pub(crate) fn look(&self) -> Result<Locked<'_>> {
        match self.context().ensure_usable() {
            Err(error @ HandleError::Forked) => Err(error.into()),
            _ => Ok(self.lock()),
        }
    }

    /// Takes the lock of the root graph. It is held for driver calls on this graph, and nothing is dropped under it.
    fn lock(&self) -> Locked<'_> {
        // What runs under the lock does not panic; a table that saw one anyway is consistent between calls.
        let table = self.root.table.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { root: &self.root, place: self.place, raw: self.root.handle.as_raw(), table }
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.is_beside(other) && self.place == other.place
    }
}

impl Eq for Graph {}

impl core::hash::Hash for Graph {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.root).hash(state);
        self.place.hash(state);
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Graph").field(&self.root.handle.as_raw()).finish()
    }
}

/// A graph whose lock is held: the table of its hierarchy, and the driver's graph.
pub(crate) struct Locked<'g> {
    root: &'g Root,
    place: Place,
    /// Of the place.
    raw: CUgraph,
    table: MutexGuard<'g, Table>,
}

impl Deref for Locked<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.table
    }
}

impl Locked<'_> {
    /// The driver's graph; live if the lock was taken by [`Graph::enter`].
    #[inline]
    pub(crate) fn raw(&self) -> CUgraph {
        self.raw
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.root.handle.context().driver()
    }

    pub(crate) fn answer(&self, call: Call, result: CUresult) -> Result<()> {
        Ok(self.root.handle.context().check(call, result)?)
    }

    fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the graph is live and locked; without a buffer the call counts.
        let result =
            unsafe { self.driver().cuGraphGetNodes(self.raw(), core::ptr::null_mut(), &raw mut count) };
        self.answer(Call::cuGraphGetNodes, result)?;
        Ok(count)
    }

    /// All raw nodes, in the order of creation.
    pub(crate) fn raw_nodes(&self) -> Result<Vec<CUgraphNode>> {
        self.list(Call::cuGraphGetNodes, |driver, graph, nodes, count| {
            // SAFETY: as `list` promises.
            unsafe { driver.cuGraphGetNodes(graph, nodes, count) }
        })
    }

    /// Asks for a count, then for as many raw nodes; see [`fetch`](Self::fetch).
    pub(crate) fn list(
        &self,
        name: Call,
        call: impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult,
    ) -> Result<Vec<CUgraphNode>> {
        let mut count = 0;
        self.answer(name, call(self.driver(), self.raw(), core::ptr::null_mut(), &raw mut count))?;
        self.fetch(name, count, call)
    }

    /// Asks for `count` raw nodes. The driver and the locked graph go to `call`, with a buffer of that size.
    pub(crate) fn fetch(
        &self,
        name: Call,
        mut count: usize,
        call: impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult,
    ) -> Result<Vec<CUgraphNode>> {
        let mut nodes = vec![core::ptr::null_mut(); count];
        if count > 0 {
            self.answer(name, call(self.driver(), self.raw(), nodes.as_mut_ptr(), &raw mut count))?;
            nodes.truncate(count);
        }
        Ok(nodes)
    }

    /// Where the rows of raw nodes are.
    pub(crate) fn indices(&mut self, nodes: &[CUgraphNode]) -> Result<Vec<Index>> {
        nodes.iter().map(|&raw| self.index(raw)).collect()
    }

    pub(crate) fn index(&mut self, raw: CUgraphNode) -> Result<Index> {
        self.find(raw).ok_or(Error::UnknownNode { raw: raw.addr() })
    }
}
