//! Ranges of elements, checked.

use core::ops::{Bound, Range, RangeBounds};

use crate::error::{Error, Result};

/// The part of `len` elements that `range` names.
pub(crate) fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok(start..end),
        (start, end) => {
            Err(Error::Bounds { start: start.unwrap_or(usize::MAX), end: end.unwrap_or(usize::MAX), len })
        }
    }
}

/// The bytes of `len` elements of type `T`.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize> {
    let size = size_of::<T>();
    // As for host memory: no object is larger than half the address space.
    len.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(Error::TooLarge { len, size })
}

/// An error unless both lengths, in elements, are equal.
pub(crate) fn same_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_range() {
        assert_eq!(resolve(.., 5), Ok(0..5));
        assert_eq!(resolve(2.., 5), Ok(2..5));
        assert_eq!(resolve(..=4, 5), Ok(0..5));
        assert_eq!(resolve(5..5, 5), Ok(5..5));
        assert_eq!(resolve((Bound::Excluded(1), Bound::Unbounded), 5), Ok(2..5));
    }

    #[test]
    fn outside_is_an_error() {
        let refused = [resolve(0..6, 5), resolve(6.., 5), resolve(..=usize::MAX, 5)];
        assert!(
            refused.iter().all(|range| matches!(range, Err(Error::Bounds { len: 5, .. }))),
            "{refused:?}"
        );
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = resolve(3..2, 5);
        assert_eq!(backwards, Err(Error::Bounds { start: 3, end: 2, len: 5 }));
    }

    #[test]
    fn sizes_do_not_wrap() {
        assert_eq!(bytes_of::<u64>(3), Ok(24));
        assert_eq!(bytes_of::<u64>(usize::MAX / 4), Err(Error::TooLarge { len: usize::MAX / 4, size: 8 }));
        assert_eq!(bytes_of::<()>(usize::MAX), Ok(0));
    }
}
