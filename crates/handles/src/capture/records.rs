//! The records of a capture that is over, for reading.

use core::fmt;
use std::collections::HashSet;

use super::book::{Book, Entry, UNKNOWN};
use crate::graph::Owner;
use crate::stream::Work;

/// A record for each call of this library that a capture has captured, in the order of the nodes,
/// and the owners of all that the nodes use.
#[derive(Default)]
pub struct Records(Book);

impl Records {
    /// The records of a book, with more owners of the whole capture.
    pub(super) fn new(mut book: Book, kept: Vec<Owner>) -> Self {
        book.kept.extend(kept);
        Self(book)
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are none. There may be owners all the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// The records, in the order of their nodes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        let book = &self.0;
        let before = |index: usize| book.entries.get(index.checked_sub(1)?);
        let record = move |(index, entry)| Record { book, index, entry, before: before(index) };
        book.entries.iter().enumerate().map(record)
    }

    /// The owners that were given to the capture as a whole, by
    /// [`ActiveCapture::keep`](super::ActiveCapture::keep) and
    /// [`Enqueue::keep`](super::Enqueue::keep).
    #[must_use]
    pub fn kept(&self) -> &[Owner] {
        &self.0.kept
    }

    /// All owners, each once: of the records, and of the capture as a whole.
    #[must_use]
    pub fn into_owners(self) -> Vec<Owner> {
        let Book { mut owners, kept, .. } = self.0;
        owners.extend(kept);
        let mut seen = HashSet::with_capacity(owners.len());
        let is_first: Vec<bool> = owners.iter().map(|owner| seen.insert(owner)).collect();
        drop(seen);
        owners.into_iter().zip(is_first).filter_map(|(owner, is_first)| is_first.then_some(owner)).collect()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// The record of one captured call.
#[derive(Clone, Copy)]
pub struct Record<'r> {
    book: &'r Book,
    index: usize,
    entry: &'r Entry,
    /// The record at whose ends this one starts.
    before: Option<&'r Entry>,
}

impl<'r> Record<'r> {
    /// The work that the call asked for.
    #[must_use]
    pub fn work(&self) -> Work {
        self.entry.work
    }

    /// For a kernel, the bytes of each argument as the kernel gets them; `None` for an argument
    /// that may have padding, such as a struct.
    pub fn arguments(&self) -> impl Iterator<Item = Option<&'r [u8]>> {
        let start = self.before.map_or(0, |entry| entry.bytes_end);
        let mut rest = self.book.bytes.get(start..self.entry.bytes_end).unwrap_or_default();
        core::iter::from_fn(move || {
            let (header, behind) = rest.split_first_chunk()?;
            let len = match u32::from_ne_bytes(*header) {
                UNKNOWN => None,
                len => Some(len as usize),
            };
            let (bytes, behind) = behind.split_at_checked(len.unwrap_or(0))?;
            rest = behind;
            Some(len.map(|_| bytes))
        })
    }

    /// The owners of what the call uses.
    pub fn owners(&self) -> impl Iterator<Item = &'r Owner> {
        let start = self.before.map_or(0, |entry| entry.uses_end);
        let uses = self.book.uses.get(start..self.entry.uses_end).unwrap_or_default();
        let owners = &self.book.owners;
        uses.iter().filter_map(|&index| owners.get(index as usize))
    }

    /// The handles of conditions among the arguments of a kernel, in their order.
    #[must_use]
    pub fn handles(&self) -> &'r [u64] {
        let ends = &self.book.handle_ends;
        let Ok(place) = ends.binary_search_by_key(&self.index, |(record, _)| *record) else { return &[] };
        let end_of = |place: usize| ends.get(place).map_or(0, |(_, end)| *end);
        let start = place.checked_sub(1).map_or(0, end_of);
        self.book.handles.get(start..end_of(place)).unwrap_or_default()
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Record")
            .field("work", &self.work())
            .field("arguments", &self.arguments().count())
            .field("owners", &self.owners().count())
            .finish()
    }
}
