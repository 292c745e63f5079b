//! Calling the user's functions: host functions on one thread a context, late destructors of user
//! objects on another thread.

use crate::sync::{lock, read, write};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, RwLock};
use std::thread;

/// A function of the user with its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: whoever hands the pair to the driver allows it to be called on a driver thread; the
// pointer is only passed on.
unsafe impl Send for Callback {}
// SAFETY: as above; nothing is read through a shared reference.
unsafe impl Sync for Callback {}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread may do everything, also inside.
    static PERMITTED: Cell<bool> = const { Cell::new(false) };
    static STREAM: Cell<u64> = const { Cell::new(0) };
}

/// A late destructor and a host function never run at the same time, host functions of several
/// contexts do.
static EXCLUSION: RwLock<()> = RwLock::new(());

type Work = Box<dyn FnOnce() + Send>;

/// The host function thread of each context, and under 0 the thread of late destructors.
static THREADS: Mutex<Option<HashMap<u64, Sender<Work>>>> = Mutex::new(None);

/// Whether this thread is inside a host function or a destructor, where calls are not permitted.
pub(crate) fn inside() -> bool {
    INSIDE.get() && !PERMITTED.get()
}

/// Notes the id of the stream for which this thread works from now on, 0 for none, and gives the
/// one before.
pub(crate) fn set_stream(stream: u64) -> u64 {
    STREAM.replace(stream)
}

/// Whether this thread is inside a host function that the work of this stream waits for.
pub(crate) fn is_waited_for_by(stream: u64) -> bool {
    INSIDE.get() && STREAM.get() == stream
}

/// Runs `call` as the inside of a callback.
pub(crate) fn run_inside(call: impl FnOnce()) {
    let before = INSIDE.replace(true);
    call();
    INSIDE.set(before);
}

impl Callback {
    /// Calls the function on this thread.
    pub(crate) fn call(self) {
        run_inside(|| {
            // SAFETY: the user gave the driver this function to be called with this argument.
            unsafe { (self.function)(self.data) };
        });
    }

    /// Calls the function, a destructor, on this thread. As on a GPU, one that runs inside a host
    /// function lifts for good what is not permitted on the thread.
    pub(crate) fn destruct(self) {
        let inside = INSIDE.get();
        self.call();
        if inside {
            PERMITTED.set(true);
        }
    }

    /// Calls the function on the thread of late destructors, some time.
    pub(crate) fn call_later(self) {
        send(
            0,
            Box::new(move || {
                let _turn = write(&EXCLUSION);
                self.call();
            }),
        );
    }
}

/// Runs `call` on the context's host function thread, for the stream for which this thread works,
/// and waits for its end.
pub(crate) fn on_host_thread(context: u64, call: impl FnOnce() + Send + 'static) {
    let (done, wait) = channel();
    let stream = STREAM.get();
    send(
        context,
        Box::new(move || {
            let turn = read(&EXCLUSION);
            let before = set_stream(stream);
            run_inside(call);
            set_stream(before);
            drop(turn);
            // The waiting worker may be gone with its stream; then nobody needs the news.
            let _ = done.send(());
        }),
    );
    let _ = wait.recv();
}

fn send(lane: u64, work: Work) {
    let mut threads = lock(&THREADS);
    let threads = threads.get_or_insert_default();
    let work = match threads.get(&lane) {
        Some(sender) => match sender.send(work) {
            Ok(()) => return,
            Err(refused) => refused.0,
        },
        None => work,
    };
    let (sender, jobs) = channel::<Work>();
    let spawned = thread::Builder::new().name("cuda-soft callback".to_owned()).spawn(move || {
        for job in jobs {
            job();
        }
    });
    match spawned {
        Ok(_) => {
            let _ = sender.send(work);
            threads.insert(lane, sender);
        }
        // Without a thread the call happens here: late and on the wrong thread, but it happens.
        Err(_) => work(),
    }
}
