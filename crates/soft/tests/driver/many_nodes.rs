//! Graphs of many nodes, and random changes against a model.

use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use crate::common::*;
use cuda_sys::*;
use proptest::prelude::*;

/// Far more than linear time needs, far less than quadratic time.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_hundred_thousand_nodes_take_linear_time() {
    leaves_nothing("many_nodes::a_hundred_thousand_nodes_take_linear_time", || {
        const COUNT: usize = 100_000;
        let driver = &session();
        let (own, begin) = (graph(driver), Instant::now());
        let mut all: Vec<CUgraphNode> = Vec::with_capacity(COUNT);
        for index in 0..COUNT {
            let before = [index.wrapping_sub(1), index / 2, index / 3];
            let mut after: Vec<CUgraphNode> = before.iter().filter_map(|at| all.get(*at).copied()).collect();
            after.dedup();
            all.push(empty(driver, own, &after));
        }
        assert_eq!(nodes(driver, own), all);
        unsafe {
            let (mut clone, mut twin, mut count) = (null_mut(), null_mut(), 0);
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(edges(driver, clone).len(), edges(driver, own).len());
            for node in &all {
                assert_eq!(driver.cuGraphNodeFindInClone(&mut twin, *node, clone), OK);
                assert_eq!(driver.cuGraphNodeGetDependentNodes(*node, null_mut(), &mut count), OK);
            }
            let exec = instantiate(driver, own);
            assert_eq!(driver.cuGraphExecUpdate(exec, clone, null_mut()), OK);
            for node in all.iter().step_by(2) {
                assert_eq!(driver.cuGraphDestroyNode(*node), OK);
            }
            assert_eq!(nodes(driver, own).len(), COUNT / 2);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphDestroy(clone), OK);
        }
        assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
    });
}

#[test]
fn a_node_may_have_many_neighbours() {
    leaves_nothing("many_nodes::a_node_may_have_many_neighbours", || {
        const COUNT: usize = 20_000;
        let driver = &session();
        let (own, begin) = (graph(driver), Instant::now());
        let before: Vec<_> = (0..COUNT).map(|_| empty(driver, own, &[])).collect();
        let hub = empty(driver, own, &before);
        let after: Vec<_> = (0..COUNT).map(|_| empty(driver, own, &[hub])).collect();
        let other = empty(driver, own, &[]);
        let (mut found, mut count) = (vec![null_mut(); COUNT], COUNT);
        unsafe {
            assert_eq!(driver.cuGraphNodeGetDependencies(hub, found.as_mut_ptr(), &mut count), OK);
            assert_eq!((&found, count), (&before, COUNT));
            for node in &before {
                assert_eq!(driver.cuGraphAddDependencies(own, node, &other, 1), OK);
                assert_eq!(driver.cuGraphAddDependencies(own, node, &other, 1), IV);
            }
            for node in &before {
                assert_eq!(driver.cuGraphRemoveDependencies(own, node, &other, 1), OK);
            }
            let exec = instantiate(driver, own);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            for node in before.iter().chain(&after) {
                assert_eq!(driver.cuGraphDestroyNode(*node), OK);
            }
            assert_eq!(nodes(driver, own), [hub, other]);
            let again: Vec<_> = (0..COUNT).map(|_| empty(driver, own, &[])).collect();
            let hub = empty(driver, own, &again);
            assert_eq!(driver.cuGraphDestroyNode(hub), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
        }
        assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
    });
}

/// A change of a graph; numbers pick nodes of those that are there.
#[derive(Debug, Clone)]
enum Change {
    Add(Vec<usize>),
    Remove(usize),
    Connect(usize, usize),
    Disconnect(usize, usize),
    Clone,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => prop::collection::vec(0..40usize, 0..4).prop_map(Change::Add),
        1 => (0..40usize).prop_map(Change::Remove),
        4 => (0..40usize, 0..40usize).prop_map(|(from, to)| Change::Connect(from, to)),
        2 => (0..40usize, 0..40usize).prop_map(|(from, to)| Change::Disconnect(from, to)),
        1 => Just(Change::Clone),
    ]
}

/// The model of a graph: its nodes in the order of creation, and the edges of each in the order
/// added.
#[derive(Debug, Default, Clone)]
struct Model {
    nodes: Vec<CUgraphNode>,
    edges: Vec<(CUgraphNode, CUgraphNode)>,
}

impl Model {
    fn pick(&self, at: usize) -> Option<CUgraphNode> {
        self.nodes.get(at.checked_rem(self.nodes.len())?).copied()
    }

    fn dependencies(&self, node: CUgraphNode) -> Vec<CUgraphNode> {
        self.edges.iter().filter(|edge| edge.1 == node).map(|edge| edge.0).collect()
    }

    fn dependents(&self, node: CUgraphNode) -> Vec<CUgraphNode> {
        self.edges.iter().filter(|edge| edge.0 == node).map(|edge| edge.1).collect()
    }
}

type Query = unsafe fn(&Driver, CUgraphNode, *mut CUgraphNode, *mut usize) -> CUresult;

fn neighbours(driver: &Driver, query: Query, node: CUgraphNode) -> Vec<CUgraphNode> {
    let mut count = 0;
    unsafe {
        assert_eq!(query(driver, node, null_mut(), &mut count), OK);
        let mut out = vec![null_mut(); count];
        if count > 0 {
            assert_eq!(query(driver, node, out.as_mut_ptr(), &mut count), OK);
        }
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_agree_with_a_model(changes in prop::collection::vec(change(), 1..120)) {
        let driver = &session();
        let (mut own, mut model) = (graph(driver), Model::default());
        for change in changes {
            match change {
                Change::Add(after) => {
                    let after: Vec<_> = after.iter().filter_map(|at| model.pick(*at)).collect();
                    let mut node = null_mut();
                    let answer = unsafe { driver.cuGraphAddEmptyNode(&mut node, own, after.as_ptr(), after.len()) };
                    let distinct: std::collections::HashSet<_> = after.iter().collect();
                    prop_assert_eq!(answer, if distinct.len() == after.len() { OK } else { IV });
                    if answer == OK {
                        model.nodes.push(node);
                        model.edges.extend(after.iter().map(|from| (*from, node)));
                    }
                }
                Change::Remove(at) => {
                    let Some(node) = model.pick(at) else { continue };
                    prop_assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
                    model.nodes.retain(|other| *other != node);
                    model.edges.retain(|edge| edge.0 != node && edge.1 != node);
                }
                Change::Connect(from, to) => {
                    let (Some(from), Some(to)) = (model.pick(from), model.pick(to)) else { continue };
                    let bad = from == to || model.edges.contains(&(from, to));
                    let answer = unsafe { driver.cuGraphAddDependencies(own, &from, &to, 1) };
                    prop_assert_eq!(answer, if bad { IV } else { OK });
                    if !bad {
                        model.edges.push((from, to));
                    }
                }
                Change::Disconnect(from, to) => {
                    let (Some(from), Some(to)) = (model.pick(from), model.pick(to)) else { continue };
                    let known = model.edges.contains(&(from, to));
                    let answer = unsafe { driver.cuGraphRemoveDependencies(own, &from, &to, 1) };
                    prop_assert_eq!(answer, if known { OK } else { IV });
                    model.edges.retain(|edge| *edge != (from, to));
                }
                Change::Clone => {
                    let mut clone = null_mut();
                    prop_assert_eq!(unsafe { driver.cuGraphClone(&mut clone, own) }, OK);
                    let twin = |node: &CUgraphNode| {
                        let mut twin = null_mut();
                        assert_eq!(unsafe { driver.cuGraphNodeFindInClone(&mut twin, *node, clone) }, OK);
                        twin
                    };
                    model = Model {
                        nodes: model.nodes.iter().map(twin).collect(),
                        edges: model.edges.iter().map(|(from, to)| (twin(from), twin(to))).collect(),
                    };
                    prop_assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
                    own = clone;
                }
            }
            prop_assert_eq!(&nodes(driver, own), &model.nodes);
            prop_assert_eq!(edges(driver, own).len(), model.edges.len());
            for node in &model.nodes {
                let before = neighbours(driver, |driver, node, out, count| unsafe {
                    driver.cuGraphNodeGetDependencies(node, out, count)
                }, *node);
                let after = neighbours(driver, |driver, node, out, count| unsafe {
                    driver.cuGraphNodeGetDependentNodes(node, out, count)
                }, *node);
                prop_assert_eq!(before, model.dependencies(*node));
                prop_assert_eq!(after, model.dependents(*node));
            }
        }
        prop_assert_eq!(unsafe { driver.cuGraphDestroy(own) }, OK);
    }
}

#[test]
fn a_deep_nest_of_graphs_works() {
    leaves_nothing("many_nodes::a_deep_nest_of_graphs_works", || {
        let driver = &session();
        let (mut inner, stream) = (graph(driver), stream(driver));
        empty(driver, inner, &[]);
        for _ in 0..256 {
            let (outer, mut node) = (graph(driver), null_mut());
            unsafe {
                assert_eq!(driver.cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner), OK);
                assert_eq!(driver.cuGraphDestroy(inner), OK);
            }
            inner = outer;
        }
        let exec = instantiate(driver, inner);
        run(driver, exec, stream);
        unsafe {
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(inner), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}
