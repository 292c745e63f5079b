//! The errors of this crate.

/// Shows an error's sentence where it is debug-printed, as by `main`.
macro_rules! shown {
    ($error:ty) => {
        impl core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, formatter)
            }
        }
    };
}

pub(crate) mod condition;
pub(crate) mod draw;
pub(crate) mod edge;
pub(crate) mod embed;
pub(crate) mod exec;
pub(crate) mod instantiate;
pub(crate) mod interop;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod memory_order;
pub(crate) mod node;
pub(crate) mod wrong_context;

pub use condition::ConditionError;
pub use draw::DrawError;
pub use edge::EdgeError;
pub use embed::EmbedError;
pub use exec::ExecError;
pub use interop::InteropError;
pub use loops::LoopError;
pub use memory::MemoryError;
pub use node::NodeError;

use core::fmt;

use crate::error::memory_order::MemoryOrder;
use crate::wording::{Named, Names};

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why an operation on a graph failed.
///
/// After an error the graph is as it was before, except after [`Broken`](Self::Broken) and
/// [`RemovedSome`](Self::RemovedSome). (The order in which the driver lists edges may differ.)
///
/// Nodes are given by [name](crate::Node::name). In an error message a name is one line of bounded
/// length, and a long list is cut after a dozen entries.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver failed, or an argument such as a stream or a buffer does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The configuration or the arguments of a kernel node do not match the kernel.
    #[error(transparent)]
    Launch(#[from] cuda_launch::Error),
    /// A change failed, now or earlier, and so did undoing it. The contents of the driver's graph
    /// are unknown, so the graph and all graphs embedded in its nodes refuse every further use.
    /// Executables made before still work.
    #[error(transparent)]
    Broken(Box<Broken>),
    /// The driver is too old for something in a graph.
    #[error(transparent)]
    TooOld(#[from] cuda_sys::DriverTooOld),
    /// An operation on a node, or with the parameters of one, is not possible.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Edges cannot be added, removed or changed as asked.
    #[error(transparent)]
    Edge(#[from] EdgeError),
    /// A graph cannot be embedded, moved or cloned as asked.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A graph of other code cannot be used as asked.
    #[error(transparent)]
    Interop(#[from] InteropError),
    /// A condition or a body cannot be used as asked.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// Memory of a graph cannot be used as asked.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is no executable of the graph, or it cannot be launched so.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A loop or branch cannot be built or run as asked.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A picture or a dump cannot be made.
    #[error(transparent)]
    Draw(#[from] DrawError),
}

shown!(Error);

/// Why a graph is [broken](Error::Broken).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the graph cannot be used any more, as a change of it failed ({cause}) and taking that back failed, too ({undo}); build it anew"
)]
#[non_exhaustive]
pub struct Broken {
    /// Why the change failed.
    pub cause: Error,
    /// Why the change could not be undone.
    pub undo: Error,
}

/// Where and why a run failed in which the host decides. Work enqueued before has run or still
/// runs; the next run starts anew.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the run failed {}{doing}: {cause}", Rounds(within))]
#[non_exhaustive]
pub struct HostLoopError {
    /// The reason.
    pub cause: Error,
    /// The loops and branches around the failure, from the outside in.
    pub within: Vec<HostRound>,
    /// The failed step, as in `launching what comes next`.
    pub doing: Box<str>,
}

/// A loop in progress with the current round, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRound {
    /// The loop or branch, by name.
    pub node: String,
    /// The round, counted from 1; `None` for a branch.
    pub round: Option<u64>,
}

struct Rounds<'a>(&'a [HostRound]);

impl fmt::Display for Rounds<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|HostRound { node, round }| match round {
            Some(round) => write!(formatter, "in round {round} of `{}`, ", Named(node)),
            None => write!(formatter, "in `{}`, ", Named(node)),
        })
    }
}

impl Error {
    /// The most branches of a switch.
    pub(crate) const MOST_BRANCHES: usize = 1000;
}

pub(crate) struct Default(Option<u32>);

impl fmt::Display for Default {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(formatter, "default {value}"),
            None => formatter.write_str("without default"),
        }
    }
}

pub(crate) struct Setters<'a>(&'a [String]);

impl fmt::Display for Setters<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            setters => write!(formatter, ", though set by {}", Names(setters)),
        }
    }
}

pub(crate) struct Orders<'a>(&'a [MemoryOrder]);

impl fmt::Display for Orders<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for order in self.0 {
            write!(formatter, "{separator}{order}")?;
            separator = "; ";
        }
        Ok(())
    }
}

pub(crate) struct Path<'a>(&'a [String]);

impl fmt::Display for Path<'_> {
    /// Long cycles are shown by their ends.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let left_out = self.0.len().saturating_sub(SHOWN);
        let ends = SHOWN / 2;
        for (index, node) in self.0.iter().enumerate() {
            match index {
                _ if left_out == 0 || index < ends || index >= ends + left_out => {
                    write!(formatter, "`{}` -> ", Named(node))?;
                }
                _ if index == ends => write!(formatter, "{left_out} more -> ")?,
                _ => {}
            }
        }
        self.0.first().map_or(Ok(()), |first| write!(formatter, "`{}`", Named(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc_options::AllocPlace;
    use crate::edge_kind::EdgeKind;
    use crate::error::instantiate::InstantiateError;
    use crate::node_name::NodeName;

    fn cycle(nodes: usize) -> String {
        Error::Edge(EdgeError::Cycle { path: (0..nodes).map(|node| format!("n{node}")).collect() })
            .to_string()
    }

    #[test]
    fn a_cycle_reads_as_a_path() {
        assert_eq!(cycle(2), "the edge would close a cycle: `n0` -> `n1` -> `n0`");
        let long = cycle(1000);
        assert!(long.contains("`n5` -> 988 more -> `n994`"), "{long}");
        assert!(long.ends_with("`n999` -> `n0`"));
    }

    /// A name that tries to break out of one line.
    fn hostile() -> String {
        format!("a\0b\n\u{1b}[31m\u{202e}{}", "x".repeat(100_000))
    }

    /// Tells the variants of all groups apart.
    fn kind(error: &Error) -> String {
        use core::mem::discriminant;
        match error {
            Error::Node(error) => format!("node {:?}", discriminant(error)),
            Error::Edge(error) => format!("edge {:?}", discriminant(error)),
            Error::Embed(error) => format!("embed {:?}", discriminant(error)),
            Error::Interop(error) => format!("interop {:?}", discriminant(error)),
            Error::Condition(error) => format!("condition {:?}", discriminant(error)),
            Error::Memory(error) => format!("memory {:?}", discriminant(error)),
            Error::Exec(error) => format!("exec {:?}", discriminant(error)),
            Error::Loop(error) => format!("loop {:?}", discriminant(error)),
            Error::Draw(error) => format!("draw {:?}", discriminant(error)),
            Error::Handles(_) | Error::Launch(_) | Error::TooOld(_) | Error::Broken(_) => {
                format!("{:?}", discriminant(error))
            }
        }
    }

    /// Every error, those with numbers or words in several forms.
    fn every_error(name: &str) -> Vec<Error> {
        use crate::node_kind::NodeKind;
        use cuda_sys::{CUgraphInstantiateResult, CUresult, Feature, Version};
        let node = || NodeName::from(name);
        let (needs, found) = (Version::new(12, 3), Version::new(12, 2));
        let cause = || Box::new(Error::Node(NodeError::GraphRemoved));
        let many = || vec![name.to_owned(); 1000];
        let broken =
            Broken { cause: Error::Loop(LoopError::NotFilled), undo: Error::Node(NodeError::GraphMoved) };
        let order = MemoryOrder {
            what: crate::error::memory_order::Disorder::UseAfterFree,
            allocation: name.into(),
            first: name.into(),
            second: name.into(),
        };
        let instantiate = InstantiateError {
            code: CUresult::CUDA_ERROR_INVALID_VALUE,
            result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
            node: Some(name.into()),
            findings: vec![],
        };
        let run = HostLoopError {
            cause: Error::Loop(LoopError::NotFilled),
            within: vec![
                HostRound { node: name.into(), round: Some(1) },
                HostRound { node: name.into(), round: None },
            ],
            doing: "waiting for the end".into(),
        };
        let mut all = vec![
            Error::Node(NodeError::Foreign { node: node() }),
            Error::Node(NodeError::Removed { node: node() }),
            Error::Node(NodeError::GraphRemoved),
            Error::Edge(EdgeError::SelfEdge { node: node() }),
            Error::Edge(EdgeError::DuplicateEdge { from: node(), to: node() }),
            Error::Edge(EdgeError::NoEdge { from: node(), to: node() }),
            Error::Edge(EdgeError::Cycle { path: many() }),
            Error::Node(NodeError::NoElements { what: "memset" }),
            Error::Exec(ExecError::DeviceLaunch { node: Some(node()), why: "it waits for the host" }),
            Error::Exec(ExecError::Unsound { findings: vec!["a cycle".into(); 1000] }),
            Error::Exec(ExecError::Instantiate(Box::new(instantiate))),
            Error::Interop(InteropError::UnknownNode { raw: 16 }),
            Error::Interop(InteropError::AdoptedAlone { raw: 16 }),
            Error::Interop(InteropError::KnownAlready { raw: 16 }),
            Error::Node(NodeError::GraphMoved),
            Error::Embed(EmbedError::EmbedsItself),
            Error::Embed(EmbedError::ReplacesItself { node: node() }),
            Error::Embed(EmbedError::Embedded { what: "instantiated" }),
            Error::Embed(EmbedError::HoldsChildren),
            Error::Embed(EmbedError::NotOwned),
            Error::Embed(EmbedError::CannotMove { found }),
            Error::Node(NodeError::NotCloned { node: node() }),
            Error::Node(NodeError::UnknownMemory { what: "the source", address: 16 }),
            Error::Edge(EdgeError::EdgeTwice { from: node(), to: node() }),
            Error::Edge(EdgeError::MovesBefore),
            Error::Broken(Box::new(broken)),
            Error::Node(NodeError::NotRestored { node: node() }),
            Error::Node(NodeError::RemovedSome {
                removed: vec![format!("node `{}` is removed", Named(name)); 1000],
                cause: cause(),
            }),
            Error::Node(NodeError::FixedAttribute { what: "the cluster" }),
            Error::Node(NodeError::AccessPolicyWindow { why: "it is empty".into() }),
            Error::Condition(ConditionError::ForeignCondition { node: node() }),
            Error::Condition(ConditionError::ConditionInUse { number: 1, node: node() }),
            Error::Condition(ConditionError::UnusedCondition {
                number: 1,
                default: Some(1),
                setters: many(),
            }),
            Error::Condition(ConditionError::ChildInTwoBodies { conditional: node() }),
            Error::Condition(ConditionError::HasConditions { what: "cloned" }),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" }),
            Error::Memory(MemoryError::MemoryOrder { found: vec![order; 8], more: 1 }),
            Error::Memory(MemoryError::ForeignMemory { node: node() }),
            Error::Memory(MemoryError::FreedTwice { memory: node(), free: node() }),
            Error::Memory(MemoryError::FreedTooLate { memory: node() }),
            Error::Memory(MemoryError::FreeRefused { memory: node(), cause: cause() }),
            Error::Memory(MemoryError::PoolOutOfReach { own: 0, of: 1 }),
            Error::Memory(MemoryError::HasMemory),
            Error::Memory(MemoryError::KeepsAll { what: "node" }),
            Error::Memory(MemoryError::NoMemoryThere { place: AllocPlace::Host, cause: cause() }),
            Error::Memory(MemoryError::OutputInUse { node: node() }),
            Error::Memory(MemoryError::NoOutput { address: 16 }),
            Error::Memory(MemoryError::OutputTaken { address: 16 }),
            found.ensure(Feature::Switch).unwrap_err().into(),
            Error::Loop(LoopError::NeedsHost { node: node(), needs, found }),
            Error::Loop(LoopError::NotOnHost { node: node(), why: "it is of other code" }),
            Error::Loop(LoopError::HostLoop(Box::new(run))),
            Error::Condition(ConditionError::Branches { branches: 0 }),
            Error::Loop(LoopError::NoRounds),
            Error::Loop(LoopError::NothingToTest),
            Error::Loop(LoopError::NotFilled),
            Error::Draw(DrawError::PathWithNul { path: name.into() }),
        ];
        let kinds = [
            NodeKind::Empty,
            NodeKind::Kernel,
            NodeKind::Memcpy,
            NodeKind::Memset,
            NodeKind::ChildGraph,
            NodeKind::If,
            NodeKind::IfElse,
            NodeKind::While,
            NodeKind::Switch,
            NodeKind::HostCallback,
            NodeKind::EventRecord,
            NodeKind::EventWait,
            NodeKind::Batch,
            NodeKind::Alloc,
            NodeKind::Free,
            NodeKind::SemaphoreSignal,
            NodeKind::SemaphoreWait,
            NodeKind::Other(cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL),
        ];
        for kind in kinds {
            all.push(Error::Condition(ConditionError::NotInBody { kind, conditional: node() }));
            all.push(Error::Memory(MemoryError::FreedBefore { kind, memory: node(), free: node() }));
            all.push(Error::Memory(MemoryError::MemoryEmbedded { kind }));
            all.push(Error::Loop(LoopError::HostDecides { kind, node: node() }));
        }
        for kind in
            [EdgeKind::Full, EdgeKind::Programmatic, EdgeKind::LaunchOrder, EdgeKind::ProgrammaticLaunchOrder]
        {
            all.push(Error::Edge(EdgeError::EdgeKind { kind, from: node() }));
        }
        for number in [0, 1, 2, usize::MAX] {
            all.push(Error::Node(NodeError::PastEnd {
                what: "the destination",
                address: 16,
                need: number,
                room: number,
            }));
            all.push(Error::Draw(DrawError::PictureTooLarge { nodes: number, edges: number }));
            all.push(Error::Memory(MemoryError::LargerThanDevice {
                bytes: number,
                device: 0,
                total: number,
            }));
        }
        all
    }

    /// The first defect in the language of a text.
    fn fault(text: &str) -> Option<String> {
        let words: Vec<&str> =
            text.split(' ').map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric())).collect();
        for pair in words.windows(2) {
            let vowel = pair[1].starts_with(['a', 'e', 'i', 'o']) && !pair[1].starts_with("one");
            let plural = pair[1].ends_with('s') && !["is", "has", "was"].contains(&pair[1]);
            if pair[0] == "a" && vowel || pair[0] == "an" && !vowel || pair[0] == "1" && plural {
                return Some(pair.join(" "));
            }
        }
        let is_plain =
            !text.contains("  ") && !text.ends_with(['.', ' ', ',', ':', ';']) && !text.contains("``");
        let begins = text.chars().next().is_some_and(|first| !first.is_uppercase());
        let is_line = text.chars().all(crate::wording::is_plain) && text.chars().count() < 5000;
        (!is_plain || !begins || !is_line).then(|| "its form".to_owned())
    }

    /// Prints the messages to be read, too: `cargo test -p cuda-graph every_error -- --nocapture`.
    #[test]
    fn every_error_is_one_line_of_correct_language() {
        let mut kinds = std::collections::HashSet::new();
        for error in every_error("step").into_iter().chain(every_error(&hostile())) {
            kinds.insert(kind(&error));
            let text = error.to_string();
            if !text.contains('…') {
                println!("{text}");
            }
            assert_eq!(fault(&text), None, "{text}");
        }
        let groups = [
            include_str!("condition.rs"),
            include_str!("draw.rs"),
            include_str!("edge.rs"),
            include_str!("embed.rs"),
            include_str!("exec.rs"),
            include_str!("interop.rs"),
            include_str!("loops.rs"),
            include_str!("memory.rs"),
            include_str!("node.rs"),
        ];
        let declared: usize = groups.iter().map(|source| source.matches("#[error(").count()).sum();
        // Besides the groups there are `Broken` and `TooOld`. The messages of other crates' errors
        // are checked there.
        assert_eq!(kinds.len(), declared + 2);
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<Error>() <= 64);
    }
}
