//! Memory that nodes allocate: what is never freed, and what is used before or after its life.

use std::collections::HashMap;

use super::namer::Namer;
use super::order::Order;
use super::reachability::Budget;
use super::report::Finding;
use super::subject::{Lives, Subject, Unordered};
use crate::error::Result;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

impl Lives {
    /// Those of a subject of the locked graph. What has a part outside of the subject is told by a
    /// check of the graph around.
    pub(super) fn of(guard: &mut GraphGuard<'_>, subject: &Subject) -> Result<Self> {
        let mut lives = Self::default();
        if guard.memory.is_empty() {
            return Ok(lives);
        }
        let items: HashMap<NodeId, u32> = subject.items.iter().map(|item| item.id).zip(0..).collect();
        for life in guard.memory.lives() {
            if let (None, Some(&item)) = (life.free, items.get(&life.alloc)) {
                let bytes = match guard.record(life.alloc).map(|record| &record.node_params) {
                    Some(NodeParams::Alloc { memory, .. }) => memory.bytes() as u64,
                    _ => 0,
                };
                lives.unfreed.push((item, bytes));
            }
        }
        for found in guard.memory_findings()? {
            let [alloc, first, second] = [found.alloc, found.first, found.second].map(|id| items.get(&id));
            if let (Some(&alloc), Some(&first), Some(&second)) = (alloc, first, second) {
                lives.disorders.push(Unordered { what: found.what, alloc, first, second });
            }
        }
        Ok(lives)
    }
}

/// What is wrong with the lives of memory in a subject, and what launches leave.
pub(super) fn lives(namer: &Namer<'_>, order: &mut Order<'_>, steps: u64) -> Vec<Finding> {
    let lives = &namer.subject.lives;
    let mut budget = Budget(steps);
    let disorders = lives.disorders.iter().map(|&Unordered { what, alloc, first, second }| {
        let ends = order.ends(first, second);
        let is_possible = !order.may_lead(ends.1, ends.0, &mut budget);
        let edge = is_possible.then(|| Box::new((namer.found(ends.0), namer.found(ends.1))));
        let [allocation, first, second] = [alloc, first, second].map(|item| namer.found(item));
        Finding::MemoryOrder { what, allocation, first, second, edge }
    });
    let mut findings: Vec<Finding> = disorders.collect();
    findings.extend(
        lives
            .unfreed
            .iter()
            .map(|&(item, bytes)| Finding::NeverFreed { allocation: namer.found(item), bytes }),
    );
    findings
}
