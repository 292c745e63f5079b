//! The model of a capture: its streams, its nodes and their order; and what a run does to memory.

use std::collections::{BTreeMap, BTreeSet};

use cuda_graph::NodeKind;

use super::ops::NewWork;

/// The cells that captures share. Higher numbers are memory that was allocated in a capture.
pub(super) const CELLS: usize = 8;

/// The number of a cell.
pub(super) type Cell = usize;

/// Nodes of a capture, by their numbers.
pub(super) type Past = BTreeSet<usize>;

/// What a call does once it runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Add { cell: Cell, amount: u32 },
    Set { cell: Cell, value: u32 },
    Copy { from: Cell, to: Cell },
    Call { amount: u32 },
}

/// The use of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
    /// An atomic operation: the order with others does not matter.
    Adds,
}

impl Step {
    fn uses(self) -> Vec<(Cell, Use)> {
        match self {
            Self::Add { cell, .. } => vec![(cell, Use::Adds)],
            Self::Set { cell, .. } => vec![(cell, Use::Writes)],
            Self::Copy { from, to } => vec![(from, Use::Reads), (to, Use::Writes)],
            Self::Call { .. } => Vec::new(),
        }
    }
}

/// The cell of a number from outside.
pub(super) fn cell(number: u8) -> Cell {
    usize::from(number) % CELLS
}

/// The steps of some work, each with the kind of its node. `temporary` is a cell that nobody has.
pub(super) fn steps(work: NewWork, temporary: Cell) -> Vec<(Step, NodeKind)> {
    match work {
        NewWork::Add { cell: to, amount } => {
            vec![(Step::Add { cell: cell(to), amount: amount.into() }, NodeKind::Kernel)]
        }
        NewWork::Fill { cell: to, value } => {
            vec![(Step::Set { cell: cell(to), value: value.into() }, NodeKind::Memset)]
        }
        NewWork::Copy { from, to } => {
            let (from, to) = ends(from, to);
            vec![(Step::Copy { from, to }, NodeKind::Memcpy)]
        }
        NewWork::Host { amount } => vec![(Step::Call { amount: amount.into() }, NodeKind::HostCallback)],
        NewWork::Temporary { value, cell: to } => vec![
            (Step::Set { cell: temporary, value: value.into() }, NodeKind::Memcpy),
            (Step::Copy { from: temporary, to: cell(to) }, NodeKind::Memcpy),
        ],
        NewWork::Nothing | NewWork::Wrong => Vec::new(),
    }
}

/// Two cells, which are not the same.
pub(super) fn ends(from: u8, to: u8) -> (Cell, Cell) {
    let from = cell(from);
    (from, (from + 1 + usize::from(to) % (CELLS - 1)) % CELLS)
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) step: Step,
    pub(super) kind: NodeKind,
    /// The nodes that come before it, also by way of others.
    pub(super) past: Past,
}

/// A capture that is open, or has just ended.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) nodes: Vec<Node>,
    /// Each stream of the capture, with what its next call comes after.
    pub(super) pasts: BTreeMap<u64, Past>,
    pub(super) is_invalid: bool,
}

impl Recording {
    /// One that has just begun on a stream.
    pub(super) fn begun(stream: u64) -> Self {
        Self { pasts: BTreeMap::from([(stream, Past::new())]), ..Self::default() }
    }

    /// Adds nodes behind a stream.
    pub(super) fn note(&mut self, stream: u64, steps: impl IntoIterator<Item = (Step, NodeKind)>) {
        for (step, kind) in steps {
            let past = self.pasts.entry(stream).or_default();
            self.nodes.push(Node { step, kind, past: past.clone() });
            past.insert(self.nodes.len() - 1);
        }
    }

    /// Lets the next call of a stream come after more nodes, and draws it in if it is not there.
    pub(super) fn join(&mut self, stream: u64, past: &Past) {
        self.pasts.entry(stream).or_default().extend(past);
    }

    /// Whether the stream waits for all work.
    pub(super) fn is_joined(&self, stream: u64) -> bool {
        self.pasts.get(&stream).is_some_and(|past| past.len() == self.nodes.len())
    }
}

/// What is known of memory.
pub(super) struct Memory {
    /// `None` where the order of nodes decides, and the edges do not say it.
    cells: BTreeMap<Cell, Option<u32>>,
    /// The sum of what host functions have added.
    pub(super) calls: u32,
}

impl Memory {
    pub(super) fn all(value: u32) -> Self {
        Self { cells: (0..CELLS).map(|cell| (cell, Some(value))).collect(), calls: 0 }
    }

    pub(super) fn fill(&mut self, value: u32) {
        self.cells = Self::all(value).cells;
    }

    fn of(&self, cell: Cell) -> Option<u32> {
        self.cells.get(&cell).copied().flatten()
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Add { cell, amount } => {
                let sum = self.of(cell).map(|value| value.wrapping_add(amount));
                self.cells.insert(cell, sum);
            }
            Step::Set { cell, value } => drop(self.cells.insert(cell, Some(value))),
            Step::Copy { from, to } => drop(self.cells.insert(to, self.of(from))),
            Step::Call { amount } => self.calls = self.calls.wrapping_add(amount),
        }
    }

    /// Runs nodes, which come after those with lower numbers or beside them.
    pub(super) fn run(&mut self, nodes: &[Node]) {
        let open = open_cells(nodes);
        for node in nodes {
            self.step(node.step);
            self.cells.extend(open.iter().map(|cell| (*cell, None)));
        }
        self.forget_temporaries();
    }

    pub(super) fn forget_temporaries(&mut self) {
        self.cells.retain(|cell, _| *cell < CELLS);
    }

    /// Compares what is known with what is found.
    #[track_caller]
    pub(super) fn check(&self, found: &[u32]) {
        assert_eq!(found.len(), CELLS);
        for (cell, found) in found.iter().enumerate() {
            let known = self.of(cell);
            assert!(known.is_none_or(|known| known == *found), "cell {cell}: {found}, not {known:?}");
        }
    }
}

/// The cells that nodes use whose order is open.
fn open_cells(nodes: &[Node]) -> BTreeSet<Cell> {
    let mut uses: BTreeMap<Cell, Vec<(usize, Use)>> = BTreeMap::new();
    let mut open = BTreeSet::new();
    for (number, node) in nodes.iter().enumerate() {
        for (cell, used) in node.step.uses() {
            let earlier = uses.entry(cell).or_default();
            let matters = |other: Use| used == Use::Writes || other != used;
            let is_open = |(other, how): &(usize, Use)| matters(*how) && !node.past.contains(other);
            if earlier.iter().any(is_open) {
                open.insert(cell);
            }
            earlier.push((number, used));
        }
    }
    open
}
