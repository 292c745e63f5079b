//! Runs all rules and assembles their findings into a report.

use std::collections::HashMap;

use super::CheckOptions;
use super::endless_loops::endless_loops;
use super::memory_order::memory_order;
use super::model::{AddressSpace, AllocationInfo};
use super::namer::Namer;
use super::order::NodeOrder;
use super::race_search::{RacingPair, SearchLimits, Uncompared, races};
use super::report::{Finding, NotCompared, OpaqueNode, Race, RacingAccess, RacingMemory, Report, Stopped};
use super::structure::structure;

/// Keeps the first thousand findings of each class, and returns how many were dropped. Data races,
/// which have a limit of their own, are added afterwards.
fn leave_out(findings: &mut Vec<Finding>) -> usize {
    const MOST: usize = 1000;
    let (before, mut counts) = (findings.len(), HashMap::new());
    findings.retain(|finding| {
        let count = counts.entry(finding.class()).or_insert(0_usize);
        *count += 1;
        *count <= MOST
    });
    before - findings.len()
}

impl Namer<'_> {
    /// The report of all rules.
    pub(super) fn report(&self, options: CheckOptions) -> Report {
        let mut findings = structure(self);
        let mut left_out = leave_out(&mut findings);
        let stopped = match NodeOrder::of(self.model) {
            None => Some(Stopped::Cycle),
            Some(mut order) => {
                let mut endless = endless_loops(self, &mut order, options.steps);
                left_out += leave_out(&mut endless);
                findings.append(&mut endless);
                let mut disorders = memory_order(self, &mut order, options.steps);
                left_out += leave_out(&mut disorders);
                findings.append(&mut disorders);
                self.add_races(&mut findings, &mut order, options)
            }
        };
        // A stable sort keeps the order within each severity.
        findings.sort_by_key(|finding| core::cmp::Reverse(finding.severity()));
        let opaque = self.model.nodes.iter().enumerate().filter_map(|(number, node)| {
            Some(OpaqueNode { node: self.found(number as u32), why: node.opaque? })
        });
        Report { findings, left_out, opaque: opaque.collect(), stopped }
    }

    /// Adds the races in the order of the graph; returns why the search stopped early, if it did.
    fn add_races(
        &self,
        findings: &mut Vec<Finding>,
        order: &mut NodeOrder<'_>,
        options: CheckOptions,
    ) -> Option<Stopped> {
        let limits = SearchLimits { steps: options.steps, pairs: options.races };
        let found = races(self.model, order, limits);
        let mut pairs = found.pairs;
        pairs.sort_by_key(|pair| self.places(order, pair));
        findings.extend(pairs.iter().map(|pair| self.finding(order, pair)));
        found.left.map(|left| self.stopped(left))
    }

    /// The places of a pair's second and first node in the order of the graph.
    fn places(&self, order: &NodeOrder<'_>, pair: &RacingPair) -> (u32, u32) {
        let place = |access: u32| order.places[self.model.accesses[access as usize].node as usize];
        (place(pair.second), place(pair.first))
    }

    fn finding(&self, order: &NodeOrder<'_>, pair: &RacingPair) -> Finding {
        let [first, second] = [pair.first, pair.second].map(|access| &self.model.accesses[access as usize]);
        let number = match first.space {
            AddressSpace::Memory => return Finding::Race(Box::new(self.race(order, pair))),
            AddressSpace::Condition(number) => number,
        };
        let (setter, node) = if first.kind.writes() { (first, second) } else { (second, first) };
        let (from, to) = order.ends(setter.node, node.node);
        Finding::UnorderedCondition {
            number,
            setter: self.found(setter.node),
            conditional: self.found(node.node),
            edge: Box::new((self.found(from), self.found(to))),
            may_wait: pair.may_wait,
        }
    }

    fn race(&self, order: &NodeOrder<'_>, pair: &RacingPair) -> Race {
        let racing = |access: u32| {
            let access = &self.model.accesses[access as usize];
            let (role, is_argument) = (access.role, access.is_argument);
            RacingAccess { node: self.found(access.node), access: access.kind, role, is_argument }
        };
        let [first, second] = [pair.first, pair.second].map(|access| &self.model.accesses[access as usize]);
        let memory = self.memory(pair.first).or_else(|| self.memory(pair.second));
        let offset = memory.map_or(0, |memory| memory.address);
        let bytes = pair.overlap.0 - offset..pair.overlap.1 - offset;
        let ends = order.ends(first.node, second.node);
        let edge = Box::new((self.found(ends.0), self.found(ends.1)));
        let are_linked = order.are_linked(ends.0, ends.1);
        let (more, may_wait) = (pair.more, pair.may_wait);
        let (first, second) = (racing(pair.first), racing(pair.second));
        Race { first, second, memory, bytes, more, edge, are_linked, may_wait }
    }

    /// The allocation that an access lies in, if it is known.
    fn memory(&self, access: u32) -> Option<RacingMemory> {
        let number = self.model.accesses[access as usize].memory?;
        let AllocationInfo { address, bytes, kind } = self.model.allocations[number as usize];
        Some(RacingMemory { address, bytes, kind })
    }

    fn stopped(&self, left: Uncompared) -> Stopped {
        let first = self.memory(left.access);
        let not_compared = NotCompared { of: left.of, ranges: left.ranges, first };
        match left.by_pairs {
            true => Stopped::Races(not_compared),
            false => Stopped::Steps(not_compared),
        }
    }
}
