//! The operations. Things go by numbers, modulo how many there are.

use arbitrary::Arbitrary;

/// The number of a thing.
pub(super) type Number = u8;

#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Op {
    NewGraph,
    Add { at: Number, work: NewWork, after: [Option<Number>; 3], before: Option<Number> },
    AddEdge { at: Number, from: Number, to: Number },
    AddEdges { at: Number, edges: [(Number, Number); 3] },
    RemoveEdge { at: Number, edge: Number },
    SetInEdges { at: Number, node: Number, from: [Option<Number>; 2] },
    RemoveNode { at: Number, node: Number },
    RemoveBridging { at: Number, node: Number },
    UseRemoved { root: Number, node: Number },
    SetNode { at: Number, node: Number, work: NewWork },
    NewParam { root: Number, value: ParamValue },
    Clone { at: Number },
    Embed { at: Number, of: Number, after: Option<Number> },
    Move { at: Number, of: Number, after: Option<Number> },
    Replace { at: Number, node: Number, of: Number },
    DropGraph { root: Number },
    Instantiate { root: Number },
    SetExecNode { exec: Number, at: Number, node: Number, work: NewWork },
    Enable { exec: Number, at: Number, node: Number, on: bool },
    SetParam { exec: Number, param: Number, value: Number },
    Update { exec: Number, root: Number, or_rebuild: bool },
    Launch { exec: Number, stream: bool },
    DropExec { exec: Number },
    Reset { value: u8 },
    Check,
}

/// The work of a new node, or new work of a node.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum NewWork {
    Empty,
    Add { cell: NewOperand, amount: NewOperand },
    Fill { cell: NewOperand, value: NewOperand },
}

/// A value, or a graph parameter by its number.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum NewOperand {
    Fixed(u8),
    Param(Number),
}

/// The first value of a graph parameter.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum ParamValue {
    Number(u8),
    Cell(Number),
}
