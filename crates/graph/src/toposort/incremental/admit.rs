//! Whether new edges fit the order, group by group.

use std::collections::HashMap;

use super::neighbours::{Edge, Index, Neighbours};
use super::plan::{Direction, Plan};
use super::search::Search;

/// How new edges change the order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They close no cycle. These nodes get new labels once the edges exist; none if all edges go
    /// along the order.
    Fits(Vec<(Index, u64)>),
    /// They close this cycle: each node has an edge to the next, and the last one to the first by
    /// one of the new edges.
    Cycle(Vec<Index>),
}

/// Decides about new edges, none of which leads from a node to itself.
pub(crate) fn admit<N: Neighbours>(graph: &mut N, edges: &[Edge]) -> Result<Verdict, N::Error> {
    if edges.iter().all(|&(from, to)| graph.label(from) < graph.label(to)) {
        return Ok(Verdict::Fits(Vec::new()));
    }
    let mut plan = Plan { graph, labels: HashMap::new(), added: HashMap::new() };
    let mut waiting = edges.to_vec();
    loop {
        // Edges along the order need no search. Moved nodes may have turned others along it.
        waiting.retain(|&edge| {
            let along = plan.is_along(edge);
            if along {
                plan.add(edge);
            }
            !along
        });
        if waiting.is_empty() {
            return Ok(Verdict::Fits(plan.labels.into_iter().collect()));
        }
        waiting.sort_unstable_by_key(|edge| plan.label(edge.1));
        let mut done = 0;
        while done < waiting.len() {
            let group = plan.first_group(&waiting[done..]);
            done += group.len();
            group.iter().for_each(|&edge| plan.add(edge));
            match plan.settle(group)? {
                Settled::Cycle(path) => return Ok(Verdict::Cycle(path)),
                Settled::Within => {}
                // The other groups may have changed.
                Settled::Beyond => break,
            }
        }
        waiting.drain(..done);
    }
}

/// The outcome for a group of edges.
enum Settled {
    /// Only nodes within the group's range of labels moved.
    Within,
    /// Nodes outside of it moved, too.
    Beyond,
    Cycle(Vec<Index>),
}

impl<N: Neighbours> Plan<'_, N> {
    /// Of edges against the order, sorted by the label of their ends: the first ones whose ranges
    /// of labels overlap.
    fn first_group<'e>(&self, edges: &'e [Edge]) -> &'e [Edge] {
        let Some(first) = edges.first() else { return edges };
        let mut high = self.label(first.0);
        let mut length = 0;
        for edge in edges {
            if self.label(edge.1) > high {
                break;
            }
            length += 1;
            high = high.max(self.label(edge.0));
        }
        &edges[..length]
    }

    /// Finds new labels for a group of edges, which are in the plan.
    fn settle(&mut self, group: &[Edge]) -> Result<Settled, N::Error> {
        let mut searches =
            [Direction::Backwards, Direction::Forwards].map(|direction| Search::new(self, direction, group));
        loop {
            for search in &mut searches {
                search.look(self)?;
                if !search.waiting.is_empty() {
                    continue;
                }
                match search.order() {
                    Err(cycle) => return Ok(Settled::Cycle(search.forwards(cycle, group))),
                    Ok(order) => {
                        if search.relabel(self, &order) {
                            let is_wider = search.is_wider;
                            return Ok(if is_wider { Settled::Beyond } else { Settled::Within });
                        }
                    }
                }
            }
        }
    }
}
