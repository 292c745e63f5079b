//! Work of other code as a child graph that is captured again for other values.

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::capture::CaptureMode;
use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Owner, Stream};
use cuda_sys::CUstream;

use crate::capture::builder::GraphBuilder;
use crate::capture::kind::{Capturing, Kind, Primary};
use crate::capture::session::Session;
use crate::error::{CaptureError, Result};
use crate::exec::GraphExec;
use crate::graph::Graph;
use crate::node::ChildGraphNode;
use crate::node_kind::NodeKind;
use crate::state::ids::NodeId;

/// The graphs of values used last that are kept.
const REMEMBERED: usize = 16;

type Shape = (Vec<NodeKind>, Vec<(usize, usize)>);
type Enqueue<V> = dyn Fn(CUstream, &V) -> Result<Vec<Owner>> + Send + Sync;

/// A child graph node with work of other code; see [`GraphBuilder::embed_foreign`].
///
/// [`set`](Self::set) captures the work again for other values, in the graph for executables that
/// are made later; [`set_in`](Self::set_in) does in an executable. The graphs of the values used
/// last are kept, so that values which come again cost no capture.
pub struct ForeignNode<V> {
    node: ChildGraphNode,
    stream: Stream,
    work: Box<Enqueue<V>>,
    /// The last one was set last. Values are compared and dropped without the lock: both are code
    /// of others, which may call [`set`](Self::set).
    made: Lock<Vec<Arc<Made<V>>>>,
}

/// Values, and the graph of the work for them.
struct Made<V> {
    values: V,
    graph: Graph,
}

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// Captures work of other code into a child graph: `work` gets the driver's stream and the
    /// values, enqueues on the stream, and returns the owners of everything that the work uses.
    ///
    /// [`ForeignNode::set`] calls `work` again for other values.
    ///
    /// ```no_run
    /// # use cuda_graph::{Result, capture::{Capturing, GraphBuilder, Primary}};
    /// # use cuda_handles::{Buffer, Owner};
    /// # unsafe fn library_call(_: cuda_sys::CUstream, _: u64) {}
    /// # fn example(
    /// #     capture: &GraphBuilder<Primary, Capturing>, x: Buffer<f32>, y: Buffer<f32>
    /// # ) -> Result<()> {
    /// // SAFETY: the library uses only this buffer, and only on this stream.
    /// let node = unsafe {
    ///     capture.embed_foreign(x, |stream, x: &Buffer<f32>| {
    ///         library_call(stream, x.address());
    ///         Ok(vec![Owner::from(x)])
    ///     })
    /// }?;
    /// node.set(y)?; // executables made from now on use `y`
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The work is captured in [`CaptureMode::Relaxed`], on a stream of the library, with the
    /// context current.
    ///
    /// # Safety
    /// As for [`foreign`](Self::foreign), for each call of `work`. The owners that it returns keep
    /// alive everything that the work uses.
    ///
    /// # Errors
    /// The error of `work`; the errors of [`end`](Self::end) and of [`embed`](Self::embed).
    #[doc(alias = "cuGraphAddChildGraphNode")]
    pub unsafe fn embed_foreign<V: PartialEq + Clone>(
        &self,
        values: V,
        work: impl Fn(CUstream, &V) -> Result<Vec<Owner>> + Send + Sync + 'static,
    ) -> Result<ForeignNode<V>> {
        // Nobody else has a handle of it, by which the capture could be ended too early.
        let stream = self.stream().context().stream()?;
        let graph = capture_work(&stream, &values, &work)?;
        let node = self.embed(&graph)?;
        let made = Lock::new(Rank::CaptureSession, vec![Arc::new(Made { values, graph })]);
        Ok(ForeignNode { node, stream, work: Box::new(work), made })
    }
}

impl<V: PartialEq + Clone> ForeignNode<V> {
    /// Captures the work for other values, unless their graph is still known, and sets it in the
    /// graph of the node. Executables made from now on run it.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2) besides the calls of a capture.
    ///
    /// # Errors
    /// [`CaptureError::OtherShape`]: the work has other nodes or edges than before; the errors of
    /// [`ChildGraphNode::set_graph`], of the work and of its capture. The node is unchanged then.
    #[doc(alias = "cuGraphChildGraphNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set(&self, values: V) -> Result<()> {
        let made = self.made_for(&values)?;
        self.node.set_graph(&made.graph)?;
        drop(self.remember(made));
        Ok(())
    }

    /// Captures the work for other values, unless their graph is still known, and sets it in an
    /// executable, for later launches. The graph of the node stays as it is.
    ///
    /// Calls `cuGraphExecNodeSetParams` (CUDA 12.2) besides the calls of a capture.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set), and those of [setting](crate::ExecNode::set_graph) the
    /// child graph of the executable's node. The executable is unchanged then.
    #[doc(alias = "cuGraphExecChildGraphNodeSetParams")]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    pub fn set_in(&self, exec: &mut GraphExec, values: V) -> Result<()> {
        let made = self.made_for(&values)?;
        exec.node(&self.node).set_graph(&made.graph)?;
        drop(self.remember(made));
        Ok(())
    }

    /// The graph for some values, captured unless it is known.
    fn made_for(&self, values: &V) -> Result<Arc<Made<V>>> {
        self.stream.context().ensure_usable()?;
        let all = self.made.lock().clone();
        match all.into_iter().rev().find(|made| made.values == *values) {
            Some(made) => Ok(made),
            None => Ok(Arc::new(Made { graph: self.make(values)?, values: values.clone() })),
        }
    }

    /// Notes what was set last. Returns what is forgotten, to be dropped after the lock.
    fn remember(&self, made: Arc<Made<V>>) -> Option<Arc<Made<V>>> {
        let mut all = self.made.lock();
        let known = all.iter().position(|other| Arc::ptr_eq(other, &made));
        let place = known.or((all.len() >= REMEMBERED).then_some(0));
        let before = place.map(|place| all.remove(place));
        all.push(made);
        before
    }

    fn make(&self, values: &V) -> Result<Graph> {
        let graph = capture_work(&self.stream, values, &*self.work)?;
        let embedded = self.node.embedded()?;
        let (expected, found) = (shape(&embedded)?, shape(&graph)?);
        if expected == found {
            return Ok(graph);
        }
        Err(CaptureError::OtherShape { expected: expected.0.len(), found: found.0.len() }.into())
    }
}

impl<V> ForeignNode<V> {
    /// The child graph node.
    #[must_use]
    pub fn node(&self) -> &ChildGraphNode {
        &self.node
    }
}

impl<V> fmt::Debug for ForeignNode<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ForeignNode").field(&self.node).finish()
    }
}

/// A graph of the work alone.
fn capture_work<V>(
    stream: &Stream,
    values: &V,
    work: &(impl Fn(CUstream, &V) -> Result<Vec<Owner>> + ?Sized),
) -> Result<Graph> {
    let session = Session::begin(stream, &CaptureMode::Relaxed.into(), Primary::NAME, None)?;
    let capture = GraphBuilder::<Primary, _>::capturing(session, stream.clone())?;
    // Without a current context the driver captures copies that no executable can exchange.
    let owners = stream.context().with_current(|| work(stream.as_raw(), values))??;
    for owner in owners {
        capture.keep(owner)?;
    }
    Ok(capture.end()?.into_graph())
}

/// The kinds of nodes in the order of their creation, and the edges between them.
fn shape(graph: &Graph) -> Result<Shape> {
    let nodes = graph.nodes()?;
    let places: HashMap<NodeId, usize> = nodes.iter().map(|node| node.id()).zip(0..).collect();
    let edges = graph.edges()?;
    let mut ends: Vec<(usize, usize)> = edges
        .iter()
        .filter_map(|edge| Some((*places.get(&edge.from.id())?, *places.get(&edge.to.id())?)))
        .collect();
    ends.sort_unstable();
    Ok((nodes.iter().map(|node| node.kind()).collect(), ends))
}
