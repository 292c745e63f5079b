//! Barriers of a block.

use super::thread_fault::{Checked, ThreadFault};
use crate::ptx::code::{BARRIERS, BarrierOp, CLUSTER_BARRIER, Reg};
use crate::ptx::error::FaultKind;

/// A thread at a barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct BarrierWait {
    pub(super) op: BarrierOp,
    pub(super) id: u32,
    /// The number of threads to wait for; all live ones if `None`.
    pub(super) count: Option<u32>,
    pub(super) is_true: bool,
    pub(super) d: Reg,
}

impl BarrierWait {
    /// The wait of a barrier instruction with these operands.
    #[inline]
    pub(super) fn new(
        op: BarrierOp,
        [id, count, a]: [Reg; 3],
        d: Reg,
        registers: &[u64],
    ) -> Checked<BarrierWait> {
        let get = |register: Reg| registers.get(register as usize).copied();
        let (id, count) = (get(id).unwrap_or(0) as u32, get(count).map(|count| count as u32));
        let is_true = get(a).unwrap_or(0) & 1 == 1;
        if id >= BARRIERS {
            let detail = format!("there is no barrier {id}: they go from 0 to {}", BARRIERS - 1);
            return Err(ThreadFault::new(FaultKind::IllegalInstruction, detail));
        }
        if let Some(count) = count
            && (count == 0 || count % 32 != 0)
        {
            let detail = format!("a barrier cannot wait for {count} threads: expected whole warps");
            return Err(ThreadFault::new(FaultKind::IllegalInstruction, detail));
        }
        let id = if op == BarrierOp::Cluster { CLUSTER_BARRIER } else { id };
        Ok(BarrierWait { op, id, count, is_true, d })
    }

    /// Whether a thread of a block of so many goes on at once: one that is alone never waits.
    #[inline]
    pub(super) fn is_over(&self, threads: u32) -> bool {
        threads == 1 && self.op == BarrierOp::Sync && self.count.is_none()
    }

    /// Describes the barrier, for errors.
    pub(super) fn describe(&self) -> String {
        let name = match self.op {
            BarrierOp::Cluster => "at the barrier of the cluster".into(),
            _ => format!("at barrier {}", self.id),
        };
        match self.count {
            Some(count) => format!("{name}, which takes {count} threads,"),
            None => format!("{name}, which takes all threads that have not ended,"),
        }
    }
}

/// The result of a barrier for its threads.
pub(super) fn result(op: BarrierOp, truths: impl Iterator<Item = bool> + Clone) -> u64 {
    match op {
        BarrierOp::RedPopc => truths.filter(|&truth| truth).count() as u64,
        BarrierOp::RedAnd => u64::from(truths.clone().all(|truth| truth)),
        BarrierOp::RedOr => u64::from(truths.clone().any(|truth| truth)),
        BarrierOp::Sync | BarrierOp::Cluster | BarrierOp::Arrive => 0,
    }
}
