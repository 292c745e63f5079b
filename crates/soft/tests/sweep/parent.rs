//! Starts the children and judges how they end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::calls::{CALLS, Swept};
use crate::child::{self, AGAIN, DONE, Report, State, WROTE};

/// The ends of the process that are right because the real driver crashes or hangs there: call, words of the sentence, reason.
const CRASHES: &[(&str, &str, &str)] = &[];

/// A call that takes longer does not return.
const PATIENCE: Duration = Duration::from_secs(20);
/// So many faults of one entry point are told.
const TOLD: usize = 3;

enum End {
    Exit(i32),
    Signal(i32),
    Hang,
}

/// Sweeps all entry points.
pub(crate) fn sweep(state: State) {
    let only = std::env::var("CUDA_SOFT_SWEEP").unwrap_or_default();
    let report = Report::shared();
    let mut faults = Vec::new();
    for (seed, swept) in CALLS.iter().enumerate() {
        if swept.call.name().contains(&only) {
            faults.extend(sweep_call(swept, seed as u64, state, report));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn sweep_call(swept: &Swept, seed: u64, state: State, report: &Report) -> Vec<String> {
    let (mut faults, mut start) = (Vec::new(), 0);
    while faults.len() < TOLD {
        let (end, said) = run(swept, seed, state, start, false, report);
        let index = report.index.load(Ordering::Acquire);
        let words = match end {
            End::Exit(DONE) => break,
            End::Exit(AGAIN) => None,
            End::Exit(WROTE) => Some(report.text()),
            End::Exit(code) => Some(format!("{} ended with {code}: {said}", swept.call.name())),
            End::Signal(libc::SIGSEGV | libc::SIGBUS) if report.wild.load(Ordering::Acquire) != 0 => None,
            End::Signal(libc::SIGABRT) if is_right(swept, &said) => None,
            End::Signal(signal) => Some(format!("signal {signal}: {said}{}", describe(swept, seed, state, index, report))),
            End::Hang => Some(format!("does not return: {}", describe(swept, seed, state, index, report))),
        };
        faults.extend(words);
        start = index + 1;
    }
    faults
}

fn is_right(swept: &Swept, said: &str) -> bool {
    let of_call = |(name, ..): &&(&str, &str, &str)| *name == swept.call.name() || *name == "";
    said.contains("cuda-soft: the real driver")
        && CRASHES.iter().filter(of_call).any(|(_, words, _)| said.contains(words))
}

/// The arguments of a call, which the child says before it makes it.
fn describe(swept: &Swept, seed: u64, state: State, index: u64, report: &Report) -> String {
    run(swept, seed, state, index, true, report);
    report.text()
}

/// Runs a child to its end; also what it said on its standard error.
fn run(swept: &Swept, seed: u64, state: State, start: u64, only_one: bool, report: &Report) -> (End, String) {
    report.text_len.store(0, Ordering::Release);
    report.index.store(start, Ordering::Release);
    let mut said = tempfile();
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process is left");
    if child == 0 {
        unsafe { libc::dup2(said.as_raw_fd(), 2) };
        child::run(swept, seed, state, start, only_one, report);
    }
    let end = wait(child, report);
    let mut text = String::new();
    said.seek(SeekFrom::Start(0)).unwrap();
    let _ = said.read_to_string(&mut text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("RUST_BACKTRACE")).take(6).collect();
    (end, lines.join(" "))
}

fn tempfile() -> File {
    let raw = unsafe { libc::memfd_create(c"sweep".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(raw >= 0);
    unsafe { std::os::fd::FromRawFd::from_raw_fd(raw) }
}

fn wait(child: i32, report: &Report) -> End {
    let (mut seen, mut since) = (u64::MAX, Instant::now());
    loop {
        let mut status = 0;
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            return if libc::WIFEXITED(status) {
                End::Exit(libc::WEXITSTATUS(status))
            } else {
                End::Signal(libc::WTERMSIG(status))
            };
        }
        let index = report.index.load(Ordering::Acquire);
        if index != seen {
            (seen, since) = (index, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &mut status, 0);
            }
            return End::Hang;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
