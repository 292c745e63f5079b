//! The nodes that evaluate tests and set conditions.

use std::sync::Arc;

use cuda_handles::{Buffer, Kernel};
use cuda_launch::internal::{Accesses, Declaration, Memory, MemoryParameter, StoredArguments};
use cuda_launch::{Access, Params, per};

use super::test::Test;
use crate::build::frontier::Frontier;
use crate::condition::Condition;
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::own_kernels::{Own, OwnImage};
use crate::param::bind::{NewBinding, of_decider};
use crate::state::bindings::{BoundDecider, DeciderLaunch};
use crate::state::loop_control::{DecisionPoint, LoopControl};

/// The count of a loop's rounds, and its limit.
#[derive(Debug)]
pub(super) struct RoundCounter {
    pub(super) count: Buffer<u64>,
    pub(super) limit: u64,
}

/// The position of a deciding kernel's condition.
const HANDLE: usize = 0;

/// The positions of its parameters that lead to memory.
const FLAG: usize = 1;
const COUNT: usize = 5;

/// Its accesses to the memory of the first, which is of any type, and of the second.
const READ: MemoryParameter = MemoryParameter { access: Access::Read, by_address: true, element: 1 };
const COUNTED: MemoryParameter = MemoryParameter { access: Access::ReadWrite, by_address: true, element: 8 };

/// The parameters of a deciding kernel. The kernel of a branch counts nothing.
const fn declared(counts: bool) -> Declaration {
    const NAMES: &[&str] = &["handle", "flag", "test", "value", "stand", "count", "limit"];
    let memory: &[Option<MemoryParameter>] = match counts {
        true => &[None, Some(READ), None, None, None, Some(COUNTED), None],
        false => &[None, Some(READ), None, None, None, None, None],
    };
    Declaration { names: NAMES, memory, ends_alone: true, ..Declaration::NONE }
}

static BRANCH: Declaration = declared(false);
static LOOP: Declaration = declared(true);

/// The memory of a count.
fn counted(count: &Buffer<u64>) -> Memory<'_> {
    let (start, bytes) = (count.address(), count.size_bytes() as u64);
    Memory { allocation: count.allocation(), start, bytes, written: true }
}

/// Makes the nodes that decide about one loop or branch.
#[derive(Debug)]
pub(super) struct Decider<'m> {
    /// `None` if the host decides.
    kernel: Option<(Arc<Own>, Kernel)>,
    test: Test<'m>,
    rounds: Option<RoundCounter>,
}

impl<'m> Decider<'m> {
    /// The decider of a branch.
    pub(super) fn of(graph: &Graph, test: Test<'m>, by_host: bool) -> Result<Self> {
        test.check(graph.context())?;
        let mut decider = Self { kernel: None, test, rounds: None };
        if !by_host {
            let own = Own::of(graph.context(), OwnImage::Conditions)?;
            decider.kernel = Some((Arc::clone(&own), own.kernel(test.kernel())?));
        }
        Ok(decider)
    }

    /// The decider of a loop, which counts its rounds.
    pub(super) fn counting(self, rounds: RoundCounter) -> Self {
        Self { rounds: Some(rounds), ..self }
    }

    pub(super) fn is_for_host(&self) -> bool {
        self.kernel.is_none()
    }

    /// The memory that the decisions depend on, for the host and for checks.
    pub(super) fn control(&self) -> Result<Arc<LoopControl>> {
        let rounds = self.rounds.as_ref().map(|rounds| (&rounds.count, rounds.limit));
        let param = self.test.param().map(|(placeholder, _)| placeholder.number());
        LoopControl::new(Box::new(self.test.owned()?), param, rounds).map(Arc::new)
    }

    /// The kernel's memory accesses.
    fn accesses(&self) -> Accesses {
        let mut accesses = Accesses::new(if self.rounds.is_some() { &LOOP } else { &BRANCH });
        accesses.note(FLAG, &self.test.memory(), READ);
        if let Some(rounds) = &self.rounds {
            accesses.note(COUNT, &counted(&rounds.count), COUNTED);
        }
        accesses
    }

    /// The use of a graph parameter by a node that decides.
    fn binding(&self, launch: impl FnOnce() -> Option<Box<DeciderLaunch>>) -> Result<Option<NewBinding>> {
        let Some((placeholder, of)) = self.test.param() else { return Ok(None) };
        let element = self.test.memory().bytes;
        of_decider(placeholder, of, BoundDecider { launch: launch(), bytes: element, element })
    }

    /// The launch of the kernel, owned.
    fn launch(&self, kernel: &Kernel, params: &Params<'_>) -> DeciderLaunch {
        let declaration = if self.rounds.is_some() { &LOOP } else { &BRANCH };
        let count = self.rounds.as_ref().map(|rounds| (COUNT, counted(&rounds.count)));
        let memory = core::iter::once((FLAG, self.test.memory())).chain(count);
        // SAFETY: the kernel has these parameters, and its memory at these positions.
        let arguments = unsafe { StoredArguments::untyped(declaration, params, memory, [HANDLE]) };
        DeciderLaunch { kernel: kernel.clone(), config: per(1, 1), arguments, tested: FLAG }
    }

    /// Adds a node that decides: a kernel that sets the condition or, without one, an empty node in
    /// its place.
    pub(super) fn add(
        &self,
        at: &Frontier<'_>,
        condition: Option<&Condition>,
        point: DecisionPoint,
    ) -> Result<Node> {
        let (Some((own, kernel)), Some(condition)) = (&self.kernel, condition) else {
            // The same check as for the kernel's arguments.
            let guard = at.graph().enter()?;
            guard.ensure_of_here(self.test.memory().allocation, || self.test.kernel().into())?;
            drop(guard);
            return match self.binding(|| None)? {
                None => Ok(at.empty()?.into()),
                Some(binding) => Ok(at.bound_empty(binding)?.into()),
            };
        };
        let mut params = Params::new();
        params.push(condition);
        self.test.push_to(&mut params);
        params.push(point as u32);
        match &self.rounds {
            Some(rounds) => params.push(&rounds.count),
            None => params.push(0_u64),
        }
        params.push(self.rounds.as_ref().map_or(0, |rounds| rounds.limit));
        let accesses = self.accesses();
        let binding = self.binding(|| Some(Box::new(self.launch(kernel, &params))))?;
        // SAFETY: these are the arguments of the library's kernel. One thread of it reads the first
        // element of the tested memory, which has one, and is the only one to write the count,
        // which a branch does not use. Device memory is no Rust reference, so unordered work of
        // others changes numbers and nothing else.
        let node = unsafe { at.launch_keeping(kernel, per(1, 1), params, accesses, own.owner(), binding) }?;
        Ok(node.into())
    }
}
