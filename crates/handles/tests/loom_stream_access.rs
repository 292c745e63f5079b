//! The stream access protocol under every interleaving:
//! `RUSTFLAGS="--cfg loom" cargo test -p cuda-handles --release --test loom_stream_access`.
#![cfg(loom)]

#[path = "../src/access/slots.rs"]
#[allow(dead_code)]
mod slots;
#[path = "../src/access/stream_access.rs"]
#[allow(dead_code)]
mod stream_access;

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

/// Two full barriers in place of the unequal ones.
mod barrier {
    use loom::sync::atomic::{Ordering, fence};

    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicPtr;
use loom::thread;
use slots::{AllSlots, ThreadSlots};
use stream_access::{ReadGuard, StreamAccess};

/// A value that writers change and readers read; loom checks that they exclude each other and see
/// each other's writes.
struct World {
    access: StreamAccess,
    slots: AllSlots,
    value: UnsafeCell<u32>,
}

// SAFETY: that the cell is used rightly is what loom checks here.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        let slots = AllSlots::starting_with(AtomicPtr::new(core::ptr::null_mut()));
        Arc::new(Self { access: StreamAccess::new(7), slots, value: UnsafeCell::new(0) })
    }

    fn read(&self, _guard: ReadGuard<'_>) -> u32 {
        // SAFETY: with read access.
        self.value.with(|value| unsafe { *value })
    }

    fn read_it(&self, slots: Option<&'static ThreadSlots>) -> u32 {
        let mut guard = self.access.read(slots);
        loop {
            match guard {
                Some(guard) => return self.read(guard),
                None => thread::yield_now(),
            }
            guard = self.access.read_again(slots);
        }
    }

    /// Without waiting: of two threads that wait, loom may let both go on looking, and never run
    /// the thread they wait for.
    fn try_to_read(&self, slots: Option<&'static ThreadSlots>) {
        self.access.read(slots).map(|guard| self.read(guard));
    }

    /// Tries twice to write it, and returns how often that worked.
    fn try_to_write(&self) -> u32 {
        let write = || {
            let _exclusive = self.access.try_exclusive(&self.slots)?;
            // SAFETY: with exclusive access.
            self.value.with_mut(|value| unsafe { *value += 1 });
            Some(())
        };
        (0..2).map(|_| u32::from(write().is_some())).sum()
    }

    /// After all threads have ended: exclusive access is free, and no change was lost.
    fn check(&self, writes: u32) {
        assert!(self.access.try_exclusive(&self.slots).is_some());
        // SAFETY: all other threads have ended.
        assert_eq!(self.value.with(|value| unsafe { *value }), writes);
    }
}

fn spawn<R: 'static>(world: &Arc<World>, work: impl FnOnce(&World) -> R + 'static) -> thread::JoinHandle<R> {
    let world = Arc::clone(world);
    thread::spawn(move || work(&world))
}

fn model(bound: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(run);
}

#[test]
fn a_reader_and_a_writer_exclude_each_other() {
    for with in [true, false] {
        model(5, move || {
            let world = World::new();
            let slots = with.then(|| world.slots.take());
            let reader = spawn(&world, move |world| {
                let first = world.read_it(slots);
                assert!(world.read_it(slots) >= first);
            });
            let writes = world.try_to_write();
            reader.join().unwrap();
            world.check(writes);
        });
    }
}

#[test]
fn so_do_two_readers_with_slots_or_without() {
    for with in [[true, true], [true, false], [false, false]] {
        model(4, move || {
            let world = World::new();
            let readers = with.map(|with| {
                let slots = with.then(|| world.slots.take());
                spawn(&world, move |world| world.try_to_read(slots))
            });
            let writes = world.try_to_write();
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            world.check(writes);
        });
    }
}

#[test]
fn a_reused_slot_shows_the_read_before() {
    model(4, || {
        let world = World::new();
        let slots = Some(world.slots.take());
        let reader = spawn(&world, move |world| {
            world.try_to_read(slots);
            let other = StreamAccess::new(8);
            drop(other.read(slots));
        });
        let writes = world.try_to_write();
        reader.join().unwrap();
        world.check(writes);
    });
}

#[test]
fn so_do_two_writers() {
    model(2, || {
        let world = World::new();
        let slots = Some(world.slots.take());
        let writer = spawn(&world, World::try_to_write);
        let reader = spawn(&world, move |world| world.read_it(slots));
        let writes = world.try_to_write();
        reader.join().unwrap();
        world.check(writes + writer.join().unwrap());
    });
}

#[test]
fn slots_made_and_passed_on_meanwhile_are_seen() {
    model(4, || {
        let world = World::new();
        let readers = [(); 2].map(|()| {
            spawn(&world, |world| {
                let slots = world.slots.take();
                world.try_to_read(Some(slots));
                slots.give_back();
            })
        });
        let writes = world.try_to_write();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        world.check(writes);
    });
}
