//! The data race rule: two nodes without a path between them that access the same bytes, one of
//! them writing.

use std::collections::HashMap;

use super::history::{AccessHistory, AccessNumber, CompareAccesses, Fate, NewAccess};
use super::model::{AddressSpace, MemoryAccess, Model};
use super::order::{NodeOrder, Relation};
use super::reachability::Budget;
use super::region::ByteRange;

/// Two accesses without an order between them, by their numbers in the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RacingPair {
    /// The access of the node that comes first in the [`NodeOrder`].
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// The first bytes that both access.
    pub(crate) overlap: ByteRange,
    /// Whether the nodes are ordered if kernels wait.
    pub(crate) may_wait: bool,
    /// How many other pairs of accesses of the same nodes race.
    pub(crate) more: u32,
}

/// How many known partners of a node a new partner is compared with.
const FEW: usize = 8;

/// The steps spent on removing implied pairs.
const MOST_STEPS: u64 = 10_000_000;

/// The races found, and what was not compared.
#[derive(Debug, Default)]
pub(crate) struct FoundRaces {
    pub(crate) pairs: Vec<RacingPair>,
    pub(crate) left: Option<Uncompared>,
}

/// The accesses that a search left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uncompared {
    /// How many ranges of memory there are to compare.
    pub(crate) of: usize,
    /// How many were not compared, or only in part.
    pub(crate) ranges: usize,
    /// An access to the first of these.
    pub(crate) access: u32,
    /// Whether the limit of pairs ended the search, rather than the limit of steps.
    pub(crate) by_pairs: bool,
}

/// The limits of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SearchLimits {
    pub(crate) steps: u64,
    pub(crate) pairs: usize,
}

/// The races of a model.
///
/// The pairs are minimal: of any two nodes that race, one is the first node of a pair or comes
/// before it, and the other is the second or comes after it, by paths of any kind. So an edge for
/// each pair fixes all races, and a chain of nodes concurrent with another one is a single pair.
///
/// Accesses are sorted into connected ranges: each access overlaps an earlier one of its range. In
/// each range they enter a
/// [history](super::history) in the order of the graph, which compares each with the earlier ones
/// that still matter.
pub(crate) fn races(model: &Model, order: &mut NodeOrder<'_>, bounds: SearchLimits) -> FoundRaces {
    let places = &order.places;
    let place = |access: &u32| places[model.accesses[*access as usize].node as usize];
    let mut ranges = ranges(model);
    ranges.iter_mut().for_each(|range| range.sort_by_key(place));
    let mut comparison = RaceSearch {
        model,
        order,
        budget: Budget(bounds.steps),
        most: bounds.pairs,
        new: 0,
        known: vec![None; model.accesses.len()],
        found: HashMap::new(),
        partners: HashMap::new(),
        pairs: Vec::new(),
    };
    let mut left = None;
    for (done, range) in ranges.iter().enumerate() {
        if comparison.range(range).is_none() {
            let by_pairs = comparison.pairs.len() >= bounds.pairs;
            left = Some(Uncompared {
                of: ranges.len(),
                ranges: ranges.len() - done,
                access: range[0],
                by_pairs,
            });
            break;
        }
    }
    FoundRaces { pairs: comparison.without_implied(), left }
}

/// The accesses by connected ranges of memory, in which each access overlaps an earlier one; only
/// ranges that several nodes access, one of them writing.
fn ranges(model: &Model) -> Vec<Vec<u32>> {
    let access = |number: &u32| &model.accesses[*number as usize];
    let mut sorted: Vec<u32> = (0..model.accesses.len() as u32).collect();
    sorted.retain(|number| !access(number).region.is_empty());
    sorted.sort_by_key(|number| (access(number).space, access(number).region.bounds()));
    let mut ranges: Vec<Vec<u32>> = Vec::new();
    let mut last = (AddressSpace::Memory, 0);
    for number in sorted {
        let (space, (start, end)) = (access(&number).space, access(&number).region.bounds());
        match ranges.last_mut() {
            Some(range) if last.0 == space && start < last.1 => {
                range.push(number);
                last.1 = last.1.max(end);
            }
            _ => {
                ranges.push(vec![number]);
                last = (space, end);
            }
        }
    }
    let matters = |range: &Vec<u32>| {
        let writes = range.iter().any(|number| access(number).kind.writes());
        writes && range.iter().any(|number| access(number).node != access(&range[0]).node)
    };
    ranges.retain(matters);
    ranges
}

struct RaceSearch<'c, 's> {
    model: &'c Model,
    order: &'c mut NodeOrder<'s>,
    budget: Budget,
    most: usize,
    /// The access that is being added.
    new: u32,
    /// The access that each was compared with last, and their relation.
    known: Vec<Option<(u32, Relation)>>,
    /// The pairs by their nodes.
    found: HashMap<(u32, u32), usize>,
    /// The pairs by their first nodes.
    partners: HashMap<u32, Vec<usize>>,
    pairs: Vec<RacingPair>,
}

impl RaceSearch<'_, '_> {
    fn range(&mut self, range: &[u32]) -> Option<()> {
        let model = self.model;
        let access = |number: &u32| &model.accesses[*number as usize];
        let mut history = AccessHistory::new(range.iter().map(|number| access(number).region.bounds()));
        for number in range {
            self.new = *number;
            let (bounds, writes) = (access(number).region.bounds(), access(number).kind.writes());
            history.enter(NewAccess { entry: *number, bounds, writes }, self)?;
        }
        Some(())
    }

    /// How an access relates to the new one. Reports them if they race.
    fn relation(&mut self, before: u32, one: &MemoryAccess, two: &MemoryAccess) -> Option<Relation> {
        if let Some((new, relation)) = self.known[before as usize]
            && new == self.new
        {
            return Some(relation);
        }
        let relation = self.order.relate(one.node, two.node, &mut self.budget)?;
        let is_open = match relation {
            Relation::Concurrent | Relation::IfWaitedFor => true,
            Relation::Before | Relation::Exclusive => false,
        };
        let is_race = is_open && do_conflict(one, two);
        if is_race {
            self.budget.take(one.region.effort(&two.region))?;
        }
        if is_race && let Some(overlap) = one.region.overlap(&two.region) {
            self.report(RacingPair {
                first: before,
                second: self.new,
                overlap,
                may_wait: relation == Relation::IfWaitedFor,
                more: 0,
            })?;
        }
        self.known[before as usize] = Some((self.new, relation));
        Some(relation)
    }

    /// Adds a racing pair, unless it is known or implied. `None` if the limit is reached.
    fn report(&mut self, pair: RacingPair) -> Option<()> {
        let nodes = self.nodes(&pair);
        if let Some(&at) = self.found.get(&nodes) {
            self.pairs[at].more += 1;
            return Some(());
        }
        if self.is_implied(&pair)? {
            return Some(());
        }
        if self.pairs.len() >= self.most {
            return None;
        }
        self.found.insert(nodes, self.pairs.len());
        self.partners.entry(nodes.0).or_default().push(self.pairs.len());
        self.pairs.push(pair);
        Some(())
    }

    /// The nodes of a pair.
    fn nodes(&self, pair: &RacingPair) -> (u32, u32) {
        let node = |access: u32| self.model.accesses[access as usize].node;
        (node(pair.first), node(pair.second))
    }

    /// Whether another pair implies this one: the first node races with a node that comes before
    /// the second.
    fn is_implied(&mut self, pair: &RacingPair) -> Option<bool> {
        let (first, second) = self.nodes(pair);
        let known = self.partners.get(&first).map_or(&[][..], Vec::as_slice);
        for &at in known.iter().rev().take(FEW) {
            let partner = self.nodes(&self.pairs[at]).1;
            if self.order.relate(partner, second, &mut self.budget)? == Relation::Before {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The pairs that no other pair implies: none with the same first node has its second node
    /// earlier, none with the same second node has its first node later.
    fn without_implied(self) -> Vec<RacingPair> {
        let (mut firsts, mut seconds) =
            (HashMap::<u32, Vec<usize>>::new(), HashMap::<u32, Vec<usize>>::new());
        for (at, pair) in self.pairs.iter().enumerate() {
            let (first, second) = self.nodes(pair);
            firsts.entry(first).or_default().push(at);
            seconds.entry(second).or_default().push(at);
        }
        // If these steps do not suffice, some implied pairs stay.
        let mut budget = Budget(MOST_STEPS);
        let mut comes_before =
            |one, two| one != two && self.order.relate(one, two, &mut budget) == Some(Relation::Before);
        let node = |access: u32| self.model.accesses[access as usize].node;
        let is_telling = |pair: &&RacingPair| {
            let (first, second) = (node(pair.first), node(pair.second));
            let is_later = |at: &usize| comes_before(node(self.pairs[*at].second), second);
            if firsts[&first].iter().any(is_later) {
                return false;
            }
            !seconds[&second].iter().any(|at| comes_before(first, node(self.pairs[*at].first)))
        };
        self.pairs.iter().filter(is_telling).copied().collect()
    }
}

/// Whether two accesses to the same bytes conflict.
fn do_conflict(one: &MemoryAccess, two: &MemoryAccess) -> bool {
    (one.kind.writes() || two.kind.writes()) && !(one.synchronizes && two.synchronizes)
}

impl CompareAccesses for RaceSearch<'_, '_> {
    fn compare(&mut self, before: AccessNumber, covers: bool) -> Option<Fate> {
        self.budget.step()?;
        let model = self.model;
        let (one, two) = (&model.accesses[before as usize], &model.accesses[self.new as usize]);
        if one.node == two.node {
            // Another argument of the same node: what comes after one comes after both.
            return Some(Fate::Stays);
        }
        let relation = self.relation(before, one, two)?;
        let says_all = two.region.is_linear() || one.region == two.region;
        // An access made for concurrent use does not stand for an ordinary one.
        let is_plain = !two.synchronizes || one.synchronizes;
        let comes_after = match relation {
            Relation::Before => true,
            // The pair was reported. What may run concurrently with the new access may run
            // concurrently with this one, too, if both are in one graph.
            Relation::IfWaitedFor => {
                let graph = |access: &MemoryAccess| model.nodes[access.node as usize].graph;
                do_conflict(one, two) && graph(one) == graph(two)
            }
            Relation::Exclusive | Relation::Concurrent => false,
        };
        Some(if comes_after && covers && says_all && is_plain { Fate::Covered } else { Fate::Stays })
    }
}
