//! Races: an access, compared with those that memory remembers.

use super::shadow::{Races, Record, Shadow, Touch};
use super::{Access, BlockChecks, Unsettled, content};
use crate::ptx::code::MemoryOrder;
use crate::ptx::error::FaultKind;
use crate::ptx::exec::access::ThreadMemory;
use crate::ptx::exec::grid::{block_index, thread_index};
use crate::ptx::exec::position::Position;
use crate::ptx::exec::thread_fault::{Checked, ThreadFault};
use crate::ptx::exec::worker::Worker;

/// A weak read that races with atomic updates. It is a fault unless its thread updates the same
/// value soon.
pub(super) struct Guess {
    pub(super) block: u64,
    pub(super) thread: u32,
    /// Where it is, and whether in shared memory.
    place: (bool, u64),
    pub(super) fault: Box<ThreadFault>,
}

impl Worker<'_> {
    /// Compares an access with those that the shadow remembers, and adds it.
    pub(super) fn check_races(
        &self,
        checks: &mut BlockChecks,
        shadow: &mut Shadow,
        guesses: &mut Vec<Guess>,
        memory: &ThreadMemory<'_>,
        access: Access,
    ) -> Checked<()> {
        let order = self.order(checks.running.0, access.pc);
        let Some(clocks) = &mut checks.clocks else { return Ok(()) };
        let (function, thread) = checks.running;
        if order.releases && access.is_atomic {
            clocks.fence(thread as usize);
        }
        let record = Record {
            block: checks.number,
            epoch: clocks.epoch(thread as usize),
            function,
            pc: access.pc as u32,
            thread: thread as u16,
            bytes: 0,
            touch: touch(access, order),
        };
        let Races { mut race, mut guess } = shadow.note(clocks, record, access.place, access.bytes);
        if access.is_atomic {
            // A reader that has gone on will not update what it read.
            race = race.or(guess.take_if(|reader| {
                reader.block != record.block || clocks.epoch(usize::from(reader.thread)) != reader.epoch
            }));
        }
        self.note_guess(guesses, guess, record, access);
        let Some(other) = race else { return Ok(()) };
        let fault = self.race(&other, record, access);
        if !(other.touch.writes && record.touch.writes && !access.is_atomic) {
            return Err(fault);
        }
        let before = content(memory, access.location, access.bytes as usize);
        checks.unsettled = Some(Unsettled { fault, location: access.location, before });
        Ok(())
    }

    /// Adds a guess, and removes those that an atomic update makes right.
    fn note_guess(&self, guesses: &mut Vec<Guess>, other: Option<Record>, new: Record, access: Access) {
        let place = (access.is_shared(), access.place);
        if access.is_atomic {
            let of = (new.block, u32::from(new.thread), place);
            guesses.retain(|guess| (guess.block, guess.thread, guess.place) != of);
        }
        let Some(other) = other else { return };
        let (reader, writer) = if access.is_atomic { (other, new) } else { (new, other) };
        let (block, thread) = (reader.block, u32::from(reader.thread));
        let fault = self.race(&writer, reader, Access { write: false, ..access });
        guesses.push(Guess { block, thread, place, fault });
    }

    fn order(&self, function: u32, pc: usize) -> MemoryOrder {
        let orders = self.grid.program.functions.get(function as usize).map(|function| &function.orders);
        let Some(orders) = orders else { return MemoryOrder::default() };
        let found = orders.binary_search_by_key(&pc, |(index, _)| *index as usize + 1);
        found.ok().and_then(|index| orders.get(index)).map_or(MemoryOrder::default(), |(_, order)| *order)
    }

    /// The fault of an access that races with another one.
    #[cold]
    fn race(&self, other: &Record, record: Record, access: Access) -> Box<ThreadFault> {
        let launch = self.grid.launch;
        let [x, y, z] = thread_index(launch, usize::from(other.thread));
        let mut whom = format!("thread ({x}, {y}, {z})");
        if other.block != record.block {
            let [x, y, z] = block_index(launch, other.block);
            whom.push_str(&format!(" of block ({x}, {y}, {z})"));
        }
        let verb = match (other.touch.reads, other.touch.writes) {
            (true, true) => "changed atomically",
            (false, true) => "written",
            _ => "read",
        };
        let position = Position::before(self.grid.program, other.function, other.pc as usize);
        let why = match (other.block == record.block, other.touch.is_strong && record.touch.is_strong) {
            (false, true) => "atomics of scope `.cta` order nothing between blocks",
            (true, _) if access.is_shared() => "no barrier is between the two accesses",
            _ => "nothing orders the two accesses",
        };
        let detail = format!("{whom} has {verb} some of these bytes at {position}, and {why}");
        let mut fault = ThreadFault::illegal(access.address, access.bytes, access.write, detail);
        fault.kind = FaultKind::Race;
        fault.shared = access.is_shared().then_some(access.place);
        fault.at = Some((record.function, record.pc as usize));
        fault
    }
}

fn touch(access: Access, order: MemoryOrder) -> Touch {
    Touch {
        writes: access.write,
        reads: !access.write || access.is_atomic,
        is_strong: order.is_strong || access.is_atomic,
        is_of_block: order.is_of_block,
    }
}
