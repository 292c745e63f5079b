//! The sentence of each finding.

use core::fmt;

use super::{Finding, FoundNode};
use crate::error::memory_order::Disorder;
use crate::wording::{A, Names};

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_fault(formatter)?;
        write!(formatter, "; {}", self.remedy())
    }
}

impl Finding {
    /// The sentence without the remedy.
    fn write_fault(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle { nodes } => write_cycle(formatter, nodes),
            Self::NotInBody { node, pageable: true, conditional, .. } => write!(
                formatter,
                "not in a body: {node} copies pageable memory of the host, which the driver does not do in a \
                 body, here of {conditional}"
            ),
            Self::NotInBody { node, kind, conditional, .. } => write!(
                formatter,
                "not in a body: {} as {node} cannot be in a body, here of {conditional}",
                A(format_args!("{kind} node"))
            ),
            Self::MixedContexts { node, conditional } => write!(
                formatter,
                "mixed contexts: {node} launches a kernel of another context than that of {conditional}, in \
                 whose body it is; all kernels of a body are of one context"
            ),
            Self::UnusedCondition { number, default, setters } => {
                write_unused(formatter, *number, *default, setters)
            }
            Self::UnorderedCondition { number, setter, conditional, may_wait, .. } => {
                write!(
                    formatter,
                    "unordered condition: {setter} may set condition {number}, and {conditional} goes by it, \
                     with no path between them"
                )?;
                match may_wait {
                    true => {
                        formatter.write_str(" but one that does not wait for the end of each kernel on it")
                    }
                    false => Ok(()),
                }
            }
            Self::EndlessLoop { number, conditional } => write!(
                formatter,
                "endless loop: {conditional} goes by condition {number}, and no kernel in its body gets that, so \
                 that it does not end once it begins"
            ),
            Self::MemoryOrder { what, allocation, first, second, .. } => {
                write_disorder(formatter, *what, allocation, [first, second])
            }
            Self::NeverFreed { allocation, bytes } => write!(
                formatter,
                "never freed: no node frees the memory of {bytes} bytes that {allocation} allocates, so that \
                 each launch leaves it"
            ),
            Self::Race(race) => write!(formatter, "{race}"),
        }
    }
}

fn write_cycle(formatter: &mut fmt::Formatter<'_>, nodes: &[FoundNode]) -> fmt::Result {
    formatter.write_str("cycle: ")?;
    let (head, more, tail) = ends(nodes);
    head.iter().try_for_each(|node| write!(formatter, "{node} -> "))?;
    if more > 0 {
        write!(formatter, "{more} more -> ")?;
    }
    tail.iter().try_for_each(|node| write!(formatter, "{node} -> "))?;
    match nodes.first() {
        Some(first) => write!(formatter, "{first}")?,
        None => formatter.write_str("?")?,
    }
    formatter.write_str(" wait for each other")
}

fn write_unused(
    formatter: &mut fmt::Formatter<'_>,
    number: u64,
    default: Option<u32>,
    setters: &[String],
) -> fmt::Result {
    write!(formatter, "unused condition: condition {number}")?;
    if let Some(default) = default {
        write!(formatter, " with default {default}")?;
    }
    formatter.write_str(" is used by no conditional node")?;
    if !setters.is_empty() {
        let set = if setters.len() == 1 { "sets" } else { "set" };
        write!(formatter, " ({} {set} it)", Names(setters))?;
    }
    formatter.write_str(", and the driver makes no executable of such a graph")
}

fn write_disorder(
    formatter: &mut fmt::Formatter<'_>,
    what: Disorder,
    allocation: &FoundNode,
    [first, second]: [&FoundNode; 2],
) -> fmt::Result {
    let does = if what == Disorder::UseBeforeAllocation { "uses" } else { "frees" };
    write!(
        formatter,
        "memory order: {second} {does} the memory that {allocation} allocates, and does not wait for "
    )?;
    match what {
        Disorder::UseAfterFree => write!(formatter, "the end of {first}, which uses it"),
        Disorder::UseBeforeAllocation | Disorder::FreeBeforeAllocation => formatter.write_str("that"),
    }
}

/// The first and the last of many, and how many lie between.
fn ends<T>(all: &[T]) -> (&[T], usize, &[T]) {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let (head, tail) = all.split_at(if more > 0 { SHOWN / 2 } else { all.len() });
    (head, more, tail.get(more..).unwrap_or(tail))
}
