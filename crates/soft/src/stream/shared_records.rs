//! The records of an interprocess event.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::memory::shared_file::{Mapping, PAGE, Purpose, SharedFile};

/// The offsets of the counters in the file.
const RECORDED: usize = 32;
const DONE: usize = 40;
const BELL: usize = 48;

/// The records of an event, counted in a shared file.
#[derive(Debug)]
pub(crate) struct SharedRecords {
    file: SharedFile,
    page: Mapping,
}

impl SharedRecords {
    pub(crate) fn create(device: i32) -> io::Result<Self> {
        Self::over(SharedFile::create(Purpose::Event, u8::try_from(device).unwrap_or(u8::MAX))?)
    }

    pub(crate) fn over(file: SharedFile) -> io::Result<Self> {
        let page = file.map(0, PAGE as usize)?;
        Ok(Self { file, page })
    }

    pub(crate) fn file(&self) -> &SharedFile {
        &self.file
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the page and aligned; all processes access it by atomics.
        unsafe { AtomicU64::from_ptr(self.page.host().add(at).cast()) }
    }

    fn bell(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.page.host().add(BELL).cast()) }
    }

    /// Counts a new record and returns its number, from 1 on.
    pub(crate) fn next(&self) -> u64 {
        self.counter(RECORDED).fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// The number of the latest record, 0 for none.
    pub(crate) fn last(&self) -> u64 {
        self.counter(RECORDED).load(Ordering::Acquire)
    }

    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.counter(DONE).load(Ordering::Acquire) >= number
    }

    pub(crate) fn finish(&self, number: u64) {
        self.counter(DONE).fetch_max(number, Ordering::AcqRel);
        let bell = self.bell();
        bell.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the word is mapped; waking nobody is no error.
        let _ = unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until a stream of any process reaches the record.
    pub(crate) fn wait(&self, number: u64) {
        /// The counter is polled at this interval, in case a process ends before it wakes the
        /// waiters.
        const PATIENCE: Duration = Duration::from_millis(100);
        let patience = libc::timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as libc::c_long };
        loop {
            let heard = self.bell().load(Ordering::Acquire);
            if self.is_done(number) {
                return;
            }
            let (bell, op) = (self.bell().as_ptr(), libc::FUTEX_WAIT);
            // SAFETY: the word is mapped, the time lives through the call.
            let _ = unsafe { libc::syscall(libc::SYS_futex, bell, op, heard, &raw const patience) };
        }
    }
}
