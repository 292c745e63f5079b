//! The error type, with a sentence for each case.

use core::fmt;

use cuda_sys::{CUresult, Call, LoadError, Missing, Printable};

use super::advice::Advice;
use super::capture_end::{InvalidatedBy, Unjoined};
use super::cause::Cause;
use super::memory_kind::MemoryKind;
use super::near::Near;
use super::no_time::NoTime;
use super::phrases::{Count, Log, Names};
use super::wrong_context::WrongContext;
use super::wrong_variable::WrongVariable;

/// The result of this crate's operations.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why an operation of this crate failed. An operation that fails has changed nothing unless it
/// says so.
///
/// `Debug` shows the same sentence as `Display`, so that an error that `main` returns reads well.
#[doc(alias = "cudaError_t")]
#[doc(alias = "CUresult")]
#[doc(alias = "cudaGetErrorString")]
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable driver.
    #[error(transparent)]
    Load(Box<LoadError>),
    /// The driver that runs is too old for a call.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The driver refused a call.
    #[error("{}{}", Cause { call: *call, code: *code }, Advice(*call, *code))]
    Driver {
        /// The call.
        call: Call,
        /// The driver's answer.
        code: CUresult,
    },
    /// A fault on the device ended the context; every later use of it gets this error with the
    /// first cause.
    #[error(
        "the context is lost: {0}. The process cannot get the device back; start a new one, and look for the fault in the kernels and copies enqueued before: the software driver prints it with CUDA_SOFT_EXPLAIN=1, and compute-sanitizer finds it on a GPU"
    )]
    ContextLost(Cause),
    /// The process is a forked child; the driver works only in the process that initialised it.
    #[error(
        "this process was forked from one that uses CUDA, where the driver cannot work; use CUDA in the parent, or start the child with exec"
    )]
    Forked,
    /// There is no device of that number.
    #[error("there is no CUDA device {asked}: {} found", Count(*found, "device was", "devices were"))]
    NoDevice {
        /// The ordinal that was asked for.
        asked: usize,
        /// How many devices there are.
        found: usize,
    },
    /// An image is of another kind than stated, or is cut off; the driver did not see it.
    #[error("the image cannot be loaded: {}", Printable(_0))]
    Image(Box<str>),
    /// The driver could not compile or load an image.
    #[error("{}{}{}", Cause { call: *call, code: *code }, Advice(*call, *code), Log(log))]
    Jit {
        /// The call.
        call: Call,
        /// The driver's answer.
        code: CUresult,
        /// The log of the driver's compiler; may be empty.
        log: Box<str>,
    },
    /// A library has no kernel of that name.
    #[error("the library has no kernel `{}`{}", Printable(name), Names(kernels.as_ref()))]
    NoKernel {
        /// The name that was asked for.
        name: Box<str>,
        /// The library's kernels with the most similar names, if the driver can list them (12.4).
        kernels: Option<Near>,
    },
    /// A library has no variable of that name.
    #[error(
        "the library has no {what} `{name}`: it has to be declared outside of functions, as `extern \"C\"` or by its mangled name, and the \
         compiler leaves out `static` ones that no kernel uses"
    )]
    NoGlobal {
        /// The kind of variable that was asked for.
        what: &'static str,
        /// The name that was asked for.
        name: Box<str>,
    },
    /// A variable of a library has another size, or starts elsewhere, than its type needs.
    #[error("{0}")]
    WrongVariable(Box<WrongVariable>),
    /// Two things that were to work together belong to different contexts.
    #[error(transparent)]
    WrongContext(Box<WrongContext>),
    /// A range does not lie in the memory it was taken of.
    #[error("the range {start}..{end} does not lie in a buffer of {}", Count(*len, "element", "elements"))]
    Bounds {
        /// The start of the range, in elements.
        start: usize,
        /// The end of the range, in elements.
        end: usize,
        /// How many elements there are.
        len: usize,
    },
    /// Two lengths that must be equal are not.
    #[error(
        "{what}: {} expected, {found} given; take a slice of the longer side, as `.slice(..{})`",
        Count(*expected, "element", "elements"),
        expected.min(found)
    )]
    Length {
        /// The object whose length is wrong.
        what: &'static str,
        /// The length needed, in elements.
        expected: usize,
        /// The length given, in elements.
        found: usize,
    },
    /// Source and destination of a copy overlap.
    #[error("the source and the destination of a copy overlap by {bytes} bytes; copy through another buffer")]
    Overlap {
        /// By how many bytes.
        bytes: usize,
    },
    /// The rows of a rectangle, or the layers of a box, lie closer together than they are long.
    #[error("{what}: rows or layers of {need} do not fit into steps of {found}")]
    Pitch {
        /// The object that was to hold them.
        what: &'static str,
        /// How long they are: the width in elements, or the height in rows.
        need: usize,
        /// From one to the next: the pitch in elements, or the rows of a layer.
        found: usize,
    },
    /// Memory cannot be seen as elements of another type.
    #[error(
        "{bytes} bytes at {address:#x} cannot be taken as elements of {size} bytes aligned to {align}: size or address does not fit"
    )]
    Cast {
        /// The bytes there are.
        bytes: usize,
        /// The start address.
        address: u64,
        /// The size of an element of the new type.
        size: usize,
        /// The alignment of the new type.
        align: usize,
    },
    /// Memory of an allocation node was used elsewhere than in a node of its graph.
    #[error(
        "the memory of an allocation node can be used by nodes of its graph alone; what a launch leaves of it comes out as a buffer of its own \
         (GraphExec::launch_with_outputs), which streams and other graphs can use"
    )]
    MemoryOfGraph,
    /// A fill value of a size that the device cannot repeat.
    #[error("memory can be filled with values of 1, 2 or 4 bytes; this one has {bytes}")]
    FillSize {
        /// The size of the value.
        bytes: usize,
    },
    /// Memory to be filled does not start at a multiple of the value's size.
    #[error(
        "memory at {address:#x} cannot be filled with values of {align} bytes: it has to start at a multiple of that. Where all bytes of the value are equal, \
         `cast` the memory to bytes and fill those; else copy the values there"
    )]
    Unaligned {
        /// The start address.
        address: u64,
        /// The size of the value.
        align: u64,
    },
    /// The host has not enough memory for a vector of the elements to read.
    #[error(
        "the host has no memory for a vector of {bytes} bytes; read into memory that is there, or read parts"
    )]
    HostVector {
        /// The bytes needed.
        bytes: usize,
    },
    /// The device has not enough memory, even after all pending frees.
    #[error("the device has not enough memory: {asked} bytes were asked for, {free} of {total} are free")]
    OutOfMemory {
        /// The bytes asked for.
        asked: usize,
        /// The bytes free afterwards; 0 if the driver did not say.
        free: usize,
        /// The device's memory in bytes; 0 if the driver did not say.
        total: usize,
    },
    /// A pool has not enough memory within its limit, even after all pending frees.
    #[error(
        "the pool has no {asked} bytes: it was made to hold {limit} at most (`PoolOptions::max_bytes`), though the device has more; drop buffers \
         of it, or make a pool with a larger limit"
    )]
    PoolFull {
        /// The bytes asked for.
        asked: usize,
        /// The most that the pool may hold.
        limit: usize,
    },
    /// The host has not enough memory that could be pinned or managed.
    #[error(
        "the driver gives no {asked} bytes of host memory; {kept} bytes are kept for later requests, which `reaper::drain` frees"
    )]
    OutOfHostMemory {
        /// The bytes asked for.
        asked: usize,
        /// The bytes of the kind that are kept, in blocks that did not fit.
        kept: usize,
    },
    /// The device or the system lacks something.
    #[error("{what}: not supported by this device")]
    Unsupported {
        /// The missing feature.
        what: &'static str,
    },
    /// A batch was given memory whose numbers the driver neither writes nor waits for in batches;
    /// of nodes it says so only at the launch.
    #[error(
        "batches work on plain device memory (`Context::alloc_blocking`), variables of libraries and pinned memory; this is {kind} memory"
    )]
    BatchMemory {
        /// The object.
        kind: MemoryKind,
    },
    /// Memory was given to a host function that the host does not reach.
    #[error(
        "a host function cannot look at {kind} memory; copy it to pinned memory (`Context::pinned_zeros`) in front of the function, and give that"
    )]
    NotOnHost {
        /// The object.
        kind: MemoryKind,
    },
    /// An owner of another type was asked for than the memory has.
    #[error(
        "the memory has no owner of the type {asked}; ask for the type that was given to `Context::register_raw`, or a vector of the same elements for `Context::register`"
    )]
    OtherOwner {
        /// The type that was asked for.
        asked: &'static str,
    },
    /// More elements than an address space can hold.
    #[error("{len} elements of {size} bytes are more than can be addressed")]
    TooLarge {
        /// The number of elements.
        len: usize,
        /// The size of one.
        size: usize,
    },
    /// Memory whose allocation may not have been reached yet was first used on a capturing stream,
    /// which cannot wait for that; the capture goes on. In a capture of this library, only
    /// [`Allocation::ready_on`](crate::Allocation::ready_on) says this:
    /// [`Stream::enqueue_ready`](crate::Stream::enqueue_ready) waits for nothing there.
    #[error(
        "the memory was allocated on another stream, which may not have come to that yet, and a stream that other code captures cannot wait for \
         it. Use the memory on this stream before the capture, or make the stream wait for the memory's home then (`Stream::wait_for`); or wait \
         for the home on the host (`Stream::synchronize_blocking`), also while this stream captures"
    )]
    CapturedFirstUse,
    /// The operation cannot be part of a capture, and its stream is capturing; the capture goes on.
    #[error(
        "{what} cannot be captured, and the stream is capturing; do it before or after the capture, or on a stream that is in none"
    )]
    Capturing {
        /// The operation.
        what: &'static str,
    },
    /// Memory was first used on a stream that is in no capture, while the stream it was allocated
    /// on is capturing; the capture goes on.
    #[error(
        "the memory's home, the stream number {home} (`Stream::id`), is capturing, so the stream that is to use the memory cannot wait for it. Use \
         the memory on this other stream once before the capture; or, if the use is to be captured, let the other stream join the capture first \
         (`other.wait_for(&home)`)"
    )]
    CapturingHome {
        /// The number of the memory's home; see [`Stream::id`](crate::Stream::id).
        home: u64,
    },
    /// A call during a capture has invalidated it; what was captured is thrown away, and its
    /// streams can be used.
    #[error("{}", InvalidatedBy(by.as_ref()))]
    CaptureInvalidated {
        /// The first captured call of this library that the driver has refused, if there is one.
        by: Option<Cause>,
    },
    /// Streams take part in a capture whose first stream does not wait for them at its end; what
    /// was captured is thrown away, and the streams can be used.
    #[error("{}", Unjoined(*origin, others))]
    CaptureUnjoined {
        /// The number of the stream on which the capture began; see
        /// [`Stream::id`](crate::Stream::id).
        origin: u64,
        /// The numbers of its other streams.
        others: Box<[u64]>,
    },
    /// The capture was ended by [`Stream::discard_capture`](crate::Stream::discard_capture).
    #[error("the capture is over: `Stream::discard_capture` has ended it and thrown away what was captured")]
    Discarded,
    /// The stream belongs to a fork or to a body of a capture that is over. It takes work in
    /// captures only.
    #[error(
        "the stream belongs to a fork or body of a capture that is over, so the call would run at once; make it before the capture ends, or on another stream"
    )]
    CaptureOver,
    /// A capturing stream was to wait for something outside of its capture; the capture goes on.
    #[error(
        "a capturing stream can only wait for what was recorded in the same capture; wait before the capture begins, or let the other stream join it first"
    )]
    Isolated,
    /// A stream of one capture was to wait for an event of another; both go on.
    #[error("the event was recorded in another capture than the stream is in, and captures cannot be merged")]
    Merge,
    /// An event was asked or waited for that was last recorded in a capture, where nothing runs.
    #[error(
        "the event was last recorded in a capture, where it is never reached; record it anew after the capture"
    )]
    CapturedEvent,
    /// A number is over a limit.
    #[error("{what}: {asked} was asked for, {limit} is the most")]
    Limit {
        /// The quantity.
        what: &'static str,
        /// The number.
        asked: u64,
        /// The limit.
        limit: u64,
    },
    /// A kernel belongs to another library than the given one.
    #[error(
        "the kernel `{}` is in the library {found:#x}, not in {given:#x}; give that one, or none if the kernel is known",
        Printable(kernel)
    )]
    OtherLibrary {
        /// The kernel.
        kernel: Box<str>,
        /// The library given, as a raw value.
        given: usize,
        /// The library it is in, as a raw value.
        found: usize,
    },
    /// The time between two events cannot be determined.
    #[error("no time from one event to the other: {0}")]
    NoTime(NoTime),
    /// The options of an event exclude each other.
    #[error("an event for other processes cannot keep times: `ipc` needs `timing: false`")]
    IpcTiming,
    /// An object that was made only for this process was to be exported.
    #[error("{what} was not made for other processes; use {how}")]
    NotShareable {
        /// The object.
        what: &'static str,
        /// How it has to be made.
        how: &'static str,
    },
    /// Host memory cannot become the host's own.
    #[error(
        "another handle, a graph or an executable uses the memory; drop it first, and wait for the streams of its launches"
    )]
    StillShared,
    /// A user object was to be released by a graph that holds no reference from it.
    #[error(
        "the graph holds no reference to the user object from this handle; it can only give back what it was given"
    )]
    NotHeld,
    /// The compiler for CUDA C++ is not there, or a program does not compile.
    #[cfg(feature = "nvrtc")]
    #[error(transparent)]
    Nvrtc(Box<cuda_nvrtc::Error>),
    /// Something was in use for as long as calls are [patient](crate::patience). The call had no
    /// effect.
    #[error(
        "{what} was in use all the time for {patience:?}: by {by}. Let that end first; `set_patience` makes calls wait longer"
    )]
    Busy {
        /// The thing in use.
        what: Box<str>,
        /// Its users, as far as they are known.
        by: Box<str>,
        /// How long the call waited.
        patience: core::time::Duration,
    },
    /// The driver would wait for all work of the device, and there is some. Nothing has happened.
    #[error(
        "{what} would wait for all work of the device, and {running} still runs, or captures; wait for it (`synchronize_blocking`) and try again, or call `reaper::drain`, which waits"
    )]
    StillRunning {
        /// The action.
        what: &'static str,
        /// A stream that has work.
        running: Box<str>,
    },
    /// A raw value belongs to no object of this library.
    #[error("the raw value {raw:#x} is not a {what} that this library knows")]
    Unknown {
        /// The kind of object.
        what: &'static str,
        /// The raw value.
        raw: usize,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Self::Load(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small() {
        assert!(size_of::<Error>() <= 64, "{}", size_of::<Error>());
    }

    #[test]
    fn names_the_kernels_there_are() {
        let error = |kernels: Option<&[&str]>| {
            let kernels = kernels.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            let kernels = kernels.map(|names| Near::of("f", names));
            Error::NoKernel { name: "f".into(), kernels }.to_string()
        };
        assert_eq!(error(None), "the library has no kernel `f`");
        assert_eq!(error(Some(&[])), "the library has no kernel `f`; it has none at all");
        assert_eq!(error(Some(&["g", "h"])), "the library has no kernel `f`; it has `g`, `h`");
    }

    #[test]
    fn says_what_to_do() {
        let error = Error::Driver {
            call: Call::cuStreamSynchronize,
            code: CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        };
        let text = error.to_string();
        assert!(
            text.starts_with("cuStreamSynchronize answered CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"),
            "{text}"
        );
        assert!(text.contains("make it before or after the capture"), "{text}");
    }

    #[test]
    fn debug_shows_the_sentence() {
        let error = Error::Length { what: "the slice to write", expected: 2, found: 1 };
        assert_eq!(
            format!("{error:?}"),
            "the slice to write: 2 elements expected, 1 given; take a slice of the longer side, as `.slice(..1)`"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn counts_in_words() {
        assert_eq!(
            Error::NoDevice { asked: 1, found: 1 }.to_string(),
            "there is no CUDA device 1: 1 device was found"
        );
        assert_eq!(
            Error::NoDevice { asked: 0, found: 0 }.to_string(),
            "there is no CUDA device 0: 0 devices were found"
        );
    }
}
