//! The versions of packages that this program was built with.

const LOCK: &str = include_str!("../../../Cargo.lock");

/// The version of a package.
pub(crate) fn version(package: &str) -> &'static str {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != name).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
    version.and_then(|rest| rest.strip_suffix('"')).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert!(version("cudarc").starts_with("0."), "{}", version("cudarc"));
        assert_eq!(version("no such package"), "unknown");
    }
}
