//! The log of an open capture: its book, and the lock of the book.

use super::book::Book;
use crate::context::{Busy, Context, unless_inside};
use crate::error::Result;
use crate::graph::Owner;
use crate::sync::{Rank, SpinGuard, SpinLock, process};

/// The log of a capture, which each of its streams leads to.
#[derive(Debug)]
pub(super) struct Log(SpinLock<Book>);

impl Log {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(Rank::CaptureRecords, Book::default()))
    }

    pub(super) fn into_book(self) -> Book {
        self.0.into_inner()
    }

    /// Lets the capture as a whole own something.
    pub(super) fn keep(&self, context: &Context, owner: Owner) -> Result<()> {
        process::ensure_not_forked()?;
        self.lock(context)?.kept.push(owner);
        Ok(())
    }

    /// The book, once no other call of the capture is being made.
    #[inline]
    pub(super) fn lock(&self, context: &Context) -> Result<SpinGuard<'_, Book>> {
        match self.0.try_lock() {
            Some(book) => Ok(book),
            None => self.lock_later(context),
        }
    }

    #[cold]
    fn lock_later(&self, context: &Context) -> Result<SpinGuard<'_, Book>> {
        unless_inside(context, || Busy::called("a capture"), || self.0.try_lock())
    }
}
