//! Code of others, run where a panic of it must not get any further: in the driver's threads, in
//! drops and in the reaper.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How often the payload of a panic may panic in its own drop before it is leaked.
const PATIENCE: usize = 8;

/// Runs `run`. A panic ends only that call, also a panic in the drop of the panic's payload, and so
/// on. After a few such panics the payload is leaked.
pub fn contain(run: impl FnOnce()) {
    let mut caught = catch_unwind(AssertUnwindSafe(run)).err();
    for _ in 0..PATIENCE {
        let Some(payload) = caught else { return };
        caught = catch_unwind(AssertUnwindSafe(|| drop(payload))).err();
    }
    core::mem::forget(caught);
}

/// The message of a panic, or a note that its payload is not text.
#[must_use]
pub fn message(payload: &(dyn Any + Send)) -> Box<str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a value that is not text")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::panic::panic_any;

    #[test]
    fn what_a_panic_carries_is_dropped_even_if_that_panics() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        struct Bomb(usize);
        impl Drop for Bomb {
            fn drop(&mut self) {
                DROPS.fetch_add(1, Ordering::Relaxed);
                if self.0 > 0 {
                    panic_any(Self(self.0 - 1));
                }
            }
        }
        contain(|| panic_any(Bomb(3)));
        assert_eq!(DROPS.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn what_a_panic_said() {
        assert_eq!(&*message(&"text"), "text");
        assert_eq!(&*message(&String::from("string")), "string");
        assert_eq!(&*message(&1), "with a value that is not text");
    }

    #[test]
    fn what_never_ends_is_left_alone() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        struct Endless;
        impl Drop for Endless {
            fn drop(&mut self) {
                DROPS.fetch_add(1, Ordering::Relaxed);
                // No allocation, hence nothing that the search for leaks would find.
                panic_any(Self);
            }
        }
        contain(|| panic_any(Endless));
        assert_eq!(DROPS.load(Ordering::Relaxed), PATIENCE);
    }
}
