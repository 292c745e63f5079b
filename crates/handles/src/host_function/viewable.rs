//! The memory that a host function may look at.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::context::Context;
use crate::error::Result;
use crate::memory::{Allocation, Element, HostView, SharedHostBuffer, Slice};

/// Memory that a host function may look at ([`Stream::host_with`](crate::Stream::host_with)): a
/// pinned, registered or managed buffer, a slice of one, or a tuple of up to six of these.
pub trait Viewable: sealed::Given {
    /// The function's argument: a [`HostView`] for each.
    type Views: HostViews;

    /// The views, which keep the memory.
    ///
    /// # Errors
    /// The memory is of another context ([`WrongContext`](crate::Error::WrongContext)), or the host
    /// does not reach it.
    #[doc(hidden)]
    fn views(self, context: &Context) -> Result<Self::Views>;
}

/// The argument of a host function that views memory: a [`HostView`], or a tuple of them.
pub trait HostViews: Send + 'static + sealed::Seen {
    /// Shows the memory of each.
    #[doc(hidden)]
    fn show<'v>(&'v self, to: &mut Memory<'v>);
}

mod sealed {
    pub trait Given {}
    pub trait Seen {}
}

/// Memory of views, each once.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Memory<'v>(SmallVec<[&'v Arc<Allocation>; 4]>);

impl<T: Element> sealed::Given for &SharedHostBuffer<T> {}

impl<T: Element> Viewable for &SharedHostBuffer<T> {
    type Views = HostView<T>;

    fn views(self, context: &Context) -> Result<HostView<T>> {
        HostView::new(context, self.as_slice())
    }
}

impl<T: Element> sealed::Given for Slice<'_, T> {}

impl<T: Element> Viewable for Slice<'_, T> {
    type Views = HostView<T>;

    fn views(self, context: &Context) -> Result<HostView<T>> {
        HostView::new(context, self)
    }
}

impl<T: Element> sealed::Seen for HostView<T> {}

impl<T: Element> HostViews for HostView<T> {
    fn show<'v>(&'v self, to: &mut Memory<'v>) {
        // A view of no bytes never conflicts.
        if self.has_bytes() && !to.0.iter().any(|known| Arc::ptr_eq(known, self.allocation())) {
            to.0.push(self.allocation());
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))+) => { $(
        impl<$($name: Viewable),+> sealed::Given for ($($name,)+) {}

        #[allow(non_snake_case)]
        impl<$($name: Viewable),+> Viewable for ($($name,)+) {
            type Views = ($($name::Views,)+);

            fn views(self, context: &Context) -> Result<Self::Views> {
                let ($($name,)+) = self;
                Ok(($($name.views(context)?,)+))
            }
        }

        impl<$($name: HostViews),+> sealed::Seen for ($($name,)+) {}

        #[allow(non_snake_case)]
        impl<$($name: HostViews),+> HostViews for ($($name,)+) {
            fn show<'v>(&'v self, to: &mut Memory<'v>) {
                let ($($name,)+) = self;
                $($name.show(to);)+
            }
        }
    )+ };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// Other code has a view of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InUse;

/// Views for the first caller.
pub(super) struct Shown<V>(V);

// SAFETY: only the holder of the right to view the memory of all views uses them; views without
// memory read and write nothing.
unsafe impl<V: HostViews> Sync for Shown<V> {}

impl<V: HostViews> Shown<V> {
    pub(super) fn new(views: V) -> Self {
        Self(views)
    }

    /// Runs `look` while no other code has a view of the memory.
    pub(super) fn exclusively(&self, look: impl FnOnce(&V)) -> Result<(), InUse> {
        exclusively(&self.0, look)
    }
}

fn exclusively<V: HostViews>(views: &V, look: impl FnOnce(&V)) -> Result<(), InUse> {
    let mut memory = Memory::default();
    views.show(&mut memory);
    let mut taken = SmallVec::<[_; 4]>::new();
    for allocation in memory.0 {
        taken.push(allocation.try_view().ok_or(InUse)?);
    }
    look(views);
    drop(taken);
    Ok(())
}
