//! Tests that need a process of their own: they run themselves again as a child.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::driver::{conditionals, device};
use crate::faults::swept;
use crate::poll::until;

const VARIABLE: &str = "CUDA_TEST_CHILD";
const BOUND: Duration = Duration::from_secs(120);
/// The bound of a child that sweeps in full.
const FULL: Duration = Duration::from_secs(3600);

/// Runs the rest of the test in a process of its own, if needed with environment variables:
/// `alone!();` or `alone!("CUDA_SOFT_VERSION" = "12.2");` as the test's first line.
#[macro_export]
macro_rules! alone {
    ($($name:literal = $value:expr),*) => {{
        fn here() {}
        if $crate::ran_as_child(core::any::type_name_of_val(&here), &[$(($name, $value)),*]) {
            return;
        }
    }};
}

/// Runs the rest of the test in a process of its own and returns its output: `let Some(text) =
/// printed!() else { …; return };`
#[macro_export]
macro_rules! printed {
    () => {{
        fn here() {}
        $crate::printed_by_child(core::any::type_name_of_val(&here))
    }};
}

/// In the parent, runs the test in a child process and returns true once it has passed. In the
/// child, returns false.
///
/// # Panics
/// The child failed; its output is shown.
#[doc(hidden)]
#[track_caller]
#[must_use]
pub fn ran_as_child(function: &str, environment: &[(&str, &str)]) -> bool {
    let name = test_name(function);
    let Some(out) = child_output(name, environment) else { return false };
    out.lines()
        .filter_map(|line| line.find("skipped: ").map(|at| &line[at..]))
        .for_each(|line| println!("{line}"));
    true
}

/// The standard output of the rest of the test, run in a process of its own:
/// [`printed!`](crate::printed).
///
/// # Panics
/// The child failed; its output is shown.
#[doc(hidden)]
#[track_caller]
#[must_use]
pub fn printed_by_child(function: &str) -> Option<String> {
    child_output(test_name(function), &[])
}

/// The name of the test that declares the function.
fn test_name(function: &str) -> &str {
    let name = function.split_once("::").map_or(function, |(_, rest)| rest);
    name.strip_suffix("::here").unwrap_or(name)
}

/// The output of the test, which has run in a child process and passed. `None` in the child.
#[track_caller]
fn child_output(name: &str, environment: &[(&str, &str)]) -> Option<String> {
    if std::env::var_os(VARIABLE).is_some_and(|child| child == name) {
        return None;
    }
    let program = std::env::current_exe().expect("a test has an executable");
    let mut command = Command::new(program);
    // A test that names the driver's version is about what that version has.
    if environment.iter().any(|(name, _)| *name == "CUDA_SOFT_VERSION") {
        command.env_remove(conditionals::VARIABLE);
    }
    if environment.iter().any(|(name, count)| *name == "CUDA_SOFT_DEVICES" && lacks_the_device(count)) {
        command.env_remove(device::VARIABLE);
    }
    let mut child = command
        .args([name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(VARIABLE, name)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a test can start itself again");
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let bound = if swept::is_full() { FULL } else { BOUND };
    let ended = until(bound, || matches!(child.try_wait(), Ok(Some(_))));
    let status = end(&mut child);
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    assert!(ended, "{name} did not end in {bound:?}\n{out}\n{err}");
    assert!(status.is_some_and(|status| status.success()), "{name} failed: {status:?}\n{out}\n{err}");
    assert!(out.contains("1 passed"), "{name} did not run\n{out}\n{err}");
    Some(out)
}

/// Whether the device under test is not among the first `count`. A test of so few is about device
/// 0.
fn lacks_the_device(count: &str) -> bool {
    count.parse().is_ok_and(|count: usize| device::ordinal() >= count)
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn end(child: &mut Child) -> Option<std::process::ExitStatus> {
    let _ = child.kill();
    child.wait().ok()
}
