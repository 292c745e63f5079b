//! Caches that are dropped while executables run, or whose context is lost.

use cuda_graph::{CacheOptions, Error};
use cuda_handles::Error as HandleError;
use cuda_launch::{Launch, LaunchConfig, params};
use cuda_tests::{Gate, alone, count, kernel, no_leaks, settle, setup};

use super::{Cache, fill_with, filling};
use crate::common::gone;

#[test]
fn a_cache_is_dropped_while_its_executables_run() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new());
        let gate = Gate::close(&stream);
        for key in 1..4 {
            let launch = |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, key);
            cache.launch(&stream, key, 0, || filling(&context, &target), launch).unwrap();
        }
        drop(cache);
        gate.open();
        assert_eq!(target.read_blocking(&stream).unwrap(), [3; 16]);
    });
}

#[test]
fn what_an_evicted_executable_kept_goes_once_its_run_is_over() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new().most(1));
        let (owner, is_gone) = gone::flag();
        let gate = Gate::close(&stream);
        let build = || {
            let built = filling(&context, &target)?;
            built.0.keep(owner);
            Ok(built)
        };
        cache
            .launch(&stream, 1, 0, build, |exec, params| fill_with(exec, params, &stream, &target, 1))
            .unwrap();
        drop(cache.get(&stream, 2, 0, || filling(&context, &target)).unwrap());
        assert!(!is_gone(), "its run waits");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(gone::soon(&is_gone));
    });
}

#[test]
fn after_a_loss_every_call_says_so_and_drops_are_silent() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let target = stream.zeros::<u32>(16).unwrap();
    let cache = Cache::new(CacheOptions::new());
    let launch = |key| {
        let run = |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, 1);
        cache.launch(&stream, key, 0, || filling(&context, &target), run)
    };
    launch(1).unwrap();
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe {
        kernel(&context, "poke").launch(&stream, LaunchConfig::new(1, 1), params![0x40_u64, 7_u32]).unwrap();
    }
    assert!(stream.synchronize_blocking().is_err());
    for key in [1, 2] {
        let lost = launch(key).unwrap_err();
        assert!(matches!(lost, Error::Handles(HandleError::ContextLost(_))), "{lost}");
    }
    assert_eq!(cache.statistics().live, 1);
    settle();
    let ((), cost) = count(|| {
        drop(cache);
        settle();
    });
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
}
