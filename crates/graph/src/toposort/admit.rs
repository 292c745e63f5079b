//! Whether new edges fit, group by group.

use std::collections::HashMap;

use super::plan::{Plan, Way};
use super::side::Side;
use super::view::{Index, Neighbours, Pair};

/// What new edges mean for the order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They close no cycle. These nodes get new labels once the edges are there; none if all edges
    /// go along the order.
    Fits(Vec<(Index, u64)>),
    /// They close this cycle: each node has an edge to the next, and the last one to the first by
    /// one of the new edges.
    Cycle(Vec<Index>),
}

/// What edges mean for the order, none of them from a node to itself.
pub(crate) fn admit<N: Neighbours>(graph: &mut N, edges: &[Pair]) -> Result<Verdict, N::Error> {
    if edges.iter().all(|&(from, to)| graph.label(from) < graph.label(to)) {
        return Ok(Verdict::Fits(Vec::new()));
    }
    let mut plan = Plan { graph, labels: HashMap::new(), added: HashMap::new() };
    let mut waiting = edges.to_vec();
    loop {
        // Those along the order, perhaps since others were moved.
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

/// What became of a group of edges.
enum Settled {
    /// Nodes of the group's range alone have new labels.
    Within,
    /// Others had to give way.
    Beyond,
    Cycle(Vec<Index>),
}

impl<N: Neighbours> Plan<'_, N> {
    /// Of edges against the order, sorted by the label of their ends: the first ones whose ranges
    /// of labels hang together.
    fn first_group<'e>(&self, edges: &'e [Pair]) -> &'e [Pair] {
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

    /// Gives new labels for a group of edges, which are added.
    fn settle(&mut self, group: &[Pair]) -> Result<Settled, N::Error> {
        let mut sides = [Way::Backwards, Way::Forwards].map(|way| Side::new(self, way, group));
        loop {
            for side in &mut sides {
                side.look(self)?;
                if !side.waiting.is_empty() {
                    continue;
                }
                match side.order() {
                    Err(cycle) => return Ok(Settled::Cycle(side.told(cycle, group))),
                    Ok(order) => {
                        if side.place(self, &order) {
                            return Ok(if side.is_wider { Settled::Beyond } else { Settled::Within });
                        }
                    }
                }
            }
        }
    }
}
