//! Data races: two nodes without a path between them that touch the same bytes, one of them
//! writing.

use std::collections::HashMap;

use super::history::{Compare, Entry, Fate, History, New};
use super::order::{Order, Relation};
use super::reachability::Budget;
use super::region::Stretch;
use super::subject::{Space, Subject, Touch};

/// Two accesses that nothing puts in order, by their numbers in the subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    /// Of the node that comes first in the order of the graph, if any does.
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// The first bytes that both touch.
    pub(crate) overlap: Stretch,
    /// Whether the kernels may see to it themselves.
    pub(crate) may_wait: bool,
    /// How many other pairs of accesses of the same nodes there are.
    pub(crate) more: u32,
}

/// With how many partners of a node a new one is compared.
const FEW: usize = 8;

/// How much is done to tell as few pairs as say all.
const MOST_STEPS: u64 = 10_000_000;

/// What was found, and what was not looked at.
#[derive(Debug, Default)]
pub(crate) struct Races {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) left: Option<Left>,
}

/// What was not compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    /// How many ranges of memory were to be compared.
    pub(crate) of: usize,
    /// How many were not, or not wholly.
    pub(crate) ranges: usize,
    /// An access to the first of these.
    pub(crate) touch: u32,
    /// Whether so many pairs were found that it was given up.
    pub(crate) by_pairs: bool,
}

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub(crate) steps: u64,
    pub(crate) pairs: usize,
}

/// Races of a subject. Not all pairs are told, but those that say it all: of any two nodes that
/// race, the one is or comes before the first of such a pair, and the other is or comes after the
/// second, by paths of any kind. So an edge for each pair mends all, and a line of nodes beside
/// another one is a pair.
pub(crate) fn races(subject: &Subject, order: &mut Order<'_>, bounds: Bounds) -> Races {
    let places = &order.places;
    let place = |touch: &u32| places[subject.touches[*touch as usize].item as usize];
    let mut ranges = ranges(subject);
    ranges.iter_mut().for_each(|range| range.sort_by_key(place));
    let mut comparison = Comparison {
        subject,
        order,
        budget: Budget(bounds.steps),
        most: bounds.pairs,
        new: 0,
        known: vec![None; subject.touches.len()],
        found: HashMap::new(),
        partners: HashMap::new(),
        pairs: Vec::new(),
    };
    let mut left = None;
    for (done, range) in ranges.iter().enumerate() {
        if comparison.range(range).is_none() {
            let by_pairs = comparison.pairs.len() >= bounds.pairs;
            left = Some(Left { of: ranges.len(), ranges: ranges.len() - done, touch: range[0], by_pairs });
            break;
        }
    }
    Races { pairs: comparison.telling(), left }
}

/// Touches whose bytes hang together, as far as there is something to compare.
fn ranges(subject: &Subject) -> Vec<Vec<u32>> {
    let touch = |number: &u32| &subject.touches[*number as usize];
    let mut sorted: Vec<u32> = (0..subject.touches.len() as u32).collect();
    sorted.retain(|number| !touch(number).region.is_empty());
    sorted.sort_by_key(|number| (touch(number).space, touch(number).region.bounds()));
    let mut ranges: Vec<Vec<u32>> = Vec::new();
    let mut last = (Space::Common, 0);
    for number in sorted {
        let (space, (start, end)) = (touch(&number).space, touch(&number).region.bounds());
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
        let writes = range.iter().any(|number| touch(number).access.writes());
        writes && range.iter().any(|number| touch(number).item != touch(&range[0]).item)
    };
    ranges.retain(matters);
    ranges
}

struct Comparison<'c, 's> {
    subject: &'c Subject,
    order: &'c mut Order<'s>,
    budget: Budget,
    most: usize,
    /// The access that is being entered.
    new: u32,
    /// With which access each was compared last, and how that ended.
    known: Vec<Option<(u32, Relation)>>,
    /// The pairs by their nodes.
    found: HashMap<(u32, u32), usize>,
    /// The pairs by their first nodes.
    partners: HashMap<u32, Vec<usize>>,
    pairs: Vec<Pair>,
}

impl Comparison<'_, '_> {
    fn range(&mut self, range: &[u32]) -> Option<()> {
        let subject = self.subject;
        let touch = |number: &u32| &subject.touches[*number as usize];
        let mut history = History::new(range.iter().map(|number| touch(number).region.bounds()));
        for number in range {
            self.new = *number;
            let (bounds, writes) = (touch(number).region.bounds(), touch(number).access.writes());
            history.enter(New { entry: *number, bounds, writes }, self)?;
        }
        Some(())
    }

    /// How an access stands to the new one.
    fn relation(&mut self, before: u32, one: &Touch, two: &Touch) -> Option<Relation> {
        if let Some((new, relation)) = self.known[before as usize]
            && new == self.new
        {
            return Some(relation);
        }
        let relation = self.order.relate(one.item, two.item, &mut self.budget)?;
        let is_open = matches!(relation, Relation::Beside | Relation::IfWaitedFor);
        let is_race = is_open && are_at_odds(one, two);
        if is_race {
            self.budget.take(one.region.effort(&two.region))?;
        }
        if is_race && let Some(overlap) = one.region.overlap(&two.region) {
            self.report(Pair {
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

    fn report(&mut self, pair: Pair) -> Option<()> {
        let nodes = self.nodes(&pair);
        if let Some(&at) = self.found.get(&nodes) {
            self.pairs[at].more += 1;
            return Some(());
        }
        if self.is_told(&pair)? {
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

    fn nodes(&self, pair: &Pair) -> (u32, u32) {
        let item = |touch: u32| self.subject.touches[touch as usize].item;
        (item(pair.first), item(pair.second))
    }

    /// Whether the first node races with one that the second comes after.
    fn is_told(&mut self, pair: &Pair) -> Option<bool> {
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

    /// The pairs without those of which another one says all: its first node comes after the first,
    /// or its second before the second.
    fn telling(self) -> Vec<Pair> {
        let (mut firsts, mut seconds) =
            (HashMap::<u32, Vec<usize>>::new(), HashMap::<u32, Vec<usize>>::new());
        for (at, pair) in self.pairs.iter().enumerate() {
            let (first, second) = self.nodes(pair);
            firsts.entry(first).or_default().push(at);
            seconds.entry(second).or_default().push(at);
        }
        // If these steps do not suffice, more is told.
        let mut budget = Budget(MOST_STEPS);
        let mut comes_before =
            |one, two| one != two && self.order.relate(one, two, &mut budget) == Some(Relation::Before);
        let item = |touch: u32| self.subject.touches[touch as usize].item;
        let is_telling = |pair: &&Pair| {
            let (first, second) = (item(pair.first), item(pair.second));
            let is_later = |at: &usize| comes_before(item(self.pairs[*at].second), second);
            if firsts[&first].iter().any(is_later) {
                return false;
            }
            !seconds[&second].iter().any(|at| comes_before(first, item(self.pairs[*at].first)))
        };
        self.pairs.iter().filter(is_telling).copied().collect()
    }
}

/// Whether two accesses to the same bytes need an order.
fn are_at_odds(one: &Touch, two: &Touch) -> bool {
    (one.access.writes() || two.access.writes()) && !(one.synchronizes && two.synchronizes)
}

impl Compare for Comparison<'_, '_> {
    fn compare(&mut self, before: Entry, covers: bool) -> Option<Fate> {
        self.budget.step()?;
        let subject = self.subject;
        let (one, two) = (&subject.touches[before as usize], &subject.touches[self.new as usize]);
        if one.item == two.item {
            // Another argument of the same node; what comes after one comes after both.
            return Some(Fate::Stays);
        }
        let relation = self.relation(before, one, two)?;
        let says_all = two.region.is_linear() || one.region == two.region;
        // One that stays apart from others of its kind says less than any other.
        let is_plain = !two.synchronizes || one.synchronizes;
        let comes_after = match relation {
            Relation::Before => true,
            // It has been told of; and what may run beside the new one may run beside this one,
            // too, if both are in one graph.
            Relation::IfWaitedFor => {
                let graph = |touch: &Touch| subject.items[touch.item as usize].graph;
                are_at_odds(one, two) && graph(one) == graph(two)
            }
            Relation::Apart | Relation::Beside => false,
        };
        Some(if comes_after && covers && says_all && is_plain { Fate::Covered } else { Fate::Stays })
    }
}
