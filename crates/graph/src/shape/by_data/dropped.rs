//! The drawn edges that no access needs, and why.

use super::ByData;
use super::parts::Part;
use crate::footprint::Footprint;
use crate::shape::planning::drawn::Drawn;

/// Why an edge is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum WhyDropped {
    /// The two nodes touch no byte in common.
    NothingShared,
    /// Both nodes only read what they share.
    OnlyRead,
    /// One of the nodes is empty, or stands for a whole child graph, and only passed order on: the
    /// nodes before it and behind it are ordered by their own accesses.
    PassedOn,
}

/// The dropped edges, by the numbers of their nodes.
pub(in crate::shape) fn dropped(
    drawn: &Drawn,
    footprints: &[Footprint],
    by_data: &ByData,
) -> Vec<(u32, u32, WhyDropped)> {
    let full = drawn.edges.iter().filter(|edge| edge.is_full);
    let why = |from: u32, to: u32| {
        match (by_data.parts.of_node(from), by_data.parts.of_node(to)) {
            (Part::Passes, _) | (_, Part::Passes) => return Some(WhyDropped::PassedOn),
            (Part::Opaque, _) | (_, Part::Opaque) => return None,
            (Part::Transparent, Part::Transparent) => {}
        }
        let touches = |node: u32| footprints[node as usize].touches();
        let (from, to) = (touches(from)?, touches(to)?);
        let mut shared = from.iter().flat_map(|one| to.iter().map(move |two| (one, two)));
        if shared.clone().any(|(one, two)| one.conflicts(two)) {
            return None;
        }
        let shares = shared.any(|(one, two)| one.shares(two));
        Some(if shares { WhyDropped::OnlyRead } else { WhyDropped::NothingShared })
    };
    full.filter_map(|edge| Some((edge.from, edge.to, why(edge.from, edge.to)?))).collect()
}

impl core::fmt::Display for WhyDropped {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::NothingShared => "no byte in common",
            Self::OnlyRead => "both only read what they share",
            Self::PassedOn => "only passed order on",
        })
    }
}
