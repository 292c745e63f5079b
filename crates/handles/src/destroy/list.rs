//! A lock-free list: any thread pushes nodes, and a taker takes all of them.
//!
//! Since a taker takes the whole list, addresses may recur between reading the head and replacing
//! it. Pushing a node that exists already allocates nothing and takes no lock, so a destructor that
//! the driver runs may do it.

use crate::sync::{AtomicPtr, Ordering};

/// A value with room for its place in a list.
pub(crate) struct Node<T> {
    next: *mut Self,
    value: T,
}

// SAFETY: outside of a list the pointer is null, and only a list uses it.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Node<T> {}

impl<T> Node<T> {
    pub(crate) fn new(value: T) -> Box<Self> {
        Box::new(Self { next: core::ptr::null_mut(), value })
    }
}

/// The list.
pub(crate) struct List<T> {
    head: AtomicPtr<Node<T>>,
}

// SAFETY: the list moves values from thread to thread and shares none.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: as above; the head is atomic, and only the list uses a node from its push to its taking.
unsafe impl<T: Send> Sync for List<T> {}

impl<T> List<T> {
    /// A list that starts with this head; a null one for an empty list.
    pub(crate) const fn starting_with(head: AtomicPtr<Node<T>>) -> Self {
        Self { head }
    }

    /// Adds a node.
    pub(crate) fn push(&self, node: Box<Node<T>>) {
        let node = Box::into_raw(node);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is ours until the exchange below succeeds.
            unsafe { (*node).next = head };
            match self.head.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Whether nothing is in it at this moment. If it was taken, a thread that sees that also sees
    /// what its taker did before.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire).is_null()
    }

    /// Takes all there is, in the order of the pushes.
    pub(crate) fn take(&self) -> Taken<T> {
        let mut newest = self.head.swap(core::ptr::null_mut(), Ordering::AcqRel);
        let mut oldest = core::ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap made the whole chain ours.
            let next = unsafe { core::mem::replace(&mut (*newest).next, oldest) };
            oldest = newest;
            newest = next;
        }
        Taken { first: oldest }
    }
}

/// The values taken out of a list.
pub(crate) struct Taken<T> {
    first: *mut Node<T>,
}

impl<T> Iterator for Taken<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: the chain is ours, and each node came from a box.
        let node = unsafe { Box::from_raw(self.first) };
        self.first = node.next;
        Some(node.value)
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
