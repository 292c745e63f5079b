//! The iterative drop of states whose graphs keep each other alive. A recursive drop would need a
//! stack as deep as the chain is long.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use core::ops::Deref;

use cuda_handles::internal::panics;
use cuda_handles::internal::{Lock, Rank};

use crate::state::GraphState;

thread_local! {
    /// The states that wait for the end of the drop that runs on this thread. It is empty when the
    /// thread ends, and never destroyed: destructors that run then may drop states.
    static WAITING: RefCell<ManuallyDrop<Option<Vec<GraphState>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// A state behind its lock. If it is dropped while another state is, it waits until that drop ends.
#[derive(Debug)]
pub(crate) struct LastingState(Lock<GraphState>);

impl LastingState {
    pub(crate) fn new(state: GraphState) -> Self {
        Self(Lock::new(Rank::Hierarchy, state))
    }
}

impl Deref for LastingState {
    type Target = Lock<GraphState>;

    fn deref(&self) -> &Lock<GraphState> {
        &self.0
    }
}

impl Drop for LastingState {
    fn drop(&mut self) {
        let mut state = Some(core::mem::take(self.0.get_mut()));
        let begins = WAITING.try_with(|waiting| match &mut **waiting.borrow_mut() {
            Some(waiting) => {
                waiting.extend(state.take());
                false
            }
            none => {
                *none = Some(Vec::new());
                true
            }
        });
        let _rest = matches!(begins, Ok(true)).then(|| Rest);
        panics::contain(|| drop(state));
    }
}

/// Drops the waiting states, even if the drop of an owner panics.
struct Rest;

impl Drop for Rest {
    fn drop(&mut self) {
        // Each state is dropped outside of the list, since its drop may add more. A panic does not
        // stop the others from being dropped.
        while let Some(next) = WAITING.try_with(next).ok().flatten() {
            panics::contain(|| drop(next));
        }
    }
}

/// The next waiting state. Once there is none, the list ends.
fn next(waiting: &RefCell<ManuallyDrop<Option<Vec<GraphState>>>>) -> Option<GraphState> {
    let mut waiting = waiting.borrow_mut();
    let next = waiting.as_mut().and_then(Vec::pop);
    if next.is_none() {
        **waiting = None;
    }
    next
}
