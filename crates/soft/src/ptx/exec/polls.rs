//! Threads that wait for others in loops.

/// So many equal values in a row are waiting.
const PATIENCE: u8 = 8;
const SLOTS: usize = 4;

/// What a thread read last by the instructions that loops wait with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Polls {
    slots: [Poll; SLOTS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Poll {
    pc: usize,
    value: u64,
    count: u8,
}

impl Polls {
    /// A value that the instruction at `pc` has read; true if the thread seems to wait.
    pub(super) fn is_waiting(&mut self, pc: usize, value: u64) -> bool {
        let poll = &mut self.slots[pc % SLOTS];
        if poll.pc != pc || poll.value != value {
            *poll = Poll { pc, value, count: 0 };
            return false;
        }
        poll.count += 1;
        if poll.count < PATIENCE {
            return false;
        }
        poll.count = 0;
        true
    }
}
