//! Graphs beyond the limits: less is done, and nothing wrong.

use proptest::prelude::*;

use super::closure::Closure;
use super::*;
use crate::shape::planning::progress::Concerned;
use crate::shape::planning::reduction::reduce;
use crate::shape::planning::rows::Limits;
use crate::shape::planning::sketch::Sketch;

const NONE: Limits = Limits { entries: 0, steps: 0, hubs: 0 };

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reduction_in_part_keeps_the_order(
        nodes in 1..40_u32,
        ends in prop::collection::vec((0..40_u32, 0..40_u32), 0..200),
        entries in 0..200_usize,
        steps in 0..400_usize,
        hubs in 0..400_usize,
    ) {
        let edges = ends.into_iter().filter(|(from, to)| from < to && *to < nodes);
        let graph = drawn((0..nodes).map(|_| Role::Other), edges);
        let mut sketch = Sketch::new(&graph).unwrap();
        let before = sketch.edges.clone();
        let reduction = reduce(&mut sketch, Limits { entries, steps, hubs });
        let closure = |edges: &[(u32, u32)]| Closure::of(nodes as usize + 1, edges);
        let closed = closure(&before);
        prop_assert_eq!(&closed, &closure(&sketch.edges));
        prop_assert_eq!(before.len() - sketch.edges.len(), reduction.removed);
        prop_assert!(sketch.edges.iter().all(|edge| before.contains(edge)));
        let all = before.iter().filter(|(from, to)| closed.has_between(*from, *to)).count();
        prop_assert!(reduction.removed <= all);
        prop_assert!(reduction.is_partial || reduction.removed == all);
    }
}

/// A node in front of some forks, another behind them, and an edge past each fork to its second
/// end, which is on another chain.
fn forks(count: u32) -> Drawn {
    let last = 3 * count + 1;
    let edges = (0..count).flat_map(|fork| {
        let [fork, one, two] = [1, 2, 3].map(|number| 3 * fork + number);
        [(0, fork), (0, two), (fork, one), (fork, two), (one, last), (two, last)]
    });
    drawn((0..=last).map(|_| Role::Other), edges.collect::<Vec<_>>())
}

#[test]
fn rows_beside_many_chains_are_short() {
    // There are 2 000 chains, and rows of two entries at most.
    let graph = forks(1000);
    let mut sketch = Sketch::new(&graph).unwrap();
    let reduction = reduce(&mut sketch, Limits { entries: 2 * 3000, steps: 10_000, hubs: 0 });
    assert_eq!((reduction.removed, reduction.is_partial), (1000, false));
}

#[test]
fn hubs_find_edges_that_rows_do_not() {
    let graph = forks(10);
    let removed = |limits| {
        let mut sketch = Sketch::new(&graph).unwrap();
        let reduction = reduce(&mut sketch, limits);
        assert!(reduction.is_partial);
        reduction.removed
    };
    // The first fork is on the chain of the node in front.
    assert_eq!(removed(NONE), 0);
    assert_eq!(removed(Limits { hubs: 1000, ..NONE }), 10);
}

#[test]
fn too_many_waiting_kernels_concern_every_node() {
    let graph = drawn([kernel(0), waiting_kernel(), Role::Other], [(0, 1), (1, 2)]);
    let sketch = Sketch::new(&graph).unwrap();
    let concerned = Concerned::within(&sketch, false, 5);
    assert!(concerned.is_guess() && concerned.has(1));
    let concerned = Concerned::within(&sketch, false, 6);
    assert!(!concerned.is_guess() && !(1..4).any(|node| concerned.has(node)));
    assert_eq!(Concerned::within(&Sketch::new(&drawn([kernel(0)], [])).unwrap(), false, 0), Concerned::NONE);
}

#[test]
fn waiting_kernels_are_followed_by_64s() {
    // A chain of many, and one node beside the last of them alone.
    const COUNT: u32 = 200;
    let chain = (1..COUNT).map(|node| (node - 1, node));
    let edges = chain.chain([(COUNT - 2, COUNT)]);
    let graph = drawn([waiting_kernel(); COUNT as usize].into_iter().chain([Role::Other]), edges);
    let concerned = Concerned::of(&Sketch::new(&graph).unwrap(), false);
    let found: Vec<u32> = (1..=COUNT + 1).filter(|node| concerned.has(*node)).collect();
    assert_eq!(found, [COUNT + 1]);
    assert_eq!(concerned.kernels(), COUNT as usize);
}
