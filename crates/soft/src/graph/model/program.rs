//! The program of an executable: a copy of the graph's nodes in topological order.

use std::sync::Arc;

use cuda_sys::CUgraphNodeType;

use super::payload::ConditionalKind;
use super::task::Task;
use crate::graph::model::condition_values::ConditionValues;
use crate::graph::model::edge::Edge;

/// The work of a step.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Task(Task),
    Child(Level),
    Conditional { handle: u64, condition: ConditionalKind, bodies: Vec<Level> },
}

impl Work {
    /// Whether it may wait for another branch or stream.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Task(task) => task.waits(),
            Self::Child(level) => level.waits,
            Self::Conditional { .. } => false,
        }
    }

    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Task(task) => task.kind(),
            Self::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Conditional { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }
}

/// One node of an executable.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The node that it was compiled from, for messages.
    pub(crate) node: u64,
    /// The uid of that node.
    pub(crate) uid: u64,
    pub(crate) enabled: bool,
    pub(crate) work: Work,
    /// The steps it depends on, in the order added.
    pub(crate) dependencies: Vec<(usize, Edge)>,
    /// How many steps depend on it.
    pub(crate) dependents: usize,
}

/// The steps of one graph: the root, a child or a body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    /// In the order of creation.
    pub(crate) created: Vec<usize>,
    /// In topological order.
    pub(crate) order: Vec<usize>,
    /// Whether a step may wait for another branch.
    pub(crate) waits: bool,
    /// Whether a kernel may begin before one in front of it has ended.
    pub(crate) is_early: bool,
}

/// Everything that an executable runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) top: Level,
    /// The root's conditions, with the values to set at each launch.
    pub(crate) conditions: Vec<(u64, Option<u32>)>,
    /// They belong to the executable and survive updates.
    pub(crate) values: Arc<ConditionValues>,
}
