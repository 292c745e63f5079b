//! Sessions: one capture of the driver, from begin to end.
//!
//! A session is open while it holds its [`ActiveCapture`]. Whoever takes that out ends the capture:
//! the builder's end, its drop, or the session around it. So a capture ends exactly once. The lock
//! is held for moments, over no driver call, and nothing is dropped under it. In a forked child it
//! may be held for ever, so everything that takes it refuses before.

use core::mem;
use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::capture::{ActiveCapture, CaptureMode, CaptureOptions, Captured, Scratch};
use cuda_handles::internal::{Lock, LockGuard, Rank};
use cuda_handles::{Context, Error as HandleError, GraphHandle, Stream, WrongContext, is_forked};
use cuda_launch::ConditionalHandle;

use crate::build::frontier::Frontier;
use crate::capture::adopted::{Adopted, result_of};
use crate::capture::copied::{Position, copy_into};
use crate::capture::early_params::EarlyParams;
use crate::capture::placed::{Placed, broken};
use crate::error::wrong_context::{SPANNING, Spans, ensure};
use crate::error::{CaptureError, ConditionError, Error, ParamError, Result};
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::param::bind::NewBinding;
use crate::state::GraphState;
use crate::state::bindings::ParamValue;
use crate::state::conditions::Handles;

/// One capture of the driver, shared by a primary or body builder and its forks.
#[derive(Debug)]
pub(super) struct Session {
    origin: Stream,
    /// The number of the capture.
    id: u64,
    mode: CaptureMode,
    /// The memory that the capture shares with others.
    scratch: Option<Scratch>,
    /// The kind of the builder that ends it.
    kind: &'static str,
    /// The position in an existing graph that the nodes are for. Without one they get a graph of
    /// their own.
    position: Option<Position>,
    parts: Lock<Parts>,
}

/// The outcome of a capture that has ended.
#[derive(Debug)]
pub(super) struct Delivered {
    /// The graph with the captured nodes.
    pub(super) graph: Graph,
    /// How many calls match no node; `None` if the nodes are read later.
    pub(super) unmatched: Option<usize>,
}

/// Everything that changes while the capture is open.
#[derive(Debug, Default)]
struct Parts {
    /// `None` once it has ended.
    active: Option<Open>,
    /// The streams of forks that were not joined.
    forks: Vec<Stream>,
    /// Captures into bodies of this one's nodes. Ended ones may be among them.
    bodies: Vec<Arc<Session>>,
    /// Streams that forks and bodies no longer use.
    idle: Vec<Stream>,
    /// The nodes in the target, with their places among the captured nodes.
    placed: Vec<Placed>,
    /// The graph of its own to which nodes are added by hand.
    own: Option<Graph>,
    /// The number of a graph that is not given, once it is needed, and its parameters until there
    /// is that graph.
    early: Option<EarlyParams>,
    /// The conditions that captured kernels set, by their numbers. Until the end no other condition
    /// takes their place.
    conditions: HashMap<u64, Arc<Handles>>,
    /// Why the target has something that it should not have.
    spoilt: Option<Error>,
}

/// A capture that any builder of the session may end.
#[derive(Debug)]
struct Open(ActiveCapture);

// SAFETY: it is bound to its thread since the driver refuses an end on another one, unless the mode
// is relaxed. Such an end is harmless: the capture is over, and its work is discarded.
unsafe impl Send for Open {}

impl Session {
    /// Begins a capture on a stream.
    pub(super) fn begin(
        origin: &Stream,
        options: &CaptureOptions,
        kind: &'static str,
        position: Option<Position>,
    ) -> Result<Arc<Self>> {
        if let Some(position) = &position {
            ensure_spans_all(position.graph(), core::slice::from_ref(origin.context()))?;
        }
        let active = origin.begin_capture_with(options)?;
        let id = active.id();
        let parts = Parts { active: Some(Open(active)), ..Parts::default() };
        let parts = Lock::new(Rank::CaptureSession, parts);
        let (mode, scratch) = (options.capture_mode(), options.shared_scratch().cloned());
        Ok(Arc::new(Self { origin: origin.clone(), id, mode, scratch, kind, position, parts }))
    }

    fn parts(&self) -> LockGuard<'_, Parts> {
        self.parts.lock()
    }

    /// The home of the graph that the captured nodes are for.
    pub(super) fn home(&self) -> &Context {
        self.position.as_ref().map_or(self.origin.context(), |position| position.graph().context())
    }

    /// The number of the capture.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The mode of the capture, and of the captures of its bodies.
    pub(super) fn mode(&self) -> CaptureMode {
        self.mode
    }

    /// Refuses a call on a stream that is no longer in the capture.
    pub(super) fn ensure_open(&self, stream: &Stream, kind: &'static str) -> Result<()> {
        ensure_not_forked()?;
        if stream.capture_id() == Some(self.id) { Ok(()) } else { Err(CaptureError::Over { kind }.into()) }
    }

    /// Refuses host functions, if the nodes are for a body.
    pub(super) fn ensure_may_call_back(&self) -> Result<()> {
        self.position.as_ref().map_or(Ok(()), |position| position.graph().ensure_may_call_back())
    }

    /// The graph that nodes are added to by hand, and that the captured nodes are for.
    pub(super) fn target(&self) -> Result<Graph> {
        if let Some(position) = &self.position {
            return Ok(position.graph().clone());
        }
        if let Some(own) = &self.open_parts()?.own {
            return Ok(own.clone());
        }
        let new = GraphHandle::create(self.origin.context())?;
        let mut parts = self.open_parts()?;
        // If another fork was first, `new` is dropped after the lock.
        if let Some(own) = &parts.own {
            return Ok(own.clone());
        }
        let early = parts.early.get_or_insert_default();
        let state = GraphState::default().with_params(mem::take(&mut early.bindings));
        let own = Graph::numbered(new, state, early.number);
        parts.own = Some(own.clone());
        Ok(own)
    }

    /// Adds a parameter to the graph that the captured nodes are for; returns the numbers of its
    /// hierarchy and of the parameter.
    pub(super) fn add_param(&self, value: ParamValue) -> Result<(u64, u32)> {
        let graph = match &self.position {
            Some(position) => position.graph().clone(),
            None => {
                let mut parts = self.open_parts()?;
                let Some(own) = parts.own.clone() else {
                    let early = parts.early.get_or_insert_default();
                    return Ok((early.number, early.bindings.add(value)));
                };
                own
            }
        };
        graph.add_param(value)
    }

    /// Refuses parameters of other graphs than the one that the captured nodes are for.
    pub(super) fn ensure_own_params(&self, binding: &NewBinding) -> Result<()> {
        let graph = match &self.position {
            Some(position) => position.graph().clone(),
            None => {
                let parts = self.open_parts()?;
                let Some(own) = parts.own.clone() else {
                    let Some(early) = &parts.early else { return Err(ParamError::Foreign.into()) };
                    return binding.ensure_of(early.number, &early.bindings);
                };
                own
            }
        };
        graph.look()?.ensure_own_params(binding)
    }

    /// The parts of a capture that has not ended. Its end has taken them out.
    fn open_parts(&self) -> Result<LockGuard<'_, Parts>> {
        ensure_not_forked()?;
        let parts = self.parts();
        if parts.active.is_some() { Ok(parts) } else { Err(CaptureError::Over { kind: self.kind }.into()) }
    }

    /// Keeps the conditions of a kernel that is about to be captured until the end, when the kernel
    /// becomes a node of the target. Refuses conditions of other graphs.
    pub(super) fn hold_conditions(&self, handles: &[ConditionalHandle], kernel: &str) -> Result<()> {
        let held = self.target()?.enter()?.hold_conditions(handles, kernel)?;
        let mut parts = self.open_parts()?;
        for condition in held {
            // What is there already is the same.
            parts.conditions.entry(condition.number()).or_insert(condition);
        }
        Ok(())
    }

    /// Refuses a node with a graph that uses the memory which the capture shares: that graph would
    /// overwrite buffers of this one, whatever the order.
    pub(super) fn ensure_other_scratch(&self, node: &Node) -> Result<()> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        let guard = node.graph().look()?;
        match guard.uses_scratch(node.id(), scratch) {
            true => Err(CaptureError::SameScratch { node: guard.name(node.id()) }.into()),
            false => Ok(()),
        }
    }

    /// A stream for a fork or a body, which takes work in captures only. So a fork's calls are
    /// captured or refused, also while another thread ends the capture.
    pub(super) fn spare_stream(&self) -> Result<Stream> {
        if let Some(idle) = self.parts().idle.pop() {
            return Ok(idle);
        }
        let new = self.origin.context().stream()?;
        new.only_capture();
        Ok(new)
    }

    pub(super) fn give_back(&self, stream: Stream) {
        self.parts().idle.push(stream);
    }

    pub(super) fn note_fork(&self, stream: &Stream) {
        self.parts().forks.push(stream.clone());
    }

    pub(super) fn note_joined(&self, stream: &Stream) {
        let mut parts = self.parts();
        let found = parts.forks.iter().position(|fork| fork == stream);
        let joined = found.map(|index| parts.forks.swap_remove(index));
        // Dropped after the lock.
        drop(parts);
        drop(joined);
    }

    /// Makes the stream on which the capture began wait for every fork that was not joined.
    fn join_all(&self) -> Result<()> {
        ensure_not_forked()?;
        let forks = mem::take(&mut self.parts().forks);
        forks.iter().try_for_each(|fork| Ok(self.origin.wait_for(fork)?))
    }

    /// Notes a capture into a body, which ends before this one. Refused once this one has ended.
    pub(super) fn note_body(&self, body: &Arc<Self>) -> Result<()> {
        self.open_parts()?.bodies.push(Arc::clone(body));
        Ok(())
    }

    /// Notes nodes in the target before their place is captured, so that the end knows them if it
    /// comes in between. Refused once the end has taken the parts.
    pub(super) fn note_placed(&self, placed: Placed) -> Result<()> {
        self.open_parts()?.placed.push(placed);
        Ok(())
    }

    pub(super) fn forget_placed(&self, placed: &Placed) {
        self.parts().placed.retain(|other| other != placed);
    }

    /// Takes note that the target has a node which could not be removed again: the capture fails,
    /// and an existing graph is broken.
    pub(super) fn spoil_target(&self, undo: Error) {
        let why = match &self.position {
            Some(position) => broken(position.graph(), CaptureError::GivenUp.into(), undo),
            None => undo,
        };
        self.spoil(why);
    }

    /// Takes note of why the capture fails.
    fn spoil(&self, why: Error) {
        if is_forked() {
            return;
        }
        // If there is a reason already, the later one is dropped after the lock.
        let _later = match &mut self.parts().spoilt {
            Some(_) => Some(why),
            none => none.replace(why),
        };
    }

    /// Whether the capture is open.
    fn is_open(&self) -> bool {
        self.parts().active.is_some()
    }

    /// Joins all forks and ends the capture, as scopes do. A capture that a call has invalidated
    /// refuses the joins, too; the error of the end says more then.
    pub(super) fn join_and_end(&self) -> Result<Delivered> {
        if let Err(error) = self.join_all() {
            self.spoil(error);
        }
        self.end()
    }

    /// Ends the capture and puts the nodes where they are for.
    pub(super) fn end(&self) -> Result<Delivered> {
        ensure_not_forked()?;
        let kind = self.kind;
        let parts = mem::take(&mut *self.parts());
        let bodies = parts.bodies.iter().filter(|body| body.is_open()).count();
        // The inner captures first: the driver's rule.
        parts.bodies.iter().for_each(|body| body.discard());
        // The result is the driver's graph, unless there is a target.
        let early = parts.early.filter(|_| parts.own.is_none() && self.position.is_none());
        let Some(Open(active)) = parts.active else { return Err(CaptureError::Over { kind }.into()) };
        let result = match (active.end(), parts.spoilt) {
            (Ok(_), _) if bodies > 0 => Err(CaptureError::BodyOpen { kind, bodies }.into()),
            (Err(error @ HandleError::CaptureInvalidated { .. }), _) => Err(error.into()),
            (_, Some(spoilt)) => Err(spoilt),
            (Ok(captured), None) => Ok(captured),
            (Err(HandleError::CaptureUnjoined { .. }), None) if !parts.forks.is_empty() => {
                Err(CaptureError::Unjoined { kind, forks: parts.forks.len() }.into())
            }
            (Err(error), None) => Err(error.into()),
        };
        let own = parts.own.as_ref();
        let result = result.and_then(|captured| self.deliver(captured, early, own, &parts.placed));
        result.map_err(|cause| self.remove_placed(own, &parts.placed, cause))
    }

    /// Puts the nodes of an ended capture where they are for.
    fn deliver(
        &self,
        captured: Captured,
        early: Option<EarlyParams>,
        own: Option<&Graph>,
        placed: &[Placed],
    ) -> Result<Delivered> {
        let at_root;
        let position = match (&self.position, own) {
            (Some(position), _) => position,
            (None, Some(own)) => {
                at_root = Position::of(&own.root());
                &at_root
            }
            (None, None) => {
                let (graph, unmatched) = result_of(captured, early)?;
                return Ok(Delivered { graph, unmatched });
            }
        };
        let (adopted, graph) = (Adopted::new(captured)?, position.graph());
        let others = adopted.graph().others();
        if self.position.is_some() {
            ensure_spans_all(graph, others)?
        } else {
            widen(graph, others)?
        }
        copy_into(&adopted, position, placed)?;
        Ok(Delivered { graph: graph.clone(), unmatched: Some(adopted.unmatched()) })
    }

    /// Removes what was added by hand. Somebody may have handles of it.
    fn remove_placed(&self, own: Option<&Graph>, placed: &[Placed], cause: Error) -> Error {
        let Some(target) = self.position.as_ref().map(Position::graph).or(own) else { return cause };
        match placed.iter().rev().try_for_each(|placed| placed.remove(target)) {
            Ok(()) => cause,
            Err(undo) => {
                let broken = broken(target, cause.clone(), undo);
                // A graph of the session's own goes with the capture.
                if self.position.is_some() { broken } else { cause }
            }
        }
    }

    /// Ends the capture, if it is open, and discards what was captured.
    pub(super) fn discard(&self) {
        if is_forked() {
            return;
        }
        let parts = mem::take(&mut *self.parts());
        parts.bodies.iter().for_each(|body| body.discard());
        drop(parts.active);
        // If the graph breaks here, its next use says so.
        let own = parts.own.as_ref();
        let _said_later = self.remove_placed(own, &parts.placed, CaptureError::GivenUp.into());
    }
}

/// Lets a graph of a capture have nodes of the contexts whose streams took part.
fn widen(own: &Graph, others: &[Context]) -> Result<()> {
    if !others.is_empty() {
        let guard = own.look()?;
        if guard.has_conditionals() || !guard.conditions.is_empty() {
            return Err(ConditionError::SeveralContexts.into());
        }
    }
    own.hierarchy().widen(others);
    Ok(())
}

/// Refuses streams of contexts that the graph of the captured nodes does not span.
fn ensure_spans_all(graph: &Graph, others: &[Context]) -> Result<()> {
    others.iter().try_for_each(|found| {
        let wrong = || {
            WrongContext::new("a stream of the capture", found, "the graph", graph.context()).advise(SPANNING)
        };
        ensure(graph, found, wrong)
    })
}

fn ensure_not_forked() -> Result<()> {
    if is_forked() { Err(HandleError::Forked.into()) } else { Ok(()) }
}

impl Position {
    /// The position of a frontier.
    pub(super) fn of(frontier: &Frontier<'_>) -> Self {
        Self::new(frontier.graph().clone(), frontier.after_edges(), frontier.comes_before())
    }
}
