//! One entry point in a process of its own.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_soft::control;
use cuda_sys::*;

use crate::calls::{CALLS, Swept, Value};
use crate::candidates::{Candidate, Plan, is_pointer};
use crate::live_objects::LiveObjects;

/// The situation that the calls find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Live objects and a current context; for every fourth entry point, from this one on.
    Live { quarter: usize },
    /// Live objects, but no current context.
    NoContext,
    /// The driver was not initialised, and so there is nothing.
    Uninitialised,
    /// The device was lost.
    Lost,
}

impl State {
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Live { .. })
    }

    fn wants(self, entry: usize) -> bool {
        !matches!(self, Self::Live { quarter } if entry % 4 != quarter)
    }
}

/// How a child ends.
pub(crate) const DONE: i32 = 0;
/// The live objects have changed: the next call needs another child.
pub(crate) const AGAIN: i32 = 100;
/// A failed call wrote an out parameter.
pub(crate) const WROTE: i32 = 101;

const TEXT: usize = 8000;
/// The memory that each argument has, of which little is ever touched.
const ROOM: usize = 1 << 26;
/// The part that is filled and compared.
const COMPARED: usize = 4096;

/// The progress that the parent sees.
#[repr(C)]
pub(crate) struct Report {
    /// The entry point, and the number of the call of it that is made.
    pub(crate) entry: AtomicU64,
    pub(crate) index: AtomicU64,
    /// Whether it may follow pointers to nothing.
    pub(crate) wild: AtomicU64,
    /// Whether any call of this process was wild: its write may have hit the heap, of which the C
    /// library tells in a later call. A changed lower half of a heap address leads to the start of
    /// an arena, where the C library keeps its lists, if one begins there.
    pub(crate) was_wild: AtomicU64,
    pub(crate) text_len: AtomicU64,
    text: [u8; TEXT],
}

impl Report {
    /// In memory that parent and child have.
    pub(crate) fn shared() -> &'static Self {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        unsafe { &*map(size_of::<Self>(), flags).cast() }
    }

    pub(crate) fn text(&self) -> String {
        let len = (self.text_len.load(Ordering::Acquire) as usize).min(TEXT);
        String::from_utf8_lossy(&self.text[..len]).into_owned()
    }

    fn say(&self, text: &str) {
        let len = text.len().min(TEXT);
        // The parent reads it once this process is over.
        unsafe { self.text.as_ptr().cast_mut().copy_from_nonoverlapping(text.as_ptr(), len) };
        self.text_len.store(len as u64, Ordering::Release);
    }
}

fn map(len: usize, flags: i32) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let found = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    assert_ne!(found, libc::MAP_FAILED);
    found.cast()
}

/// The memory of an argument.
struct Room(*mut u8);

impl Room {
    fn new() -> Self {
        Self(map(ROOM, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE))
    }

    fn fill(&self, bytes: &[u8], offset: u64) {
        unsafe {
            self.0.write_bytes(0, COMPARED + 8);
            let len = bytes.len().min(COMPARED);
            self.0.add(offset as usize).copy_from_nonoverlapping(bytes.as_ptr(), len);
        }
    }

    fn contents(&self) -> Vec<u8> {
        let mut bytes = vec![0; COMPARED];
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.0, COMPARED) };
        bytes
    }
}

/// Calls that may write although they fail, with the reason.
const WRITTEN_BY_FAILURES: &[(&str, &str)] = &[
    ("cuGetErrorName", "null for an unknown code"),
    ("cuGetErrorString", "null for an unknown code"),
    ("cuGetProcAddress", "null for an unknown name"),
    ("cuGraphInstantiateWithParams", "what was wrong and where"),
    ("cuGraphExecUpdate", "what was wrong and where"),
];

/// Calls that follow addresses which are numbers here, with the reason.
const FOLLOWED: &[(&str, &str)] = &[
    ("cuMemcpy", "an address that no device has is one of the host"),
    ("cuMemcpyAsync", "an address that no device has is one of the host"),
];

fn may_write(name: &str) -> bool {
    WRITTEN_BY_FAILURES.iter().any(|(known, _)| *known == name)
}

/// The work of a child: all calls of an entry point from one number on, or one call alone, whose
/// arguments it reports first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) state: State,
    pub(crate) entry: usize,
    pub(crate) index: usize,
    pub(crate) only_one: bool,
}

/// Makes the calls, and ends the process.
pub(crate) fn run(driver: &'static Driver, job: Job, report: &Report) -> ! {
    quiet();
    let state = job.state;
    if state != State::Uninitialised {
        assert!(unsafe { driver.cuInit(0) }.is_success());
    }
    let objects = if state == State::Uninitialised {
        LiveObjects::none(driver)
    } else {
        unsafe { LiveObjects::new(driver) }
    };
    match state {
        State::NoContext => assert!(unsafe { driver.cuCtxSetCurrent(std::ptr::null_mut()) }.is_success()),
        State::Lost => control::lose_context(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
        State::Live { .. } | State::Uninitialised => {}
    }
    let most = CALLS.iter().map(|swept| swept.arguments.len()).max().unwrap_or(0);
    let rooms: Vec<Room> = (0..most).map(|_| Room::new()).collect();
    let mut first = job.index;
    for (number, swept) in CALLS.iter().enumerate().skip(job.entry) {
        if state.wants(number) && is_wanted(swept) {
            report.entry.store(number as u64, Ordering::Release);
            report.index.store(first as u64, Ordering::Release);
            sweep(swept, &objects, &rooms, Job { entry: number, index: first, ..job }, report);
        }
        first = 0;
    }
    end(DONE)
}

/// Whether the environment asks for the entry point.
pub(crate) fn is_wanted(swept: &Swept) -> bool {
    std::env::var("CUDA_SOFT_SWEEP").map_or(true, |only| swept.call.name().contains(&only))
}

/// Calls one entry point in all ways from a number on. The process ends where what lives is not as
/// it was.
fn sweep(swept: &Swept, objects: &LiveObjects, rooms: &[Room], job: Job, report: &Report) {
    let (entry, rooms) = (swept.entry(), &rooms[..swept.arguments.len()]);
    let plan = Plan::new(swept, objects, job.state.is_live());
    let (mut unsupported, mut changed) = (true, false);
    for index in job.index..plan.len() {
        if index == plan.singles() && (!job.state.is_live() || (unsupported && job.index == 0)) {
            break;
        }
        report.index.store(index as u64, Ordering::Release);
        let vector = plan.vector(index, job.entry as u64);
        let wild = vector.iter().any(|argument| matches!(argument, Candidate::Memory { wild: true, .. }))
            || FOLLOWED.iter().any(|(name, _)| *name == swept.call.name());
        report.wild.store(wild.into(), Ordering::Release);
        report.was_wild.fetch_or(wild.into(), Ordering::AcqRel);
        if job.only_one {
            report.say(&describe(swept, &vector));
        }
        let values = place(&vector, rooms);
        let before: Vec<_> = rooms.iter().map(Room::contents).collect();
        let answer = unsafe { swept.invoke(entry, &values) };
        unsupported &= answer == CUresult::CUDA_ERROR_NOT_SUPPORTED;
        if !answer.is_success() && !may_write(swept.call.name()) {
            for ((argument, room), before) in swept.arguments.iter().zip(rooms).zip(&before) {
                if is_pointer(argument) && argument.written.starts_with("*mut") && room.contents() != *before
                {
                    let text =
                        format!("{answer}, but {} was written: {}", argument.name, describe(swept, &vector));
                    report.say(&text);
                    end(WROTE);
                }
            }
        }
        if job.only_one {
            end(DONE);
        }
        if answer.is_success() && job.state.is_live() {
            changed |= !swept.call.name().contains("Get");
            if !is_as_before(swept, objects) {
                end(AGAIN);
            }
        }
    }
    if changed {
        report.index.store(plan.len() as u64, Ordering::Release);
        end(AGAIN);
    }
}

/// Ends the process without destructors: threads of the driver may be at work.
fn end(code: i32) -> ! {
    unsafe { libc::_exit(code) }
}

/// What the process says goes to the file that the parent gave, and files that calls write to a
/// folder for that.
fn quiet() {
    unsafe { libc::close(0) };
    let null = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(null.as_raw_fd(), 0);
    std::mem::forget(null);
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
    // A sanitiser would turn these into an exit.
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // The test harness would keep the words of a panic to itself.
    std::panic::set_hook(Box::new(|panic| {
        let text = format!("{panic}\n");
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }));
}

fn place(vector: &[Candidate], rooms: &[Room]) -> Vec<Value> {
    let values = vector.iter().zip(rooms).map(|(argument, room)| {
        let mut value = [0; 32];
        match argument {
            Candidate::Word(word) => value[0] = *word,
            Candidate::Filled(filled) => value = **filled,
            Candidate::Memory { offset, bytes, .. } => {
                room.fill(bytes, *offset);
                value[0] = room.0.expose_provenance() as u64 + offset;
            }
        }
        value
    });
    values.collect()
}

fn describe(swept: &Swept, vector: &[Candidate]) -> String {
    let arguments = swept.arguments.iter().zip(vector);
    let arguments: Vec<_> =
        arguments.map(|(argument, value)| format!("{}: {value:?}", argument.name)).collect();
    format!("{}({})", swept.call.name(), arguments.join(", "))
}

/// Whether later calls find what this one found.
fn is_as_before(swept: &Swept, objects: &LiveObjects) -> bool {
    let ending =
        ["Destroy", "Unload", "Free", "Release", "Reset", "Pop", "Detach", "Close", "SetCurrent", "Capture"];
    if ending.iter().any(|word| swept.call.name().contains(word)) || control::last_fault().is_some() {
        return false;
    }
    let start = Instant::now();
    for stream in [objects.stream, std::ptr::null_mut()] {
        loop {
            match unsafe { objects.driver.cuStreamQuery(stream) } {
                CUresult::CUDA_SUCCESS => break,
                CUresult::CUDA_ERROR_NOT_READY if start.elapsed() < Duration::from_millis(20) => {
                    std::thread::yield_now();
                }
                _ => return false,
            }
        }
    }
    control::last_fault().is_none()
}
