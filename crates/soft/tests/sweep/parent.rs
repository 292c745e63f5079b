//! Starts the children and judges how they end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuda_soft::Config;
use cuda_sys::{Driver, Version};

use crate::child::{self, AGAIN, DONE, Job, Report, State, WROTE};

/// Expected ends of the process: a part of the message, and why the real driver crashes there (as
/// observed).
const CRASHES: &[(&str, &str)] = &[
    ("a call uses the stream", "streams are pointers that it follows, here inside a structure"),
    ("is embedded in itself or in a part of itself", "it descends without end"),
    ("a count of access descriptions without their array", "it reads the array"),
    ("a graph node is destroyed twice", "nodes are pointers that it follows"),
    ("a user object is retained that does not exist", "user objects are pointers that it follows"),
    ("a user object is released that does not exist", "user objects are pointers that it follows"),
    ("a graph retains a user object that does not exist", "user objects are pointers that it follows"),
    ("cuThreadExchangeStreamCaptureMode is given a null pointer", "it follows it"),
    ("a kernel node is given by its function while no context is current", "it asks the context"),
];

/// A call that takes longer does not return.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most faults of one entry point that are reported.
const TOLD: usize = 3;

enum End {
    Exit(i32),
    Signal(i32),
    Hang,
}

/// Tests run one at a time: a forked child finds locks of other threads held.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sweeps all entry points.
pub(crate) fn sweep(state: State) {
    let _turn = turn();
    static DRIVER: OnceLock<&'static Driver> = OnceLock::new();
    let config = Config::new().version(Version::new(13, 5)).memory(64 << 20);
    let driver = *DRIVER.get_or_init(|| cuda_soft::loader(config).install().unwrap());
    let report = Report::shared();
    let mut job = Job { state, entry: 0, index: 0, only_one: false };
    let (mut faults, mut told) = (Vec::new(), 0);
    loop {
        let (end, said) = run(driver, job, report);
        let entry = report.entry.load(Ordering::Acquire) as usize;
        let index = report.index.load(Ordering::Acquire) as usize;
        let arguments = || {
            run(driver, Job { state, entry, index, only_one: true }, report);
            report.text()
        };
        let fault = match end {
            End::Exit(DONE) => break,
            End::Exit(AGAIN) => None,
            End::Exit(WROTE) => Some(report.text()),
            // What a pointer to nothing reads may be something that a sanitiser forbids.
            End::Exit(_) if said.contains("AddressSanitizer") && report.wild.load(Ordering::Acquire) != 0 => {
                None
            }
            End::Exit(code) => Some(format!("ended with {code}: {said}: {}", arguments())),
            End::Signal(libc::SIGSEGV | libc::SIGBUS) if report.wild.load(Ordering::Acquire) != 0 => None,
            End::Signal(libc::SIGABRT) if is_right(&said) => None,
            End::Signal(libc::SIGABRT)
                if is_heap_check(&said) && report.was_wild.load(Ordering::Acquire) != 0 =>
            {
                None
            }
            End::Signal(signal) => Some(format!("signal {signal}: {said}: {}", arguments())),
            End::Hang => Some(format!("does not return: {}", arguments())),
        };
        told = if entry == job.entry { told } else { 0 } + usize::from(fault.is_some());
        if let Some(fault) = fault {
            eprintln!("{fault}");
            faults.push(fault);
        }
        (job.entry, job.index) = if told < TOLD { (entry, index + 1) } else { (entry + 1, 0) };
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Whether the process said that the real driver crashes there, and it does.
fn is_right(said: &str) -> bool {
    said.contains("cuda-soft: the real driver") && CRASHES.iter().any(|(words, _)| said.contains(words))
}

/// Whether the C library ended the process, as its heap was written over.
fn is_heap_check(said: &str) -> bool {
    ["malloc", "free()", "corrupted", "munmap_chunk"].iter().any(|words| said.starts_with(words))
}

/// Runs a child to its end; also what it said on its standard error.
fn run(driver: &'static Driver, job: Job, report: &Report) -> (End, String) {
    report.text_len.store(0, Ordering::Release);
    report.was_wild.store(0, Ordering::Release);
    report.entry.store(job.entry as u64, Ordering::Release);
    report.index.store(job.index as u64, Ordering::Release);
    let mut said = tempfile();
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process is left");
    if child == 0 {
        unsafe { libc::dup2(said.as_raw_fd(), 2) };
        child::run(driver, job, report);
    }
    let end = wait(child, report);
    let mut text = String::new();
    said.seek(SeekFrom::Start(0)).unwrap();
    let _ = said.read_to_string(&mut text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("RUST_BACKTRACE")).take(4).collect();
    (end, lines.join(" "))
}

fn tempfile() -> File {
    let raw = unsafe { libc::memfd_create(c"sweep".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(raw >= 0);
    unsafe { std::os::fd::FromRawFd::from_raw_fd(raw) }
}

fn wait(child: i32, report: &Report) -> End {
    let (mut seen, mut since) = ([u64::MAX; 2], Instant::now());
    loop {
        let mut status = 0;
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            return if libc::WIFEXITED(status) {
                End::Exit(libc::WEXITSTATUS(status))
            } else {
                End::Signal(libc::WTERMSIG(status))
            };
        }
        let at = [&report.entry, &report.index].map(|number| number.load(Ordering::Acquire));
        if at != seen {
            (seen, since) = (at, Instant::now());
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
