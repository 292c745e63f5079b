//! The operations. Things go by numbers, modulo how many there are.

use arbitrary::{Arbitrary, Result, Unstructured};

/// The number of a thing.
pub(super) type Number = u8;

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Work { stream: Number, work: NewWork, elsewhere: bool },
    Order(Order),
    Begin { stream: Number, mode: Mode, shares_scratch: bool },
    End { capture: Number, joins: bool, elsewhere: bool },
    Change(Change),
    Upset(Upset),
}

impl Arbitrary<'_> for Op {
    /// Mostly work and waits, so that captures become more than their ends.
    fn arbitrary(bytes: &mut Unstructured<'_>) -> Result<Self> {
        Ok(match u8::arbitrary(bytes)? {
            0..110 => Self::Work {
                stream: bytes.arbitrary()?,
                work: bytes.arbitrary()?,
                elsewhere: u8::arbitrary(bytes)? < 32,
            },
            110..190 => Self::Order(bytes.arbitrary()?),
            190..206 => Self::Begin {
                stream: bytes.arbitrary()?,
                mode: bytes.arbitrary()?,
                shares_scratch: bytes.arbitrary()?,
            },
            206..216 => Self::End {
                capture: bytes.arbitrary()?,
                joins: bytes.arbitrary()?,
                elsewhere: bytes.arbitrary()?,
            },
            216..243 => Self::Change(bytes.arbitrary()?),
            243.. => Self::Upset(bytes.arbitrary()?),
        })
    }
}

/// What orders streams.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Order {
    Record { stream: Number, event: Number },
    Wait { stream: Number, event: Number },
    WaitFor { stream: Number, other: Number },
}

/// Things come, are used and go.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Change {
    NewStream,
    DropStream {
        stream: Number,
    },
    NewEvent,
    DropEvent {
        event: Number,
    },
    /// A buffer that is allocated in a capture and kept.
    Hold {
        stream: Number,
        value: u8,
    },
    /// A copy from such a buffer.
    Use {
        held: Number,
        stream: Number,
        cell: Number,
    },
    DropHeld {
        held: Number,
    },
    Launch {
        exec: Number,
        stream: Number,
    },
    DropExec {
        exec: Number,
    },
    Reset {
        value: u8,
    },
    Check,
}

/// What a capture refuses, or does not survive.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Upset {
    AskStream {
        stream: Number,
        question: Question,
    },
    AskEvent {
        event: Number,
        wait: bool,
    },
    /// Other code invalidates the capture.
    Invalidate {
        stream: Number,
        by: Invalidation,
    },
    Discard {
        stream: Number,
        elsewhere: bool,
    },
    DropBuilder {
        capture: Number,
    },
    ForgetBuilder {
        capture: Number,
    },
    /// A driver call of the next operation fails.
    FailNext {
        nth: Number,
    },
}

/// How a capture begins.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
    /// Relaxed; any thread may end it.
    AnyThread,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum NewWork {
    Add {
        cell: Number,
        amount: u8,
    },
    Fill {
        cell: Number,
        value: u8,
    },
    Copy {
        from: Number,
        to: Number,
    },
    Host {
        amount: u8,
    },
    /// A value goes through memory that is allocated and dropped on the stream.
    Temporary {
        value: u8,
        cell: Number,
    },
    /// A copy of no elements.
    Nothing,
    /// A copy between lengths that differ, which is refused.
    Wrong,
}

/// A call that a capturing stream refuses.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Question {
    Query,
    Synchronize,
    Read,
    Upload,
    /// Of the whole context.
    SynchronizeContext,
}

/// A call of other code that invalidates a capture.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Invalidation {
    Query,
    /// The capture is ended on a stream that was drawn in.
    EndOnFork,
}
