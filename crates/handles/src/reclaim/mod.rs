//! The reaper: what cannot be freed or destroyed in a drop.
//!
//! [`reaper`] has the drop rules. This page is about the mechanism.
//!
//! # Fields
//!
//! | what waits | where | handed over by | taken by |
//! | --- | --- | --- | --- |
//! | driver objects that a thread may not destroy | `OBJECTS`, a lock-free list | drops | reaper, drain |
//! | payloads: values of user objects | `PAYLOADS` | destructors that the driver runs, drops | dropping thread, drain |
//! | memory behind a fence | `FREES` | drops | reaper, drain, allocations that find no memory |
//! | streams whose gate was taken when their last handle went | `CLOSINGS` | drops | reaper, drain |
//! | pools whose memory is being freed | `POOLS` | drops | reaper, drain |
//! | attempts, such as ending a capture | `ATTEMPTS` | drops | reaper, drain |
//! | deferred executables | `DEFERRED` | drops | drain, and calls that need their memory or their graph |
//! | executables to be destroyed when idle | `UNTIL_IDLE` | drops | reaper, drain |
//! | libraries, registered memory | `LIBRARIES`, `REGISTERED` | drops | drain |
//! | cached host memory | `CACHE` | drops, reaper | allocations, drain |
//! | owners that executables have given up | batches ([`Retired`]) | node updates | due batches: reaper, drain, and callers that want memory back |
//! | fences and lanes | [`Fences`](fences::Fences), one lock | | reaper, drain, allocations that find no memory |
//!
//! # States of memory that other streams used
//!
//! | state | what it waits for | next |
//! | --- | --- | --- |
//! | shared | the drop of its last handle | pushed |
//! | pushed (`FREES`) | the reaper's next round | fenced or postponed |
//! | postponed | a stream that captures, or a driver that refuses; tried again after 5 ms, then up to 1 s | fenced |
//! | fenced, device memory | nothing: the free is enqueued in the reaper's lane, behind every member | freed in stream order |
//! | held, host memory and foreign owners | an event behind the fence, asked from time to time | cached, or the owner is dropped |
//! | held, owners that an executable has given up | an event in the stream of its last run that used them | the owners are dropped |
//!
//! # Rules
//!
//! 1. Handing over allocates nothing where a destructor may run: the node was made when the memory
//!    was first shared. It takes no lock, so a destructor that the driver runs may do it.
//! 2. Whatever waits is counted by [`pending`](reaper::pending) from before it is pushed until it
//!    is done.
//! 3. One thread at a time works: it holds the lock of [`Fences`](fences::Fences). Except in a
//!    drain, it never waits for work of the device with that lock held. It runs no destructor of
//!    other code with that lock held.
//! 4. Destructors of other code run on the dropping thread (`cuda-reaper-drop`), or in a drain.
//! 5. A stream becomes a member of all fences before it first uses memory of another home, and
//!    leaves after its last handle is gone and a lane has waited for its work.
//! 6. A fence is built for all members or not at all: if one is capturing, the frees are postponed.
//! 7. Only a drain, and the thread made for deferred executables, make calls in which the driver
//!    waits for work of the device.
//! 8. A thread that works does not drain again: a destructor that asks for it gets 0.
//! 9. A thread that asks whether a value is about to be dropped looks at `FENCES`,
//!    `PAYLOADS` and the runs of destructors in this order, in which values move
//!    ([`Destructors`](destructors::Destructors)).
//!
//! # Who may do what
//!
//! | thread | may |
//! | --- | --- |
//! | any, in a drop | hand over; make the calls that the drop rules name |
//! | any, in an allocation that found no memory | work; destroy deferred executables while the context is idle |
//! | any, in a drain | everything |
//! | `cuda-reaper` | work; destroy executables once the context is idle |
//! | `cuda-reaper-drop` | run destructors of other code |
//! | `cuda-reaper-end` | destroy executables, which may wait for work that nobody here knows |
//! | a thread in a host function | hand over |

mod behind;
mod destructors;
mod fence;
mod fences;
pub(crate) mod host_cache;
mod idle;
mod in_part;
mod lane;
mod pools;
pub mod reaper;
mod retired;
mod staging;
mod threads;
mod worker;

pub use behind::drop_behind;
pub(crate) use fence::{
    FreeKind, FreedWith, PendingFree, close, expect_across, join, may_run_elsewhere, push_free,
};
pub(crate) use host_cache::{HostBlock, HostKind, HostOwner};
pub(crate) use idle::destroy_when_idle;
pub use in_part::UnlessLostInPart;
pub(crate) use pools::{UnusedPool, push_pool};
pub use retired::{FormerStream, Retired};
pub(crate) use staging::{MOST as STAGED_MOST, Staging};
pub(crate) use worker::{
    catch_up, catch_up_frees, destroy_all_deferred, destroy_keeping, free_now, free_pending,
    order_after_frees, wait_for_frees,
};

/// Sets the function that starts the reaper's thread, once a context exists.
pub(crate) fn prepare() {
    crate::destroy::set_starter(worker::start);
}
