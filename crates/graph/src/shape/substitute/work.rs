//! Fills and copies, and whether the host submits them.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, CopyLayout, CopySide, FillLayout, MemorySpace};

use crate::shape::planning::drawn::HostSubmittedKind;
use crate::shape::substitute::memory::{Place, place_of};
use crate::state::params::NodeParams;

/// A fill or a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryWork {
    Fill(FillLayout),
    Copy(CopyLayout),
}

/// The driver makes kernels of fills from so many bytes on (seen on driver 580).
const FILLS_OF_DEVICE: usize = 8 << 10;

/// Up to so many bytes, a kernel that moves 16 at a time copied faster between pinned and device
/// memory than a copy engine (seen on an H200).
const MOST_COPIED: usize = 4 << 20;

impl MemoryWork {
    /// The fill or copy of a node.
    pub(crate) fn of(params: &NodeParams) -> Option<Self> {
        match params {
            NodeParams::Memset(layout) => Some(Self::Fill(*layout)),
            NodeParams::Memcpy(layout) => Some(Self::Copy(*layout)),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> HostSubmittedKind {
        match self {
            Self::Fill(_) => HostSubmittedKind::Fill,
            Self::Copy(_) => HostSubmittedKind::Copy,
        }
    }

    /// Where the memory lies, which one of some allocations holds: that of a fill, or source and
    /// destination of a copy. `None` where kernels are not certain to reach it.
    pub(super) fn places(&self, context: &Context, memory: &[&Arc<Allocation>]) -> [Option<Place>; 2] {
        match self {
            Self::Fill(fill) => {
                let row = fill.width.checked_mul(usize::from(fill.element));
                let rows = fill.height.saturating_sub(1).checked_mul(fill.pitch);
                let reach = rows.zip(row).and_then(|(rows, row)| rows.checked_add(row));
                [place_of(context, memory, fill.address, reach), None]
            }
            Self::Copy(copy) => [&copy.source, &copy.destination].map(|side| {
                let reach = copy.reach("a side of a copy", side).ok()?;
                place_of(context, memory, side.address, reach)
            }),
        }
    }

    /// Where the memory lies that it writes; `None` where kernels are not certain to reach it.
    pub(crate) fn written(&self, context: &Context, memory: &[&Arc<Allocation>]) -> Option<Place> {
        let [first, second] = self.places(context, memory);
        match self {
            Self::Fill(_) => first,
            Self::Copy(_) => second,
        }
    }

    /// Whether the host submits it at every launch, given its [places](Self::places).
    pub(super) fn is_submitted_by_host(&self, places: [Option<Place>; 2]) -> bool {
        match self {
            Self::Fill(fill) => fill.bytes() < FILLS_OF_DEVICE,
            Self::Copy(copy) => {
                let sides = [&copy.source, &copy.destination].into_iter().zip(places);
                sides.into_iter().any(|(side, place)| is_on_host(side, place))
            }
        }
    }

    /// Whether a kernel does it no faster.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Self::Fill(_) => false,
            Self::Copy(copy) => copy.bytes() > MOST_COPIED / 16 * unit(copy) as usize,
        }
    }
}

fn is_on_host(side: &CopySide, place: Option<Place>) -> bool {
    match place {
        Some(place) => place == Place::Pinned,
        None => matches!(side.space, MemorySpace::Pinned | MemorySpace::Pageable | MemorySpace::Managed),
    }
}

/// The largest unit of at most 16 bytes in which rows that stand for each other begin at the same
/// place, so that a kernel moves as many bytes at a time.
pub(super) fn unit(copy: &CopyLayout) -> u64 {
    let [source, destination] = [&copy.source, &copy.destination];
    let apart = destination.address.wrapping_sub(source.address)
        | destination.pitch.wrapping_sub(source.pitch) as u64
        | layer(destination).wrapping_sub(layer(source));
    1 << (apart | 16).trailing_zeros()
}

/// Bytes from one layer to the next.
pub(super) fn layer(side: &CopySide) -> u64 {
    side.pitch.wrapping_mul(side.rows) as u64
}
