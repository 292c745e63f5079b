//! Heap allocations of a thread, without those inside driver calls: the software driver runs in
//! this process.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static IN_DRIVER: Cell<bool> = const { Cell::new(false) };
}

fn one_more() {
    // The counter of an ending thread may be gone.
    if !IN_DRIVER.try_with(Cell::get).unwrap_or(true) {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: everything is handed on to the system's allocator; counting touches plain thread-local
// cells and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        one_more();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        one_more();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        one_more();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of this thread so far, outside of driver calls.
pub(crate) fn allocations() -> u64 {
    COUNT.get()
}

/// Sets whether the thread is inside a driver call, and returns the value before.
pub(crate) fn set_in_driver(inside: bool) -> bool {
    IN_DRIVER.try_with(|flag| flag.replace(inside)).unwrap_or(true)
}
