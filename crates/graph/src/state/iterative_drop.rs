//! The end of tables whose graphs keep each other: one after the other, however long the line. A
//! drop that goes down from graph to graph would need a stack as deep.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::sync::{Mutex, PoisonError};

use cuda_handles::panics;

use crate::state::GraphState;

thread_local! {
    /// While a table is dropped on this thread, those that went with it. Nothing is in it when the
    /// thread ends, and it is there to the end: tables may be dropped by destructors that run then.
    static WAITING: RefCell<ManuallyDrop<Option<Vec<GraphState>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// A table behind its lock. Dropped in the drop of another one, it waits for the end of that.
#[derive(Debug, Default)]
pub(crate) struct LastingState(Mutex<GraphState>);

impl LastingState {
    pub(crate) fn new(table: GraphState) -> Self {
        Self(Mutex::new(table))
    }
}

impl Deref for LastingState {
    type Target = Mutex<GraphState>;

    fn deref(&self) -> &Mutex<GraphState> {
        &self.0
    }
}

impl Drop for LastingState {
    fn drop(&mut self) {
        let mut table = Some(core::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner)));
        let begins = WAITING.try_with(|waiting| match &mut **waiting.borrow_mut() {
            Some(waiting) => {
                waiting.extend(table.take());
                false
            }
            none => {
                *none = Some(Vec::new());
                true
            }
        });
        let _rest = matches!(begins, Ok(true)).then(|| Rest);
        panics::contain(|| drop(table));
    }
}

/// The tables that wait on this thread. What an owner's drop makes of it, a panic included: they
/// are dropped.
struct Rest;

impl Drop for Rest {
    fn drop(&mut self) {
        // What is taken out is dropped when the list is free again: more may come. Whatever comes
        // of one, the others are dropped.
        while let Some(next) = WAITING.try_with(next).ok().flatten() {
            panics::contain(|| drop(next));
        }
    }
}

/// The next one; once there is none, the list is gone.
fn next(waiting: &RefCell<ManuallyDrop<Option<Vec<GraphState>>>>) -> Option<GraphState> {
    let mut waiting = waiting.borrow_mut();
    let next = waiting.as_mut().and_then(Vec::pop);
    if next.is_none() {
        **waiting = None;
    }
    next
}
