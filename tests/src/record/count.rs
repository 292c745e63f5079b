//! The cost of a section of code.

use core::fmt;

use cuda_handles::Device;
use cuda_sys::Call;

use super::heap;
use super::live::{Kind, Live, live};
use super::watch::{CALLS, calls};

/// The call that asks for the current context.
const ASKING: &str = "cuCtxGetCurrent";

/// The cost of a section: driver calls of its thread, driver calls of other threads meanwhile, heap
/// allocations of its thread outside of driver calls, and how many more objects there are
/// (negative: fewer).
#[derive(Clone)]
pub struct Counts {
    here: Box<[u64; CALLS]>,
    everywhere: Box<[u64; CALLS]>,
    heap: u64,
    live: Live,
}

/// The calls of `cuCtxGetCurrent` that so many copies of pooled memory make: one each where there
/// are several devices.
#[must_use]
pub fn asked_by_copies(copies: u64) -> u64 {
    if Device::count().is_ok_and(|count| count > 1) { copies } else { 0 }
}

/// Runs `section` and counts.
pub fn count<R>(section: impl FnOnce() -> R) -> (R, Counts) {
    let before = live();
    let (here, everywhere) = calls();
    let heap = heap::allocations();
    let result = section();
    let heap = heap::allocations() - heap;
    let (here_after, everywhere_after) = calls();
    let counts = Counts {
        here: Box::new(core::array::from_fn(|call| here_after[call] - here[call])),
        everywhere: Box::new(core::array::from_fn(|call| everywhere_after[call] - everywhere[call])),
        heap,
        live: live().since(&before),
    };
    (result, counts)
}

/// Sums the layouts of a call.
fn by_name(counts: &[u64; CALLS], name: &str) -> u64 {
    let named = |call: &&Call| call.symbol().to_bytes() == name.as_bytes();
    Call::ALL.iter().filter(named).map(|call| counts[*call as usize]).sum()
}

impl Counts {
    /// Calls of this name (such as `cuGraphAddNode`, in any layout) that this thread made.
    ///
    /// # Panics
    /// There is no such call.
    #[must_use]
    pub fn calls(&self, name: &str) -> u64 {
        assert!(
            Call::ALL.iter().any(|call| call.symbol().to_bytes() == name.as_bytes()),
            "no driver call is named {name}"
        );
        by_name(&self.here, name)
    }

    /// Calls of this name that all threads made.
    #[must_use]
    pub fn calls_anywhere(&self, name: &str) -> u64 {
        by_name(&self.everywhere, name)
    }

    /// Calls of one layout that all threads made.
    pub(crate) fn anywhere(&self, call: Call) -> u64 {
        self.everywhere[call as usize]
    }

    /// All driver calls that this thread made.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.here.iter().sum()
    }

    /// All driver calls that all threads made.
    #[must_use]
    pub fn total_anywhere(&self) -> u64 {
        self.everywhere.iter().sum()
    }

    /// Heap allocations of this thread.
    #[must_use]
    pub fn heap_allocations(&self) -> u64 {
        self.heap
    }

    /// How many more objects of a kind there are than before.
    #[must_use]
    pub fn live(&self, kind: Kind) -> i64 {
        self.live.of(kind)
    }

    /// Asserts that this thread made exactly these calls. Where there are several devices, a copy
    /// of pooled memory asks for the current context as well, which need not be expected.
    ///
    /// # Panics
    /// The thread made other calls.
    #[track_caller]
    pub fn assert_calls(&self, expected: &[(&str, u64)]) {
        for (name, count) in expected {
            assert_eq!(self.calls(name), *count, "calls of {name}; the section made {self}");
        }
        let sum: u64 = expected.iter().map(|(_, count)| count).sum();
        let is_expected = expected.iter().any(|(name, _)| *name == ASKING);
        let besides = if is_expected { 0 } else { asked_by_copies(self.calls(ASKING)) };
        let total = self.total() - besides;
        assert_eq!(total, sum, "all calls; the section made {self}, expected were {expected:?}");
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for call in Call::ALL {
            let (here, everywhere) = (self.here[*call as usize], self.everywhere[*call as usize]);
            if everywhere > 0 {
                write!(formatter, "{separator}{} {here}", call.name())?;
                if everywhere > here {
                    write!(formatter, " (and {} on other threads)", everywhere - here)?;
                }
                separator = ", ";
            }
        }
        if separator.is_empty() {
            formatter.write_str("no driver call")?;
        }
        write!(formatter, "; {} heap allocations; objects: {}", self.heap, self.live)
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
