//! The six states in which an operation may find driver and thread, and a table of what comes of it
//! in each.

use core::fmt;
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;

use cuda_handles::{Buffer, Context, Error, Event, Kernel, Stream};
use cuda_sys::{CUcontext, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus};

use crate::driver::install::setup;
use crate::driver::raw::{self, driver, ok};
use crate::poll::SOON;
use crate::things::in_callback;
use crate::things::kernel;

/// What an operation may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum State {
    /// The thread has no current context.
    NoContext,
    /// A context of other code is current on the thread.
    OtherContext,
    /// A stream of other code captures on this thread, in THREAD_LOCAL mode.
    CapturingHere,
    /// A stream of other code captures on another thread, in GLOBAL mode.
    CapturingElsewhere,
    /// The operation is made inside a host function, on the driver's thread.
    Callback,
    /// A kernel has touched memory that is not there; the context is lost. For a process of its
    /// own.
    Lost,
}

/// What comes of an operation in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It succeeds.
    Works,
    /// The driver refuses it with `CUDA_ERROR_NOT_PERMITTED`, as it does with nearly everything
    /// inside a host function.
    NotPermitted,
    /// It is refused because the context is lost.
    Lost,
}

use Expected::{Lost, NotPermitted, Works};

/// What is expected in each state.
#[derive(Clone, Copy, Debug)]
pub struct Cells([Expected; 6]);

/// An operation that makes no driver call: nothing hinders it.
pub const PURE: Cells = Cells([Works; 6]);
/// A drop: it says nothing and breaks nothing.
pub const DROP: Cells = PURE;
/// An operation of a context that makes no driver call, but says that the context is lost.
pub const CHECKS: Cells = PURE.but(State::Lost, Lost);
/// An operation of a context that calls the driver: it needs no current context and leaves a
/// current one, and captures of others, alone. Inside a host function the driver refuses it.
pub const CALLS: Cells = Cells([Works, Works, Works, Works, NotPermitted, Lost]);
/// The same, but all that it calls is permitted inside a host function.
pub const PERMITTED: Cells = CALLS.but(State::Callback, Works);
/// An operation that calls the driver, but for no context.
pub const DEVICE: Cells = Cells([Works, Works, Works, Works, NotPermitted, Works]);

impl Cells {
    /// The same, but for one state.
    #[must_use]
    pub const fn but(mut self, state: State, expected: Expected) -> Self {
        self.0[state as usize] = expected;
        self
    }
}

/// Why an operation was refused.
#[derive(Debug)]
pub struct Refusal {
    lost: bool,
    text: String,
}

impl Refusal {
    fn new(error: &impl fmt::Display, cause: Option<&Error>) -> Self {
        Self { lost: matches!(cause, Some(Error::ContextLost(_))), text: error.to_string() }
    }
}

impl Refusal {
    /// Whether an older driver lacks what is asked for, or an older device; or a compiler is not
    /// there, or too new for the driver.
    fn is_for_what_is_lacking(&self) -> bool {
        self.text.contains(" needs a CUDA driver of version ")
            || self.text.contains(" it needs compute capability ")
            || self.text.starts_with("NVRTC")
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(&error, Some(&error))
    }
}

impl From<cuda_launch::Error> for Refusal {
    fn from(error: cuda_launch::Error) -> Self {
        let cause = if let cuda_launch::Error::Handles(cause) = &error { Some(cause) } else { None };
        Self::new(&error, cause)
    }
}

impl From<cuda_graph::Error> for Refusal {
    fn from(error: cuda_graph::Error) -> Self {
        let cause = match &error {
            cuda_graph::Error::Handles(cause)
            | cuda_graph::Error::Launch(cuda_launch::Error::Handles(cause)) => Some(cause),
            _ => None,
        };
        Self::new(&error, cause)
    }
}

/// What operations are tried on; made before the state is entered.
#[derive(Debug)]
pub struct Things {
    /// The context of device 0.
    pub context: Context,
    /// A stream, home of the buffer.
    pub home: Stream,
    /// Another stream.
    pub other: Stream,
    /// 64 zeros, allocated and settled.
    pub buffer: Buffer<u32>,
    /// As many zeros in plain memory.
    pub plain: Buffer<u32>,
    /// `increment(u32 *values, u32 n)`.
    pub increment: Kernel,
    /// Recorded on `home` and reached, before `event`.
    pub start: Event,
    /// Recorded on `home` and reached.
    pub event: Event,
}

/// The elements of the buffer.
pub const LEN: usize = 64;

impl Things {
    fn new(context: &Context) -> Result<Self, Error> {
        let (home, other) = (context.stream()?, context.stream()?);
        let (start, event) = (context.event()?, context.event()?);
        let (buffer, plain) = (home.zeros(LEN)?, context.alloc_blocking(LEN)?);
        home.fill(&plain, 0)?;
        home.record(&start)?;
        home.record(&event)?;
        home.synchronize_blocking()?;
        Ok(Self {
            context: context.clone(),
            home,
            other,
            buffer,
            plain,
            increment: kernel(context, "increment"),
            start,
            event,
        })
    }
}

/// What an operation gives.
pub type Tried = Result<(), Refusal>;

/// A result that nobody looks at: the operation has worked.
///
/// # Errors
/// None.
pub fn done<T>(_: T) -> Tried {
    Ok(())
}

type Work = Box<dyn FnOnce() -> Tried + Send>;
type Prepare = Box<dyn Fn(&Arc<Things>) -> Work>;

/// An operation and what is expected of it.
pub struct Row {
    name: &'static str,
    cells: Cells,
    prepare: Prepare,
}

impl fmt::Debug for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Row").field("name", &self.name).field("cells", &self.cells).finish()
    }
}

/// An operation on the things that are there.
#[must_use]
pub fn row(name: &'static str, cells: Cells, operation: fn(&Things) -> Tried) -> Row {
    prepared(name, cells, |_| Ok(()), move |things, ()| operation(things))
}

/// An operation on something that is made before the state is entered.
#[must_use]
pub fn prepared<P: Send + 'static>(
    name: &'static str,
    cells: Cells,
    prepare: fn(&Things) -> Result<P, Refusal>,
    operation: impl Fn(&Things, P) -> Tried + Clone + Send + 'static,
) -> Row {
    let prepare = move |things: &Arc<Things>| -> Work {
        match prepare(things) {
            Ok(prepared) => {
                let (things, operation) = (Arc::clone(things), operation.clone());
                Box::new(move || operation(&things, prepared))
            }
            Err(refusal) if refusal.is_for_what_is_lacking() => Box::new(|| Err(refusal)),
            Err(refusal) => panic!("{name}: preparing it: {}", refusal.text),
        }
    };
    Row { name, cells, prepare: Box::new(prepare) }
}

/// The end of something made before.
#[must_use]
pub fn drops<P: Send + 'static>(name: &'static str, prepare: fn(&Things) -> Result<P, Refusal>) -> Row {
    prepared(name, DROP, prepare, |_, prepared| {
        drop(prepared);
        Ok(())
    })
}

/// What came of an operation.
enum Found {
    Works,
    Refused(Refusal),
    Panicked,
    Hung,
    /// It may have worked, but something of somebody else is broken.
    Broke(String),
}

impl Found {
    fn is(&self, expected: Expected) -> bool {
        match (self, expected) {
            (Self::Works, Works) => true,
            // In whatever state.
            (Self::Refused(refusal), _) if refusal.is_for_what_is_lacking() => true,
            (Self::Refused(refusal), Lost) => refusal.lost,
            (Self::Refused(refusal), NotPermitted) => refusal.text.contains("CUDA_ERROR_NOT_PERMITTED"),
            _ => false,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => formatter.write_str("works"),
            Self::Refused(refusal) => formatter.write_str(&refusal.text),
            Self::Panicked => formatter.write_str("PANICS"),
            Self::Hung => formatter.write_str("HANGS"),
            Self::Broke(what) => write!(formatter, "BREAKS something: {what}"),
        }
    }
}

fn attempt(work: Work) -> Found {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Found::Works,
        Ok(Err(refusal)) => Found::Refused(refusal),
        Err(_) => Found::Panicked,
    }
}

/// Tries every row in a state. After each the context must still be good and what is somebody
/// else's unbroken.
///
/// # Panics
/// Something else came of a row than was expected; the whole table is shown.
#[track_caller]
pub fn try_all(state: State, rows: &[Row]) {
    let setup = setup();
    let things = Arc::new(Things::new(&setup).unwrap_or_else(|error| panic!("{error}")));
    // One for all rows: on a GPU making one takes longer than all else.
    let own = (state == State::OtherContext).then(|| AnotherContext::new(&things));
    let other = own.as_ref().map_or(ptr::null_mut(), |own| own.0);
    let found = match state {
        State::Lost => after_the_loss(&things, rows),
        _ => rows.iter().map(|row| shown(state, row, one(state, &things, row, other))).collect(),
    };
    drop((things, own));
    let table: Vec<_> = rows.iter().zip(&found).map(|(row, found)| line(state, row, found)).collect();
    let wrong = table.iter().filter(|(good, _)| !good).count();
    let table = table.into_iter().map(|(_, text)| text).collect::<String>();
    assert_eq!(wrong, 0, "{state:?}: rows with ! are wrong\n{table}");
    println!("{state:?}: {} operations as expected", rows.len());
}

/// Says at once what came of a row: should a later one hang, the output tells how far it went.
fn shown(state: State, row: &Row, found: Found) -> Found {
    eprint!("{}", line(state, row, &found).1);
    found
}

fn line(state: State, row: &Row, found: &Found) -> (bool, String) {
    let expected = row.cells.0[state as usize];
    let good = found.is(expected);
    let mark = if good { ' ' } else { '!' };
    (good, format!("{mark} {:45} expected: {:13} found: {found}\n", row.name, format!("{expected:?}")))
}

fn one(state: State, things: &Arc<Things>, row: &Row, other: CUcontext) -> Found {
    let work = (row.prepare)(things);
    let found = match state {
        State::NoContext => with_context_set(ptr::null_mut(), work),
        State::OtherContext => with_context_set(other, work),
        State::CapturingHere => beside_a_capture_here(things, work),
        State::CapturingElsewhere => beside_a_capture_elsewhere(things, work),
        State::Callback => in_host_function(things, work),
        State::Lost => Found::Broke("a lost context is not for one row".to_owned()),
    };
    match still_good(things) {
        Ok(()) => found,
        Err(error) => Found::Broke(format!("afterwards: {error} (the operation itself: {found})")),
    }
}

/// The next use works.
fn still_good(things: &Things) -> Result<(), Error> {
    things.home.fill(&things.buffer, 0)?;
    things.home.synchronize_blocking()?;
    things.context.ensure_usable()
}

fn current() -> CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    ok(unsafe { driver().cuCtxGetCurrent(&raw mut current) });
    current
}

/// On a thread of its own with this context current, or none.
fn with_context_set(context: CUcontext, work: Work) -> Found {
    let context = context.expose_provenance();
    let thread = std::thread::spawn(move || {
        let context = ptr::with_exposed_provenance_mut(context);
        // SAFETY: null, or a context that outlives the thread.
        ok(unsafe { driver().cuCtxSetCurrent(context) });
        let found = attempt(work);
        if current() == context {
            found
        } else {
            Found::Broke(format!("another context is current afterwards (the operation itself: {found})"))
        }
    });
    thread.join().unwrap_or(Found::Panicked)
}

/// A context of other code on the same device.
struct AnotherContext(CUcontext);

impl AnotherContext {
    fn new(things: &Things) -> Self {
        let (mut context, mut popped) = (ptr::null_mut(), ptr::null_mut());
        let device = things.context.device().as_raw();
        // SAFETY: the out pointers are valid; what creating made current is popped.
        unsafe {
            ok(driver().cuCtxCreate(&raw mut context, ptr::null_mut(), 0, 0, device));
            ok(driver().cuCtxPopCurrent(&raw mut popped));
        }
        Self(context)
    }
}

impl Drop for AnotherContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours and current nowhere.
        ok(unsafe { driver().cuCtxDestroy(self.0) });
    }
}

/// A non-blocking stream that the library does not know; destroyed in the end where the driver
/// permits that.
#[derive(Debug)]
pub struct Foreign(CUstream);

// SAFETY: a handle; the driver takes it on every thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// A new one.
    ///
    /// # Panics
    /// The driver gives none.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        let mut stream = ptr::null_mut();
        let create = || {
            // SAFETY: the out pointer is valid and a context current.
            ok(unsafe { driver().cuStreamCreate(&raw mut stream, 1) });
        };
        context.with_current(create).unwrap_or_else(|error| panic!("{error}"));
        Self(stream)
    }

    /// The driver's handle.
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        self.0
    }

    /// Begins a capture, past the library.
    ///
    /// # Panics
    /// The driver refuses.
    pub fn begin(&self, mode: CUstreamCaptureMode) {
        // SAFETY: the stream lives.
        ok(unsafe { driver().cuStreamBeginCapture(self.0, mode) });
    }

    /// Ends the capture, which must be valid and have caught nothing.
    ///
    /// # Errors
    /// It is not, or has.
    ///
    /// # Panics
    /// The driver does not answer.
    pub fn end(&self) -> Result<(), String> {
        let (mut status, mut graph) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, ptr::null_mut());
        // SAFETY: the stream lives and the out pointers are valid.
        let ended = unsafe {
            ok(driver().cuStreamIsCapturing(self.0, &raw mut status));
            driver().cuStreamEndCapture(self.0, &raw mut graph)
        };
        if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE || !ended.is_success() {
            return Err(format!("the capture has status {} and its end answers {ended}", status.0));
        }
        let nodes = raw::nodes(graph).len();
        // SAFETY: the graph is ours.
        ok(unsafe { driver().cuGraphDestroy(graph) });
        if nodes == 0 { Ok(()) } else { Err(format!("the capture has caught {nodes} nodes")) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the stream is ours. What became of its capture was looked at before.
        let _ = unsafe { driver().cuStreamDestroy(self.0) };
    }
}

fn with_capture(ended: Result<(), String>, found: Found) -> Found {
    match ended {
        Ok(()) => found,
        Err(what) => Found::Broke(format!("{what} (the operation itself: {found})")),
    }
}

fn beside_a_capture_here(things: &Things, work: Work) -> Found {
    let foreign = Foreign::new(&things.context);
    foreign.begin(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    let found = attempt(work);
    with_capture(foreign.end(), found)
}

fn beside_a_capture_elsewhere(things: &Things, work: Work) -> Found {
    let foreign = Foreign::new(&things.context);
    let ((begun, begins), (finish, finished)) = (channel::<()>(), channel::<()>());
    std::thread::scope(|scope| {
        let foreign = &foreign;
        let other = scope.spawn(move || {
            foreign.begin(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
            drop(begun);
            let _ = finished.recv();
            foreign.end()
        });
        let _ = begins.recv();
        let found = attempt(work);
        drop(finish);
        with_capture(other.join().unwrap_or_else(|_| Err("the capture could not begin".to_owned())), found)
    })
}

fn in_host_function(things: &Things, work: Work) -> Found {
    let (sender, receiver) = channel();
    in_callback(&things.other, move || {
        let _ = sender.send(attempt(work));
    });
    receiver.recv_timeout(SOON).unwrap_or(Found::Hung)
}

/// Everything is made ready, then the context is lost, then all rows are tried.
fn after_the_loss(things: &Arc<Things>, rows: &[Row]) -> Vec<Found> {
    let work: Vec<Work> = rows.iter().map(|row| (row.prepare)(things)).collect();
    lose(&things.context);
    work.into_iter().map(attempt).collect()
}

/// Lets a kernel write where nothing is, and sees the fault.
///
/// # Panics
/// There was none.
pub fn lose(context: &Context) {
    let poke = kernel(context, "poke");
    let stream = context.stream().unwrap_or_else(|error| panic!("{error}"));
    raw::launch(&stream, &poke, 1, &[0x40, 7]);
    let outcome = stream.synchronize_blocking();
    let Err(Error::ContextLost(cause)) = outcome else { panic!("the context is not lost: {outcome:?}") };
    assert_eq!(cause.code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// The six tests of a table of operations: one for each state, with the rows that the function
/// named gives.
///
/// `six_states!(rows)`, or `six_states!(rows, devices: 2)` for a table that needs two devices; the
/// software driver has them then. In the long form, statements that come first in each test, and
/// those that come first where the test needs a process of its own.
#[macro_export]
macro_rules! six_states {
    ($rows:ident) => {
        $crate::six_states!($rows, {}, { $crate::alone!(); });
    };
    ($rows:ident, devices: 2) => {
        $crate::six_states!($rows, {
            $crate::alone!("CUDA_SOFT_DEVICES" = "2");
            drop($crate::setup());
            $crate::needs!(TwoDevices);
        }, {});
    };
    ($rows:ident, { $($always:tt)* }, { $($alone:tt)* }) => {
        #[test]
        fn without_a_current_context() {
            $($always)*
            $crate::states::try_all($crate::states::State::NoContext, &$rows());
        }

        #[test]
        fn with_another_context_current() {
            $($always)*
            $crate::states::try_all($crate::states::State::OtherContext, &$rows());
        }

        #[test]
        fn while_this_thread_captures() {
            $($always)*
            $crate::states::try_all($crate::states::State::CapturingHere, &$rows());
        }

        #[test]
        fn while_another_thread_captures_in_global_mode() {
            $($always)*
            $crate::states::try_all($crate::states::State::CapturingElsewhere, &$rows());
        }

        #[test]
        fn inside_a_host_function() {
            $($always)*
            $($alone)*
            $crate::states::try_all($crate::states::State::Callback, &$rows());
        }

        #[test]
        fn with_the_context_lost() {
            $($always)*
            $($alone)*
            $crate::states::try_all($crate::states::State::Lost, &$rows());
        }
    };
}
