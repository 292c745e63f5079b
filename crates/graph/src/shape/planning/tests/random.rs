//! Random graphs: the promises of a plan, one by one.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::closure::Closure;
use super::*;
use crate::shape::planning::figures::Figures;
use crate::shape::planning::lanes::AUTO_LANES;
use crate::shape::planning::overlap::WIDEST_JOIN;
use crate::shape::planning::report::{Action, Obstacle};

fn overlap() -> impl Strategy<Value = Overlap> {
    prop_oneof![1 => Just(Overlap::Never), 1 => Just(Overlap::Behind), 3 => Just(Overlap::Both)]
}

/// Roles: mostly kernels, and so many of each 16 that do not promise progress.
fn role(waiting: u32) -> impl Strategy<Value = Role> {
    prop_oneof![
        16 - waiting => (0..2_u32, overlap()).prop_map(|(like, overlap)| {
            Role::Kernel { like, promises_progress: true, overlap }
        }),
        waiting => Just(waiting_kernel()),
        5 => Just(Role::Empty),
        2 => Just(Role::Other),
        3 => host_submitted(),
        u32::from(waiting > 0) => Just(Role::Waits),
    ]
}

/// Fills and copies, of which kernels can take the place of most.
fn host_submitted() -> impl Strategy<Value = Role> {
    let kind = prop_oneof![Just(HostSubmittedKind::Fill), Just(HostSubmittedKind::Copy)];
    let substitute = prop_oneof![
        4 => (0..2_u32, overlap()).prop_map(|(like, overlap)| Substitute::Kernel { like, overlap }),
        1 => prop_oneof![Just(Substitute::OtherMemory), Just(Substitute::Large), Just(Substitute::Unwanted)],
    ];
    (kind, substitute).prop_map(|(kind, substitute)| submitted(kind, substitute))
}

/// Edges between any two nodes. `programmatic` of 16 are not full, if both nodes are kernels.
fn any_graph(most: usize, waiting: u32, programmatic: u32) -> impl Strategy<Value = Drawn> {
    let roles = prop::collection::vec(role(waiting), 1..most);
    (roles, 0..120_usize).prop_flat_map(move |(roles, edges)| {
        let nodes = roles.len() as u32;
        let edge = (0..nodes, 0..nodes, 0..16_u32);
        let names = Just((0..nodes).collect::<Vec<_>>()).prop_shuffle();
        (Just(roles), prop::collection::vec(edge, edges), names).prop_map(move |(roles, edges, names)| {
            let is_kernel = |node: u32| matches!(roles[node as usize], Role::Kernel { .. });
            let mut seen = HashSet::new();
            let edges = edges.into_iter().filter(|(one, two, _)| one != two);
            let edges = edges.map(|(one, two, kind)| {
                // The order of the names is a topological one.
                let is_forwards = names[one as usize] < names[two as usize];
                let (from, to) = if is_forwards { (one, two) } else { (two, one) };
                let is_full = kind >= programmatic || !is_kernel(one) || !is_kernel(two);
                DrawnEdge { from, to, is_full }
            });
            let edges = edges.filter(|edge| seen.insert((edge.from, edge.to))).collect();
            let nodes = roles.iter().map(|role| DrawnNode { role: *role }).collect();
            Drawn { nodes, edges }
        })
    })
}

/// Layers, each behind an empty node or completely behind the one before, and some other edges.
fn layered_graph(widest: usize, layers: usize, waiting: u32, extra: usize) -> impl Strategy<Value = Drawn> {
    let layer = (1..=widest, any::<bool>(), role(waiting), prop::collection::vec(role(waiting), widest));
    let layer = layer.prop_map(|(width, is_joined, role, mixed)| {
        // Half of the layers are of one role.
        let roles = if mixed[0] == role { mixed } else { vec![role; width] };
        (is_joined, roles.into_iter().take(width).collect::<Vec<_>>())
    });
    let more = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..=extra);
    (prop::collection::vec(layer, 1..=layers), more).prop_map(|(layers, more)| {
        let (mut roles, mut edges, mut last) = (Vec::new(), Vec::new(), Vec::<u32>::new());
        for (is_joined, layer) in layers {
            if is_joined {
                let join = roles.len() as u32;
                roles.push(Role::Empty);
                edges.extend(last.drain(..).map(|node| (node, join)));
                last = vec![join];
            }
            let nodes: Vec<u32> = (roles.len() as u32..).take(layer.len()).collect();
            roles.extend(layer);
            edges.extend(last.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to))));
            last = nodes;
        }
        for (one, two) in more {
            let (one, two) = (one.index(roles.len()) as u32, two.index(roles.len()) as u32);
            edges.push((one.min(two), one.max(two)));
        }
        edges.retain(|(from, to)| from != to);
        edges.sort_unstable();
        edges.dedup();
        drawn(roles, edges)
    })
}

fn any_wish() -> impl Strategy<Value = Wishes> {
    let lanes = (1..6_u16).prop_map(Wish::Lanes);
    let shape = prop_oneof![Just(Wish::AsBuilt), Just(Wish::Reduced), lanes, Just(Wish::Auto)];
    let no_ops = prop_oneof![Just(Overlap::Never), Just(Overlap::Both)];
    (shape, any::<bool>(), any::<bool>(), no_ops).prop_map(
        |(shape, assume_progress, programmatic, no_ops)| Wishes {
            shape,
            assume_progress,
            programmatic,
            no_ops,
        },
    )
}

/// A drawing and its plan, with the drawn number of each node of the plan.
struct Case {
    drawn: Drawn,
    wishes: Wishes,
    plan: ShapePlan,
    before: Closure,
    after: Closure,
    /// The place in the plan of each drawn node that is there.
    places: BTreeMap<u32, u32>,
}

impl Case {
    fn new(drawn: Drawn, wishes: Wishes) -> Self {
        let plan = plan(&drawn, wishes);
        let before = Closure::of(drawn.nodes.len(), &full(&drawn));
        let after = Closure::of(plan.nodes.len(), &planned_full(&plan));
        let places = (0..).zip(&plan.nodes).filter_map(|(place, node)| match node {
            PlannedNode::Drawn(number) | PlannedNode::Substitute(number) => Some((*number, place)),
            PlannedNode::NoOp => None,
        });
        let places = places.collect();
        Self { drawn, wishes, plan, before, after, places }
    }

    fn check(&self) {
        self.nodes_are_there_once();
        self.edges_lead_forwards();
        self.other_edges_are_as_drawn();
        self.programmatic_edges_are_permitted();
        self.order_is_kept();
        self.only_twins_are_ordered_anew();
        self.lanes_stay_wide();
        self.waiting_kernels_are_left_alone();
        self.kernels_take_the_place_of_what_they_can();
        self.no_edge_is_redundant();
        self.figures_are_right();
    }

    fn role(&self, node: u32) -> Role {
        self.drawn.nodes[node as usize].role
    }

    /// The role of a drawn node that is in the plan, or of the kernel in its place.
    fn planned_role(&self, node: u32) -> Role {
        match (self.plan.nodes[self.places[&node] as usize], self.role(node)) {
            (PlannedNode::Substitute(_), Role::HostSubmitted(submitted)) => match submitted.substitute {
                Substitute::Kernel { like, overlap } => {
                    Role::Kernel { like, promises_progress: true, overlap }
                }
                other => panic!("{other:?}"),
            },
            (_, role) => role,
        }
    }

    /// The nodes that are not empty, by drawn number.
    fn user_nodes(&self) -> Vec<u32> {
        (0..self.drawn.nodes.len() as u32).filter(|node| self.role(*node) != Role::Empty).collect()
    }

    fn user_pairs(&self) -> Vec<(u32, u32)> {
        let nodes = self.user_nodes();
        nodes.iter().flat_map(|one| nodes.iter().map(move |two| (*one, *two))).collect()
    }

    fn is_ordered_after(&self, (from, to): (u32, u32)) -> bool {
        self.after.leads(self.places[&from], self.places[&to])
    }

    fn is_fixed(&self, node: u32) -> bool {
        let mut others = self.drawn.edges.iter().filter(|edge| !edge.is_full);
        others.any(|edge| edge.from == node || edge.to == node)
    }

    /// The drawn kernels that may wait for others.
    fn waiting(&self) -> Vec<u32> {
        let waits = |node: &u32| match self.role(*node) {
            Role::Kernel { promises_progress, .. } => !promises_progress && !self.wishes.assume_progress,
            Role::Waits => true,
            Role::Empty | Role::HostSubmitted(_) | Role::Other => false,
        };
        self.user_nodes().into_iter().filter(waits).collect()
    }

    fn is_concerned(&self, node: u32) -> bool {
        self.waiting().iter().any(|kernel| !self.before.are_ordered(*kernel, node))
    }

    fn nodes_are_there_once(&self) {
        let numbers = self.plan.nodes.iter().filter(|node| **node != PlannedNode::NoOp);
        assert_eq!(numbers.count(), self.places.len());
        assert!(self.user_nodes().iter().all(|node| self.places.contains_key(node)));
        assert!(self.places.keys().all(|node| (*node as usize) < self.drawn.nodes.len()));
        if self.wishes.shape == Wish::AsBuilt {
            assert_eq!(self.places.len(), self.drawn.nodes.len());
            assert_eq!(self.plan.no_ops(), 0);
            assert_eq!(self.plan.edges.len(), self.drawn.edges.len());
        }
    }

    fn edges_lead_forwards(&self) {
        let nodes = self.plan.nodes.len() as u32;
        assert!(self.plan.edges.iter().all(|(from, to, _)| from < to && *to < nodes));
        let distinct: HashSet<_> = self.plan.edges.iter().map(|(from, to, _)| (from, to)).collect();
        assert_eq!(distinct.len(), self.plan.edges.len());
    }

    fn other_edges_are_as_drawn(&self) {
        let place = |node| self.places[&node];
        let others = self.drawn.edges.iter().filter(|edge| !edge.is_full);
        let others: HashSet<_> =
            others.map(|edge| (place(edge.from), place(edge.to), PlannedEdge::AsDrawn)).collect();
        let planned = self.plan.edges.iter().copied().filter(|(.., kind)| *kind == PlannedEdge::AsDrawn);
        assert_eq!(planned.collect::<HashSet<_>>(), others);
        // A fixed node keeps all edges, and gets none but one from the kernel in front.
        let planned: HashSet<_> = self.plan.edges.iter().copied().collect();
        for node in self.user_nodes().into_iter().filter(|node| self.is_fixed(*node)) {
            let drawn = self.drawn.edges.iter().filter(|edge| edge.from == node || edge.to == node);
            let drawn: Vec<_> = drawn.collect();
            let is_kept = |edge: &&&DrawnEdge| {
                let ends = [edge.from, edge.to].map(|node| self.places.get(&node).copied());
                let [Some(from), Some(to)] = ends else { return true };
                planned.contains(&(
                    from,
                    to,
                    if edge.is_full { PlannedEdge::Full } else { PlannedEdge::AsDrawn },
                ))
            };
            assert!(drawn.iter().all(|edge| is_kept(&edge)));
            let place = place(node);
            let after = planned.iter().filter(|(from, to, _)| *from == place || *to == place).count();
            let front =
                planned.contains(&(0, place, PlannedEdge::Full)) && self.front().is_some_and(|_| place > 0);
            assert_eq!(after - usize::from(front), drawn.len());
        }
    }

    /// The kernel that was put in front of roots.
    fn front(&self) -> Option<u32> {
        let is_fronted = |action: &Action| matches!(action, Action::RootsFronted { .. });
        self.plan.report.actions.iter().any(is_fronted).then_some(0)
    }

    fn programmatic_edges_are_permitted(&self) {
        let overlap = |place: u32| match self.plan.nodes[place as usize] {
            PlannedNode::Drawn(node) if self.is_fixed(node) => Overlap::Never,
            PlannedNode::Drawn(node) | PlannedNode::Substitute(node) => match self.planned_role(node) {
                Role::Kernel { overlap, .. } => overlap,
                _ => Overlap::Never,
            },
            PlannedNode::NoOp => self.wishes.no_ops,
        };
        let count = |is_counted: &dyn Fn(u32, u32) -> bool| {
            self.plan.edges.iter().filter(|(from, to, _)| is_counted(*from, *to)).count()
        };
        for &(from, to, kind) in &self.plan.edges {
            let gains =
                count(&|other, _| other == from) == 1 && count(&|_, other| other == to) <= WIDEST_JOIN;
            let is_possible = overlap(from) == Overlap::Both && overlap(to) != Overlap::Never;
            let is_expected =
                self.wishes.programmatic && self.wishes.shape != Wish::AsBuilt && is_possible && gains;
            assert_eq!(kind == PlannedEdge::Programmatic, is_expected, "{from} {to}");
        }
    }

    fn order_is_kept(&self) {
        for pair in self.user_pairs() {
            assert!(!self.before.leads(pair.0, pair.1) || self.is_ordered_after(pair), "{pair:?}");
        }
    }

    fn new_pairs(&self) -> Vec<(u32, u32)> {
        let is_new = |pair: &(u32, u32)| self.is_ordered_after(*pair) && !self.before.leads(pair.0, pair.1);
        self.user_pairs().into_iter().filter(is_new).collect()
    }

    /// Whether the same nodes are in front of two nodes, and the same behind.
    fn are_twins(&self, one: u32, two: u32) -> bool {
        let same = |node: &u32| {
            self.before.leads(*node, one) == self.before.leads(*node, two)
                && self.before.leads(one, *node) == self.before.leads(two, *node)
        };
        let likes = [one, two].map(|node| match self.planned_role(node) {
            Role::Kernel { like, .. } => Some(like),
            Role::Empty | Role::HostSubmitted(_) | Role::Other | Role::Waits => None,
        });
        let is_alike = self.wishes.shape != Wish::Auto || likes[0].is_some() && likes[0] == likes[1];
        let is_free = !self.is_fixed(one) && !self.is_fixed(two);
        is_alike && is_free && self.user_nodes().iter().all(same)
    }

    fn only_twins_are_ordered_anew(&self) {
        for (from, to) in self.new_pairs() {
            assert!(matches!(self.wishes.shape, Wish::Lanes(_) | Wish::Auto), "{from} {to}");
            assert!(self.are_twins(from, to), "{from} {to}");
        }
    }

    fn lanes_stay_wide(&self) {
        let lanes = match self.wishes.shape {
            Wish::Lanes(lanes) => usize::from(lanes),
            Wish::Auto => usize::from(AUTO_LANES),
            Wish::AsBuilt | Wish::FewerEdges | Wish::Reduced => return,
        };
        let new = self.new_pairs();
        let ordered: HashSet<u32> = new.iter().flat_map(|(from, to)| [*from, *to]).collect();
        for node in ordered {
            let twins: Vec<u32> =
                self.user_nodes().into_iter().filter(|twin| self.are_twins(node, *twin)).collect();
            let first = twins.iter().filter(|twin| !new.iter().any(|(_, to)| to == *twin));
            let last = twins.iter().filter(|twin| !new.iter().any(|(from, _)| from == *twin));
            assert!(first.count() >= lanes && last.count() >= lanes);
        }
    }

    fn waiting_kernels_are_left_alone(&self) {
        for (from, to) in self.new_pairs() {
            assert!(!self.is_concerned(from) && !self.is_concerned(to), "{from} {to}");
        }
        for (place, _) in (0..).zip(&self.plan.nodes).filter(|(_, node)| **node == PlannedNode::NoOp) {
            let is_ordered = |kernel: &u32| self.after.are_ordered(place, self.places[kernel]);
            assert!(self.waiting().iter().all(is_ordered), "{place}");
        }
        if let Some(front) = self.front() {
            for (_, to, _) in self.plan.edges.iter().filter(|(from, ..)| *from == front) {
                if let PlannedNode::Drawn(node) | PlannedNode::Substitute(node) =
                    self.plan.nodes[*to as usize]
                {
                    // Twins that lanes order are left alone as well.
                    assert!(!self.is_concerned(node), "{node}");
                }
            }
        }
        let blames = |action: &Action| {
            let (Action::HostSubmittedLeft { why, .. }
            | Action::EmptiesLeft { why, .. }
            | Action::RootsLeft { why, .. }
            | Action::SetsLeft { why, .. }) = action
            else {
                return false;
            };
            matches!(why, Obstacle::Progress { .. } | Obstacle::ProgressUnknown { .. })
        };
        if self.waiting().is_empty() {
            assert!(!self.plan.report.actions.iter().any(blames));
        }
    }

    fn kernels_take_the_place_of_what_they_can(&self) {
        for node in self.user_nodes() {
            let can = matches!(
                self.role(node),
                Role::HostSubmitted(HostSubmitted { substitute: Substitute::Kernel { .. }, .. })
            );
            let expected = can && self.wishes.shape != Wish::AsBuilt && !self.is_concerned(node);
            let is_kernel = self.plan.nodes[self.places[&node] as usize] == PlannedNode::Substitute(node);
            assert_eq!(is_kernel, expected, "{node}");
        }
    }

    fn no_edge_is_redundant(&self) {
        let is_left = |action: &Action| matches!(action, Action::RedundantLeft { .. });
        if self.wishes.shape == Wish::AsBuilt || self.plan.report.actions.iter().any(is_left) {
            return;
        }
        let is_fixed = |place: u32| match self.plan.nodes[place as usize] {
            PlannedNode::Drawn(node) | PlannedNode::Substitute(node) => self.is_fixed(node),
            PlannedNode::NoOp => false,
        };
        let is_empty = |place: u32| match self.plan.nodes[place as usize] {
            PlannedNode::Drawn(node) => self.role(node) == Role::Empty,
            PlannedNode::Substitute(_) | PlannedNode::NoOp => false,
        };
        for (from, to) in planned_full(&self.plan) {
            // Without the edge, the node might count as a root.
            let mut others = self.plan.edges.iter().filter(|edge| edge.1 == to && edge.0 != from);
            let is_anchor = others.all(|edge| is_empty(edge.0));
            let is_free = !is_anchor && !is_fixed(from) && !is_fixed(to);
            let is_redundant = is_free && self.after.has_between(from, to);
            assert!(!is_redundant, "{from} {to}");
        }
    }

    fn figures_are_right(&self) {
        let report = &self.plan.report;
        let roles: Vec<Role> = self.drawn.nodes.iter().map(|node| node.role).collect();
        let edges: Vec<_> = self.drawn.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(report.before, figures(&roles, &edges));
        let roles = self.plan.nodes.iter().map(|node| match node {
            PlannedNode::Drawn(number) | PlannedNode::Substitute(number) => self.planned_role(*number),
            PlannedNode::NoOp => kernel(0),
        });
        let edges: Vec<_> = self.plan.edges.iter().map(|(from, to, _)| (*from, *to)).collect();
        assert_eq!(report.after, figures(&roles.collect::<Vec<_>>(), &edges));
        assert!(report.after.roots <= report.before.roots);
    }
}

fn full(drawn: &Drawn) -> Vec<(u32, u32)> {
    drawn.edges.iter().filter(|edge| edge.is_full).map(|edge| (edge.from, edge.to)).collect()
}

fn planned_full(plan: &ShapePlan) -> Vec<(u32, u32)> {
    // Kernels at programmatic edges of the plan wait, so these order as full ones do.
    let orders = plan.edges.iter().filter(|(.., kind)| *kind != PlannedEdge::AsDrawn);
    orders.map(|(from, to, _)| (*from, *to)).collect()
}

/// The figures, by their definition.
fn figures(roles: &[Role], edges: &[(u32, u32)]) -> Figures {
    let mut levels = vec![0; roles.len()];
    for _ in roles {
        for (from, to) in edges {
            levels[*to as usize] = levels[*to as usize].max(levels[*from as usize] + 1);
        }
    }
    let width = |level: &usize| levels.iter().filter(|other| *other == level).count();
    let is_root = |node: u32| {
        let mut before = edges.iter().filter(|(_, to)| *to == node).map(|(from, _)| *from);
        roles[node as usize] != Role::Empty && before.all(|from| roles[from as usize] == Role::Empty)
    };
    Figures {
        nodes: roles.len(),
        roots: (0..roles.len() as u32).filter(|node| is_root(*node)).count(),
        edges: edges.len(),
        widest_level: levels.iter().map(width).max().unwrap_or(0),
        host_submitted: roles.iter().filter(|role| matches!(role, Role::HostSubmitted(_))).count(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn plans_of_any_graph_keep_their_promises(drawn in any_graph(40, 1, 3), wishes in any_wish()) {
        Case::new(drawn, wishes).check();
    }

    #[test]
    fn plans_without_waiting_kernels_keep_their_promises(drawn in any_graph(40, 0, 0), wishes in any_wish()) {
        Case::new(drawn, wishes).check();
    }

    #[test]
    fn plans_of_layers_keep_their_promises(drawn in layered_graph(9, 5, 1, 4), wishes in any_wish()) {
        Case::new(drawn, wishes).check();
    }

    /// The reduction of a graph without empty nodes is the only smallest one.
    #[test]
    fn reductions_are_the_smallest(nodes in 1..40_u32, ends in prop::collection::vec((0..40_u32, 0..40_u32), 0..200)) {
        let mut edges: Vec<_> = ends.into_iter().filter(|(from, to)| from < to && *to < nodes).collect();
        edges.sort_unstable();
        edges.dedup();
        let closure = Closure::of(nodes as usize, &edges);
        // Nodes that are no kernels get none in front.
        let plan = planned(&drawn((0..nodes).map(|_| Role::Other), edges.iter().copied()), Wish::Reduced);
        edges.retain(|(from, to)| !closure.has_between(*from, *to));
        let number = |place: u32| match plan.nodes[place as usize] {
            PlannedNode::Drawn(number) | PlannedNode::Substitute(number) => number,
            PlannedNode::NoOp => u32::MAX,
        };
        let mut reduced: Vec<_> =
            planned_full(&plan).into_iter().map(|(from, to)| (number(from), number(to))).collect();
        reduced.sort_unstable();
        prop_assert_eq!(reduced, edges);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn plans_of_wide_layers_keep_their_promises(
        drawn in layered_graph(60, 3, 0, 2),
        assume_progress in any::<bool>(),
    ) {
        Case::new(drawn, Wishes { assume_progress, ..wishes(Wish::Auto) }).check();
    }
}
