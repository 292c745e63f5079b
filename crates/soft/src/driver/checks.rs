//! The checks of kernels that a GPU does not make.

/// A check of the kernels that run, beyond the checks of their addresses, which the driver always
/// makes. It costs time and host memory, so none is made unless [`Config::checks`] names it.
///
/// A kernel that fails a check ends as one that traps: its context is lost with
/// `CUDA_ERROR_LAUNCH_FAILED`, and [`control::last_fault`] names the kernel, the lines, the blocks
/// and threads, and the address.
///
/// [`Config::checks`]: crate::Config::checks
/// [`control::last_fault`]: crate::control::last_fault
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// Reads of shared memory that no thread of the block has written.
    ///
    /// Such a read may be harmless: a program that copies a structure reads its padding, too, and
    /// one may load a value that it does not use in the end.
    UnwrittenShared,
    /// Races in shared memory: two threads access a byte, one of them writes, and no barrier is
    /// between the two accesses.
    SharedRaces,
    /// Races in global memory between the threads of a launch. The launch runs on one host thread.
    GlobalRaces,
}

impl Check {
    /// All checks.
    pub const ALL: &'static [Check] = &[Check::UnwrittenShared, Check::SharedRaces, Check::GlobalRaces];

    /// The name in the environment variable `CUDA_SOFT_CHECK`.
    fn name(self) -> &'static str {
        match self {
            Check::UnwrittenShared => "unwritten-shared",
            Check::SharedRaces => "shared-races",
            Check::GlobalRaces => "global-races",
        }
    }

    /// Parses names with commas between them; `all` stands for all of them.
    pub(super) fn parse_list(text: &str) -> Option<Vec<Check>> {
        if text == "all" {
            return Some(Check::ALL.to_vec());
        }
        let find = |name: &str| Check::ALL.iter().copied().find(|check| check.name() == name.trim());
        text.split(',').map(find).collect()
    }
}
