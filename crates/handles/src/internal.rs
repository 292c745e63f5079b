//! Items for the crates above this one. No part of the public interface: they change without
//! notice.
//!
//! The methods that go with these are hidden, and say so: [`Enqueue::captured_call`],
//! [`Event::recording`], [`Event::set_in_graphs`], [`GraphHandle::tie`],
//! [`GraphHandle::knowledge`], [`GraphHandle::disown`], [`GraphExecHandle::destroy_deferred`],
//! [`GraphExecHandle::destroy_all_deferred`], [`Kernel::occupancy_memo`],
//! [`Context::refuse_in_callback`], [`Stream::downgrade`], [`Stream::only_capture`],
//! [`Stream::fill_tagged`], [`Stream::clear_tagged`], [`Stream::copy_tagged`],
//! [`Allocation::is_scratch`], [`Allocation::has_context`], [`Scratch::turn`], [`Scratch::sort`],
//! [`Scratch::unsettled_home`].
//!
//! [`Enqueue::captured_call`]: crate::capture::Enqueue::captured_call
//! [`Event::recording`]: crate::Event::recording
//! [`Event::set_in_graphs`]: crate::Event::set_in_graphs
//! [`GraphHandle::tie`]: crate::GraphHandle::tie
//! [`GraphHandle::knowledge`]: crate::GraphHandle::knowledge
//! [`GraphHandle::disown`]: crate::GraphHandle::disown
//! [`GraphExecHandle::destroy_deferred`]: crate::GraphExecHandle::destroy_deferred
//! [`GraphExecHandle::destroy_all_deferred`]: crate::GraphExecHandle::destroy_all_deferred
//! [`Kernel::occupancy_memo`]: crate::Kernel::occupancy_memo
//! [`Context::refuse_in_callback`]: crate::Context::refuse_in_callback
//! [`Stream::downgrade`]: crate::Stream::downgrade
//! [`Stream::only_capture`]: crate::Stream::only_capture
//! [`Stream::fill_tagged`]: crate::Stream::fill_tagged
//! [`Stream::clear_tagged`]: crate::Stream::clear_tagged
//! [`Stream::copy_tagged`]: crate::Stream::copy_tagged
//! [`Allocation::is_scratch`]: crate::Allocation::is_scratch
//! [`Allocation::has_context`]: crate::Allocation::has_context
//! [`Scratch::turn`]: crate::capture::Scratch::turn
//! [`Scratch::sort`]: crate::capture::Scratch::sort
//! [`Scratch::unsettled_home`]: crate::capture::Scratch::unsettled_home

pub use crate::access::Launching;
pub use crate::capture::{KeptMemory, Recorder, Tag};
pub use crate::context::{lock_second_unless_inside, lock_unless_inside, wait_unless_inside};
pub use crate::destroy::clones::alone_in_order;
pub use crate::graph::ExecEnd;
pub use crate::host_function::{self, Callable};
pub use crate::memory::{assert_value, graph_memory};
pub use crate::reclaim::{FormerStream, Retired, UnlessLostInPart, drop_behind};
pub use crate::stream::{HeldStream, Recording, WeakStream};
pub use crate::sync::{Lock, LockGuard, Rank, panics};
