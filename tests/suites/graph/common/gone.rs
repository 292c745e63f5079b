//! Owners that say whether they are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::Owner;
use cuda_tests::{Kind, SOON, live, settle, until};

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// An owner, and whether it is gone.
pub(crate) fn flag() -> (Owner, impl Fn() -> bool) {
    let gone = Arc::new(AtomicBool::new(false));
    (Owner::other(Flag(Arc::clone(&gone))), move || gone.load(Ordering::SeqCst))
}

/// Whether it is gone soon: what an executable had goes some time after it.
pub(crate) fn soon(is_gone: &impl Fn() -> bool) -> bool {
    until(SOON, || {
        settle();
        is_gone()
    })
}

pub(crate) fn allocations() -> i64 {
    live().of(Kind::Allocation)
}
