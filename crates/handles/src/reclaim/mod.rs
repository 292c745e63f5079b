//! The reaper: what cannot be freed or destroyed in a drop.

mod fence;
mod fences;
pub(crate) mod host_cache;
mod idle;
mod lane;
mod owed;
mod pools;
pub mod reaper;
mod staging;
mod threads;
mod worker;

pub(crate) use fence::{FreeKind, FreedWith, PendingFree, close, expect_across, join, push_free};
pub(crate) use host_cache::{HostBlock, HostKind, HostOwner};
pub(crate) use idle::destroy_when_idle;
pub(crate) use owed::{Runs, expect as expect_back, release_here};
pub(crate) use pools::{UnusedPool, push_pool};
pub(crate) use staging::{MOST as STAGED_MOST, Staging};
pub(crate) use worker::{
    catch_up, catch_up_frees, destroy_all_deferred, destroy_keeping, free_now, free_pending,
    order_after_frees, wait_for_frees,
};

/// Says how the reaper's thread is started, once a context exists.
pub(crate) fn prepare() {
    crate::destroy::set_starter(worker::start);
}
