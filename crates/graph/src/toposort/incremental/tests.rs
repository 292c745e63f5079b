//! The incremental order against a naive search for cycles, and its costs.

use core::convert::Infallible;

use proptest::prelude::*;

use super::neighbours::Edge;
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

    /// Adds edges if they fit; returns the cycle otherwise.
    fn add_all(&mut self, edges: &[Edge]) -> Option<Vec<Index>> {
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

    fn edges(&self) -> Vec<Edge> {
        let of = |node: usize| self.successors[node].iter().map(move |to| (node as Index, *to));
        (0..self.labels.len()).flat_map(of).collect()
    }

    fn holds(&self) -> bool {
        self.edges().iter().all(|&(from, to)| self.label(from) < self.label(to))
    }

    /// Adds a new node between two.
    fn put_between(&mut self, from: Index, to: Index, newest: u64) -> Index {
        let node = self.labels.len() as Index;
        self.labels.push(fresh(newest));
        self.successors.push(Vec::new());
        self.predecessors.push(Vec::new());
        assert_eq!(self.add_all(&[(from, node), (node, to)]), None);
        node
    }
}

fn is_acyclic(nodes: usize, edges: &[Edge]) -> bool {
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
    // Either of the two new edges against the order may close the path.
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
    // An edge from the end of one long chain to the start of another.
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
    let edges: Vec<Edge> = (1..NODES).map(|node| (node, node - 1)).collect();
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
    let edges: Vec<Edge> = (0..100).map(|group| (100 * group + 10, 100 * group + 2)).collect();
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
