//! Which side decides about ready-made loops and branches.

pub(crate) const VARIABLE: &str = "CUDA_TEST_CONDITIONALS";

/// Whether the host decides in this run, though the driver may have conditional nodes: the
/// environment variable `CUDA_TEST_CONDITIONALS` is `host`. Tests of conditional nodes are skipped
/// then.
///
/// # Panics
/// The variable is neither `native` nor `host`.
#[must_use]
pub fn host_decides() -> bool {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("" | "native") => false,
        Ok("host") => true,
        Ok(other) => panic!("{VARIABLE} is {other}, and not native or host"),
    }
}
