//! What a ready-made loop or branch goes by, for whoever decides in the driver's place.

use core::fmt;
use std::sync::Arc;

use cuda_handles::{Buffer, Owner, Stream};
use cuda_launch::Memory;

use crate::error::Result;

/// Where a node that decides stands; the numbers are those in `kernels/conditions.cu`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecisionPoint {
    Branch,
    BeforeWhile,
    BeforeDoWhile,
    AfterRound,
}

/// A question about memory, which it keeps alive.
pub(crate) trait HostPredicate: fmt::Debug + Send + Sync {
    /// The answer in the order of a stream. **Waits** for it.
    fn ask_blocking(&self, stream: &Stream) -> Result<bool>;

    /// The memory that it looks at.
    fn memory(&self) -> Memory<'_>;
}

/// What a loop or a branch looks at, and where a loop counts its rounds. One of each, so that its
/// address tells which it is.
#[derive(Debug)]
pub(crate) struct LoopControl {
    test: Box<dyn HostPredicate>,
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
pub(crate) struct LoopDecision {
    pub(crate) control: Arc<LoopControl>,
    pub(crate) point: DecisionPoint,
}

impl LoopDecision {
    pub(crate) fn into_owner(self) -> Owner {
        Owner::shared(self.control)
    }
}

impl LoopControl {
    /// Of a loop, with the memory in which it counts its rounds, and the most of these.
    pub(crate) fn new(test: Box<dyn HostPredicate>, rounds: Option<(&Buffer<u64>, u64)>) -> Result<Self> {
        let counted = |(count, limit): (&Buffer<u64>, u64)| -> Result<Counted> {
            Ok(Counted { halves: count.cast()?, limit })
        };
        Ok(Self { test, rounds: rounds.map(counted).transpose()? })
    }

    /// The memory that is looked at.
    pub(crate) fn tested(&self) -> Memory<'_> {
        self.test.memory()
    }

    /// The memory in which rounds are counted.
    pub(crate) fn counted(&self) -> Option<Memory<'_>> {
        let halves = &self.rounds.as_ref()?.halves;
        let (start, bytes) = (halves.address(), halves.size_bytes() as u64);
        Some(Memory { allocation: halves.allocation(), start, bytes, written: true })
    }

    /// Decides in the order of a stream, as `decide` in `kernels/conditions.cu` does: whether to go
    /// on. Counts a loop's rounds, here and where kernels read it. **Waits** for the stream, but
    /// where the limit says all.
    pub(crate) fn decide_blocking(
        &self,
        point: DecisionPoint,
        done: &mut u64,
        stream: &Stream,
    ) -> Result<bool> {
        if let Some(rounds) = &self.rounds {
            *done = if point == DecisionPoint::AfterRound { done.saturating_add(1) } else { 0 };
            rounds.write(*done, stream)?;
            if *done >= rounds.limit {
                return Ok(false);
            }
            if point == DecisionPoint::BeforeDoWhile {
                return Ok(true);
            }
        }
        self.test.ask_blocking(stream)
    }
}

impl Counted {
    /// By fills, which take the number along: no memory of the host is read later.
    fn write(&self, done: u64, stream: &Stream) -> Result<()> {
        if done == 0 {
            return Ok(stream.fill(&self.halves, 0)?);
        }
        let (lower, upper) = halves(done);
        stream.fill(self.halves.slice(..1)?, lower)?;
        if let Some(upper) = upper {
            stream.fill(self.halves.slice(1..)?, upper)?;
        }
        Ok(())
    }
}

/// The lower half of a count, and the upper one where it is another than that of the count before.
fn halves(done: u64) -> (u32, Option<u32>) {
    let (lower, upper) = (done as u32, (done >> u32::BITS) as u32);
    (lower, (lower == 0).then_some(upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_written_as_far_as_it_changes() {
        assert_eq!((halves(1), halves(u64::from(u32::MAX))), ((1, None), (u32::MAX, None)));
        assert_eq!((halves(1 << 32), halves((1 << 32) + 1)), ((0, Some(1)), (1, None)));
        assert_eq!(halves(7 << 32), (0, Some(7)));
    }
}
