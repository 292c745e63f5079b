//! Calls that a stream captures: each with a record, made one at a time.
//!
//! The book of a capture is locked from before the record is written until the driver has answered,
//! so the order of the records is the order of the nodes. A call that the driver refuses takes its
//! record back.

use std::sync::Arc;

use cuda_sys::{CUresult, Call};

use super::book::{Book, Recorder, Tag};
use super::enqueue::Enqueue;
use crate::error::{Cause, Result};
use crate::memory::Allocation;
use crate::stream::{Work, open_captures};
use crate::sync::SpinGuard;

/// The record of a call, which is taken back unless the call succeeds.
struct Recorded<'l> {
    /// `None` once it is decided.
    book: Option<SpinGuard<'l, Book>>,
    /// The number of records before it.
    before: usize,
}

impl<'l> Recorded<'l> {
    #[inline(always)]
    fn write(mut book: SpinGuard<'l, Book>, work: Work, give: impl FnOnce(&mut Recorder<'_>)) -> Self {
        let before = book.begin_record();
        // Made first, in case `give` panics.
        let mut recorded = Self { book: Some(book), before };
        if let Some(book) = &mut recorded.book {
            give(&mut Recorder { book });
            book.end_record(work);
        }
        recorded
    }

    /// Keeps the record.
    #[inline(always)]
    fn done(mut self) {
        drop(self.book.take());
    }
}

impl Drop for Recorded<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(mut book) = self.book.take() {
            let owners = book.take_back(self.before);
            drop(book);
            drop(owners);
        }
    }
}

impl Enqueue<'_> {
    /// Makes a driver call that is captured, on a stream for which
    /// [`is_captured`](Self::is_captured) is true, and checks its answer. `give` writes what the
    /// call uses, and `call` makes it; neither makes other calls of this library. For the crates
    /// above this one.
    ///
    /// Calls of one capture are made one at a time. If other code began the capture, each owner
    /// becomes a user object of its graph, as for [`keep`](Self::keep).
    ///
    /// # Errors
    /// The driver refuses the call; inside a host function, another thread is making a call of the
    /// capture (`NOT_PERMITTED`), and elsewhere it makes one all the time
    /// ([`Busy`](crate::Error::Busy)).
    #[doc(hidden)]
    #[inline]
    pub fn captured_call(
        &self,
        work: Work,
        give: impl FnOnce(&mut Recorder<'_>),
        call: impl FnOnce() -> (Call, CUresult),
    ) -> Result<()> {
        let context = self.stream().context();
        let Some(log) = self.log() else {
            self.keep_foreign_record(work, give)?;
            let (call, code) = call();
            return context.check(call, code);
        };
        let recorded = Recorded::write(log.lock(context)?, work, give);
        let (call, code) = call();
        if code.is_success() {
            recorded.done();
            return Ok(());
        }
        open_captures::note_fault(self.stream().capture_id().unwrap_or(0), Cause { call, code });
        drop(recorded);
        context.check(call, code)
    }

    /// As [`captured_call`](Self::captured_call), for a call that uses memory, perhaps with a tag.
    // Not inlined: beside a record, callers would run out of registers for the call of a stream
    // that does not capture.
    #[inline(never)]
    pub(crate) fn captured_use<const N: usize>(
        self,
        memory: [&Arc<Allocation>; N],
        work: Work,
        tag: Option<Tag>,
        call: impl FnOnce() -> (Call, CUresult),
    ) -> Result<()> {
        let give = |record: &mut Recorder<'_>| {
            memory.into_iter().for_each(|one| record.allocation(one));
            if let Some(tag) = tag {
                record.tag(tag);
            }
        };
        self.captured_call(work, give, call)
    }

    #[cold]
    fn keep_foreign_record(&self, work: Work, give: impl FnOnce(&mut Recorder<'_>)) -> Result<()> {
        let mut book = Book::default();
        give(&mut Recorder { book: &mut book });
        book.end_record(work);
        book.owners.into_iter().try_for_each(|owner| self.keep_foreign(owner))
    }
}
