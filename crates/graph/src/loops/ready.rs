//! What a ready-made loop or branch goes by, for whoever decides in the driver's place.

use std::any::Any;
use std::sync::Arc;

use cuda_handles::{Buffer, Owner, Stream};

use super::decide::{Rounds, Stand};
use super::test::{Held, Test};
use crate::detail::Detail;
use crate::error::Result;
use crate::graph::Locked;
use crate::node::Node;
use crate::place::NodeId;

/// What a loop or a branch looks at, and where a loop counts its rounds. One of each, so that its address tells which it is.
#[derive(Debug)]
pub(crate) struct Ready {
    test: Held,
    rounds: Option<Counted>,
}

#[derive(Debug)]
struct Counted {
    /// The count's lower half, then its upper half.
    halves: Buffer<u32>,
    limit: u64,
}

/// What a node that decides does: a kernel of the library's, or a place holder for the host.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) ready: Arc<Ready>,
    pub(crate) stand: Stand,
}

impl Decision {
    pub(crate) fn into_owner(self) -> Owner {
        Owner::Other(self.ready as Arc<dyn Any + Send + Sync>)
    }
}

impl Ready {
    pub(super) fn new(test: &Test<'_>, rounds: Option<&Rounds>) -> Result<Self> {
        let counted = |rounds: &Rounds| -> Result<Counted> {
            Ok(Counted { halves: rounds.count.cast()?, limit: rounds.limit })
        };
        Ok(Self { test: test.held()?, rounds: rounds.map(counted).transpose()? })
    }

    /// Decides in the order of a stream, as `decide` in `kernels/conditions.cu` does: whether to go on. Counts a loop's rounds, here and where kernels read it. Waits for the
    /// stream, but where the limit says all.
    pub(crate) fn decide_blocking(&self, stand: Stand, done: &mut u64, stream: &Stream) -> Result<bool> {
        if let Some(rounds) = &self.rounds {
            *done = if stand == Stand::AfterRound { done.saturating_add(1) } else { 0 };
            rounds.write(*done, stream)?;
            if *done >= rounds.limit {
                return Ok(false);
            }
            if stand == Stand::BeforeDoWhile {
                return Ok(true);
            }
        }
        self.test.holds_blocking(stream)
    }
}

impl Counted {
    /// By fills, which take the number along: no memory of the host is read later.
    fn write(&self, done: u64, stream: &Stream) -> Result<()> {
        const LOWER: u64 = u32::MAX as u64;
        match done {
            0 => stream.fill(&self.halves, 0)?,
            _ => {
                stream.fill(self.halves.slice(..1)?, (done & LOWER) as u32)?;
                if done & LOWER == 0 {
                    stream.fill(self.halves.slice(1..)?, (done >> u32::BITS) as u32)?;
                }
            }
        }
        Ok(())
    }
}

impl Locked<'_> {
    /// Says of a conditional node and the nodes that decide about it that they are a ready-made loop or branch.
    pub(super) fn make_ready<'n>(
        &mut self,
        node: NodeId,
        deciders: impl IntoIterator<Item = (&'n Node, Stand)>,
        ready: &Arc<Ready>,
    ) {
        if let Some(Detail::Conditional(conditional)) = self.row_mut(node).map(|row| &mut row.detail) {
            conditional.ready = Some(Arc::clone(ready));
        }
        for (decider, stand) in deciders {
            if self.row(decider.id()).is_some() {
                self.deciding.insert(decider.id().index, Decision { ready: Arc::clone(ready), stand });
            }
        }
    }
}
