//! The records of a capture that is over, for reading.

use core::fmt;
use std::collections::HashSet;

use super::book::{Book, Declared, Entry, Tag, UNKNOWN};
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

    /// All owners: of the records, and of the capture as a whole. Some come more than once.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.0.owners.iter().chain(&self.0.kept)
    }

    /// All owners, each once: of the records, and of the capture as a whole.
    #[must_use]
    #[allow(clippy::mutable_key_type)] // Owners are equal by what they lead to, which stays.
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
    /// that may have padding, such as a struct. For a batch, the bytes of the address of each
    /// operation, 0 for those that have none.
    pub fn arguments(&self) -> impl Iterator<Item = Option<&'r [u8]>> {
        let start = self.before.map_or(0, |entry| entry.bytes_end);
        let mut rest = self.book.bytes.get(start..self.entry.bytes_end).unwrap_or_default();
        core::iter::from_fn(move || {
            let (header, behind) = rest.split_first_chunk()?;
            let len = match u16::from_le_bytes(*header) {
                UNKNOWN => None,
                len => Some(usize::from(len)),
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

    /// The declaration of the kernel, if it has one.
    #[doc(hidden)]
    #[must_use]
    pub fn declared(&self) -> Option<Declared> {
        let declared = &self.book.declared;
        let place = declared.binary_search_by_key(&self.index, |(record, _)| *record).ok()?;
        declared.get(place).map(|(_, declared)| *declared)
    }

    /// The value that goes with the call, if it has one.
    #[doc(hidden)]
    #[must_use]
    pub fn tag(&self) -> Option<&'r Tag> {
        let tags = &self.book.tags;
        let place = tags.binary_search_by_key(&self.index, |(record, _)| *record).ok()?;
        tags.get(place).map(|(_, tag)| tag)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::capture::Recorder;

    fn write(book: &mut Book, first: u64, give: impl FnOnce(&mut Recorder<'_>)) -> usize {
        let before = book.begin_record();
        give(&mut Recorder { book });
        book.end_record(Work::Batch { first, count: 1 });
        before
    }

    type Listed = (Work, Vec<Option<Vec<u8>>>, usize, Vec<u64>);

    fn listed(records: &Records) -> Vec<Listed> {
        let each = |record: Record<'_>| {
            let arguments = record.arguments().map(|bytes| bytes.map(<[u8]>::to_vec)).collect();
            (record.work(), arguments, record.owners().count(), record.handles().to_vec())
        };
        records.iter().map(each).collect()
    }

    #[test]
    fn a_record_that_is_taken_back_leaves_nothing_and_the_others_as_they_were() {
        let (mut book, shared, single) = (Book::default(), Owner::other(1), Owner::other(2));
        write(&mut book, 1, |record| {
            record.owner(shared.clone());
            record.argument(Some(&[1; 4]));
            record.argument(None);
            record.argument(Some(&[2; 100]));
            record.handles([7, 8]);
        });
        let before = write(&mut book, 2, |record| {
            record.owner(shared.clone());
            record.owner(single.clone());
            record.argument(Some(&[3; 8]));
            record.handles([9]);
            record.tag(Arc::new(3_u8));
        });
        let taken = book.take_back(before);
        assert_eq!((taken.len(), &taken[0]), (2, &single));
        write(&mut book, 3, |_| ());
        write(&mut book, 4, |record| {
            record.owner(single.clone());
            record.argument(Some(&[]));
            record.handles([10]);
            record.tag(Arc::new(4_u8));
        });
        let records = Records::new(book, vec![shared.clone()]);
        let work = |first| Work::Batch { first, count: 1 };
        let first = vec![Some(vec![1; 4]), None, Some(vec![2; 100])];
        let expected = [
            (work(1), first, 1, vec![7, 8]),
            (work(3), vec![], 0, vec![]),
            (work(4), vec![Some(vec![])], 1, vec![10]),
        ];
        assert_eq!(listed(&records), expected);
        let tags = records.iter().map(|record| record.tag()?.downcast_ref::<u8>().copied());
        assert_eq!(tags.collect::<Vec<_>>(), [None, None, Some(4)]);
        assert_eq!(records.kept(), std::slice::from_ref(&shared));
        assert_eq!(records.into_owners(), [shared, single]);
    }

    #[test]
    fn records_can_change_threads() {
        fn send<T: Send + Sync>() {}
        send::<Records>();
        send::<Record<'static>>();
    }
}
