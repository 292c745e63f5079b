//! The owners that the nodes of a hierarchy keep alive.
//!
//! Most nodes use the same few allocations. Therefore the store holds each allocation once and
//! counts its uses without atomics: cloning a shared reference for each node would cost more than
//! the rest of its record.

use std::sync::Arc;

use cuda_handles::{Allocation, CopyLayout, Owner};
use smallvec::SmallVec;

use crate::state::loop_control::LoopDecision;

/// The owners of one node outside of the state, without its kernel. Up to five need no heap.
pub(crate) type Owners = SmallVec<[Owner; 5]>;

/// Replaces the owner of memory at the address `gone`, unless an address in `kept` is in the same
/// memory. Owners that are no memory stay.
pub(crate) fn replace_memory(owners: &mut Owners, gone: u64, kept: &[u64], new: &[Arc<Allocation>]) {
    owners.retain(|owner| match owner {
        Owner::Allocation(memory) => !has(memory, gone) || kept.iter().any(|address| has(memory, *address)),
        _ => true,
    });
    for memory in new {
        let is_it = |owner: &Owner| matches!(owner, Owner::Allocation(known) if Arc::ptr_eq(known, memory));
        if !owners.iter().any(is_it) {
            owners.push(Owner::from(memory));
        }
    }
}

/// Whether memory has an address.
pub(super) fn has(memory: &Allocation, address: u64) -> bool {
    let distance = address.checked_sub(memory.address());
    distance.is_some_and(|distance| distance < memory.bytes() as u64)
}

/// Whether source and destination of a copy [have a context](Allocation::has_context), as far as
/// the owners of its node tell.
pub(crate) fn contexts_of_copy<'o>(
    owners: impl Iterator<Item = &'o Owner> + Clone,
    copy: &CopyLayout,
) -> [Option<bool>; 2] {
    [&copy.source, &copy.destination].map(|side| {
        owners.clone().find_map(|owner| match owner {
            Owner::Allocation(memory) if has(memory, side.address) => memory.has_context(),
            _ => None,
        })
    })
}

/// The owners of one node in the [`Store`] of its hierarchy, without its kernel.
pub(crate) type Uses = SmallVec<[Use; 6]>;

/// A use of an owner in a store; ended by [`Store::release`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use(u32);

/// Everything that a node keeps alive, apart from the handles in its parameters.
#[derive(Debug, Default)]
pub(crate) struct NodeOwners {
    /// The node's arguments, in the store of its hierarchy.
    pub(crate) used: Uses,
    /// Owners that few nodes have.
    more: Option<Box<MoreOwners>>,
}

#[derive(Debug, Default)]
struct MoreOwners {
    /// Owners given by [`Node::keep`](crate::Node::keep).
    kept: Vec<Owner>,
    /// The decision of a node that decides for a ready-made loop or branch.
    decision: Option<LoopDecision>,
}

impl NodeOwners {
    pub(crate) fn new(used: Uses) -> Self {
        Self { used, more: None }
    }

    /// The owners given by [`Node::keep`](crate::Node::keep).
    pub(crate) fn kept(&self) -> &[Owner] {
        self.more.as_ref().map_or(&[], |more| &more.kept)
    }

    pub(crate) fn keep(&mut self, owner: Owner) {
        self.more.get_or_insert_default().kept.push(owner);
    }

    pub(crate) fn decision(&self) -> Option<&LoopDecision> {
        self.more.as_ref()?.decision.as_ref()
    }

    pub(crate) fn set_decision(&mut self, decision: LoopDecision) {
        self.more.get_or_insert_default().decision = Some(decision);
    }

    pub(crate) fn take_decision(&mut self) -> Option<LoopDecision> {
        self.more.as_mut()?.decision.take()
    }

    /// The owners that are not in the store.
    fn into_more(self) -> impl Iterator<Item = Owner> {
        let more = self.more.map(|more| *more).unwrap_or_default();
        more.kept.into_iter().chain(more.decision.map(LoopDecision::into_owner))
    }
}

/// Owners with the number of their uses.
#[derive(Debug, Default)]
pub(crate) struct Store {
    slots: Vec<Slot>,
    /// The first free slot; each free slot leads to the next.
    free: Option<u32>,
    recent: Recent,
}

#[derive(Debug)]
enum Slot {
    Held { owner: Owner, uses: u64 },
    Free { next: Option<u32> },
}

/// The slots in which allocations were found last, by a hash of their address. A lookup may miss an
/// allocation that the store holds; then it is held a second time.
#[derive(Debug, Default)]
struct Recent([[u32; 2]; 1 << Recent::BITS]);

impl Recent {
    const BITS: u32 = 5;

    #[inline]
    fn of(&mut self, allocation: &Arc<Allocation>) -> &mut [u32; 2] {
        // Fibonacci hashing: the highest bits depend on all bits of the address.
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let hash = (Arc::as_ptr(allocation).addr() as u64).wrapping_mul(FACTOR) >> (u64::BITS - Self::BITS);
        &mut self.0[hash as usize]
    }
}

impl Store {
    /// Makes room for more owners.
    #[inline]
    pub(crate) fn reserve(&mut self, owners: usize) {
        self.slots.reserve(owners);
    }

    /// Adds a use of an allocation, in the slot that holds it if that is found.
    #[inline]
    pub(crate) fn keep_allocation(&mut self, allocation: &Arc<Allocation>) -> Use {
        for &mut number in self.recent.of(allocation) {
            if let Some(Slot::Held { owner: Owner::Allocation(known), uses }) =
                self.slots.get_mut(number as usize)
                && Arc::ptr_eq(known, allocation)
            {
                *uses += 1;
                return Use(number);
            }
        }
        self.keep_anew(allocation)
    }

    #[inline(never)]
    fn keep_anew(&mut self, allocation: &Arc<Allocation>) -> Use {
        let kept = self.keep(Owner::Allocation(Arc::clone(allocation)));
        let recent = self.recent.of(allocation);
        *recent = [kept.0, recent[0]];
        kept
    }

    /// Adds an owner in a slot of its own.
    pub(crate) fn keep(&mut self, owner: Owner) -> Use {
        let held = Slot::Held { owner, uses: 1 };
        if let Some(number) = self.free
            && let Some(slot) = self.slots.get_mut(number as usize)
            && let Slot::Free { next } = *slot
        {
            self.free = next;
            *slot = held;
            return Use(number);
        }
        self.slots.push(held);
        // Memory runs out before the index does.
        Use((self.slots.len() - 1) as u32)
    }

    /// Ends a use. Returns the owner if this was its last use.
    pub(crate) fn release(&mut self, Use(number): Use) -> Option<Owner> {
        let slot = self.slots.get_mut(number as usize)?;
        match slot {
            Slot::Held { uses: 1, .. } => {}
            Slot::Held { uses, .. } => {
                *uses -= 1;
                return None;
            }
            Slot::Free { .. } => return None,
        }
        let free = Slot::Free { next: self.free.replace(number) };
        match core::mem::replace(slot, free) {
            Slot::Held { owner, .. } => Some(owner),
            Slot::Free { .. } => None,
        }
    }

    /// Ends everything that a node keeps alive. Returns the owners that no other node uses.
    pub(crate) fn release_all(&mut self, mut owners: NodeOwners) -> Owners {
        let used = core::mem::take(&mut owners.used);
        let mut released: Owners = used.into_iter().filter_map(|one| self.release(one)).collect();
        released.extend(owners.into_more());
        released
    }

    /// Replaces the owners behind uses. Afterwards `owners` holds the previous owners that have no
    /// other use.
    pub(crate) fn swap(&mut self, uses: &mut Uses, owners: &mut Owners) {
        let mut gone = Owners::new();
        let count = owners.len();
        for (place, owner) in owners.drain(..).enumerate() {
            match uses.get_mut(place) {
                Some(one) => gone.extend(self.exchange(one, owner)),
                None => uses.push(self.keep(owner)),
            }
        }
        while uses.len() > count
            && let Some(one) = uses.pop()
        {
            gone.extend(self.release(one));
        }
        *owners = gone;
    }

    /// Replaces the owner of a use, in the same slot if that has no other use.
    fn exchange(&mut self, one: &mut Use, new: Owner) -> Option<Owner> {
        if let Some(Slot::Held { owner, uses: 1 }) = self.slots.get_mut(one.0 as usize) {
            return Some(core::mem::replace(owner, new));
        }
        let before = core::mem::replace(one, self.keep(new));
        self.release(before)
    }

    /// The owner of a use.
    pub(crate) fn get(&self, Use(number): Use) -> Option<&Owner> {
        match self.slots.get(number as usize)? {
            Slot::Held { owner, .. } => Some(owner),
            Slot::Free { .. } => None,
        }
    }

    /// The number of owners, and of slots of owners that are gone.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// All owners.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Owner> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Held { owner, .. } => Some(owner),
            Slot::Free { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(held: &Arc<()>) -> Owner {
        Owner::shared(held.clone())
    }

    #[test]
    fn an_owner_comes_out_with_its_last_use() {
        let (mut store, held) = (Store::default(), Arc::new(()));
        let (first, second) = (store.keep(other(&held)), store.keep(other(&held)));
        assert_eq!((Arc::strong_count(&held), store.iter().count()), (3, 2));
        assert!(store.release(first).is_some());
        assert!(store.get(first).is_none() && store.get(second).is_some());
        // The free slot is used again.
        let third = store.keep(other(&held));
        assert_eq!(third.0, first.0);
        assert!(store.release(second).is_some() && store.release(third).is_some());
        assert_eq!((Arc::strong_count(&held), store.iter().count()), (1, 0));
    }

    #[test]
    fn shared_owners_stay_with_the_other_uses() {
        let (mut store, first, second) = (Store::default(), Arc::new(()), Arc::new(()));
        let shared = store.keep(other(&first));
        // As if the same allocation had been used twice.
        if let Some(Slot::Held { uses, .. }) = store.slots.get_mut(shared.0 as usize) {
            *uses += 1;
        }
        let mut uses = Uses::from_slice(&[shared]);
        let mut owners = Owners::from_iter([other(&second), other(&second)]);
        store.swap(&mut uses, &mut owners);
        assert!(owners.is_empty() && uses.len() == 2 && store.iter().count() == 3);
        let mut owners = Owners::from_iter([other(&second)]);
        store.swap(&mut uses, &mut owners);
        assert_eq!((owners.len(), uses.len(), store.iter().count()), (2, 1, 2));
        drop(owners);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 2));
        assert!(store.release(shared).is_some() && store.release(shared).is_none());
        assert_eq!((Arc::strong_count(&first), store.keep(other(&first)).0), (1, shared.0));
    }
}
