//! Callbacks of the user: host functions, on one thread for each context, and deferred destructors
//! of user objects, on a thread of their own.

use crate::device::context;
use crate::stream::default_stream;
use crate::sync::{lock, read, write};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, RwLock};
use std::thread;

/// A function of the user and its argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callback {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

// SAFETY: a caller that hands the pair to the driver allows it to be called on a driver thread; the
// pointer is only passed on.
unsafe impl Send for Callback {}
// SAFETY: as above; nothing is read through a shared reference.
unsafe impl Sync for Callback {}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether calls are permitted on this thread even inside a callback.
    static PERMITTED: Cell<bool> = const { Cell::new(false) };
    static STREAM: Cell<u64> = const { Cell::new(0) };
}

/// A deferred destructor never runs at the same time as a host function. Host functions of several
/// contexts may.
static EXCLUSION: RwLock<()> = RwLock::new(());

type Work = Box<dyn FnOnce() + Send>;

/// The host function thread of each context, and under 0 the thread of deferred destructors.
static THREADS: Mutex<Option<HashMap<u64, Sender<Work>>>> = Mutex::new(None);

/// Whether this thread is inside a callback, where most calls are not permitted.
pub(crate) fn inside() -> bool {
    INSIDE.get() && !PERMITTED.get()
}

/// Sets the id of the stream that this thread works for, 0 for none; returns the previous one.
pub(crate) fn set_stream(stream: u64) -> u64 {
    STREAM.replace(stream)
}

/// Whether this thread is inside a host function that this stream runs.
pub(crate) fn is_waited_for_by(stream: u64) -> bool {
    INSIDE.get() && STREAM.get() == stream
}

/// Runs `call` inside a callback.
pub(crate) fn run_inside(call: impl FnOnce()) {
    let before = INSIDE.replace(true);
    default_stream::with_legacy(call);
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

    /// Calls the function, a destructor, on this thread. As on a GPU, a destructor that runs inside
    /// a host function permits all calls on the thread from then on.
    pub(crate) fn destruct(self) {
        let inside = INSIDE.get();
        self.call();
        if inside {
            PERMITTED.set(true);
        }
    }
}

/// Releases references on the thread of deferred destructors, and calls the destructors there. The
/// context is current then.
pub(crate) fn destruct_later(context: u64, release: impl FnOnce() -> Vec<Callback> + Send + 'static) {
    send(
        0,
        Box::new(move || {
            context::set_current(context);
            for destructor in release() {
                let _turn = write(&EXCLUSION);
                destructor.call();
            }
        }),
    );
}

/// Runs `call` on the host function thread of the context, on behalf of this thread's stream, and
/// waits for it.
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
            // The waiting worker may be gone with its stream.
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
        // Without a thread the call runs here: on the wrong thread, but it runs.
        Err(_) => work(),
    }
}
