//! Work on streams, captured or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{NodeKind, Result};
use cuda_handles::capture::Scratch;
use cuda_handles::{Buffer, Slice, Stream};
use cuda_launch::per;

use super::expected::Fault;
use super::model::{Cell, Step, cell, ends, steps};
use super::ops::{NewWork, Number, Question};
use super::world::World;
use crate::things::add_to;

/// What work uses.
pub(super) struct Bench {
    pub(super) add: add_to,
    pub(super) buffer: Buffer<u32>,
    /// The sum of what host functions have added.
    pub(super) calls: Arc<AtomicU32>,
    pub(super) scratch: Scratch,
}

/// A buffer that was allocated in a capture.
pub(super) struct Held {
    buffer: Buffer<u32>,
    capture: usize,
    cell: Cell,
}

impl Bench {
    pub(super) fn cell(&self, cell: Cell) -> Slice<'_, u32> {
        self.buffer.slice(cell..=cell).expect("a cell")
    }

    fn enqueue(&self, stream: &Stream, work: NewWork) -> Result<()> {
        match work {
            NewWork::Add { cell: to, amount } => {
                self.add.launch(stream, per(1, 1), (u32::from(amount), self.cell(cell(to))))?;
            }
            NewWork::Fill { cell: to, value } => stream.fill(self.cell(cell(to)), u32::from(value))?,
            NewWork::Copy { from, to } => {
                let (from, to) = ends(from, to);
                stream.copy(self.cell(from), self.cell(to))?;
            }
            NewWork::Host { amount } => {
                let calls = Arc::clone(&self.calls);
                stream.host(move || {
                    calls.fetch_add(amount.into(), Ordering::Relaxed);
                })?;
            }
            NewWork::Temporary { value, cell: to } => {
                let made = stream.upload(&[u32::from(value)])?;
                stream.copy(&made, self.cell(cell(to)))?;
            }
            NewWork::Nothing => {
                let none = self.buffer.slice(..0).expect("no cells");
                stream.copy(none, none)?;
            }
            NewWork::Wrong => {
                let part = |len: usize| self.buffer.slice(..len).expect("cells");
                stream.copy(part(1), part(2))?;
            }
        }
        Ok(())
    }

    fn ask(&self, stream: &Stream, question: Question) -> Result<()> {
        match question {
            Question::Query => drop(stream.query()?),
            Question::Synchronize => stream.synchronize_blocking()?,
            Question::Read => drop(self.cell(0).read_blocking(stream)?),
            Question::Upload => drop(stream.upload_blocking(&[0_u32])?),
            Question::SynchronizeContext => stream.context().synchronize_blocking()?,
        }
        Ok(())
    }
}

/// Makes a call, perhaps on another thread.
pub(super) fn maybe_elsewhere<R: Send>(elsewhere: bool, call: impl FnOnce() -> R + Send) -> R {
    if !elsewhere {
        return call();
    }
    std::thread::scope(|scope| scope.spawn(call).join()).expect("no panic")
}

impl World<'_> {
    pub(super) fn work(&mut self, stream: Number, work: NewWork, elsewhere: bool) {
        let stream = self.stream(stream);
        let capture = self.capture_of(&stream);
        let fault = self.fault_of_call(capture).or(matches!(work, NewWork::Wrong).then_some(Fault::Any));
        // An invalid capture does not hear of a call without effect.
        let fault = fault.filter(|_| !matches!(work, NewWork::Nothing));
        let steps = steps(work, self.next_cell());
        if capture.is_none() {
            self.order_before(&stream);
        }
        let call = |bench: &Bench| maybe_elsewhere(elsewhere, || bench.enqueue(&stream, work));
        let is_done = self.call(fault, call).is_some();
        match capture {
            Some(capture) if is_done => self.captures[capture].model.note(stream.id(), steps),
            Some(_) => {}
            None => {
                self.order_behind(&stream);
                if is_done {
                    steps.into_iter().for_each(|(step, _)| self.memory.step(step));
                    self.memory.forget_temporaries();
                }
            }
        }
    }

    pub(super) fn hold(&mut self, stream: Number, value: u8) {
        const MAX_HELD: usize = 6;
        let stream = self.stream(stream);
        let Some(capture) = self.capture_of(&stream).filter(|_| self.held.len() < MAX_HELD) else { return };
        let fault = self.fault_of_call(Some(capture));
        let Some(buffer) = self.call(fault, |_| Ok(stream.upload(&[u32::from(value)])?)) else { return };
        let cell = self.next_cell();
        let step = Step::Set { cell, value: value.into() };
        self.captures[capture].model.note(stream.id(), [(step, NodeKind::Memcpy)]);
        self.held.push(Held { buffer, capture, cell });
    }

    pub(super) fn use_held(&mut self, held: Number, stream: Number, to: Number) {
        let Some(held) = usize::from(held).checked_rem(self.held.len()) else { return };
        let stream = self.stream(stream);
        let Held { buffer, capture, cell: from } = &self.held[held];
        let (buffer, capture, from) = (buffer.clone(), *capture, *from);
        if self.capture_of(&stream) != Some(capture) {
            return;
        }
        let (fault, to) = (self.fault_of_call(Some(capture)), cell(to));
        if self.call(fault, |bench| Ok(stream.copy(&buffer, bench.cell(to))?)).is_some() {
            let step = (Step::Copy { from, to }, NodeKind::Memcpy);
            self.captures[capture].model.note(stream.id(), [step]);
        }
    }

    pub(super) fn drop_held(&mut self, held: Number) {
        if let Some(held) = usize::from(held).checked_rem(self.held.len()) {
            drop(self.held.swap_remove(held));
        }
    }

    /// Makes a call that a capture refuses and survives.
    pub(super) fn ask_stream(&mut self, stream: Number, question: Question) {
        let stream = self.stream(stream);
        let is_refused = match question {
            Question::SynchronizeContext => self.captures.iter().any(|capture| capture.is_open),
            _ => self.capture_of(&stream).is_some(),
        };
        let fault = is_refused.then_some(Fault::Capturing);
        self.call(fault, |bench| bench.ask(&stream, question));
    }
}
