//! The steps of a plan, each with the actions that it reports.

use super::drawn::{HostSubmittedKind, Overlap};
use super::empties::{Dissolved, Replaced, anchor, dissolve, replace};
use super::front::{Fronted, put_in_front};
use super::host_submitted::{Substituted, substitute};
use super::lanes::{Threaded, Threading, thread};
use super::overlap::{Overlapped, overlap};
use super::progress::Concerned;
use super::reduction::reduce;
use super::report::{Action, Obstacle};
use super::rows::Limits;
use super::sketch::Sketch;
use super::surroundings::Surroundings;

/// The actions so far.
#[derive(Debug, Default)]
pub(super) struct Steps {
    actions: Vec<Action>,
    is_partial: bool,
}

/// Dissolving makes edges, of which some are redundant; without those, more nodes can be dissolved.
/// More rounds are hardly ever of use.
const ROUNDS: usize = 3;

/// Redundant edges are few if they are less than this part of all. Measured on an H200: without
/// its 24 redundant edges of 560, a graph of transformer blocks runs 2 % slower.
const FEW: usize = 10;

impl Steps {
    /// The first step: redundant edges go.
    pub(super) fn reduce(sketch: &mut Sketch<'_>) -> Self {
        let mut steps = Self::default();
        let before = edges(sketch);
        let removed = steps.reduce_once(sketch);
        steps.add(removed, Action::EdgesReduced { before, after: before - removed });
        let nodes = sketch.is_fixed.iter().filter(|is_fixed| **is_fixed).count();
        steps.add(nodes, Action::FixedLeft { nodes });
        steps
    }

    /// Full edges become programmatic.
    pub(super) fn overlap(&mut self, sketch: &mut Sketch<'_>, no_ops: Overlap) {
        let Overlapped { edges, not_permitted, forked } = overlap(sketch, no_ops);
        self.add(edges, Action::EdgesOverlapped { edges });
        self.add(not_permitted, Action::EdgesLeftFull { edges: not_permitted, why: Obstacle::NoOverlap });
        self.add(forked, Action::EdgesLeftFull { edges: forked, why: Obstacle::WideFork });
    }

    /// The number of edges that went, if they are few and nothing else was done.
    pub(super) fn only_few_edges_went(&self) -> Option<usize> {
        let mut changes = self.actions.iter().filter(|action| action.is_change());
        match (changes.next(), changes.next()) {
            (Some(&Action::EdgesReduced { before, after }), None) if (before - after) * FEW < before => {
                Some(before - after)
            }
            _ => None,
        }
    }

    pub(super) fn into_actions(self) -> Vec<Action> {
        self.actions
    }

    /// Adds an action, unless it is about nothing.
    fn add(&mut self, count: usize, action: Action) {
        if count > 0 {
            self.actions.push(action);
        }
    }

    /// Returns how many edges went.
    fn reduce_once(&mut self, sketch: &mut Sketch<'_>) -> usize {
        let reduction = reduce(sketch, Limits::DEFAULT);
        self.add(usize::from(reduction.is_partial && !self.is_partial), Action::ReducedInPart);
        self.is_partial |= reduction.is_partial;
        reduction.removed
    }

    /// Kernels take the place of fills and copies that the host submits.
    pub(super) fn substitute(&mut self, sketch: &mut Sketch<'_>, concerned: &Concerned) {
        for kind in [HostSubmittedKind::Fill, HostSubmittedKind::Copy] {
            let Substituted { substituted, left_for_memory, left_as_large, left_for_progress } =
                substitute(sketch, kind, concerned);
            let left = |nodes, why| Action::HostSubmittedLeft { kind, nodes, why };
            self.add(substituted, Action::HostSubmittedReplaced { kind, nodes: substituted });
            self.add(left_for_memory, left(left_for_memory, Obstacle::OtherMemory(kind)));
            self.add(left_as_large, left(left_as_large, Obstacle::Large));
            self.add(left_for_progress, left(left_for_progress, progress(concerned)));
        }
    }

    /// Empty nodes go where that makes no more edges.
    pub(super) fn dissolve_empties(&mut self, sketch: &mut Sketch<'_>) {
        let (mut empties, edges_before) = (0, edges(sketch));
        for _ in 0..ROUNDS {
            let Dissolved { empties: more, made_edges } = dissolve(sketch);
            empties += more;
            if !made_edges || self.reduce_once(sketch) == 0 {
                break;
            }
        }
        let edges_after = edges(sketch);
        self.add(empties, Action::EmptiesDissolved { empties, edges_before, edges_after });
    }

    /// The other empty nodes become kernels.
    pub(super) fn replace_empties(
        &mut self,
        sketch: &mut Sketch<'_>,
        surroundings: Surroundings,
        concerned: &Concerned,
    ) {
        let Replaced { replaced, left_for_progress, left_beside_fixed, left_as_narrow } =
            replace(sketch, surroundings.is_body(), concerned);
        let left = |empties, why| Action::EmptiesLeft { empties, why };
        self.add(replaced, Action::EmptiesReplaced { empties: replaced });
        self.add(left_for_progress, left(left_for_progress, progress(concerned)));
        self.add(left_beside_fixed, left(left_beside_fixed, Obstacle::ProgrammaticEdges));
        self.add(left_as_narrow, left(left_as_narrow, Obstacle::NarrowJoin));
        let edges = anchor(sketch);
        self.add(edges, Action::EdgesPutBack { edges });
    }

    /// A kernel comes in front of many roots.
    pub(super) fn put_in_front(&mut self, sketch: &mut Sketch<'_>, concerned: &Concerned) {
        let Fronted { behind, left_for_progress, left_as_no_kernels } = put_in_front(sketch, concerned);
        let left = |roots, why| Action::RootsLeft { roots, why };
        self.add(behind, Action::RootsFronted { roots: behind });
        self.add(left_for_progress, left(left_for_progress, progress(concerned)));
        self.add(left_as_no_kernels, left(left_as_no_kernels, Obstacle::NoKernels));
    }

    /// Wide sets are threaded through lanes.
    pub(super) fn thread(&mut self, sketch: &mut Sketch<'_>, threading: Threading, concerned: &Concerned) {
        let Threaded { lanes, sets, nodes, left_for_progress, left_at_roots } =
            thread(sketch, threading, concerned);
        let left = |sets, why| Action::SetsLeft { sets, why };
        self.add(sets, Action::SetsThreaded { sets, nodes, lanes });
        self.add(left_for_progress, left(left_for_progress, progress(concerned)));
        self.add(left_at_roots, left(left_at_roots, Obstacle::NoKernelRoot));
        let is_none = sets + left_for_progress + left_at_roots == 0;
        self.add(usize::from(is_none), Action::NoSets { lanes });
    }
}

fn edges(sketch: &Sketch<'_>) -> usize {
    sketch.edges.len() + sketch.other_edges.len()
}

/// Why nodes that are concerned are left.
fn progress(concerned: &Concerned) -> Obstacle {
    let kernels = concerned.kernels();
    if concerned.is_around() {
        return Obstacle::AroundBody;
    }
    match concerned.is_guess() {
        true => Obstacle::ProgressUnknown { kernels },
        false => Obstacle::Progress { kernels },
    }
}
