//! The memory-order rule: graph memory that is never freed, or used outside of its lifetime.

use std::collections::HashMap;

use super::model::{Lifetimes, MissingOrder, Model};
use super::namer::Namer;
use super::order::NodeOrder;
use super::reachability::Budget;
use super::report::Finding;
use crate::error::Result;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

impl Lifetimes {
    /// The facts for the model of the locked graph. A disorder between a node inside and one
    /// outside of it is left to a check of the outer graph.
    pub(super) fn of(guard: &mut GraphGuard<'_>, model: &Model) -> Result<Self> {
        let mut lifetimes = Self::default();
        if guard.memory.is_empty() {
            return Ok(lifetimes);
        }
        let nodes: HashMap<NodeId, u32> = model.nodes.iter().map(|node| node.id).zip(0..).collect();
        for life in guard.memory.lives() {
            if let (None, Some(&node)) = (life.free, nodes.get(&life.alloc)) {
                let mut bytes = 0;
                if let Some(record) = guard.record(life.alloc)
                    && let NodeParams::Alloc { memory, .. } = &record.node_params
                {
                    bytes = memory.bytes() as u64;
                }
                lifetimes.unfreed.push((node, bytes));
            }
        }
        for found in guard.disordered_uses()? {
            let [alloc, first, second] = [found.alloc, found.first, found.second].map(|id| nodes.get(&id));
            if let (Some(&alloc), Some(&first), Some(&second)) = (alloc, first, second) {
                lifetimes.disorders.push(MissingOrder { what: found.what, alloc, first, second });
            }
        }
        Ok(lifetimes)
    }
}

/// The findings about memory order, then those about memory that is never freed.
pub(super) fn memory_order(namer: &Namer<'_>, order: &mut NodeOrder<'_>, steps: u64) -> Vec<Finding> {
    let lifetimes = &namer.model.lifetimes;
    let mut budget = Budget(steps);
    let disorders = lifetimes.disorders.iter().map(|&MissingOrder { what, alloc, first, second }| {
        let ends = order.ends(first, second);
        let is_possible = !order.may_lead(ends.1, ends.0, &mut budget);
        let edge = is_possible.then(|| Box::new((namer.found(ends.0), namer.found(ends.1))));
        let [allocation, first, second] = [alloc, first, second].map(|node| namer.found(node));
        Finding::MemoryOrder { what, allocation, first, second, edge }
    });
    let mut findings: Vec<Finding> = disorders.collect();
    findings.extend(
        lifetimes
            .unfreed
            .iter()
            .map(|&(node, bytes)| Finding::NeverFreed { allocation: namer.found(node), bytes }),
    );
    findings
}
