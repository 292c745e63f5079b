//! An order of the nodes that all edges go along, and what new edges do to it.
//!
//! Each node has a label; every edge goes from a lower label to a higher one. A new node gets the highest, so that the edges made with it
//! cost nothing, and neither does any other edge that goes along the labels. Edges against them need a search for the cycle that they may
//! close, and new labels for some nodes:
//!
//! - The search goes backwards from the starts of those edges and forwards from their ends at the same time, one node each in turn, among the
//!   nodes whose labels lie between. It is over as soon as one of both has seen everything: all cycles are in there, and its nodes alone get
//!   new labels, beyond the other end. So it costs about twice the smaller side. A chain built in reverse, edge by edge, takes one or two
//!   queries an edge, and one built in any order some n log n. What stays dear is edge after edge between parts of a graph that are both large:
//!   each costs a search of the smaller one.
//! - Edges given together are searched together, in groups whose ranges of labels do not touch. However many go against the order, no more is
//!   looked at than the nodes and edges that there are, about twice.
//! - Labels lie a step apart at first, so that there is room for nodes in between. Where it is used up, the nodes that are in the way give way,
//!   and with them those that are in theirs, until there is more than enough: some log n for each node put there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// A node, as its place in the table.
pub(crate) type Index = u32;

/// The distance of labels that nothing was put between.
const STEP: i64 = 1 << 16;

/// The label before that of the first node. As much lies below, for nodes put before others, and above is room for more nodes than a process
/// has time to make.
const BASE: u64 = 1 << 62;

/// The label of a new node that is above all others, the `newest`-th.
#[inline]
pub(crate) fn fresh(newest: u64) -> u64 {
    BASE + newest * STEP as u64
}

/// A number of nodes with which the next new one is above this label.
pub(crate) fn rank(label: u64) -> u64 {
    label.saturating_sub(BASE) / STEP as u64
}

/// What new edges mean for the order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They close no cycle. These nodes get new labels once the edges are there; none if all edges go along the order.
    Fits(Vec<(Index, u64)>),
    /// They close this cycle: each node has an edge to the next, and the last one to the first by one of the new edges.
    Cycle(Vec<Index>),
}

/// The graph as the search sees it, without the new edges.
pub(crate) trait Neighbours {
    /// Why a neighbour cannot be told.
    type Error;

    fn label(&self, node: Index) -> u64;
    fn successors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
}

type Pair = (Index, Index);

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

/// The graph with the new edges looked at so far, and with new labels.
struct Plan<'n, N> {
    graph: &'n mut N,
    labels: HashMap<Index, u64>,
    /// Successors and predecessors by new edges.
    added: HashMap<Index, [Vec<Index>; 2]>,
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
    fn label(&self, node: Index) -> u64 {
        self.labels.get(&node).copied().unwrap_or_else(|| self.graph.label(node))
    }

    fn is_along(&self, (from, to): Pair) -> bool {
        self.label(from) < self.label(to)
    }

    fn add(&mut self, (from, to): Pair) {
        self.added.entry(from).or_default()[0].push(to);
        self.added.entry(to).or_default()[1].push(from);
    }

    fn neighbours(&mut self, node: Index, way: Way) -> Result<Vec<Index>, N::Error> {
        let mut neighbours = match way {
            Way::Forwards => self.graph.successors(node)?,
            Way::Backwards => self.graph.predecessors(node)?,
        };
        if let Some(added) = self.added.get(&node) {
            neighbours.extend(&added[way as usize]);
        }
        Ok(neighbours)
    }

    /// Of edges against the order, sorted by the label of their ends: the first ones whose ranges of labels hang together.
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

/// The direction of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Forwards = 0,
    Backwards = 1,
}

/// One of the two searches. Seen backwards the labels are negative, so that either way the nodes found move up.
struct Side {
    way: Way,
    /// The labels that the nodes found have to be above.
    floor: i64,
    /// Nodes up to this label take part.
    reach: i64,
    /// Whether that is more than the range of the edges.
    is_wider: bool,
    /// Where it began.
    starts: Vec<Index>,
    /// The nodes found, with their neighbours once these are known.
    found: HashMap<Index, Vec<Index>>,
    /// Those of which they are not.
    waiting: Vec<Index>,
    /// Neighbours that do not take part, the lowest first. Some may since do.
    beyond: BinaryHeap<Reverse<(i64, Index)>>,
}

impl Side {
    fn new<N: Neighbours>(plan: &Plan<'_, N>, way: Way, group: &[Pair]) -> Self {
        let ends = |&(from, to): &Pair| if way == Way::Forwards { (from, to) } else { (to, from) };
        let floor = group.iter().map(|edge| signed(way, plan.label(ends(edge).0))).max().unwrap_or(0);
        let mut found = HashMap::new();
        let mut starts: Vec<Index> = group.iter().map(|edge| ends(edge).1).collect();
        starts.retain(|start| found.insert(*start, Vec::new()).is_none());
        let (waiting, beyond) = (starts.clone(), BinaryHeap::new());
        Self { way, floor, reach: floor, is_wider: false, starts, found, waiting, beyond }
    }

    fn label<N: Neighbours>(&self, plan: &Plan<'_, N>, node: Index) -> i64 {
        signed(self.way, plan.label(node))
    }

    /// Looks at the neighbours of one node.
    fn look<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>) -> Result<(), N::Error> {
        let Some(node) = self.waiting.pop() else { return Ok(()) };
        let neighbours = plan.neighbours(node, self.way)?;
        for &neighbour in &neighbours {
            let label = self.label(plan, neighbour);
            if label > self.reach {
                self.beyond.push(Reverse((label, neighbour)));
            } else {
                self.find(neighbour);
            }
        }
        self.found.insert(node, neighbours);
        Ok(())
    }

    fn find(&mut self, node: Index) {
        self.found.entry(node).or_insert_with(|| {
            self.waiting.push(node);
            Vec::new()
        });
    }

    /// The nodes found, each before its neighbours; or a cycle among them.
    fn order(&self) -> Result<Vec<Index>, Vec<Index>> {
        let mut order = Vec::with_capacity(self.found.len());
        // Whether a node was left, or is on the path.
        let mut left: HashMap<Index, bool> = HashMap::with_capacity(self.found.len());
        for &start in &self.starts {
            if left.contains_key(&start) {
                continue;
            }
            left.insert(start, false);
            let mut path: Vec<(Index, usize)> = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let neighbour = self.found.get(node).and_then(|neighbours| neighbours.get(*next)).copied();
                *next += 1;
                match neighbour {
                    None => {
                        order.push(*node);
                        left.insert(*node, true);
                        path.pop();
                    }
                    Some(neighbour) if !self.found.contains_key(&neighbour) => {}
                    Some(neighbour) => match left.get(&neighbour) {
                        Some(true) => {}
                        Some(false) => {
                            let nodes = path.iter().map(|(node, _)| *node);
                            return Err(nodes.skip_while(|node| *node != neighbour).collect());
                        }
                        None => {
                            left.insert(neighbour, false);
                            path.push((neighbour, 0));
                        }
                    },
                }
            }
        }
        order.reverse();
        Ok(order)
    }

    /// A cycle in the direction of its edges, a new one last.
    fn told(&self, mut cycle: Vec<Index>, group: &[Pair]) -> Vec<Index> {
        if self.way == Way::Backwards {
            cycle.reverse();
        }
        let new: HashSet<Pair> = group.iter().copied().collect();
        let next = |place: usize| (place + 1) % cycle.len();
        let last = (0..cycle.len()).find(|&place| new.contains(&(cycle[place], cycle[next(place)])));
        let first = last.map_or(0, next);
        cycle.rotate_left(first);
        cycle
    }

    /// Moves the nodes found above the floor. If there is no room below the neighbours that do not take part, the next ones do from now on, and
    /// the search goes on.
    fn place<N: Neighbours>(&mut self, plan: &mut Plan<'_, N>, order: &[Index]) -> bool {
        while let Some(Reverse((_, node))) = self.beyond.peek()
            && self.found.contains_key(node)
        {
            self.beyond.pop();
        }
        let ceiling = self.beyond.peek().map(|Reverse((label, _))| *label);
        let nodes = order.len() as i64;
        // Where others have to give way, they leave enough room that it does not happen again soon: the distance of that many nodes grows with
        // their number.
        let least = if self.is_wider { nodes.min(STEP) } else { 1 };
        let top = self.climb(plan, order, least, |_, _, _| {});
        let step = match ceiling {
            None => STEP,
            Some(ceiling) if top < ceiling => (least + (ceiling - 1 - top) / (nodes + 1)).min(STEP),
            Some(ceiling) => {
                self.widen(ceiling);
                return false;
            }
        };
        let way = self.way;
        self.climb(plan, order, step, |plan, node, label| {
            plan.labels.insert(node, unsigned(way, label));
        });
        true
    }

    /// Goes through the nodes in their order with labels that rise by at least a step; tells those that have to change, and the last one.
    fn climb<N: Neighbours>(
        &self,
        plan: &mut Plan<'_, N>,
        order: &[Index],
        step: i64,
        mut change: impl FnMut(&mut Plan<'_, N>, Index, i64),
    ) -> i64 {
        let mut label = self.floor;
        for &node in order {
            let (own, least) = (self.label(plan, node), label + step);
            label = own.max(least);
            if own < least {
                change(plan, node, label);
            }
        }
        label
    }

    /// Lets nodes take part that are in the way: at least one, and as many again where they lie close.
    fn widen(&mut self, ceiling: i64) {
        self.is_wider = true;
        self.reach = ceiling + self.found.len() as i64;
        while let Some(&Reverse((label, node))) = self.beyond.peek()
            && label <= self.reach
        {
            self.beyond.pop();
            self.find(node);
        }
    }
}

/// A label as a search sees it.
fn signed(way: Way, label: u64) -> i64 {
    // Labels are below 2^63, by far.
    let label = label as i64;
    if way == Way::Forwards { label } else { -label }
}

fn unsigned(way: Way, label: i64) -> u64 {
    (if way == Way::Forwards { label } else { -label }) as u64
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Model {
        labels: Vec<u64>,
        successors: Vec<Vec<Index>>,
        predecessors: Vec<Vec<Index>>,
        searched: usize,
    }

    impl Neighbours for Model {
        type Error = Infallible;

        fn label(&self, node: Index) -> u64 {
            self.labels[node as usize]
        }

        fn successors(&mut self, node: Index) -> Result<Vec<Index>, Infallible> {
            self.searched += 1;
            Ok(self.successors[node as usize].clone())
        }

        fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Infallible> {
            self.searched += 1;
            Ok(self.predecessors[node as usize].clone())
        }
    }

    impl Model {
        fn with(nodes: u64) -> Self {
            Self {
                labels: (1..=nodes).map(fresh).collect(),
                successors: vec![Vec::new(); nodes as usize],
                predecessors: vec![Vec::new(); nodes as usize],
                searched: 0,
            }
        }

        /// Adds edges if they fit, and tells the cycle otherwise.
        fn add_all(&mut self, edges: &[Pair]) -> Option<Vec<Index>> {
            match admit(self, edges).unwrap() {
                Verdict::Cycle(path) => Some(path),
                Verdict::Fits(moved) => {
                    moved.into_iter().for_each(|(node, label)| self.labels[node as usize] = label);
                    for &(from, to) in edges {
                        self.successors[from as usize].push(to);
                        self.predecessors[to as usize].push(from);
                    }
                    None
                }
            }
        }

        fn add(&mut self, from: Index, to: Index) -> Option<Vec<Index>> {
            self.add_all(&[(from, to)])
        }

        fn edges(&self) -> Vec<Pair> {
            let of = |node: usize| self.successors[node].iter().map(move |to| (node as Index, *to));
            (0..self.labels.len()).flat_map(of).collect()
        }

        fn holds(&self) -> bool {
            self.edges().iter().all(|&(from, to)| self.label(from) < self.label(to))
        }

        /// A new node between two.
        fn put_between(&mut self, from: Index, to: Index, newest: u64) -> Index {
            let node = self.labels.len() as Index;
            self.labels.push(fresh(newest));
            self.successors.push(Vec::new());
            self.predecessors.push(Vec::new());
            assert_eq!(self.add_all(&[(from, node), (node, to)]), None);
            node
        }
    }

    fn is_acyclic(nodes: usize, edges: &[Pair]) -> bool {
        let mut left: Vec<usize> = (0..nodes).collect();
        loop {
            let before = left.len();
            let waits = |node: usize, left: &[usize]| {
                edges.iter().any(|edge| edge.1 as usize == node && left.contains(&(edge.0 as usize)))
            };
            let still = left.clone();
            left.retain(|&node| waits(node, &still));
            if left.is_empty() || left.len() == before {
                return left.is_empty();
            }
        }
    }

    #[test]
    fn an_edge_along_the_order_needs_no_search() {
        let mut model = Model::with(3);
        assert_eq!(model.add(0, 2), None);
        assert_eq!(model.searched, 0);
    }

    #[test]
    fn a_cycle_is_told_by_its_path() {
        let mut model = Model::with(5);
        assert_eq!(model.add(1, 2), None);
        assert_eq!(model.add(2, 4), None);
        assert_eq!(model.add(4, 1), Some(vec![1, 2, 4]));
        let path = model.add_all(&[(0, 3), (3, 1), (4, 0)]).unwrap();
        // It has two new edges against the order, either of which may be told as the last.
        assert!([[0, 3, 1, 2, 4], [1, 2, 4, 0, 3]].contains(&path.try_into().unwrap()));
        assert_eq!(model.add_all(&[(0, 3), (3, 0)]), Some(vec![0, 3]));
    }

    #[test]
    fn a_rank_is_that_of_the_next_new_label_above() {
        assert_eq!(rank(0), 0);
        for newest in [1, 2, 1000] {
            for (label, expected) in
                [(fresh(newest), newest), (fresh(newest) + 1, newest), (fresh(newest) - 1, newest - 1)]
            {
                assert_eq!(rank(label), expected);
                assert!(fresh(rank(label) + 1) > label);
            }
        }
    }

    #[test]
    fn an_edge_against_the_order_costs_its_smaller_side() {
        let mut model = Model::with(1000);
        (500..999).for_each(|node| assert_eq!(model.add(node, node + 1), None));
        (0..499).for_each(|node| assert_eq!(model.add(node, node + 1), None));
        // Behind the end of a long chain, before the start of another one.
        model.searched = 0;
        assert_eq!(model.add(999, 0), None);
        assert!(model.searched <= 1000 && model.holds());
        let mut model = Model::with(1000);
        (0..998).for_each(|node| assert_eq!(model.add(node, node + 1), None));
        model.searched = 0;
        assert_eq!(model.add(999, 0), None);
        assert!(model.searched <= 2 && model.holds(), "{}", model.searched);
        let mut model = Model::with(1000);
        (1..999).for_each(|node| assert_eq!(model.add(node, node + 1), None));
        model.searched = 0;
        assert_eq!(model.add(999, 0), None);
        assert!(model.searched <= 2 && model.holds(), "{}", model.searched);
    }

    #[test]
    fn a_chain_built_in_reverse_is_linear() {
        const NODES: u32 = 20_000;
        let orders: [Box<dyn Iterator<Item = u32>>; 2] = [Box::new(1..NODES), Box::new((1..NODES).rev())];
        for order in orders {
            let mut model = Model::with(NODES.into());
            order.for_each(|node| assert_eq!(model.add(node, node - 1), None));
            assert!(model.holds() && model.searched <= 2 * NODES as usize, "{}", model.searched);
        }
        let mut model = Model::with(NODES.into());
        let edges: Vec<Pair> = (1..NODES).map(|node| (node, node - 1)).collect();
        assert_eq!(model.add_all(&edges), None);
        assert!(model.holds() && model.searched <= 2 * NODES as usize, "{}", model.searched);
        assert_eq!(model.add(0, NODES - 1).map(|path| path.len()), Some(NODES as usize));
    }

    #[test]
    fn a_chain_built_in_any_order_is_nearly_linear() {
        const NODES: u32 = 1 << 12;
        // A permutation of the nodes, and one of the edges.
        let shuffled = |place: u32, factor: u32| place * factor % NODES;
        let mut model = Model::with(NODES.into());
        for place in 0..NODES {
            let at = shuffled(place, 2731);
            if at + 1 < NODES {
                assert_eq!(model.add(shuffled(at, 1237), shuffled(at + 1, 1237)), None);
            }
        }
        assert!(model.holds());
        assert!(model.searched < 40 * NODES as usize, "{}", model.searched);
    }

    #[test]
    fn nodes_put_again_and_again_at_one_place_find_room() {
        for which in 0..3 {
            let mut model = Model::with(3);
            model.add_all(&[(0, 1), (1, 2)]);
            let (mut low, mut high) = (0, 1);
            for newest in 4..4000 {
                let node = model.put_between(low, high, newest);
                match which {
                    0 => low = node,
                    1 => high = node,
                    _ if newest % 3 == 0 => low = node,
                    _ => high = node,
                }
            }
            assert!(model.holds(), "{which}");
            assert!(model.searched < 12 * 4000, "{which}: {}", model.searched);
        }
    }

    #[test]
    fn groups_that_do_not_touch_are_searched_apart() {
        let mut model = Model::with(10_000);
        (0..5_000).for_each(|node| assert_eq!(model.add(2 * node, 2 * node + 1), None));
        model.searched = 0;
        let edges: Vec<Pair> = (0..100).map(|group| (100 * group + 10, 100 * group + 2)).collect();
        assert_eq!(model.add_all(&edges), None);
        assert!(model.holds() && model.searched <= 400, "{}", model.searched);
    }

    #[test]
    fn a_large_batch_against_the_order_looks_at_everything_about_twice() {
        const WIDTH: u32 = 50;
        const LAYERS: u32 = 40;
        let mut model = Model::with((WIDTH * LAYERS).into());
        let node = |layer: u32, place: u32| layer * WIDTH + place % WIDTH;
        let mut edges = Vec::new();
        for layer in 1..LAYERS {
            for place in 0..WIDTH {
                edges.extend((0..5).map(|step| (node(layer, place), node(layer - 1, place + step * step))));
            }
        }
        assert_eq!(model.add_all(&edges), None);
        assert!(model.holds() && model.searched <= 2 * (WIDTH * LAYERS) as usize, "{}", model.searched);
    }

    proptest! {
        #[test]
        fn the_order_holds_after_every_batch(
            batches in prop::collection::vec(prop::collection::vec((0_u32..14, 0_u32..14), 1..6), 0..24),
        ) {
            let mut model = Model::with(14);
            for mut batch in batches {
                batch.retain(|(from, to)| from != to);
                let mut all = model.edges();
                all.extend(&batch);
                let cycle = model.add_all(&batch);
                prop_assert_eq!(cycle.is_none(), is_acyclic(14, &all));
                if let Some(path) = cycle {
                    prop_assert!(batch.contains(&(path[path.len() - 1], path[0])));
                    prop_assert!(path.windows(2).all(|pair| all.contains(&(pair[0], pair[1]))));
                }
                prop_assert!(model.holds());
            }
        }

        #[test]
        fn the_order_holds_where_labels_are_crowded(
            labels in prop::collection::vec(0_u64..20, 14),
            edges in prop::collection::vec((0_u32..14, 0_u32..14), 0..60),
        ) {
            let mut model = Model::with(14);
            model.labels = labels.iter().map(|label| fresh(1) + label).collect();
            for (from, to) in edges.into_iter().filter(|(from, to)| from != to) {
                let mut all = model.edges();
                all.push((from, to));
                let cycle = model.add(from, to);
                prop_assert_eq!(cycle.is_none(), is_acyclic(14, &all));
                prop_assert!(model.holds());
            }
        }
    }
}
