//! Closures that the driver calls: found by a number, so that no call can reach one that is gone.

use core::any::{Any, type_name};
use core::ffi::c_void;
use core::fmt;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use cuda_handles::{Owner, is_forked, panics};

type Call = dyn Fn() + Send + Sync;

/// A closure with what the driver knows it by.
///
/// The driver gets a number that is never given twice, not an address: after a context was lost, owners go while a host function may just be about
/// to start on the driver's thread.
struct Callback<F: ?Sized> {
    number: usize,
    name: &'static str,
    call: F,
}

static CALLBACKS: LazyLock<Mutex<HashMap<usize, Weak<Callback<Call>>>>> = LazyLock::new(Mutex::default);
static HOOK: RwLock<Option<fn(&CallbackPanic)>> = RwLock::new(None);

/// A panic in a closure that a graph called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallbackPanic {
    /// The closure, by the function in which it stands.
    pub callback: &'static str,
    /// What the panic said; for a value that is no text, that it was one.
    pub message: String,
}

impl fmt::Display for CallbackPanic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the host callback `{}` of a graph panicked: {}", self.callback, self.message)
    }
}

impl core::error::Error for CallbackPanic {}

/// Gives panics in the closures of [host callbacks](crate::Frontier::host) to `hook`, in place of the hook before. It runs on the driver's
/// thread, where no driver call is permitted; a panic in it is caught and lost. In a forked child, where nothing is called, it does nothing.
///
/// Whether there is a hook or not, Rust has told of the panic on the way as of any other (`std::panic::set_hook`), and the graph goes on.
pub fn set_panic_hook(hook: fn(&CallbackPanic)) {
    // The lock may be held for ever there.
    if is_forked() {
        return;
    }
    *HOOK.write().unwrap_or_else(PoisonError::into_inner) = Some(hook);
}

/// A closure that the driver can call as long as `owner` or a clone of it lives.
pub(crate) struct Callable {
    pub(crate) data: *mut c_void,
    pub(crate) name: &'static str,
    pub(crate) owner: Owner,
}

impl Callable {
    /// Not in a forked child, which is the caller's to ask: the table of closures may be locked for ever there.
    pub(crate) fn new<F: Fn() + Send + Sync + 'static>(call: F) -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = type_name::<F>();
        let callback = Arc::new(Callback { number, name, call });
        let known: Arc<Callback<Call>> = callback.clone();
        callbacks().insert(number, Arc::downgrade(&known));
        drop(known);
        let owner = Owner::shared(callback);
        Self { data: core::ptr::without_provenance_mut(number), name, owner }
    }
}

/// No code of others runs under this lock.
fn callbacks() -> MutexGuard<'static, HashMap<usize, Weak<Callback<Call>>>> {
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: ?Sized> Drop for Callback<F> {
    fn drop(&mut self) {
        // The driver calls nothing in a forked child, and there the lock may be held by a thread that is not there.
        if !is_forked() {
            let _gone = callbacks().remove(&self.number);
        }
    }
}

/// What the driver calls, with the number of a closure. The closure lives until it returns.
pub(crate) unsafe extern "C" fn call(data: *mut c_void) {
    // Also the drop of the closure, should this be the last who has it.
    panics::contain(|| {
        let found = callbacks().get(&data.addr()).and_then(Weak::upgrade);
        if let Some(callback) = found
            && let Err(payload) = catch_unwind(AssertUnwindSafe(&callback.call))
        {
            report(callback.name, message(&*payload));
            drop(payload);
        }
    });
}

fn report(callback: &'static str, message: String) {
    let hook = *HOOK.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(hook) = hook {
        panics::contain(|| hook(&CallbackPanic { callback, message }));
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with a value that is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(message(&"text"), "text");
        assert_eq!(message(&String::from("string")), "string");
        assert_eq!(message(&1), "with a value that is no text");
    }
}
