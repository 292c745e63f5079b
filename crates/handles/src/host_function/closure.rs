//! Closures that the driver calls: found by a number, so that no call can reach one that is gone.

use core::any::type_name;
use core::ffi::c_void;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use super::panic;
use super::viewable::{HostViews, InUse, Shown};
use crate::context::{Context, on_loss};
use crate::destroy;
use crate::graph::Owner;
use crate::sync::{Lock, LockGuard, Rank, is_forked, panics};

/// The outcome of a call: the closure ran, or other code views its memory.
pub(super) type Outcome = Result<(), InUse>;

type Call = dyn Fn() -> Outcome + Send + Sync;

/// A closure that is called once.
pub(super) enum CallOnce {
    /// It can be called only once.
    Given(Box<dyn FnOnce() -> Outcome + Send>),
    /// It could be called again, so it is dropped after its call, also after a panic.
    Kept(Box<Call>),
}

/// A closure with owners, and the number by which the driver knows it.
///
/// The driver gets a number that is never given twice, not an address: after a context was lost,
/// owners go while a host function may just be about to start on the driver's thread.
struct Callback<F: ?Sized> {
    number: usize,
    name: &'static str,
    call: F,
}

/// A closure that a stream calls once.
struct OnceEntry {
    context: Context,
    name: &'static str,
    call: CallOnce,
}

/// The closure behind a number.
enum Entry {
    Owned(Weak<Callback<Call>>),
    OnceEntry(OnceEntry),
}

static KNOWN: LazyLock<Lock<HashMap<usize, Entry>>> = LazyLock::new(|| {
    on_loss(let_go);
    Lock::new(Rank::Closures, Default::default())
});

/// No code of others runs under this lock, and nothing of theirs is dropped.
fn known() -> LockGuard<'static, HashMap<usize, Entry>> {
    KNOWN.lock()
}

fn new_number() -> usize {
    static NUMBERS: AtomicUsize = AtomicUsize::new(1);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

fn data(number: usize) -> *mut c_void {
    core::ptr::without_provenance_mut(number)
}

/// A closure that the driver can call as long as `owner` or a clone of it lives.
#[derive(Debug)]
pub struct Callable {
    /// The argument that the driver passes to [`call`].
    pub data: *mut c_void,
    /// The name of the function that contains the closure.
    pub name: &'static str,
    /// The owner of the closure.
    pub owner: Owner,
}

impl Callable {
    /// A closure. Not in a forked child, where the table of closures may be locked forever: the
    /// caller checks that.
    pub fn new<F: Fn() + Send + Sync + 'static>(call: F) -> Self {
        Self::named(type_name::<F>(), move || {
            call();
            Ok(())
        })
    }

    /// As [`new`](Self::new), with the memory that the closure looks at.
    pub fn with<V: HostViews, F: Fn(&V) + Send + Sync + 'static>(views: V, call: F) -> Self {
        let views = Shown::new(views);
        Self::named(type_name::<F>(), move || views.exclusively(&call))
    }

    pub(super) fn named(name: &'static str, call: impl Fn() -> Outcome + Send + Sync + 'static) -> Self {
        let number = new_number();
        let callback = Arc::new(Callback { number, name, call });
        let shared: Arc<Callback<Call>> = callback.clone();
        known().insert(number, Entry::Owned(Arc::downgrade(&shared)));
        drop(shared);
        let owner = Owner::shared(callback);
        Self { data: data(number), name, owner }
    }
}

impl<F: ?Sized> Drop for Callback<F> {
    fn drop(&mut self) {
        // The driver calls nothing in a forked child, and there the lock may be held by a thread
        // that is not there.
        if !is_forked() {
            let _weak = known().remove(&self.number);
        }
    }
}

/// A closure that is about to be given to the driver. It is dropped unless it is
/// [accepted](Self::accept).
#[derive(Debug)]
pub(super) struct Offered {
    number: usize,
}

impl Offered {
    /// Not in a forked child, which is the caller's to ask.
    pub(super) fn new(context: &Context, name: &'static str, call: CallOnce) -> Self {
        let number = new_number();
        known().insert(number, Entry::OnceEntry(OnceEntry { context: context.clone(), name, call }));
        Self { number }
    }

    /// The argument that the driver passes to [`call`].
    pub(super) fn data(&self) -> *mut c_void {
        data(self.number)
    }

    /// The driver has taken the closure and will call it. If the context was lost in the meantime,
    /// it may not: then the closure is dropped here, unless its call has begun.
    pub(super) fn accept(self, context: &Context) {
        if context.lost().is_none() {
            core::mem::forget(self);
        }
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        let refused = known().remove(&self.number);
        drop(Uncalled(refused));
    }
}

/// A closure that is not called any more. It is dropped in a containment of its own.
struct Uncalled(Option<Entry>);

impl Drop for Uncalled {
    fn drop(&mut self) {
        let closure = self.0.take();
        destroy::dropping("dropping a host function that is not called", || drop(closure));
    }
}

/// Hands the closures that streams of a lost context have yet to call to the reaper, which drops
/// them: the driver calls them no more.
#[cold]
fn let_go(context: &Context) {
    if is_forked() {
        return;
    }
    let is_of_context =
        |_: &usize, known: &mut Entry| matches!(known, Entry::OnceEntry(once) if once.context == *context);
    let gone: Vec<_> = known().extract_if(is_of_context).collect();
    for (_, closure) in gone {
        destroy::drop_later(Uncalled(Some(closure)));
    }
}

/// The function that the driver calls, with the number of a closure. The closure lives until it
/// returns.
///
/// # Safety
/// None: it takes any number. It is unsafe as the driver's type for it is.
pub unsafe extern "C" fn call(data: *mut c_void) {
    // Also contains the drop of the closure, if this call holds the last reference.
    panics::contain(|| match find(data.addr()) {
        Some(Found::Owned(callback)) => {
            run(callback.name, &callback.call);
            destroy::dropping("dropping a host function", || drop(callback));
        }
        Some(Found::OnceEntry(OnceEntry { name, call: CallOnce::Given(call), .. })) => run(name, call),
        Some(Found::OnceEntry(OnceEntry { name, call: CallOnce::Kept(call), .. })) => {
            run(name, &*call);
            destroy::dropping("dropping a closure", || drop(call));
        }
        None => {}
    });
}

enum Found {
    Owned(Arc<Callback<Call>>),
    OnceEntry(OnceEntry),
}

/// The closure of a number. A closure that is called once is taken out of the table.
fn find(number: usize) -> Option<Found> {
    let mut known = known();
    if let Entry::Owned(callback) = known.get(&number)? {
        return callback.upgrade().map(Found::Owned);
    }
    match known.remove(&number)? {
        Entry::OnceEntry(once) => Some(Found::OnceEntry(once)),
        Entry::Owned(_) => None,
    }
}

fn run(name: &'static str, call: impl FnOnce() -> Outcome) {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => {}
        Ok(Err(InUse)) => panic::not_called(name),
        Err(payload) => {
            panic::panicked(name, &*payload);
            // While it unwound, the drop of the closure behind this would end the process.
            panics::contain(|| drop(payload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_closure_is_called_as_long_as_it_has_owners_and_never_after() {
        let count = Arc::new(AtomicUsize::new(0));
        let inside = count.clone();
        let Callable { data, owner, name } = Callable::new(move || {
            inside.fetch_add(1, Ordering::Relaxed);
        });
        assert!(name.contains("a_closure_is_called"), "{name}");
        let other = owner.clone();
        drop(owner);
        // SAFETY: the function takes any number.
        unsafe { call(data) };
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(other);
        assert_eq!(Arc::strong_count(&count), 1);
        // SAFETY: as above.
        unsafe { call(data) };
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_closure_can_be_called_by_two_threads_at_once() {
        let both = Arc::new(std::sync::Barrier::new(2));
        let Callable { data, owner, .. } = Callable::new(move || {
            both.wait();
        });
        let number = data.addr();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                // SAFETY: the function takes any number.
                scope.spawn(move || unsafe { call(core::ptr::without_provenance_mut(number)) });
            }
        });
        drop(owner);
    }

    #[test]
    fn a_closure_that_loses_its_owners_while_it_runs_lives_until_it_returns() {
        let held: Arc<Mutex<Option<Owner>>> = Arc::default();
        let (inside, value) = (Arc::clone(&held), Arc::new(()));
        let weak = Arc::downgrade(&value);
        let Callable { data, owner, .. } = Callable::new(move || {
            drop(inside.lock().unwrap().take());
            assert_eq!(Arc::strong_count(&value), 1);
        });
        *held.lock().unwrap() = Some(owner);
        // SAFETY: the function takes any number.
        unsafe { call(data) };
        assert!(weak.upgrade().is_none() && held.lock().unwrap().is_none());
    }

    #[test]
    fn panics_stay_inside_even_those_of_drops() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let Callable { data, owner, .. } = Callable::new(|| std::panic::panic_any(Bomb));
        // SAFETY: the function takes any number.
        unsafe { call(data) };
        drop(owner);
        // The call has the closure last, and both the panic and the closure carry one.
        let held: Arc<Mutex<Option<Owner>>> = Arc::default();
        let (inside, bomb) = (Arc::clone(&held), Bomb);
        let Callable { data, owner, .. } = Callable::new(move || {
            let _bomb = &bomb;
            drop(inside.lock().unwrap().take());
            std::panic::panic_any(Bomb);
        });
        *held.lock().unwrap() = Some(owner);
        // SAFETY: as above.
        unsafe { call(data) };
        assert_eq!(Arc::strong_count(&held), 1, "the closure is gone");
    }
}
