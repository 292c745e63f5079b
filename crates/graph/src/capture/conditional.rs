//! Nodes that no call on a stream makes: conditional nodes, child graphs, memory nodes, and
//! whatever else a frontier adds.

use std::sync::Arc;

#[cfg(doc)]
use cuda_handles::capture::CaptureOptions;
use cuda_handles::{Element, GraphBuffer};
use cuda_sys::CUgraphNode;

use crate::build::frontier::Frontier;
use crate::capture::builder::{BodyBuilder, GraphBuilder};
use crate::capture::copied::Position;
use crate::capture::kind::{Body, Capturing, Kind};
use crate::capture::placed::{Placed, remove_all};
use crate::capture::session::Session;
use crate::condition::Condition;
use crate::error::{CaptureError, Error, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::loops::{Branch, Loop, Repeat, Test};
use crate::node::{ChildGraphNode, FreeNode, IfElseNode, IfNode, SwitchNode, WhileNode};

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// A condition of the graph that is captured; see [`Graph::condition`].
    ///
    /// The condition is made at once, and the driver cannot destroy it. So it stays in a body's or
    /// existing graph whose capture fails. That graph cannot be instantiated
    /// ([`ConditionError::UnusedCondition`](crate::ConditionError::UnusedCondition)) until a
    /// conditional node uses the condition, or a new one with the same default that takes its
    /// place.
    ///
    /// # Errors
    /// The errors of [`Graph::condition`].
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "cudaGraphConditionalHandleCreate")]
    pub fn condition(&self) -> Result<Condition> {
        self.target()?.condition()
    }

    /// A condition with a default; see [`Graph::condition_with_default`].
    ///
    /// # Errors
    /// The errors of [`Graph::condition_with_default`].
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "cudaGraphConditionalHandleCreate")]
    pub fn condition_with_default(&self, default: u32) -> Result<Condition> {
        self.target()?.condition_with_default(default)
    }

    /// Adds a node that runs a body if a condition is not 0. The closure captures the body, on a
    /// stream of its own. The node comes after what was captured here before.
    ///
    /// ```no_run
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn decide(values: In<f32>, is_large: ConditionalHandle);
    /// # }
    /// # use cuda_graph::{Result, capture::{Capturing, GraphBuilder, Primary}};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(
    /// #     capture: &GraphBuilder<Primary, Capturing>, decide: &decide, values: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let is_large = capture.condition()?;
    /// capture.launch(decide, cuda_launch::per(1, 1), (values, &is_large))?;
    /// capture.if_node(&is_large, |body| body.fill(values, 0.0))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The body can also be filled node by node, before or after: [`IfNode::body`].
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.3) and `cuLaunchHostFunc`, which marks the place, besides
    /// the calls of the body's own capture, and `cuStreamGetCaptureInfo` before and after it.
    ///
    /// # Errors
    /// The errors of [`Frontier::if_node`](crate::Frontier::if_node) and of [`end`](Self::end), or
    /// the closure's. There is no node then. [`CaptureError::OutsideBody`]: the closure captured
    /// work with this builder or on its stream, and not with the body's.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "conditional node")]
    pub fn if_node<R, E: From<Error>>(
        &self,
        condition: &Condition,
        body: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<IfNode, E> {
        let node = self.target()?.root().if_node(condition)?;
        self.place_filled(&node, || self.fill_body(node.body(), body))?;
        Ok(node)
    }

    /// Adds a node that runs one of two bodies: the first if a condition is not 0; see
    /// [`if_node`](Self::if_node).
    ///
    /// # Errors
    /// The errors of [`Frontier::if_else_node`](crate::Frontier::if_else_node) and of
    /// [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_else_node<R, Q, E: From<Error>>(
        &self,
        condition: &Condition,
        then: impl FnOnce(&BodyBuilder) -> Result<R, E>,
        otherwise: impl FnOnce(&BodyBuilder) -> Result<Q, E>,
    ) -> Result<IfElseNode, E> {
        let node = self.target()?.root().if_else_node(condition)?;
        self.place_filled(&node, || {
            self.fill_body(node.then_body(), then)?;
            self.fill_body(node.else_body(), otherwise)
        })?;
        Ok(node)
    }

    /// Adds a node that runs its body as long as a condition is not 0; see
    /// [`if_node`](Self::if_node).
    ///
    /// # Errors
    /// The errors of [`Frontier::while_node`](crate::Frontier::while_node) and of
    /// [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    pub fn while_node<R, E: From<Error>>(
        &self,
        condition: &Condition,
        body: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<WhileNode, E> {
        let node = self.target()?.root().while_node(condition)?;
        self.place_filled(&node, || self.fill_body(node.body(), body))?;
        Ok(node)
    }

    /// Adds a node that runs the body whose number a condition has; see
    /// [`if_node`](Self::if_node). The closure is called once for each body, with its number.
    ///
    /// # Errors
    /// The errors of [`Frontier::switch_node`](crate::Frontier::switch_node) and of
    /// [`if_node`](Self::if_node).
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_COND_TYPE_SWITCH")]
    pub fn switch_node<R, E: From<Error>>(
        &self,
        condition: &Condition,
        branches: usize,
        mut body: impl FnMut(usize, &BodyBuilder) -> Result<R, E>,
    ) -> Result<SwitchNode, E> {
        let node = self.target()?.root().switch_node(condition, branches)?;
        self.place_filled(&node, || {
            let bodies = node.bodies()?.into_iter().enumerate();
            bodies
                .map(|(number, graph)| self.fill_body(Ok(graph), |builder| body(number, builder)))
                .try_for_each(|filled| filled.map(drop))
        })?;
        Ok(node)
    }

    /// Captures a loop that runs its body while a number in memory passes a test; see
    /// [`Frontier::while_loop`](crate::Frontier::while_loop). No kernel of the user's decides.
    ///
    /// # Errors
    /// The errors of [`Frontier::while_loop`](crate::Frontier::while_loop) and of
    /// [`if_node`](Self::if_node).
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    pub fn while_loop<'m, R, E: From<Error>>(
        &self,
        going: impl Into<Repeat<'m>>,
        body: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.place_behind(|entry| {
            entry.then().while_loop(going, |graph| self.fill_body(Ok((**graph).clone()), body))
        })
    }

    /// Captures a loop that runs its body once, and then again while a number in memory passes a
    /// test; see [`while_loop`](Self::while_loop).
    ///
    /// # Errors
    /// The errors of [`while_loop`](Self::while_loop).
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    pub fn do_while_loop<'m, R, E: From<Error>>(
        &self,
        going: impl Into<Repeat<'m>>,
        body: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<Loop<R>, E> {
        self.place_behind(|entry| {
            entry.then().do_while_loop(going, |graph| self.fill_body(Ok((**graph).clone()), body))
        })
    }

    /// Captures a branch that runs its body if a number in memory passes a test; see
    /// [`Frontier::if_then`](crate::Frontier::if_then).
    ///
    /// # Errors
    /// The errors of [`while_loop`](Self::while_loop).
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_then<R, E: From<Error>>(
        &self,
        test: Test<'_>,
        body: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<Branch<IfNode, R>, E> {
        self.place_behind(|entry| entry.then().if_then(test, |graph| self.fill_body(Ok(graph.clone()), body)))
    }

    /// Captures a branch that runs one of two bodies; see
    /// [`Frontier::if_then_else`](crate::Frontier::if_then_else).
    ///
    /// # Errors
    /// The errors of [`while_loop`](Self::while_loop).
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    pub fn if_then_else<R, Q, E: From<Error>>(
        &self,
        test: Test<'_>,
        then: impl FnOnce(&BodyBuilder) -> Result<R, E>,
        otherwise: impl FnOnce(&BodyBuilder) -> Result<Q, E>,
    ) -> Result<Branch<IfElseNode, (R, Q)>, E> {
        self.place_behind(|entry| {
            entry.then().if_then_else(
                test,
                |graph| self.fill_body(Ok(graph.clone()), then),
                |graph| self.fill_body(Ok(graph.clone()), otherwise),
            )
        })
    }

    /// Adds a node by hand: the closure adds it at a frontier, and the node comes after what was
    /// captured here before, and before what is captured next. Only such nodes can use memory that
    /// the graph [allocates](Self::alloc). The closure adds one node: others that it adds get no
    /// place here.
    ///
    /// ```no_run
    /// # use cuda_graph::{Result, capture::{Capturing, GraphBuilder, Primary}};
    /// # use cuda_handles::Buffer;
    /// # fn example(capture: &GraphBuilder<Primary, Capturing>, y: &Buffer<f32>) -> Result<()> {
    /// let scratch = capture.alloc::<f32>(1024)?;
    /// capture.add(|at| at.fill(&scratch, 1.0))?;
    /// capture.add(|at| at.copy(scratch.slice(..16)?, y))?.named("result");
    /// capture.free(&scratch)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls what the frontier calls, and `cuLaunchHostFunc`, which marks the place.
    ///
    /// # Errors
    /// The closure's error; [`CaptureError::NotNew`]: the closure returned a node that was there
    /// before; [`CaptureError::SameScratch`]: the node has a graph that uses the
    /// [scratch memory](CaptureOptions::scratch) of this capture; [`CaptureError::Over`]: the
    /// capture has ended. There is no new node then.
    /// From a graph with memory nodes the driver removes nothing: there the [end](Self::end) fails.
    pub fn add<N: core::ops::Deref<Target = Node>>(
        &self,
        add: impl FnOnce(Frontier<'_>) -> Result<N>,
    ) -> Result<N> {
        let target = self.target()?;
        let next = target.look()?.next_number();
        let node = add(target.root())?;
        if node.graph() != &target {
            return Err(Error::Node(NodeError::Foreign { node: node.name().into() }));
        }
        // A capture that fails removes the nodes that it has placed.
        if node.id().number < next {
            return Err(CaptureError::NotNew { node: node.name().into() }.into());
        }
        self.place_filled::<(), Error>(&node, || Ok(()))?;
        Ok(node)
    }

    /// Adds a node that runs a clone of `graph`; see [`Frontier::child`].
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and `cuLaunchHostFunc`, which marks the place.
    ///
    /// # Errors
    /// The errors of [`Frontier::child`] and of [`add`](Self::add).
    #[doc(alias = "cuGraphAddChildGraphNode")]
    #[doc(alias = "cudaGraphAddChildGraphNode")]
    pub fn embed(&self, graph: &Graph) -> Result<ChildGraphNode> {
        self.add(|at| at.child(graph))
    }

    /// Adds a node that allocates memory at each launch of the graph; see [`Frontier::alloc`]. Only
    /// nodes that are [added by hand](Self::add) can use it. [`zeros`](Self::zeros) gives memory
    /// that everything captured can use.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and `cuLaunchHostFunc`, which marks the place.
    ///
    /// # Errors
    /// The errors of [`Frontier::alloc`] and of [`add`](Self::add).
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<GraphBuffer<T>> {
        self.add(|at| Ok(at.alloc::<T>(len)?.0))?.memory()
    }

    /// Adds a node that frees memory which the graph allocates; see [`Frontier::free`].
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2) and `cuLaunchHostFunc`, which marks the place.
    ///
    /// # Errors
    /// The errors of [`Frontier::free`] and of [`add`](Self::add).
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[doc(alias = "cudaGraphAddMemFreeNode")]
    pub fn free<T>(&self, memory: &GraphBuffer<T>) -> Result<FreeNode> {
        self.add(|at| at.free(memory))
    }

    /// A builder that captures into a body of a conditional node of this capture. It may already
    /// have nodes; the captured ones are added to it when the builder ends. The body's builder ends
    /// before this one.
    ///
    /// # Errors
    /// [`CaptureError::NotABody`]: the graph is no body in the graph that is captured;
    /// [`CaptureError::Over`]: the capture has ended; or the driver's error.
    pub fn capture_body(&self, body: &Graph) -> Result<BodyBuilder> {
        let target = self.target()?;
        if !body.is_in_same_hierarchy(&target) || body.subgraph().is_root() || !body.exists()? {
            return Err(CaptureError::NotABody.into());
        }
        let session = &self.state.session;
        let stream = session.spare_stream()?;
        let position = Position::of(&body.root());
        let inner = Session::begin(&stream, &session.mode().into(), Body::NAME, Some(position))?;
        session.note_body(&inner)?;
        GraphBuilder::capturing(inner, stream)
    }

    /// The graph that the captured nodes are for, if the capture is open.
    fn target(&self) -> Result<Graph> {
        self.state.session.ensure_open(&self.state.stream, K::NAME)?;
        self.state.session.target()
    }

    /// Captures a body.
    fn fill_body<R, E: From<Error>>(
        &self,
        body: Result<Graph>,
        fill: impl FnOnce(&BodyBuilder) -> Result<R, E>,
    ) -> Result<R, E> {
        let builder = self.capture_body(&body?)?;
        let before = self.dependencies()?;
        let inside = fill(&builder)?;
        let stream = builder.stream().clone();
        drop(builder.state.session.join_and_end()?);
        self.state.session.give_back(stream);
        let now = self.dependencies()?;
        // A capture that has ended meanwhile says so when the node is placed.
        if now.is_some() && now != before {
            return Err(Error::from(CaptureError::OutsideBody { kind: K::NAME }).into());
        }
        Ok(inside)
    }

    /// The nodes that the next call captured here depends on, which each captured call changes;
    /// `None` if nothing is captured here.
    fn dependencies(&self) -> Result<Option<Vec<CUgraphNode>>> {
        let info = self.state.stream.capture_info()?.filter(|info| info.is_active);
        Ok(info.map(|info| info.dependencies.into_iter().map(|(node, _)| node).collect()))
    }

    /// Places a node of the target here, once it is filled. If that fails it is removed again.
    fn place_filled<R, E: From<Error>>(
        &self,
        node: &Node,
        fill: impl FnOnce() -> Result<R, E>,
    ) -> Result<(), E> {
        let unplaced = Unplaced::new(&self.state.session, node);
        fill()?;
        self.place(node, node)?;
        unplaced.are_placed();
        Ok(())
    }

    /// Adds nodes behind an empty node, and places them here. If that fails they are removed again.
    fn place_behind<P: core::ops::Deref<Target: core::ops::Deref<Target = Node>>, E: From<Error>>(
        &self,
        add: impl FnOnce(&Node) -> Result<P, E>,
    ) -> Result<P, E> {
        let entry = self.target()?.root().empty()?;
        let mut unplaced = Unplaced::new(&self.state.session, &entry);
        let added = add(&entry)?;
        unplaced.exit = Some((**added).clone());
        self.place(&entry, &added)?;
        unplaced.are_placed();
        Ok(added)
    }

    fn place(&self, entry: &Node, exit: &Node) -> Result<()> {
        let session: &Arc<Session> = &self.state.session;
        session.ensure_other_scratch(exit)?;
        let placed = Placed::new(entry, exit);
        session.note_placed(placed)?;
        let captured = match placed.capture_on(&self.state.stream, session.id()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(CaptureError::Over { kind: K::NAME }.into()),
            Err(error) => Err(error),
        };
        captured.inspect_err(|_| session.forget_placed(&placed))
    }
}

/// Nodes of the target without a place. Dropped, it removes them again, also after a panic: left
/// without edges, they would run at any time.
struct Unplaced<'a> {
    session: &'a Session,
    /// `None` once they have a place.
    entry: Option<Node>,
    exit: Option<Node>,
}

impl<'a> Unplaced<'a> {
    fn new(session: &'a Session, entry: &Node) -> Self {
        Self { session, entry: Some(entry.clone()), exit: None }
    }

    /// They have a place now, and stay.
    fn are_placed(mut self) {
        self.entry = None;
        self.exit = None;
    }
}

impl Drop for Unplaced<'_> {
    fn drop(&mut self) {
        if let Err(error) = remove_all(self.entry.as_ref(), self.exit.as_ref()) {
            self.session.spoil_target(error);
        }
    }
}
