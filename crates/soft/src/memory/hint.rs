//! Hints about managed memory: who reads it, and where it should be. They can be asked for, and
//! have no other effect.

use std::ops::Range;

use cuda_sys::CUmemLocationType as PlaceKind;

/// A device, or memory of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: PlaceKind,
    pub(crate) id: i32,
}

impl Place {
    /// The number by which older attributes know a place: that of the device, or -1 for the host.
    pub(crate) fn number(self) -> i32 {
        if self.kind == PlaceKind::CU_MEM_LOCATION_TYPE_DEVICE { self.id } else { -1 }
    }
}

/// What a call says of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    ReadMostly(bool),
    Preferred(Option<Place>),
    AccessedBy(Place, bool),
    Prefetched(Place),
}

impl Hint {
    /// Whether it speaks of the same thing, so that the later one counts.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AccessedBy(one, _), Self::AccessedBy(two, _)) => one.number() == two.number(),
            _ => core::mem::discriminant(self) == core::mem::discriminant(other),
        }
    }
}

/// The hints about an allocation, in the order given.
#[derive(Debug, Default)]
pub(crate) struct Hints(Vec<(Range<u64>, Hint)>);

impl Hints {
    /// Notes a hint. Those that it covers are forgotten.
    pub(crate) fn give(&mut self, range: Range<u64>, hint: Hint) {
        let covers = |old: &Range<u64>| range.start <= old.start && old.end <= range.end;
        self.0.retain(|(old, known)| !(covers(old) && known.is_like(&hint)));
        self.0.push((range, hint));
    }

    /// What `read` finds for all bytes of the range; `None` if it is not the same for all.
    fn agreed<T: PartialEq + Copy>(
        &self,
        range: &Range<u64>,
        without: T,
        read: impl Fn(&Hint) -> Option<T>,
    ) -> Option<T> {
        let at = |address: u64| {
            let here = self.0.iter().rev().filter(|(of, _)| of.contains(&address));
            here.filter_map(|(_, hint)| read(hint)).next().unwrap_or(without)
        };
        let borders = self.0.iter().flat_map(|(of, _)| [of.start, of.end]);
        let first = at(range.start);
        borders.filter(|border| range.contains(border)).all(|border| at(border) == first).then_some(first)
    }

    pub(crate) fn is_read_mostly(&self, range: &Range<u64>) -> bool {
        let read = |hint: &Hint| if let Hint::ReadMostly(is) = hint { Some(*is) } else { None };
        self.agreed(range, false, read) == Some(true)
    }

    pub(crate) fn is_accessed_by(&self, range: &Range<u64>, number: i32) -> bool {
        let read = |hint: &Hint| match hint {
            Hint::AccessedBy(place, is) if place.number() == number => Some(*is),
            _ => None,
        };
        self.agreed(range, false, read) == Some(true)
    }

    pub(crate) fn preferred(&self, range: &Range<u64>) -> Option<Place> {
        let read = |hint: &Hint| if let Hint::Preferred(place) = hint { Some(*place) } else { None };
        self.agreed(range, None, read).flatten()
    }

    pub(crate) fn prefetched(&self, range: &Range<u64>) -> Option<Place> {
        let read = |hint: &Hint| if let Hint::Prefetched(place) = hint { Some(Some(*place)) } else { None };
        self.agreed(range, None, read).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Place = Place { kind: PlaceKind::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    const HOST: Place = Place { kind: PlaceKind::CU_MEM_LOCATION_TYPE_HOST, id: 0 };

    #[test]
    fn a_range_has_what_all_its_bytes_have() {
        let mut hints = Hints::default();
        assert_eq!(hints.preferred(&(0..100)), None);
        hints.give(0..100, Hint::Preferred(Some(DEVICE)));
        hints.give(40..60, Hint::Preferred(Some(HOST)));
        assert_eq!(hints.preferred(&(0..40)), Some(DEVICE));
        assert_eq!(hints.preferred(&(40..60)), Some(HOST));
        assert_eq!(hints.preferred(&(0..41)), None);
        assert_eq!(hints.preferred(&(59..100)), None);
        hints.give(0..100, Hint::Preferred(Some(HOST)));
        assert_eq!(hints.preferred(&(0..100)), Some(HOST));
        hints.give(0..100, Hint::Preferred(None));
        assert_eq!(hints.preferred(&(0..100)), None);
        assert_eq!(hints.0.len(), 1, "covered hints are forgotten");
    }

    #[test]
    fn kinds_of_hints_are_apart() {
        let mut hints = Hints::default();
        hints.give(0..100, Hint::ReadMostly(true));
        hints.give(0..50, Hint::AccessedBy(DEVICE, true));
        hints.give(0..100, Hint::AccessedBy(HOST, true));
        hints.give(0..100, Hint::Prefetched(HOST));
        assert!(hints.is_read_mostly(&(10..90)));
        assert!(hints.is_accessed_by(&(10..50), 0) && !hints.is_accessed_by(&(10..51), 0));
        assert!(hints.is_accessed_by(&(0..100), -1) && !hints.is_accessed_by(&(0..100), 1));
        assert_eq!((hints.prefetched(&(0..100)), hints.preferred(&(0..100))), (Some(HOST), None));
    }
}
