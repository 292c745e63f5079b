//! The control data of a ready-made loop or branch: its test and its count of rounds.

use core::fmt;
use std::sync::Arc;

use cuda_handles::{Buffer, Owner, Stream};
use cuda_launch::internal::{Memory, StoredMemory};

use crate::error::Result;
use crate::state::bindings::ParamValue;

/// The point at which a decision is made. The values match those in `kernels/conditions.cu`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecisionPoint {
    Branch,
    BeforeWhile,
    BeforeDoWhile,
    AfterRound,
}

/// A test of memory, which it keeps alive.
pub(crate) trait HostPredicate: fmt::Debug + Send + Sync {
    /// Runs the test in the order of a stream, on other memory if there is some: the value of the
    /// graph parameter that stands for it. **Waits** for the result.
    fn ask_blocking(&self, stream: &Stream, other: Option<&StoredMemory>) -> Result<bool>;

    /// The memory that it tests.
    fn memory(&self) -> Memory<'_>;
}

/// The test of a loop or branch, and the memory in which a loop counts its rounds. One for each
/// loop or branch, so that its address identifies it.
#[derive(Debug)]
pub(crate) struct LoopControl {
    test: Box<dyn HostPredicate>,
    /// The graph parameter that stands for the tested memory.
    param: Option<u32>,
    rounds: Option<Counted>,
}

#[derive(Debug)]
struct Counted {
    /// The lower half of the count, then the upper half.
    halves: Buffer<u32>,
    limit: u64,
}

/// The decision that a node makes: by a kernel of the library, or by the host for a placeholder.
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
    /// `param` is the graph parameter that stands for the tested memory; `rounds` is the memory in
    /// which a loop counts its rounds, with the limit of rounds.
    pub(crate) fn new(
        test: Box<dyn HostPredicate>,
        param: Option<u32>,
        rounds: Option<(&Buffer<u64>, u64)>,
    ) -> Result<Self> {
        let counted = |(count, limit): (&Buffer<u64>, u64)| -> Result<Counted> {
            Ok(Counted { halves: count.cast()?, limit })
        };
        Ok(Self { test, param, rounds: rounds.map(counted).transpose()? })
    }

    /// The memory that is tested.
    pub(crate) fn tested(&self) -> Memory<'_> {
        self.test.memory()
    }

    /// The memory in which rounds are counted.
    pub(crate) fn counted(&self) -> Option<Memory<'_>> {
        let halves = &self.rounds.as_ref()?.halves;
        let (start, bytes) = (halves.address(), halves.size_bytes() as u64);
        Some(Memory { allocation: halves.allocation(), start, bytes, written: true })
    }

    /// Decides in the order of a stream whether to go on, as `decide` in `kernels/conditions.cu`
    /// does; `values` are those of the graph parameters. Counts the rounds of a loop both here and
    /// in the memory that kernels read. **Waits** for the stream, unless the limit alone decides.
    pub(crate) fn decide_blocking(
        &self,
        point: DecisionPoint,
        done: &mut u64,
        stream: &Stream,
        values: &[ParamValue],
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
        let other = match self.param.and_then(|param| values.get(param as usize)) {
            Some(ParamValue::Memory(memory)) => Some(memory),
            _ => None,
        };
        self.test.ask_blocking(stream, other)
    }
}

impl Counted {
    /// Writes by fills, which copy the value: no host memory is read later.
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

/// The lower half of a count, and its upper half if that differs from the previous count's.
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
