//! The registry's protocol under every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p
//! cuda-handles --release --test loom_registry`.
#![cfg(loom)]

#[path = "../src/registry/protocol.rs"]
#[allow(dead_code)]
mod protocol;

use std::collections::HashMap;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use protocol::{Map, Reference, Registry};

/// The one address that this driver gives out, again and again.
const ADDRESS: usize = 0x1000;

/// A map whose every operation holds its lock.
struct Locked(Mutex<HashMap<usize, Option<WeakOwner>>>);

impl Map<usize, WeakOwner> for Locked {
    fn look<R>(&self, key: &usize, look: impl FnOnce(Option<&WeakOwner>) -> R) -> R {
        look(self.0.lock().unwrap().get(key).and_then(Option::as_ref))
    }

    fn change<R>(&self, key: usize, change: impl FnOnce(&mut Option<WeakOwner>) -> R) -> R {
        change(self.0.lock().unwrap().entry(key).or_default())
    }
}

struct World {
    registry: Registry<Locked>,
    /// The number of the owner whose object lives at the address; 0 for none.
    object: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        let registry = Registry::with_map(Locked(Mutex::new(HashMap::new())));
        Arc::new(Self { registry, object: AtomicUsize::new(0) })
    }

    /// Creates an object if the driver has the address free, and registers its owner.
    fn create(world: &Arc<Self>, number: usize) -> Option<StrongOwner> {
        world.object.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire).ok()?;
        let owner = StrongOwner::new(world, number, true);
        world.registry.register(ADDRESS, owner.downgrade());
        Some(owner)
    }

    fn find(&self) -> Option<StrongOwner> {
        self.registry.find::<usize, WeakOwner>(&ADDRESS)
    }
}

/// `Arc` and `Weak` of an owner, with loom's atomics; loom has no `Weak`.
struct Block {
    number: usize,
    strong: AtomicUsize,
    /// Whether the object ends with the owner; a kernel's does not.
    ends: bool,
    world: Arc<World>,
}

struct StrongOwner(Arc<Block>);
struct WeakOwner(Arc<Block>);

impl StrongOwner {
    fn new(world: &Arc<World>, number: usize, ends: bool) -> Self {
        Self(Arc::new(Block { number, strong: AtomicUsize::new(1), ends, world: Arc::clone(world) }))
    }

    fn downgrade(&self) -> WeakOwner {
        WeakOwner(Arc::clone(&self.0))
    }

    /// While an owner is held, its object is the one at the address.
    fn assert_alive(&self) {
        assert_eq!(self.0.world.object.load(Ordering::Acquire), self.0.number);
    }
}

impl Drop for StrongOwner {
    fn drop(&mut self) {
        if self.0.strong.fetch_sub(1, Ordering::AcqRel) == 1 {
            let world = &self.0.world;
            world.registry.unregister::<usize, WeakOwner>(ADDRESS, self.0.number);
            if !self.0.ends {
                return;
            }
            // The driver destroys the object; the address is free.
            assert_eq!(world.object.swap(0, Ordering::AcqRel), self.0.number, "destroyed once, and ours");
        }
    }
}

impl Reference for WeakOwner {
    type Owner = StrongOwner;

    fn upgrade(&self) -> Option<StrongOwner> {
        let mut strong = self.0.strong.load(Ordering::Acquire);
        while strong > 0 {
            match self.0.strong.compare_exchange(strong, strong + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(StrongOwner(Arc::clone(&self.0))),
                Err(found) => strong = found,
            }
        }
        None
    }

    fn identity(&self) -> usize {
        self.0.number
    }
}

/// Blocks hold the world and the world's map holds blocks: cut the circle, so that loom sees no
/// leak.
fn forget_all(world: &World) {
    world.registry.map().0.lock().unwrap().clear();
}

#[test]
fn what_is_found_is_alive_however_the_last_owner_goes() {
    loom::model(|| {
        let world = World::new();
        let owner = World::create(&world, 1).unwrap();
        let other = Arc::clone(&world);
        let finder = thread::spawn(move || {
            if let Some(found) = other.find() {
                found.assert_alive();
            }
        });
        drop(owner);
        finder.join().unwrap();
        assert!(world.find().is_none());
        assert_eq!(world.object.load(Ordering::Acquire), 0);
        forget_all(&world);
    });
}

#[test]
fn an_address_given_out_again_finds_its_new_owner_alone() {
    loom::model(|| {
        let world = World::new();
        let owner = World::create(&world, 1).unwrap();
        let other = Arc::clone(&world);
        let creator = thread::spawn(move || World::create(&other, 2));
        let other = Arc::clone(&world);
        let finder = thread::spawn(move || {
            if let Some(found) = other.find() {
                found.assert_alive();
            }
        });
        drop(owner);
        finder.join().unwrap();
        match creator.join().unwrap() {
            Some(second) => assert_eq!(world.find().map(|found| found.0.number), Some(second.0.number)),
            None => assert!(world.find().is_none()),
        }
        forget_all(&world);
    });
}

#[test]
fn two_that_make_an_owner_of_one_object_end_with_one() {
    loom::model(|| {
        let world = World::new();
        let make = |world: &Arc<World>, number| {
            let mine = StrongOwner::new(world, number, false);
            // The one that comes second is dropped; it must not take the first one's entry out.
            world.registry.register_unless_known(ADDRESS, mine.downgrade()).unwrap_or(mine)
        };
        let other = Arc::clone(&world);
        let second = thread::spawn(move || make(&other, 2));
        let first = make(&world, 1);
        let second = second.join().unwrap();
        assert_eq!(first.0.number, second.0.number);
        assert_eq!(world.find().map(|found| found.0.number), Some(first.0.number));
        drop((first, second));
        assert!(world.find().is_none());
        forget_all(&world);
    });
}
