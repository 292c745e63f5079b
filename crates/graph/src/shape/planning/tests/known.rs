//! Small graphs of which the plan is known.

use super::*;

/// The edges of a plan, by drawn numbers; kernels that do nothing have letters, and those in place
/// of a node have a `k` in front of its number.
fn edges(plan: &ShapePlan) -> String {
    let mut letters = 'a'..='z';
    let names: Vec<String> = plan
        .nodes
        .iter()
        .map(|node| match node {
            PlannedNode::Drawn(number) => number.to_string(),
            PlannedNode::Substitute(number) => format!("k{number}"),
            PlannedNode::NoOp => letters.next().unwrap().to_string(),
        })
        .collect();
    let edges = plan.edges.iter().map(|(from, to, kind)| {
        let arrow = match kind {
            PlannedEdge::Full => ">",
            PlannedEdge::AsDrawn => "~",
            PlannedEdge::Programmatic => "=",
        };
        format!("{}{arrow}{}", names[*from as usize], names[*to as usize])
    });
    edges.collect::<Vec<_>>().join(" ")
}

#[test]
fn independent_kernels_get_one_in_front() {
    let sixteen = drawn([kernel(0); 16], []);
    let plan = planned(&sixteen, Wish::Reduced);
    let front: Vec<String> = (0..16).map(|node| format!("a>{node}")).collect();
    assert_eq!(edges(&plan), front.join(" "));
    assert_eq!((plan.report.before.roots, plan.report.after.roots), (16, 1));
    assert_eq!(plan.words(), ["put a kernel that does nothing in front of 16 roots"]);

    let plan = planned(&sixteen, Wish::Lanes(5));
    let lanes = "a>0 a>1 a>2 a>3 a>4 0>5 1>6 2>7 3>8 4>9 5>10 6>11 7>12 8>13 9>14 10>15";
    assert_eq!(edges(&plan), lanes);
    assert_eq!(plan.words()[1..], ["threaded 16 nodes in 1 set through 5 lanes"]);
    assert_eq!((plan.report.before.widest_level, plan.report.after.widest_level), (16, 5));

    let plan = planned(&sixteen, Wish::Auto);
    assert_eq!(edges(&plan), front.join(" "));
    assert_eq!(
        plan.words()[1..],
        [
            "made no lanes: looked for sets of more than 37 nodes, alike and free to run at the same time; there is \
             none, so lanes would gain nothing"
        ]
    );
    assert_eq!(edges(&planned(&sixteen, Wish::AsBuilt)), "");
}

#[test]
fn no_lanes_at_all_are_one() {
    assert_eq!(edges(&planned(&drawn([kernel(0); 3], []), Wish::Lanes(0))), "a>0 0>1 1>2");
}

#[test]
fn lanes_are_chosen_for_equal_kernels_behind_kernels() {
    let mixed = |node| if node % 2 == 0 { kernel(0) } else { kernel(1) };
    let plan = planned(&drawn((0..100).map(mixed), []), Wish::Auto);
    assert_eq!(plan.words()[1], "threaded 100 nodes in 2 sets through 37 lanes");
    assert_eq!((plan.report.after.edges, plan.report.after.widest_level), (100, 74));
    // Each kernel is another one.
    let plan = planned(&drawn((0..100).map(kernel), []), Wish::Auto);
    assert_eq!(plan.words().len(), 2);
    assert_eq!(plan.report.after.edges, 100);
    // The only root is no kernel.
    let behind = |role| {
        let roles = std::iter::once(role).chain([kernel(0); 100]);
        drawn(roles, (1..=100).map(|node| (0, node)))
    };
    let plan = planned(&behind(Role::Other), Wish::Auto);
    assert_eq!(plan.words(), ["left 1 wide set: lanes save time only behind roots that are kernels"]);
    let plan = planned(&behind(kernel(0)), Wish::Auto);
    assert_eq!(plan.words(), ["threaded 100 nodes in 1 set through 37 lanes"]);
}

/// Layers of kernels, with an empty node between each two; the number of the last layer's join is
/// not there.
fn joined_layers(width: u32, layers: u32, role: Role) -> Drawn {
    let count = layers * (width + 1) - 1;
    let is_join = |node: u32| node % (width + 1) == width;
    let roles = (0..count).map(|node| if is_join(node) { Role::Empty } else { role });
    let edges = (0..count).filter(|node| !is_join(*node)).flat_map(|node| {
        let layer = node / (width + 1);
        let before = (layer > 0).then(|| (layer * (width + 1) - 1, node));
        let behind = (layer + 1 < layers).then(|| (node, layer * (width + 1) + width));
        before.into_iter().chain(behind)
    });
    drawn(roles, edges.collect::<Vec<_>>())
}

#[test]
fn joins_become_kernels_between_wide_layers() {
    let layers = joined_layers(3, 3, kernel(0));
    let plan = planned(&layers, Wish::Reduced);
    assert_eq!(edges(&plan), "a>0 a>1 a>2 0>b 1>b 2>b b>4 b>5 b>6 4>c 5>c 6>c c>8 c>9 c>10");
    assert_eq!((plan.report.before.roots, plan.report.after.roots), (9, 1));
    assert_eq!(
        plan.words(),
        [
            "put kernels that do nothing in place of 2 empty nodes",
            "put a kernel that does nothing in front of 3 roots"
        ]
    );
    let plan = planned(&layers, Wish::Lanes(2));
    assert_eq!(edges(&plan), "a>0 a>1 0>2 1>b 2>b b>4 b>5 4>6 5>c 6>c c>8 c>9 8>10");
    // Between layers of two, direct edges are as many.
    let plan = planned(&joined_layers(2, 2, kernel(0)), Wish::Reduced);
    assert_eq!(edges(&plan), "a>0 a>1 0>3 0>4 1>3 1>4");
}

#[test]
fn forks_joins_and_chains_of_empty_nodes_are_dissolved() {
    let (user, empty) = (Role::Other, Role::Empty);
    let fork = drawn([user, empty, user, user, user], [(0, 1), (1, 2), (1, 3), (1, 4)]);
    let plan = planned(&fork, Wish::Reduced);
    assert_eq!(edges(&plan), "0>2 0>3 0>4");
    assert_eq!(plan.words(), ["dissolved 1 empty node: 4 edges became 3"]);
    let join = drawn([user, user, user, empty, user], [(0, 3), (1, 3), (2, 3), (3, 4)]);
    assert_eq!(edges(&planned(&join, Wish::Reduced)), "0>4 1>4 2>4");
    // Empty nodes in front of everything and behind it say nothing.
    let ends = drawn([empty, user, user, empty], [(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(edges(&planned(&ends, Wish::Reduced)), "");
    assert_eq!(planned(&ends, Wish::Reduced).nodes.len(), 2);
    let chain = drawn([user, empty, empty, empty, user], [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(edges(&planned(&chain, Wish::Reduced)), "0>4");
    assert_eq!(planned(&drawn([empty; 3], [(0, 1)]), Wish::Reduced).nodes, []);
    // The edge past the empty node follows from another path.
    let around = drawn([user, empty, user, user, user], [(0, 1), (1, 2), (1, 3), (0, 4), (4, 2)]);
    assert_eq!(edges(&planned(&around, Wish::Reduced)), "0>3 0>4 4>2");
}

#[test]
fn redundant_edges_of_a_chain_go() {
    let chain = (0..20_u32).flat_map(|node| (1..=8).map(move |far| (node, node + far)));
    let chain = drawn([kernel(0); 20], chain.filter(|(_, to)| *to < 20));
    let plan = planned(&chain, Wish::Reduced);
    let expected: Vec<String> = (0..19).map(|node| format!("{node}>{}", node + 1)).collect();
    assert_eq!(edges(&plan), expected.join(" "));
    assert_eq!(plan.words(), ["124 edges became 19: the others follow from them"]);
}

#[test]
fn waiting_kernels_keep_what_is_beside_them() {
    let mut layers = joined_layers(3, 3, kernel(0));
    layers.nodes[5].role = waiting_kernel();
    // The kernel is ordered with the joins and the roots, but not with its layer.
    let plan = planned(&layers, Wish::Lanes(2));
    assert_eq!(edges(&plan), "a>0 a>1 0>2 1>b 2>b b>4 b>5 b>6 4>c 5>c 6>c c>8 c>9 8>10");
    let beside = "kernels beside may wait for each other (2 do not promise progress)";
    let one = "a kernel that may wait for another runs beside (1 does not promise progress)";
    assert_eq!(plan.words().last(), Some(&format!("left 1 wide set: {one}")));
    // Two more, beside everything.
    let count = layers.nodes.len() as u32;
    layers.nodes[5].role = kernel(0);
    layers.nodes.extend([DrawnNode { role: kernel(0) }; 2]);
    layers.nodes.extend([DrawnNode { role: waiting_kernel() }; 2]);
    layers.edges.extend([2, 3].map(|to| DrawnEdge { from: count, to: count + to, is_full: true }));
    let plan = planned(&layers, Wish::Reduced);
    assert_eq!(plan.words(), [format!("left 2 empty nodes: {beside}"), format!("left 5 roots: {beside}")]);
    let plan = super::plan(&layers, Wishes { assume_progress: true, ..wishes(Wish::Reduced) });
    assert_eq!((plan.no_ops(), plan.report.after.roots), (3, 1));
    // Kernels that all wait are no obstacle between layers.
    let plan = planned(&joined_layers(40, 20, waiting_kernel()), Wish::Reduced);
    assert_eq!((plan.no_ops(), plan.report.before.roots, plan.report.after.roots), (19, 800, 40));
}

#[test]
fn nodes_behind_empty_ones_that_stay_are_no_roots() {
    let roles = [kernel(0), kernel(0), Role::Empty, kernel(0), kernel(0), kernel(0), waiting_kernel()];
    let graph = drawn(roles, [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5), (0, 3), (1, 3)]);
    let plan = planned(&graph, Wish::Reduced);
    assert_eq!(edges(&plan), "0>2 1>2 1>3 2>3 2>4 2>5");
    assert_eq!((plan.report.before.roots, plan.report.after.roots), (5, 5));
    assert_eq!(plan.words()[2], "left 1 redundant edge: nodes behind empty ones alone would be roots");
}

#[test]
fn a_part_of_the_roots_gets_a_kernel_in_front() {
    // The kernel that waits is behind two of three roots.
    let graph = drawn([kernel(0), kernel(0), kernel(0), waiting_kernel()], [(0, 3), (1, 3)]);
    let plan = planned(&graph, Wish::Reduced);
    assert_eq!(edges(&plan), "a>0 a>1 0>3 1>3");
    assert_eq!(plan.report.after.roots, 2);
}

#[test]
fn roots_that_are_no_kernels_get_none_in_front() {
    let plan = planned(&drawn([Role::Other, Role::Other, kernel(0)], []), Wish::Reduced);
    assert_eq!((plan.no_ops(), plan.report.after.roots), (0, 3));
    assert_eq!(plan.words(), ["left 3 roots: a kernel in front saves time only for several kernels"]);
}

#[test]
fn programmatic_edges_and_their_nodes_are_left() {
    let mut graph = drawn([kernel(0); 4], [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)]);
    graph.edges[1].is_full = false;
    // Only the first and the last kernel are free; 0>3 follows from 0>1 and 1>3.
    let plan = planned(&graph, Wish::Reduced);
    assert_eq!(edges(&plan), "0>1 0>2 1~2 1>3 2>3");
    assert_eq!(
        plan.words(),
        [
            "6 edges became 5: the others follow from them",
            "left all edges of 2 nodes: programmatic edges lead there"
        ]
    );
    // A path over the programmatic edge is none: 0>3 stays.
    graph.edges.retain(|edge| (edge.from, edge.to) != (1, 3) && (edge.from, edge.to) != (0, 2));
    assert_eq!(edges(&planned(&graph, Wish::Reduced)), "0>1 0>3 1~2 2>3");
    // Empty nodes beside them become kernels only if that saves roots.
    let mut graph = drawn([kernel(0), kernel(0), Role::Empty, kernel(0)], [(0, 1), (2, 1), (3, 2)]);
    graph.edges[0].is_full = false;
    let plan = planned(&graph, Wish::Reduced);
    assert_eq!(edges(&plan), "a>0 a>3 0~1 3>2 2>1");
    assert_eq!(plan.words()[1], "left 1 empty node: programmatic edges lead to their neighbours");
    graph.edges[1].to = 0;
    assert_eq!(edges(&planned(&graph, Wish::Reduced)), "3>a a>0 0~1");
}

#[test]
fn lanes_leave_the_edges_of_fixed_nodes() {
    let mut graph = drawn([kernel(0); 6], [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
    graph.edges[0].is_full = false;
    assert_eq!(edges(&planned(&graph, Wish::Lanes(2))), "0~1 0>2 0>3 0>4 0>5 2>4 3>5");
}

#[test]
fn a_graph_with_a_cycle_is_left() {
    let plan = planned(&drawn([kernel(0); 3], [(0, 1), (1, 2), (2, 1)]), Wish::Auto);
    assert_eq!(edges(&plan), "0>1 1>2 2>1");
    assert_eq!(plan.words(), ["left the graph as drawn: it has a cycle"]);
}

#[test]
fn edges_between_kernels_that_wait_become_programmatic() {
    let overlapping = |overlap| Role::Kernel { like: 0, promises_progress: true, overlap };
    let roles = [Overlap::Both, Overlap::Both, Overlap::Behind, Overlap::Both, Overlap::Never, Overlap::Both];
    let graph = drawn(
        roles.map(overlapping).into_iter().chain([Role::Other]),
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)],
    );
    let plan = super::plan(&graph, Wishes { programmatic: true, ..wishes(Wish::Reduced) });
    assert_eq!(edges(&plan), "0=1 1=2 2>3 3>4 4>5 5>6");
    assert_eq!(
        plan.words(),
        [
            "made 2 edges programmatic: the kernels there wait at their entry",
            "left 3 edges between kernels full: one of the two does not wait at its entry, or the first may use \
             memory of the host",
        ]
    );
    // Without the wish, all are full. A node at an edge that is drawn so keeps all of its edges.
    assert_eq!(edges(&planned(&graph, Wish::Reduced)), "0>1 1>2 2>3 3>4 4>5 5>6");
    let mut fixed = graph;
    fixed.edges[0].is_full = false;
    let plan = super::plan(&fixed, Wishes { programmatic: true, ..wishes(Wish::Reduced) });
    assert_eq!(edges(&plan), "0~1 1>2 2>3 3>4 4>5 5>6");
    // Kernels that do nothing are asked, too.
    let layers = joined_layers(3, 2, overlapping(Overlap::Both));
    let wishes = Wishes { programmatic: true, no_ops: Overlap::Both, ..wishes(Wish::Reduced) };
    let plan = super::plan(&layers, wishes);
    assert_eq!(edges(&plan), "a>0 a>1 a>2 0=b 1=b 2=b b>4 b>5 b>6");
    assert_eq!((plan.report.after.roots, plan.report.after.edges), (1, 9));
}

#[test]
fn a_few_redundant_edges_alone_are_no_reason_to_change_a_graph() {
    let edges_of =
        |count: u32| (1..40_u32).map(|node| (node - 1, node)).chain((0..count).map(|node| (node, node + 2)));
    let plan = planned(&drawn([kernel(0); 40], edges_of(3)), Wish::Auto);
    assert_eq!(plan.words(), ["left 3 redundant edges: so few cost nothing"]);
    assert_eq!(plan.report.after, plan.report.before);
    assert_eq!(planned(&drawn([kernel(0); 40], edges_of(8)), Wish::Auto).report.after.edges, 39);
    assert_eq!(planned(&drawn([kernel(0); 40], edges_of(3)), Wish::Reduced).report.after.edges, 39);
    // A kernel in front of roots is put there all the same.
    let roots = drawn([kernel(0); 42], edges_of(3));
    assert_eq!(planned(&roots, Wish::Auto).report.after.edges, 39 + 3);
}

#[test]
fn kernels_take_the_place_of_fills_and_copies() {
    let chain = drawn([small_fill(); 3], [(0, 1), (1, 2)]);
    let plan = planned(&chain, Wish::Reduced);
    assert_eq!(edges(&plan), "k0>k1 k1>k2");
    assert_eq!(plan.words(), ["put kernels in place of 3 fills"]);
    assert_eq!((plan.report.before.host_submitted, plan.report.after.host_submitted), (3, 0));
    assert_eq!(edges(&planned(&chain, Wish::AsBuilt)), "0>1 1>2");
    // They are kernels for the later steps, too.
    let plan = planned(&drawn([small_fill(); 100], []), Wish::Auto);
    assert_eq!(plan.words()[1], "put a kernel that does nothing in front of 100 roots");
    let plan = planned(&drawn([small_fill(); 101], (1..=100).map(|node| (0, node))), Wish::Auto);
    assert_eq!(plan.words()[1], "threaded 100 nodes in 1 set through 37 lanes");
}

#[test]
fn fills_and_copies_are_left_with_a_reason() {
    use HostSubmittedKind::{Copy, Fill};
    let roles = [
        submitted(Fill, Substitute::OtherMemory),
        submitted(Copy, Substitute::Large),
        submitted(Copy, Substitute::Large),
        submitted(Fill, Substitute::Unwanted),
    ];
    let plan = planned(&drawn(roles, [(0, 1), (1, 2), (2, 3)]), Wish::Reduced);
    let memory = "left 1 fill: kernels fill device memory and pinned memory of this library alone";
    assert_eq!(plan.words(), [memory, "left 2 copies: a kernel copies so much no faster"]);
    assert_eq!((plan.report.before.host_submitted, plan.report.after.host_submitted), (4, 4));
    // Node 3 runs beside the fills 0 and 1, and node 2 does not.
    let roles = [small_fill(), small_fill(), small_fill(), waiting_kernel()];
    let beside = drawn(roles, [(0, 1), (1, 2), (3, 2)]);
    let plan = planned(&beside, Wish::Reduced);
    assert_eq!(edges(&plan), "0>1 1>k2 3>k2");
    assert!(plan.words()[1].starts_with("left 2 fills: a kernel that may wait"), "{:?}", plan.words());
    let plan = super::plan(&beside, Wishes { assume_progress: true, ..wishes(Wish::Reduced) });
    assert_eq!(plan.report.after.host_submitted, 0);
}
