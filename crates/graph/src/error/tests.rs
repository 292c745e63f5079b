//! Every error is read: one line, of bounded length, in correct language.

use cuda_sys::{CUgraphInstantiateResult, CUresult, Feature, Version};

use super::*;
use crate::alloc_options::AllocPlace;
use crate::edge_kind::EdgeKind;
use crate::error::instantiate::InstantiateError;
use crate::error::memory_order::MemoryOrder;
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;

fn cycle(nodes: usize) -> String {
    Error::Edge(EdgeError::Cycle { path: (0..nodes).map(|node| format!("n{node}")).collect() }).to_string()
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
        Error::Capture(error) => format!("capture {:?}", discriminant(error)),
        Error::Memory(error) => format!("memory {:?}", discriminant(error)),
        Error::Exec(error) => format!("exec {:?}", discriminant(error)),
        Error::Update(error) => format!("update {:?}", discriminant(error)),
        Error::Param(error) => format!("param {:?}", discriminant(error)),
        Error::Cache(error) => format!("cache {:?}", discriminant(error)),
        Error::Loop(error) => format!("loop {:?}", discriminant(error)),
        Error::Draw(error) => format!("draw {:?}", discriminant(error)),
        Error::Handles(_)
        | Error::Launch(_)
        | Error::TooOld(_)
        | Error::Broken(_)
        | Error::RemovedSome { .. }
        | Error::HostLoop(_) => {
            format!("{:?}", discriminant(error))
        }
    }
}

/// Every error, those with numbers or words in several forms.
fn every_error(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let groups: [fn(&str) -> Vec<Error>; 14] = [
        cache_errors,
        capture_errors,
        update_errors,
        param_errors,
        node_errors,
        edge_errors,
        exec_errors,
        interop_errors,
        embed_errors,
        other_errors,
        condition_errors,
        memory_errors,
        loop_errors,
        draw_errors,
    ];
    let mut all: Vec<Error> = groups.iter().flat_map(|group| group(name)).collect();
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
        let (count, size, given) = (number, number, number);
        all.push(Error::Node(NodeError::CopySize {
            what: "the source of a copy",
            node: node(),
            need: number,
            given,
        }));
        all.push(Error::Node(NodeError::FillElement { node: node(), what: "the value", size, given }));
        all.push(Error::Node(NodeError::NoEntry { node: node(), what: "operation", index: 3, count }));
        all.push(Error::Node(NodeError::PastEnd {
            what: "the destination",
            address: 16,
            need: number,
            room: number,
        }));
        all.push(Error::Draw(DrawError::PictureTooLarge { nodes: number, edges: number }));
        all.push(Error::Memory(MemoryError::LargerThanDevice { bytes: number, device: 0, total: number }));
    }
    all
}

fn capture_errors(name: &str) -> Vec<Error> {
    let kinds = ["primary", "fork", "body"];
    let not_copied = CaptureError::NotCopied { node: NodeName::from(name) };
    let changed = CaptureError::LaunchChanged { kernel: NodeName::from(name) };
    let not_new = CaptureError::NotNew { node: NodeName::from(name) };
    let same_scratch = CaptureError::SameScratch { node: NodeName::from(name) };
    let mut all = vec![CaptureError::NotABody, CaptureError::GivenUp, not_copied];
    all.extend([changed, not_new, same_scratch]);
    for (call, place) in [(name, name), ("launch of `scale`", "argument `n`"), ("fill", "its memory")] {
        let (call, place) = (NodeName::from(call), NodeName::from(place));
        all.push(CaptureError::ParamCallChanged { call: call.clone(), place: place.clone() });
        all.push(CaptureError::ParamCallTwice { call, place });
    }
    for kind in kinds {
        all.extend([CaptureError::Over { kind }, CaptureError::OtherCapture { kind }]);
        all.push(CaptureError::OutsideBody { kind });
        for count in [1, 2] {
            all.push(CaptureError::Unjoined { kind, forks: count });
            all.push(CaptureError::BodyOpen { kind, bodies: count });
        }
    }
    all.extend([1, 2].map(|found| CaptureError::OtherShape { expected: 1, found }));
    all.into_iter().map(Error::Capture).collect()
}

fn update_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    vec![
        UpdateError::NotInExecutable { node: node() }.into(),
        UpdateError::Unpaired { why: "nodes were changed" }.into(),
        UpdateError::Lent.into(),
        UpdateError::Meets { node: node(), other: node(), why: Meeting::Conflict }.into(),
        UpdateError::Meets { node: node(), other: node(), why: Meeting::Unknown }.into(),
        UpdateError::Meets { node: node(), other: node(), why: Meeting::TooMany }.into(),
        UpdateError::NotPossible { node: node(), why: "it copies in two dimensions".into() }.into(),
    ]
}

fn param_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let mut all = vec![
        ParamError::Foreign,
        ParamError::WrongType,
        ParamError::MadeLater,
        ParamError::MemoryElsewhere { kernel: name.into() },
        ParamError::Attributes,
        ParamError::GraphMemory { address: 512 },
        ParamError::OwnOutput { address: 512 },
        ParamError::NotTaken { call: "Frontier::fill_2d" },
    ];
    all.extend([
        ParamError::NotStorable { kernel: node() },
        ParamError::Exchanged { node: node(), side: "source", is_pooled: true },
        ParamError::Exchanged { node: node(), side: "destination", is_pooled: false },
        ParamError::TooLong { node: node(), len: 1 << 40, longest: 1 << 31 },
        ParamError::NoRoom { node: node(), bytes: 2, room: 1 },
        ParamError::NotDisabled { node: node() },
        ParamError::Bound { node: node() },
        ParamError::NotAllNamed { first: name.to_owned(), missing: 1, all: 2 },
        ParamError::Launch {
            node: NodeName::from(name),
            cause: Box::new(cuda_handles::Error::Forked.into()),
        },
        ParamError::WrongValue { node: node() },
    ]);
    all.into_iter().map(Error::from).collect()
}

fn cache_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let (what, cached, now) = ("argument `n`".to_owned(), "1".to_owned(), "2".to_owned());
    let constant = StaleConstant { node: node(), what, cached, now };
    let all = [
        CacheError::NoExecutables,
        CacheError::SharedWrite { node: node(), what: "target" },
        CacheError::MayWrite { node: node(), why: "it is a host function" },
        CacheError::InUse,
        CacheError::Full { bound: 1 },
        CacheError::Stale { found: vec![constant; 8] },
    ];
    all.into_iter().map(Error::from).collect()
}

fn node_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    vec![
        Error::Node(NodeError::Foreign { node: node() }),
        Error::Node(NodeError::Removed { node: node() }),
        Error::Node(NodeError::GraphRemoved),
        Error::Node(NodeError::NoElements { what: "memset" }),
        Error::Node(NodeError::GraphMoved),
        Error::Node(NodeError::NotCloned { node: node() }),
        Error::Node(NodeError::UnknownMemory { what: "the source", address: 16 }),
        Error::Node(NodeError::NotRestored { node: node() }),
        Error::Node(NodeError::NotInPart { node: node(), why: "other code has changed it".into() }),
        Error::Node(NodeError::NoParameter { kernel: node(), name: node(), known: "`n`, `x`".into() }),
        Error::Node(NodeError::ArgumentType {
            argument: node(),
            declared: "In<f32>".into(),
            found: "memory of the type `[u32]`".into(),
        }),
        Error::Node(NodeError::NotOneOperation { node: node(), count: 2 }),
        Error::RemovedSome {
            removed: vec![format!("node `{}` is removed", Named(name)); 1000],
            cause: Box::new(Error::Node(NodeError::GraphRemoved)),
        },
        Error::Node(NodeError::FixedAttribute { what: "the cluster" }),
        Error::Node(NodeError::AccessPolicyWindow { why: "it is empty".into() }),
    ]
}

fn edge_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let many = || vec![name.to_owned(); 1000];
    vec![
        Error::Edge(EdgeError::SelfEdge { node: node() }),
        Error::Edge(EdgeError::DuplicateEdge { from: node(), to: node() }),
        Error::Edge(EdgeError::NoEdge { from: node(), to: node() }),
        Error::Edge(EdgeError::Cycle { path: many() }),
        Error::Edge(EdgeError::EdgeTwice { from: node(), to: node() }),
        Error::Edge(EdgeError::MovesBefore),
        Error::Edge(EdgeError::Dataflow { what: "a capture" }),
    ]
}

fn exec_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let instantiate = InstantiateError {
        code: CUresult::CUDA_ERROR_INVALID_VALUE,
        result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
        node: Some(name.into()),
        findings: vec![],
    };
    vec![
        Error::Exec(ExecError::DeviceLaunch { node: Some(node()), why: "it waits for the host" }),
        Error::Exec(ExecError::Unsound { findings: vec!["a cycle".into(); 1000] }),
        Error::Exec(ExecError::Instantiate(Box::new(instantiate))),
        Error::Exec(ExecError::OneExecutable { of: "conditional nodes" }),
        Error::Exec(ExecError::Captured),
        Error::Exec(ExecError::MayRun),
        Error::Exec(ExecError::NotRebuilt { cause: "a stream has work".into() }),
    ]
}

fn interop_errors(_name: &str) -> Vec<Error> {
    vec![
        Error::Interop(InteropError::UnknownNode { raw: 16 }),
        Error::Interop(InteropError::AdoptedAlone { raw: 16 }),
        Error::Interop(InteropError::KnownAlready { raw: 16 }),
    ]
}

fn embed_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let found = Version::new(12, 2);
    vec![
        Error::Embed(EmbedError::EmbedsItself),
        Error::Embed(EmbedError::ReplacesItself { node: node() }),
        Error::Embed(EmbedError::Embedded { what: "instantiated" }),
        Error::Embed(EmbedError::HoldsChildren),
        Error::Embed(EmbedError::NotOwned),
        Error::Embed(EmbedError::CannotMove { found }),
    ]
}

fn other_errors(_name: &str) -> Vec<Error> {
    let found = Version::new(12, 2);
    let broken =
        Broken { cause: Error::Loop(LoopError::NotFilled), undo: Error::Node(NodeError::GraphMoved) };
    vec![Error::Broken(Box::new(broken)), found.ensure(Feature::Switch).unwrap_err().into()]
}

fn condition_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let many = || vec![name.to_owned(); 1000];
    vec![
        Error::Condition(ConditionError::ForeignCondition { node: node() }),
        Error::Condition(ConditionError::ConditionInUse { number: 1, node: node() }),
        Error::Condition(ConditionError::UnusedCondition { number: 1, default: Some(1), setters: many() }),
        Error::Condition(ConditionError::ChildInTwoBodies { conditional: node() }),
        Error::Condition(ConditionError::HasConditions { what: "cloned" }),
        Error::Condition(ConditionError::Branches { branches: 0 }),
        Error::Condition(ConditionError::SeveralContexts),
    ]
}

fn memory_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let cause = || Box::new(cuda_handles::Error::StillShared);
    let order = MemoryOrder {
        what: crate::error::memory_order::Disorder::UseAfterFree,
        allocation: name.into(),
        first: name.into(),
        second: name.into(),
    };
    vec![
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
    ]
}

fn loop_errors(name: &str) -> Vec<Error> {
    let node = || NodeName::from(name);
    let (needs, found) = (Version::new(12, 3), Version::new(12, 2));
    let run = HostLoopError {
        cause: Error::Loop(LoopError::NotFilled),
        within: vec![
            HostRound { node: name.into(), round: Some(1) },
            HostRound { node: name.into(), round: None },
        ],
        doing: "waiting for the end".into(),
    };
    vec![
        Error::Loop(LoopError::NeedsHost { node: node(), needs, found }),
        Error::Loop(LoopError::NotOnHost { node: node(), why: "it is of other code" }),
        Error::HostLoop(Box::new(run)),
        Error::Loop(LoopError::NoRounds),
        Error::Loop(LoopError::NothingToTest),
        Error::Loop(LoopError::NotFilled),
    ]
}

fn draw_errors(name: &str) -> Vec<Error> {
    vec![Error::Draw(DrawError::PathWithNul { path: name.into() })]
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
    let is_plain = !text.contains("  ") && !text.ends_with(['.', ' ', ',', ':', ';']) && !text.contains("``");
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
        include_str!("cache.rs"),
        include_str!("capture.rs"),
        include_str!("condition.rs"),
        include_str!("draw.rs"),
        include_str!("edge.rs"),
        include_str!("embed.rs"),
        include_str!("exec.rs"),
        include_str!("interop.rs"),
        include_str!("loops.rs"),
        include_str!("memory.rs"),
        include_str!("node.rs"),
        include_str!("param.rs"),
        include_str!("update.rs"),
    ];
    let declared: usize = groups.iter().map(|source| source.matches("#[error(").count()).sum();
    // Besides the groups there are `Broken`, `TooOld`, `RemovedSome` and `HostLoop`. The messages
    // of other crates' errors are checked there.
    assert_eq!(kinds.len(), declared + 4);
}

#[test]
fn errors_are_small() {
    assert!(size_of::<Error>() <= 64);
}
