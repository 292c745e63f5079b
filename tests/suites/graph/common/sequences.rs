//! Random programs of fills, copies and typed kernels on one buffer, and what they compute one
//! after the other.

use cuda_graph::{ContextExt, Frontier, Graph, Node};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use proptest::prelude::*;

use crate::capture::{add_to, increment_all};

/// The elements of the buffer.
pub(crate) const CELLS: usize = 32;
pub(crate) type Cells = [u32; CELLS];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Fill {
        start: usize,
        len: usize,
        value: u32,
    },
    /// Fills rows of a matrix of eight columns.
    FillRows {
        start: usize,
        width: usize,
        rows: usize,
        value: u32,
    },
    Add {
        cell: usize,
        amount: u32,
    },
    Increment {
        start: usize,
        len: usize,
    },
    /// Copies to the other half.
    Copy {
        from: usize,
        to: usize,
        len: usize,
    },
    /// A child graph that adds to two cells.
    Child {
        cells: [usize; 2],
        amount: u32,
    },
}

const HALF: usize = CELLS / 2;

pub(crate) fn any_operation() -> impl Strategy<Value = Operation> {
    let range = || (0..CELLS, 1..9_usize).prop_map(|(start, len)| (start, len.min(CELLS - start)));
    let value = 1..100_u32;
    prop_oneof![
        (range(), value.clone()).prop_map(|((start, len), value)| Operation::Fill { start, len, value }),
        (0..4_usize, 1..5_usize, 2..5_usize, value.clone())
            .prop_map(|(start, width, rows, value)| Operation::FillRows { start, width, rows, value }),
        (0..CELLS, value.clone()).prop_map(|(cell, amount)| Operation::Add { cell, amount }),
        range().prop_map(|(start, len)| Operation::Increment { start, len }),
        (0..HALF, 0..HALF, 1..6_usize, any::<bool>()).prop_map(|(one, two, len, is_back)| {
            let len = len.min(HALF - one).min(HALF - two);
            let (from, to) = if is_back { (HALF + one, two) } else { (one, HALF + two) };
            Operation::Copy { from, to, len }
        }),
        ([0..CELLS, 0..CELLS], value).prop_map(|(cells, amount)| Operation::Child { cells, amount }),
    ]
}

impl Operation {
    pub(crate) fn run(self, cells: &mut Cells) {
        match self {
            Self::Fill { start, len, value } => cells[start..start + len].fill(value),
            Self::FillRows { start, width, rows, value } => {
                (0..rows).for_each(|row| cells[start + 8 * row..][..width].fill(value));
            }
            Self::Add { cell, amount } => cells[cell] += amount,
            Self::Increment { start, len } => {
                cells[start..start + len].iter_mut().for_each(|cell| *cell += 1)
            }
            Self::Copy { from, to, len } => cells.copy_within(from..from + len, to),
            Self::Child { cells: two, amount } => two.iter().for_each(|cell| cells[*cell] += amount),
        }
    }
}

/// The device's side of the programs.
pub(crate) struct Machine {
    pub(crate) context: Context,
    pub(crate) stream: Stream,
    pub(crate) cells: Buffer<u32>,
    add: add_to,
    increment: increment_all,
}

impl Machine {
    pub(crate) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        Self {
            context: context.clone(),
            cells: stream.zeros(CELLS).unwrap(),
            stream,
            add: add_to::load(context).unwrap(),
            increment: increment_all::load(context).unwrap(),
        }
    }

    /// Adds the node of an operation.
    pub(crate) fn add(&self, at: &Frontier<'_>, operation: Operation) -> Node {
        let slice = |start: usize, len: usize| self.cells.slice(start..start + len).unwrap();
        match operation {
            Operation::Fill { start, len, value } => at.fill(slice(start, len), value).unwrap().into(),
            Operation::FillRows { start, width, rows, value } => {
                let target = self.cells.slice(start..).unwrap();
                at.fill_2d(target, 8, [width, rows], value).unwrap().into()
            }
            Operation::Add { cell, amount } => {
                at.launch(&self.add, per(1, 1), (amount, slice(cell, 1))).unwrap().into()
            }
            Operation::Increment { start, len } => {
                let arguments = (len as u32, slice(start, len));
                at.launch(&self.increment, per(len, 32), arguments).unwrap().into()
            }
            Operation::Copy { from, to, len } => at.copy(slice(from, len), slice(to, len)).unwrap().into(),
            Operation::Child { cells, amount } => {
                let child = self.context.graph().unwrap();
                let add = |at: &Frontier<'_>, cell| {
                    at.launch(&self.add, per(1, 1), (amount, slice(cell, 1))).unwrap()
                };
                let first = add(&child.root(), cells[0]);
                add(&first.then(), cells[1]);
                at.child(&child).unwrap().into()
            }
        }
    }

    /// The graph in which each operation waits for the one before.
    pub(crate) fn chain(&self, operations: &[Operation]) -> Graph {
        let graph = self.context.graph().unwrap();
        let mut last: Option<Node> = None;
        for operation in operations {
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            last = Some(self.add(&at, *operation));
        }
        graph
    }

    pub(crate) fn read(&self) -> Cells {
        self.cells.read_blocking(&self.stream).unwrap().try_into().unwrap()
    }
}
