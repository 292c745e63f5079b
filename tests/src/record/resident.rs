//! The memory of the process.

/// The resident size of the process in KiB. `None` where the system does not tell, and under a
/// sanitiser, which keeps freed memory for a while: its shadow memory makes the address space
/// larger than a TiB.
#[must_use]
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let is_sanitised = of("VmSize:")? > 1 << 30;
    if is_sanitised { None } else { of("VmRSS:") }
}
