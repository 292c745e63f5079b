//! Random sequences of builder operations, compared with a plain model of the states.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::capture::{AnyThread, Body, Capturing, Fork, GraphBuilder, Primary};
use cuda_graph::{
    CaptureError, ConditionError, ContextExt, Error, ExecError, Graph, GraphExec, Result, StreamExt,
};
use cuda_handles::{Context, Error as HandleError, Stream};
use cuda_sys::CUresult;
use cuda_tests::{SOON, fail_any, is_soft, live, needs, settle, setup, until};
use proptest::prelude::*;

use super::{Bench, MODES, invalidate, is_free, works_again};
use crate::common::gone::flag;

/// An operation. Builders are given by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Op {
    /// On one of two streams, in one of the modes, or to be ended by any thread.
    Begin(usize, usize),
    Split(usize, usize),
    Join(usize, usize),
    Work(usize, Work),
    Branch(usize, Inside),
    OpenBody(usize),
    End(usize),
    Drop(usize),
    Forget(usize),
    Invalidate(usize),
    Launch(usize),
    Discard(usize),
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Launch,
    LaunchOnStream,
    Fill,
    Copy,
    Callback,
    Keep,
    /// Memory of the capture's own, dropped at once.
    Temporary,
    /// Refused without a call of the driver.
    Wrong,
}

/// What the closure of a body does.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Works,
    Fails,
    Panics,
    Invalidates,
    /// It leaves a fork that the scope joins.
    Forks,
}

fn op() -> impl Strategy<Value = Op> {
    let builder = || 0..12_usize;
    let work = prop::sample::select(vec![
        Work::Launch,
        Work::LaunchOnStream,
        Work::Fill,
        Work::Copy,
        Work::Callback,
        Work::Keep,
        Work::Temporary,
        Work::Wrong,
    ]);
    let inside = prop::sample::select(vec![
        Inside::Works,
        Inside::Fails,
        Inside::Panics,
        Inside::Invalidates,
        Inside::Forks,
    ]);
    prop_oneof![
        4 => (0..2_usize, 0..4_usize).prop_map(|(stream, mode)| Op::Begin(stream, mode)),
        4 => (builder(), 1..3_usize).prop_map(|(at, forks)| Op::Split(at, forks)),
        5 => (builder(), builder()).prop_map(|(at, fork)| Op::Join(at, fork)),
        8 => (builder(), work).prop_map(|(at, work)| Op::Work(at, work)),
        3 => (builder(), inside).prop_map(|(at, inside)| Op::Branch(at, inside)),
        2 => builder().prop_map(Op::OpenBody),
        4 => builder().prop_map(Op::End),
        2 => builder().prop_map(Op::Drop),
        1 => builder().prop_map(Op::Forget),
        1 => builder().prop_map(Op::Invalidate),
        1 => builder().prop_map(Op::Launch),
        1 => builder().prop_map(Op::Discard),
    ]
}

/// A builder of any kind.
enum Any {
    Primary(GraphBuilder<Primary, Capturing>),
    Movable(GraphBuilder<AnyThread, Capturing>),
    Fork(GraphBuilder<Fork, Capturing>),
    Body(GraphBuilder<Body, Capturing>),
}

macro_rules! with {
    ($any:expr, $builder:ident => $do:expr) => {
        match $any {
            Any::Primary($builder) => $do,
            Any::Movable($builder) => $do,
            Any::Fork($builder) => $do,
            Any::Body($builder) => $do,
        }
    };
}

/// A builder with what the model knows of it.
struct Slot {
    builder: Any,
    session: usize,
    stream: Stream,
    /// The nodes that its next call comes after.
    past: BTreeSet<usize>,
}

impl Slot {
    fn kind(&self) -> &'static str {
        match self.builder {
            Any::Primary(_) | Any::Movable(_) => "primary",
            Any::Fork(_) => "fork",
            Any::Body(_) => "body",
        }
    }
}

/// The model of a capture.
#[derive(Default)]
struct Session {
    is_open: bool,
    is_invalid: bool,
    /// Ended by its stream.
    is_discarded: bool,
    nodes: usize,
    /// What one run of it adds.
    adds: u32,
    parent: Option<usize>,
    /// The stream on which it began, if that is one of the two.
    origin: Option<usize>,
    /// The body of the last branch.
    body: Option<Graph>,
    /// A condition that no node uses may be left in the graph.
    has_spare: bool,
}

struct World<'c> {
    context: &'c Context,
    bench: Bench,
    streams: [Stream; 2],
    /// All streams that were ever in a capture.
    seen: Vec<Stream>,
    slots: Vec<Slot>,
    /// What was forgotten.
    shelf: Vec<Any>,
    sessions: Vec<Session>,
    exec: GraphExec,
    flags: Vec<Box<dyn Fn() -> bool>>,
    /// Whether the model knows what comes: no call fails on demand.
    is_exact: bool,
}

impl<'c> World<'c> {
    fn new(context: &'c Context) -> Self {
        let bench = Bench::new(context);
        let streams = [context.stream().unwrap(), bench.stream.clone()];
        Self {
            context,
            seen: streams.to_vec(),
            exec: context.graph().unwrap().instantiate().unwrap(),
            bench,
            streams,
            slots: Vec::new(),
            shelf: Vec::new(),
            sessions: Vec::new(),
            flags: Vec::new(),
            is_exact: true,
        }
    }

    /// Compares an outcome with the model's, if that knows.
    #[track_caller]
    fn expect<T>(&self, what: &str, found: Result<T>, expected: &Expected) -> Option<T> {
        let fits = match (&found, expected) {
            (Ok(_), Expected::Works) | (Err(_), Expected::Fails) => true,
            (Err(error), Expected::Refused(expected)) => error == expected,
            (Err(Error::Handles(HandleError::CaptureInvalidated { .. })), Expected::Invalid) => true,
            _ => false,
        };
        let error = found.as_ref().err();
        assert!(fits || !self.is_exact, "{what}: expected {expected:?}, found {error:?}");
        found.ok()
    }

    /// The outcome of a call of a builder.
    fn call(&self, slot: &Slot) -> Expected {
        let session = &self.sessions[slot.session];
        match (session.is_open, session.is_invalid) {
            (false, _) => Expected::Refused(CaptureError::Over { kind: slot.kind() }.into()),
            (true, true) => Expected::Fails,
            (true, false) => Expected::Works,
        }
    }

    /// Closes a session, and the bodies in it.
    fn close(&mut self, session: usize) {
        let closed = &mut self.sessions[session];
        (closed.is_open, closed.is_discarded) = (false, false);
        // Of a body, the nodes go; the conditions stay.
        let root = self.root_of(session);
        self.sessions[root].has_spare = true;
        let is_inside =
            |inner: &Session| inner.parent == Some(session) && (inner.is_open || inner.is_discarded);
        let inner: Vec<usize> =
            (0..self.sessions.len()).filter(|inner| is_inside(&self.sessions[*inner])).collect();
        inner.into_iter().for_each(|inner| self.close(inner));
    }

    fn root_of(&self, session: usize) -> usize {
        self.sessions[session].parent.map_or(session, |parent| self.root_of(parent))
    }

    fn apply(&mut self, op: &Op) {
        let count = self.slots.len();
        let place = |at: usize| if count == 0 { usize::MAX } else { at % count };
        match *op {
            Op::Begin(stream, mode) => self.begin(stream, mode),
            _ if count == 0 => {}
            Op::Split(at, forks) => self.split(place(at), forks),
            Op::Join(at, fork) => self.join(place(at), place(fork)),
            Op::Work(at, work) => self.work(place(at), work),
            Op::Branch(at, inside) => self.branch(place(at), inside),
            Op::OpenBody(at) => self.open_body(place(at)),
            Op::End(at) => self.end(place(at)),
            Op::Drop(at) => {
                let slot = self.slots.remove(place(at));
                if !matches!(slot.builder, Any::Fork(_)) {
                    self.close(slot.session);
                }
            }
            Op::Forget(at) => {
                let slot = self.slots.remove(place(at));
                self.shelf.push(slot.builder);
            }
            Op::Invalidate(at) => {
                let slot = &self.slots[place(at)];
                let stream = &slot.stream;
                if self.sessions[slot.session].is_open && !elsewhere(|| is_free(stream)) {
                    elsewhere(|| invalidate(stream));
                    self.sessions[slot.session].is_invalid = true;
                }
            }
            Op::Launch(at) => {
                let stream = self.slots[place(at)].stream.clone();
                if !elsewhere(|| is_free(&stream)) {
                    let refused = self.exec.launch(&stream).unwrap_err();
                    let capturing = refused == Error::Exec(ExecError::Captured);
                    assert!(capturing || !self.is_exact, "{refused}");
                }
            }
            Op::Discard(at) => {
                let slot = &self.slots[place(at)];
                let session = &mut self.sessions[slot.session];
                if session.is_open {
                    let discarded = slot.stream.discard_capture();
                    assert!(!self.is_exact || discarded == Ok(true), "{discarded:?}");
                    (session.is_open, session.is_discarded) = (false, true);
                }
            }
        }
    }

    fn begin(&mut self, stream: usize, mode: usize) {
        let builder = self.streams[stream].graph_builder();
        let is_taken = self.sessions.iter().any(|session| session.is_open && session.origin == Some(stream));
        let begun = match MODES.get(mode) {
            Some(mode) => builder.mode(*mode).begin().map(Any::Primary),
            None => builder.begin_on_any_thread().map(Any::Movable),
        };
        let expected = if is_taken { Expected::Fails } else { Expected::Works };
        let Some(builder) = self.expect("begin", begun, &expected) else { return };
        let session = self.sessions.len();
        self.sessions.push(Session { is_open: true, origin: Some(stream), ..Session::default() });
        let stream = self.streams[stream].clone();
        self.slots.push(Slot { builder, session, stream, past: BTreeSet::new() });
    }

    fn split(&mut self, at: usize, forks: usize) {
        let slot = &self.slots[at];
        let found = with!(&slot.builder, builder => builder.split_into(forks));
        let (session, past) = (slot.session, slot.past.clone());
        for fork in self.expect("split", found, &self.call(slot)).into_iter().flatten() {
            let stream = fork.stream().clone();
            self.seen.push(stream.clone());
            self.slots.push(Slot { builder: Any::Fork(fork), session, stream, past: past.clone() });
        }
    }

    fn join(&mut self, at: usize, fork: usize) {
        if at == fork || !matches!(self.slots[fork].builder, Any::Fork(_)) {
            return;
        }
        let Slot { builder: Any::Fork(fork_builder), session, past, .. } = self.slots.remove(fork) else {
            return;
        };
        let at = if fork < at { at - 1 } else { at };
        let slot = &self.slots[at];
        let expected = match self.call(slot) {
            Expected::Works | Expected::Fails if slot.session != session => {
                Expected::Refused(CaptureError::OtherCapture { kind: slot.kind() }.into())
            }
            expected => expected,
        };
        let found = with!(&slot.builder, builder => builder.join([fork_builder]));
        if self.expect("join", found, &expected).is_some() {
            self.slots[at].past.extend(past);
        }
    }

    fn work(&mut self, at: usize, work: Work) {
        let (slot, bench) = (&self.slots[at], &self.bench);
        let mut expected = self.call(slot);
        let mut makes = (1, 0);
        let found = with!(&slot.builder, builder => match work {
            Work::Launch => { makes.1 = 1; bench.add(builder, 1) }
            Work::LaunchOnStream => {
                if !self.sessions[slot.session].is_open { return }
                makes.1 = 2;
                bench.add.launch(builder.stream(), cuda_launch::per(1, 1), (2, &bench.numbers)).map_err(Error::from)
            }
            Work::Fill => builder.fill(&bench.others, 7),
            Work::Copy => builder.copy(bench.others.slice(..2).unwrap(), bench.others.slice(4..6).unwrap()),
            Work::Callback => {
                // A body holds no host function.
                let in_body = self.sessions[slot.session].parent.is_some();
                if in_body && matches!(expected, Expected::Works) { expected = Expected::Fails }
                builder.callback(|| ())
            }
            Work::Keep => {
                makes.0 = 0;
                // An invalid capture keeps it as well, until its end.
                if matches!(expected, Expected::Fails) { expected = Expected::Works }
                let (owner, is_gone) = flag();
                self.flags.push(Box::new(is_gone));
                builder.keep(owner)
            }
            Work::Temporary => {
                makes.0 = 2;
                builder.zeros::<u32>(2).and_then(|made| builder.copy(&made, bench.others.slice(..2).unwrap()))
            }
            Work::Wrong => {
                if matches!(expected, Expected::Works) { expected = Expected::Fails }
                builder.copy(bench.others.slice(..2).unwrap(), bench.others.slice(4..7).unwrap())
            }
        });
        if self.expect("work", found, &expected).is_some() {
            self.note(at, makes.0, makes.1);
        }
    }

    /// Notes nodes behind a builder, and what they add.
    fn note(&mut self, at: usize, nodes: usize, adds: u32) {
        let slot = &mut self.slots[at];
        let session = &mut self.sessions[slot.session];
        for _ in 0..nodes {
            slot.past.insert(session.nodes);
            session.nodes += 1;
        }
        session.adds += adds;
    }

    fn branch(&mut self, at: usize, inside: Inside) {
        let (slot, bench) = (&self.slots[at], &self.bench);
        let mut seen = Vec::new();
        let tried = catch_unwind(AssertUnwindSafe(|| {
            with!(&slot.builder, builder => {
                let always = builder.condition_with_default(1)?;
                builder.if_node(&always, |body| {
                    seen.push(body.stream().clone());
                    bench.add(body, 100)?;
                    match inside {
                        Inside::Works => Ok(()),
                        Inside::Fails => Err(Error::Capture(CaptureError::NotABody)),
                        Inside::Panics => panic!("on purpose"),
                        Inside::Invalidates => {
                            let stream = body.stream();
                            elsewhere(|| invalidate(stream));
                            Ok(())
                        }
                        Inside::Forks => {
                            let [fork] = body.split()?;
                            seen.push(fork.stream().clone());
                            bench.add(&fork, 1000)
                        }
                    }
                })
            })
        }));
        let call = self.call(slot);
        let is_over = matches!(call, Expected::Refused(_));
        let (session, root) = (slot.session, self.root_of(slot.session));
        self.seen.extend(seen);
        let expected = match (call, inside) {
            (over @ Expected::Refused(_), _) => over,
            (_, Inside::Fails) => Expected::Refused(Error::Capture(CaptureError::NotABody)),
            (_, Inside::Invalidates) => Expected::Invalid,
            (call, _) => call,
        };
        let Ok(found) = tried else {
            let panics = matches!(inside, Inside::Panics) && !is_over;
            assert!(panics || !self.is_exact, "a panic");
            self.sessions[root].has_spare = true;
            return;
        };
        match self.expect("branch", found, &expected) {
            Some(node) => {
                let adds = if matches!(inside, Inside::Forks) { 1100 } else { 100 };
                self.note(at, 1, adds);
                self.sessions[session].body = node.body().ok();
            }
            None if !is_over => self.sessions[root].has_spare = true,
            None => {}
        }
    }

    fn open_body(&mut self, at: usize) {
        let slot = &self.slots[at];
        let Some(body) = self.sessions[slot.session].body.clone() else { return };
        let found = with!(&slot.builder, builder => builder.capture_body(&body));
        let expected = match self.call(slot) {
            // The body itself is well.
            Expected::Fails => Expected::Works,
            expected => expected,
        };
        let parent = Some(slot.session);
        let Some(builder) = self.expect("body", found, &expected) else { return };
        let session = self.sessions.len();
        self.sessions.push(Session { is_open: true, parent, ..Session::default() });
        let stream = builder.stream().clone();
        self.seen.push(stream.clone());
        self.slots.push(Slot { builder: Any::Body(builder), session, stream, past: BTreeSet::new() });
    }

    fn end(&mut self, at: usize) {
        if matches!(self.slots[at].builder, Any::Fork(_)) {
            return;
        }
        let Slot { builder, session, past, .. } = self.slots.remove(at);
        let (kind, ended) = match builder {
            Any::Primary(builder) => ("primary", builder.end().map(GraphBuilder::into_graph)),
            Any::Movable(builder) => ("primary", builder.end().map(GraphBuilder::into_graph)),
            Any::Body(builder) => ("body", builder.end().map(GraphBuilder::into_graph)),
            Any::Fork(_) => return,
        };
        let open_bodies = self
            .sessions
            .iter()
            .filter(|inner| inner.parent == Some(session) && (inner.is_open || inner.is_discarded))
            .count();
        let Session { is_open, is_invalid, is_discarded, nodes, adds, .. } = self.sessions[session];
        let expected = match () {
            () if is_discarded => Expected::Refused(Error::Handles(HandleError::Discarded)),
            () if !is_open => Expected::Refused(CaptureError::Over { kind }.into()),
            () if is_invalid => Expected::Invalid,
            // With the number of forks.
            () if past.len() < nodes => Expected::Fails,
            () if open_bodies > 0 => {
                Expected::Refused(CaptureError::BodyOpen { kind, bodies: open_bodies }.into())
            }
            () => Expected::Works,
        };
        let root = self.root_of(session);
        let has_spare = self.sessions[root].has_spare;
        self.close(session);
        let Some(graph) = self.expect("end", ended, &expected) else { return };
        self.sessions[root].has_spare = has_spare;
        if let Some(parent) = self.sessions[session].parent {
            self.sessions[parent].adds += adds;
        } else if self.is_exact {
            self.runs(&graph, nodes, adds, has_spare);
        }
    }

    /// A captured graph has its nodes, and adds what they add.
    fn runs(&self, graph: &Graph, nodes: usize, adds: u32, has_spare: bool) {
        assert_eq!(graph.len().unwrap(), nodes);
        let stream = self.context.stream().unwrap();
        let numbers = &self.bench.numbers;
        let mut exec = match graph.instantiate() {
            Ok(exec) => exec,
            Err(Error::Condition(ConditionError::UnusedCondition { .. })) if has_spare => return,
            Err(error) => panic!("{error}"),
        };
        stream.fill(numbers, 0).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(numbers.read_blocking(&stream).unwrap()[0], adds);
    }

    /// No stream is left capturing, and all of them work.
    fn finish(mut self) {
        self.slots.clear();
        for stream in &self.seen {
            // Only captures of forgotten builders are open now.
            stream.discard_capture().unwrap();
        }
        assert!(self.seen.iter().all(is_free));
        drop((self.shelf, self.sessions, self.exec));
        self.seen.iter().for_each(works_again);
        drop((self.bench, self.streams, self.seen));
        let gone = until(SOON, || {
            settle();
            self.flags.iter().all(|is_gone| is_gone())
        });
        assert!(gone, "what was kept is let go");
    }
}

#[derive(Debug)]
enum Expected {
    Works,
    /// With whatever error.
    Fails,
    Refused(Error),
    /// A call has invalidated the capture.
    Invalid,
}

/// Calls on another thread, where no call fails on demand.
fn elsewhere<R: Send>(call: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(call).join()).unwrap()
}

/// Runs a sequence; with a number, that driver call fails.
fn check(context: &Context, ops: &[Op], failure: Option<u64>) {
    settle();
    let before = live();
    let mut world = World::new(context);
    world.is_exact = failure.is_none();
    let injection = failure.map(|nth| fail_any(nth, CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    ops.iter().for_each(|op| world.apply(op));
    let hit = injection.as_ref().and_then(|injection| injection.hit_call());
    drop(injection);
    world.finish();
    // An object whose destruction the driver refused stays.
    let may_stay = hit.is_some_and(|call| call.name().contains("Destroy"));
    let back = until(SOON, || {
        settle();
        // Owners of an executable of an earlier sequence may go some time after it.
        !live().is_more_than(&before) || may_stay
    });
    assert!(back, "left behind: {}; the failure: {hit:?}", live().since(&before));
}

#[test]
fn after_any_operations_no_stream_captures_and_every_stream_works() {
    let context = setup();
    needs!(Conditionals);
    let cases = if is_soft() { 400 } else { 60 };
    let failure = prop_oneof![Just(None), (1..120_u64).prop_map(Some)];
    proptest!(ProptestConfig::with_cases(cases), |(
        ops in prop::collection::vec(op(), 1..40),
        failure in failure,
    )| {
        check(&context, &ops, failure);
    });
}
