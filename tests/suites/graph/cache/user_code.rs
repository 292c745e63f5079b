//! Keys and stamps whose code uses the cache, panics, or takes its time.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;

use cuda_graph::{CacheOptions, CachePath, GraphCache};
use cuda_handles::{Buffer, Context, Stream};
use cuda_tests::{ends_soon, no_leaks, setup};

use super::{Fill, filling};

/// Code of a key or stamp.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Code {
    Hash,
    Eq,
    Clone,
    Stamp,
}

type Hook = Rc<dyn Fn(Code)>;

thread_local! {
    /// Called by the code of keys and stamps on this thread, unless it calls it itself.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn run_hook(code: Code) {
    let Some(hook) = HOOK.take() else { return };
    // Put back also if the hook panics.
    struct Restore(Hook);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOOK.set(Some(Rc::clone(&self.0)));
        }
    }
    let hook = Restore(hook);
    (hook.0)(code);
}

fn with_hook<R>(hook: impl Fn(Code) + 'static, run: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Rc::new(hook)));
    let result = run();
    HOOK.set(None);
    result
}

/// A key whose hash is that of all others, so that keys are compared.
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        run_hook(Code::Hash);
        0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        run_hook(Code::Eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        run_hook(Code::Clone);
        Self(self.0)
    }
}

struct Stamp(u32);

impl PartialEq for Stamp {
    fn eq(&self, other: &Self) -> bool {
        run_hook(Code::Stamp);
        self.0 == other.0
    }
}

type Cache = GraphCache<Key, Fill, Stamp>;

struct Lab {
    context: Context,
    stream: Stream,
    target: Buffer<u32>,
    cache: Cache,
}

impl Lab {
    fn new(context: &Context, options: CacheOptions) -> Rc<Self> {
        let context = context.clone();
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        Rc::new(Self { context, stream, target, cache: Cache::new(options) })
    }

    fn get(&self, key: u32, stamp: u32) -> CachePath {
        let build = || filling(&self.context, &self.target);
        self.cache.get(&self.stream, Key(key), Stamp(stamp), build).unwrap().path()
    }

    fn keys(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = self.cache.entries().iter().map(|entry| entry.key.0).collect();
        keys.sort_unstable();
        keys
    }
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context, CacheOptions::new().most(3));
        for key in [1, 2, 3] {
            assert_eq!(lab.get(key, 0), CachePath::Built);
        }
        for key in [3, 1, 2] {
            assert_eq!(lab.get(key, 0), CachePath::Hit);
        }
        assert_eq!(lab.get(4, 0), CachePath::Built);
        assert_eq!(lab.keys(), [1, 2, 4]);
        assert_eq!((lab.get(2, 1), lab.get(2, 1)), (CachePath::Updated, CachePath::Hit));
    });
}

#[test]
fn the_code_of_keys_and_stamps_uses_the_cache() {
    let context = setup();
    no_leaks(|| {
        for code in [Code::Hash, Code::Eq, Code::Clone, Code::Stamp] {
            let lab = Lab::new(&context, CacheOptions::new().most_per_key(2));
            assert_eq!([1, 2].map(|key| lab.get(key, 0)), [CachePath::Built; 2]);
            let calls = {
                let (lab, calls) = (Rc::clone(&lab), Rc::new(RefCell::new(Vec::new())));
                let noted = Rc::clone(&calls);
                let inner = Rc::clone(&lab);
                let hook = move |now| {
                    if now != code {
                        return;
                    }
                    // A hit, a new key, and everything that looks at the state.
                    let found = [inner.get(2, 0), inner.get(3, 0)];
                    let _ = (inner.cache.statistics(), inner.keys(), format!("{:?}", inner.cache));
                    noted.borrow_mut().push(found);
                };
                with_hook(hook, || {
                    assert_eq!(lab.get(1, 0), CachePath::Hit, "{code:?}");
                    assert!(lab.keys().starts_with(&[1, 2]), "{code:?}");
                });
                calls.borrow().clone()
            };
            assert_eq!(calls.first(), Some(&[CachePath::Hit, CachePath::Built]), "{code:?}");
            assert_eq!(
                calls.last(),
                Some(&[CachePath::Hit; 2]).filter(|_| calls.len() > 1).or(calls.first())
            );
            assert_eq!((lab.keys(), lab.cache.statistics().live), (vec![1, 2, 3], 3));
        }
    });
}

#[test]
fn a_comparison_that_empties_the_cache_leads_to_a_build() {
    let context = setup();
    no_leaks(|| {
        for code in [Code::Eq, Code::Stamp] {
            let lab = Lab::new(&context, CacheOptions::new());
            lab.get(1, 0);
            let (inner, outer) = (Rc::clone(&lab), Rc::clone(&lab));
            let hook = move |now| {
                if now == code {
                    inner.cache.clear();
                }
            };
            assert_eq!(with_hook(hook, move || outer.get(1, 0)), CachePath::Built, "{code:?}");
            assert_eq!((lab.get(1, 0), lab.cache.statistics().live), (CachePath::Hit, 1));
        }
    });
}

#[test]
fn a_comparison_that_takes_the_executable_leaves_none_for_its_call() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context, CacheOptions::new());
        lab.get(1, 0);
        let inner = Rc::clone(&lab);
        let hook = move |code| {
            // The stamp changes meanwhile, so the outer call compares again.
            if code == Code::Stamp {
                let _ = inner.get(1, 7);
            }
        };
        let found = with_hook(hook, || lab.get(1, 0));
        assert!(matches!(found, CachePath::Updated | CachePath::Hit), "{found:?}");
        assert_eq!(lab.cache.statistics().live, 1);
    });
}

#[test]
fn a_panic_in_the_code_of_keys_and_stamps_leaves_the_cache_as_it_was() {
    let context = setup();
    no_leaks(|| {
        for code in [Code::Hash, Code::Eq, Code::Clone, Code::Stamp] {
            let lab = Lab::new(&context, CacheOptions::new().most(2));
            assert_eq!([1, 2].map(|key| lab.get(key, 0)), [CachePath::Built; 2]);
            let before = (lab.keys(), lab.cache.statistics());
            let hook = move |now| assert!(now != code, "on purpose");
            let calls: [&dyn Fn(); 4] =
                [&|| _ = lab.get(1, 0), &|| _ = lab.get(1, 1), &|| _ = lab.get(3, 0), &|| {
                    _ = lab.cache.entries()
                }];
            for (number, call) in calls.into_iter().enumerate() {
                let reaches = match code {
                    Code::Hash | Code::Eq => number < 3,
                    Code::Stamp => number < 2,
                    Code::Clone => number == 3,
                };
                if reaches {
                    let outcome = with_hook(hook, || catch_unwind(AssertUnwindSafe(call)));
                    assert!(outcome.is_err(), "{code:?} {number}");
                    assert_eq!((lab.keys(), lab.cache.statistics()), before, "{code:?} {number}");
                }
            }
            assert_eq!([lab.get(1, 0), lab.get(2, 0)], [CachePath::Hit; 2], "{code:?}");
        }
    });
}

#[test]
fn a_comparison_holds_up_no_other_thread() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = std::sync::Arc::new(Cache::new(CacheOptions::new()));
        let get = |cache: &Cache, stream: &Stream, key| {
            cache.get(stream, Key(key), Stamp(0), || filling(&context, &target)).unwrap().path()
        };
        get(&cache, &stream, 1);
        let (compares, is_comparing) = mpsc::channel();
        let (goes_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| {
                let stream = context.stream().unwrap();
                let hook = move |code| {
                    if code == Code::Eq {
                        compares.send(()).unwrap();
                        may_go_on.recv().unwrap();
                    }
                };
                with_hook(hook, || get(&cache, &stream, 1))
            });
            ends_soon(move || is_comparing.recv().unwrap());
            assert_eq!(get(&cache, &stream, 2), CachePath::Built);
            assert_eq!(get(&cache, &stream, 1), CachePath::Hit);
            assert_eq!(cache.statistics().live, 2);
            // The slow call meets the other key as well, perhaps.
            (0..4).for_each(|_| _ = goes_on.send(()));
            assert_eq!(slow.join().unwrap(), CachePath::Hit);
        });
    });
}
