//! The driver's objects beside their models, and one step in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::Result;
use cuda_handles::capture::Scratch;
use cuda_handles::{Context, Stream};
use cuda_sys::{CUresult, CUstreamCaptureStatus};

use super::ends::{Capture, Exec};
use super::expected::{Fault, judged};
use super::model::{CELLS, Cell, Memory};
use super::ops::{Change, Number, Op, Order, Upset};
use super::order::Recorded;
use super::work::{Bench, Held};
use crate::driver::raw;
use crate::faults::inject::{Injection, fail_any_effect};
use crate::poll::{SOON, until};
use crate::promises::settle;
use crate::things::add_to;

const MAX_STREAMS: usize = 6;
const MAX_EVENTS: usize = 6;

pub(super) struct World<'c> {
    context: &'c Context,
    bench: Bench,
    /// In no capture. All work that is not captured goes on one after the other, by way of it.
    pub(super) runner: Stream,
    /// At least one.
    pub(super) streams: Vec<Stream>,
    pub(super) events: Vec<Recorded>,
    pub(super) captures: Vec<Capture>,
    pub(super) execs: Vec<Exec>,
    pub(super) held: Vec<Held>,
    pub(super) memory: Memory,
    /// The driver call of the next operation that fails, counted from 0.
    pub(super) failing: Option<u64>,
    /// The stream of the last launch of a graph that shares scratch memory.
    pub(super) last_in_line: Option<u64>,
    last_cell: Cell,
}

impl<'c> World<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        let runner = context.stream().expect("a stream");
        let bench = Bench {
            add: add_to::load(context).expect("a kernel"),
            buffer: runner.zeros(CELLS).expect("memory"),
            calls: Arc::new(AtomicU32::new(0)),
            scratch: Scratch::new(context),
        };
        let mut world = Self {
            context,
            bench,
            runner,
            streams: Vec::new(),
            events: Vec::new(),
            captures: Vec::new(),
            execs: Vec::new(),
            held: Vec::new(),
            memory: Memory::all(0),
            failing: None,
            last_in_line: None,
            last_cell: CELLS,
        };
        (0..3).for_each(|_| world.new_stream());
        (0..2).for_each(|_| world.new_event());
        world
    }

    fn new_stream(&mut self) {
        if self.streams.len() < MAX_STREAMS {
            self.streams.push(self.context.stream().expect("a stream"));
        }
    }

    fn new_event(&mut self) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(Recorded::never(self.context.event().expect("an event")));
        }
    }

    pub(super) fn stream(&self, number: Number) -> Stream {
        self.streams[usize::from(number) % self.streams.len()].clone()
    }

    /// A cell that nobody has.
    pub(super) fn next_cell(&mut self) -> Cell {
        self.last_cell += 1;
        self.last_cell
    }

    /// Makes a call of the library, in which a call of the driver may fail, and compares the
    /// outcome with the model's.
    #[track_caller]
    pub(super) fn call<T>(
        &mut self,
        fault: Option<Fault>,
        call: impl FnOnce(&Bench) -> Result<T>,
    ) -> Option<T> {
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let injection = self.failing.take().map(|nth| fail_any_effect(nth + 1, code));
        let outcome = call(&self.bench);
        let hit = injection.as_ref().and_then(Injection::hit_call);
        drop(injection);
        judged(outcome, fault, hit)
    }

    /// Orders work on a stream that does not capture behind all other such work.
    pub(super) fn order_before(&self, stream: &Stream) {
        stream.wait_for(&self.runner).expect("the wait is enqueued");
    }

    /// Orders all other such work behind that on the stream.
    pub(super) fn order_behind(&self, stream: &Stream) {
        self.runner.wait_for(stream).expect("the wait is enqueued");
    }

    pub(super) fn step(&mut self, op: Op) {
        match op {
            Op::Work { stream, work, elsewhere } => self.work(stream, work, elsewhere),
            Op::Order(Order::Record { stream, event }) => self.record(stream, event),
            Op::Order(Order::Wait { stream, event }) => self.wait(stream, event),
            Op::Order(Order::WaitFor { stream, other }) => self.wait_for(stream, other),
            Op::Begin { stream, mode, shares_scratch } => self.begin(stream, mode, shares_scratch),
            Op::End { capture, joins, elsewhere } => self.end(capture, joins, elsewhere),
            Op::Change(change) => self.change(change),
            Op::Upset(upset) => self.upset(upset),
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::NewStream => self.new_stream(),
            Change::DropStream { stream } => {
                if self.streams.len() > 1 {
                    let stream = usize::from(stream) % self.streams.len();
                    drop(self.streams.swap_remove(stream));
                }
            }
            Change::NewEvent => self.new_event(),
            Change::DropEvent { event } => self.drop_event(event),
            Change::Hold { stream, value } => self.hold(stream, value),
            Change::Use { held, stream, cell } => self.use_held(held, stream, cell),
            Change::DropHeld { held } => self.drop_held(held),
            Change::Launch { exec, stream } => self.launch(exec, stream),
            Change::DropExec { exec } => self.drop_exec(exec),
            Change::Reset { value } => {
                self.runner.fill(&self.bench.buffer, u32::from(value)).expect("a fill");
                self.memory.fill(value.into());
            }
            Change::Check => self.check_memory(),
        }
    }

    fn upset(&mut self, upset: Upset) {
        match upset {
            Upset::AskStream { stream, question } => self.ask_stream(stream, question),
            Upset::AskEvent { event, wait } => self.ask_event(event, wait),
            Upset::Invalidate { stream, by } => self.invalidate(stream, by),
            Upset::Discard { stream, elsewhere } => self.discard(stream, elsewhere),
            Upset::DropBuilder { capture } => self.drop_builder(capture),
            Upset::ForgetBuilder { capture } => self.forget_builder(capture),
            Upset::FailNext { nth } => self.failing = Some(u64::from(nth % 3)),
        }
    }

    /// Compares the state of every stream with the model's.
    pub(super) fn check_states(&self) {
        for stream in &self.streams {
            let capture = self.capture_of(stream).map(|capture| &self.captures[capture].model);
            assert_eq!(stream.capture_id().is_some(), capture.is_some(), "a stream in a capture");
            let expected = match capture {
                None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
                Some(model) if model.is_invalid => {
                    CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
                }
                Some(_) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
            };
            let mut found = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            // SAFETY: the stream lives and the out pointer is valid.
            raw::ok(unsafe { raw::driver().cuStreamIsCapturing(stream.as_raw(), &raw mut found) });
            assert_eq!(found, expected, "the driver's state of a stream");
        }
    }

    fn check_memory(&self) {
        let found = self.bench.buffer.read_blocking(&self.runner).expect("the memory is read");
        self.memory.check(&found);
        assert_eq!(self.bench.calls.load(Ordering::Relaxed), self.memory.calls, "host functions");
    }

    /// No stream is left capturing, all executables run, and what host functions owned is let go.
    pub(super) fn finish(mut self) {
        self.drop_captures();
        self.check_states();
        self.launch_all();
        self.check_memory();
        let calls = Arc::clone(&self.bench.calls);
        drop(self);
        let is_gone = until(SOON, || {
            settle();
            Arc::strong_count(&calls) == 1
        });
        assert!(is_gone, "a host function stays");
    }
}
