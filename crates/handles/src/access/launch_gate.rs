//! Keeps questions whether a stream is idle apart from launches of graphs on it.
//!
//! Asked beside the launch of a graph that has user objects, such as a lent one, a driver may
//! answer that launch with `UNKNOWN`, although it enqueues it (seen on an H200 with driver 580).
//! Launches go on beside each other. A stream on which one is being made is not idle, so that
//! question needs no answer.

use crate::sync::{AtomicU32, Ordering, spin_loop};

/// Set while a thread asks. The other bits count the launches.
const ASKING: u32 = 1 << 31;

/// How often a launch looks whether a question is over, some milliseconds altogether. Then it goes
/// on: the thread that asks may not run for a while.
const LOOKS: u32 = if cfg!(loom) { u32::MAX } else { 1 << 18 };

/// The launches and questions of a stream.
#[derive(Debug)]
pub(crate) struct LaunchGate(AtomicU32);

/// A launch that is being made: nobody asks meanwhile.
#[derive(Debug)]
#[must_use]
pub struct Launching<'g>(&'g LaunchGate);

/// A question that is being asked: no launch is made meanwhile.
#[derive(Debug)]
#[must_use]
pub(crate) struct Asking<'g>(&'g LaunchGate);

impl LaunchGate {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Begins a launch. Waits for the end of a question; later ones stay out.
    #[inline]
    pub(crate) fn launch(&self) -> Launching<'_> {
        if self.0.fetch_add(1, Ordering::Acquire) & ASKING != 0 {
            self.wait();
        }
        Launching(self)
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            if self.0.load(Ordering::Acquire) & ASKING == 0 {
                return;
            }
            spin_loop();
        }
    }

    /// Begins a question, after another one. `None` beside launches.
    pub(crate) fn ask(&self) -> Option<Asking<'_>> {
        for _ in 0..LOOKS {
            match self.0.compare_exchange_weak(0, ASKING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Asking(self)),
                Err(found) if found & !ASKING != 0 => return None,
                Err(_) => spin_loop(),
            }
        }
        None
    }
}

impl Drop for Launching<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_and(!ASKING, Ordering::Release);
    }
}
