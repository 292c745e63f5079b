//! Barriers in shared memory (`mbarrier`).

use super::access::Location;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::AsyncThread;
use crate::ptx::code::transfer::{Arrival, AsyncInst, MbarrierOp, Pointer};
use crate::ptx::code::{Cell, NONE};
use crate::ptx::error::FaultKind;
use crate::ptx::math::mbarrier::{MOST, Mbarrier, is_odd};

/// The bytes of a barrier, and its alignment.
const BYTES: u32 = 8;

fn wrong<T>(detail: String) -> Checked<T> {
    Err(ThreadFault::new(FaultKind::IllegalInstruction, detail))
}

impl AsyncThread<'_, '_, '_> {
    /// The offset of a barrier in shared memory.
    pub(super) fn barrier(&mut self, pointer: Pointer) -> Checked<usize> {
        self.shared(pointer, BYTES, BYTES, true)
    }

    fn word(&self, at: usize) -> u64 {
        self.memory.load(Location::Shared(at), Cell::U64, 0)
    }

    fn put_word(&mut self, at: usize, word: u64) {
        self.memory.store(Location::Shared(at), Cell::U64, 0, word);
    }

    fn state(&self, at: usize) -> Checked<Mbarrier> {
        match Mbarrier::from_bits(self.word(at)) {
            Some(barrier) => Ok(barrier),
            None => wrong(format!("the mbarrier at {at:#x} of shared memory is not initialised")),
        }
    }

    /// Performs an operation. True if the thread should let others run.
    pub(super) fn mbarrier(&mut self, inst: &AsyncInst, op: MbarrierOp) -> Checked<bool> {
        let at = self.barrier(inst.barrier)?;
        let size = self.get(inst.size);
        match op {
            MbarrierOp::Init => {
                let count = size as u32;
                if !(1..=MOST).contains(&count) {
                    return wrong(format!("an mbarrier cannot wait for {count} arrivals"));
                }
                self.end_events(at, "initialised")?;
                let barrier = Mbarrier { is_odd: false, expected: count, pending: count, bytes: 0 };
                self.put_word(at, barrier.bits());
            }
            MbarrierOp::Invalidate => {
                self.state(at)?;
                self.end_events(at, "invalidated")?;
                self.put_word(at, 0);
            }
            MbarrierOp::ExpectBytes => self.expect_bytes(at, size as u32)?,
            MbarrierOp::CompleteBytes => self.complete_bytes(at, size as u32)?,
            MbarrierOp::Arrive(how) => {
                let old = self.word(at);
                let size = if inst.size == NONE { None } else { Some(size as u32) };
                self.arrive(at, how, size)?;
                self.set(inst.d, old);
            }
            MbarrierOp::Wait { by_parity } => {
                let odd = if by_parity { size & 1 == 1 } else { is_odd(size) };
                if self.state(at)?.is_odd == odd {
                    self.settle(at)?;
                }
                let has_ended = self.state(at)?.is_odd != odd;
                self.set(inst.d, u64::from(has_ended));
                return Ok(!has_ended);
            }
        }
        Ok(false)
    }

    fn arrive(&mut self, at: usize, how: Arrival, size: Option<u32>) -> Checked<()> {
        let mut count = 1;
        match size {
            Some(bytes) if how.expects_bytes => self.expect_bytes(at, bytes)?,
            Some(arrivals) => count = arrivals,
            None => {}
        }
        let mut barrier = self.state(at)?;
        if count == 0 || count > barrier.pending {
            let pending = barrier.pending;
            return wrong(format!("{count} arrivals at an mbarrier that waits for {pending}"));
        }
        barrier.pending -= count;
        if how.drops {
            barrier.expected -= count.min(barrier.expected);
        }
        if !how.may_complete && barrier.pending == 0 {
            return wrong("an arrival with `.noComplete` is the last of its phase".into());
        }
        barrier.advance();
        self.put_word(at, barrier.bits());
        Ok(())
    }

    /// One arrival.
    pub(super) fn arrive_once(&mut self, at: usize) -> Checked<()> {
        self.arrive(at, Arrival { drops: false, expects_bytes: false, may_complete: true }, None)
    }

    /// Has the phase expect one arrival more.
    pub(super) fn expect_arrival(&mut self, at: usize) -> Checked<()> {
        let mut barrier = self.state(at)?;
        if barrier.pending >= MOST {
            return wrong(format!("an mbarrier cannot wait for more than {MOST} arrivals"));
        }
        barrier.pending += 1;
        self.put_word(at, barrier.bits());
        Ok(())
    }

    fn expect_bytes(&mut self, at: usize, bytes: u32) -> Checked<()> {
        self.change_bytes(at, i64::from(bytes), false)
    }

    /// Tells a barrier that so many bytes have arrived.
    pub(super) fn complete_bytes(&mut self, at: usize, bytes: u32) -> Checked<()> {
        self.change_bytes(at, -i64::from(bytes), true)
    }

    fn change_bytes(&mut self, at: usize, by: i64, may_complete: bool) -> Checked<()> {
        let mut barrier = self.state(at)?;
        let bytes = i64::from(barrier.bytes) + by;
        if bytes.unsigned_abs() > u64::from(MOST) {
            return wrong(format!("an mbarrier cannot wait for {bytes} bytes: at most {MOST}"));
        }
        barrier.bytes = bytes as i32;
        if may_complete {
            barrier.advance();
        }
        self.put_word(at, barrier.bits());
        Ok(())
    }
}
