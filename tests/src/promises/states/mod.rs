//! Tables of operations: what each gives in each of the six states of a thread and its context.
//!
//! A suite lists its operations as rows ([`row`], [`prepared`], [`drops`]), each with the expected
//! outcomes ([`Cells`]), and [`six_states!`](crate::six_states) makes a test for each [`State`] of
//! them. A test tries all rows and then prints the whole table, so that one run on a GPU shows
//! everything. After each row the context must still work, and the captures and contexts of other
//! code must be unharmed.

mod attempt;
mod foreign;

use core::fmt;
use core::ptr;
use std::sync::Arc;

use cuda_handles::{Buffer, Context, Error, Event, Kernel, Stream};
use cuda_sys::CUresult;

use crate::driver::install::setup;
use crate::driver::raw;
use crate::things::kernel;
use attempt::{Found, after_the_loss, one};
use foreign::AnotherContext;

pub use foreign::Foreign;

/// The state of thread and context.
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
    /// A kernel has touched invalid memory, and the context is lost. Needs a process of its own.
    Lost,
}

/// The expected outcome of an operation in a state.
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

/// The expected outcome in each state.
#[derive(Clone, Copy, Debug)]
pub struct Cells([Expected; 6]);

/// An operation that makes no driver call: it works in every state.
pub const PURE: Cells = Cells([Works; 6]);
/// A drop: it reports nothing and breaks nothing.
pub const DROP: Cells = PURE;
/// An operation of a context that makes no driver call, but reports that the context is lost.
pub const CHECKS: Cells = PURE.but(State::Lost, Lost);
/// An operation of a context that calls the driver: it needs no current context and leaves a
/// current one, and captures of others, alone. Inside a host function the driver refuses it.
pub const CALLS: Cells = Cells([Works, Works, Works, Works, NotPermitted, Lost]);
/// The same, with calls that are permitted inside a host function.
pub const PERMITTED: Cells = CALLS.but(State::Callback, Works);
/// An operation that calls the driver, but for no context.
pub const DEVICE: Cells = Cells([Works, Works, Works, Works, NotPermitted, Works]);

impl Cells {
    /// The same, except in one state.
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
    /// Whether the driver or the device is too old, or the compiler absent or too new for the
    /// driver.
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

/// The objects that operations work on, made before the state is entered.
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
    /// 64 zeros in plain memory.
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

/// The result of an operation.
pub type Tried = Result<(), Refusal>;

/// Drops the result of an operation that has worked.
///
/// # Errors
/// None.
pub fn done<T>(_: T) -> Tried {
    Ok(())
}

type Work = Box<dyn FnOnce() -> Tried + Send>;
type Prepare = Box<dyn Fn(&Arc<Things>) -> Work>;

/// An operation and its expected outcomes.
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

/// A row for an operation on the given objects.
#[must_use]
pub fn row(name: &'static str, cells: Cells, operation: fn(&Things) -> Tried) -> Row {
    prepared(name, cells, |_| Ok(()), move |things, ()| operation(things))
}

/// A row for an operation on an object of its own, made before the state is entered.
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

/// A row for the drop of an object made before the state is entered.
#[must_use]
pub fn drops<P: Send + 'static>(name: &'static str, prepare: fn(&Things) -> Result<P, Refusal>) -> Row {
    prepared(name, DROP, prepare, |_, prepared| {
        drop(prepared);
        Ok(())
    })
}

/// Tries every row in a state. After each row the context must still work, and objects of other
/// code must be unharmed.
///
/// # Panics
/// A row had another outcome than expected; the message shows the whole table.
#[track_caller]
pub fn try_all(state: State, rows: &[Row]) {
    let setup = setup();
    let things = Arc::new(Things::new(&setup).unwrap_or_else(|error| panic!("{error}")));
    // One for all rows, since creating a context on a GPU takes longer than everything else.
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

/// Prints the outcome of a row at once: if a later row hangs, the output shows how far the test
/// went.
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

/// Loses the context: a kernel writes to invalid memory.
///
/// # Panics
/// The context is not lost.
pub fn lose(context: &Context) {
    loss(context)();
}

/// Prepares [`lose`], for when other work is in flight: the first launch of a kernel waits for
/// that.
///
/// # Panics
/// As [`lose`].
pub fn loss(context: &Context) -> impl FnOnce() + use<> {
    let poke = kernel(context, "poke");
    let stream = context.stream().unwrap_or_else(|error| panic!("{error}"));
    let memory = context.alloc_blocking::<u64>(1).unwrap_or_else(|error| panic!("{error}"));
    raw::launch(&stream, &poke, 1, &[memory.address(), 7]);
    stream.synchronize_blocking().unwrap_or_else(|error| panic!("{error}"));
    drop(memory);
    move || {
        raw::launch(&stream, &poke, 1, &[0x40, 7]);
        let outcome = stream.synchronize_blocking();
        let Err(Error::ContextLost(cause)) = outcome else { panic!("the context is not lost: {outcome:?}") };
        assert_eq!(cause.code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

/// The six tests of a table of operations: one for each state, with the rows that the named
/// function returns.
///
/// `six_states!(rows)`, or `six_states!(rows, devices: 2)` for a table that needs two devices; the
/// software driver then has two. The long form takes the first statements of every test, those of
/// tests that need a process of their own, and if need be those of the test that loses the context.
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
        }, {}, {
            // If one device is lost, nothing says when the runs on the other one are over, so what
            // they use stays to the end of the process.
            $crate::alone!("CUDA_SOFT_DEVICES" = "2", "ASAN_OPTIONS" = "detect_leaks=0");
        });
    };
    ($rows:ident, { $($always:tt)* }, { $($alone:tt)* }) => {
        $crate::six_states!($rows, { $($always)* }, { $($alone)* }, {});
    };
    ($rows:ident, { $($always:tt)* }, { $($alone:tt)* }, { $($lost:tt)* }) => {
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
            $($lost)*
            $($always)*
            $($alone)*
            $crate::states::try_all($crate::states::State::Lost, &$rows());
        }
    };
}
