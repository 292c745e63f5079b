//! Memory pools: options, limits, access from other devices.

use cuda_handles::{Device, Error, MemPool, MemoryKind, PoolAccess, PoolOptions, PoolReuse};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Kind, SOON, alone, count, is_soft, live, no_leaks, settle, setup, skip, until};

#[test]
fn a_pool_gives_memory_and_takes_it_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pool = context.pool(PoolOptions::default()).unwrap();
        pool.set_release_threshold(u64::MAX).unwrap();
        let (buffer, cost) = count(|| stream.zeros_from::<u32>(&pool, 1000).unwrap());
        cost.assert_calls(&[
            ("cuThreadExchangeStreamCaptureMode", 2),
            ("cuMemAllocFromPoolAsync", 1),
            ("cuMemsetD8Async", 1),
        ]);
        assert_eq!(buffer.read_blocking(&stream).unwrap(), vec![0; 1000]);
        assert_eq!(buffer.allocation().kind(), MemoryKind::Pooled);
        assert_eq!(buffer.allocation().pool(), Some(&pool));
        assert_eq!(buffer.home(), Some(&stream));
        assert_eq!(stream.zeros::<u32>(1).unwrap().allocation().pool(), None);
        let usage = pool.usage().unwrap();
        assert!(usage.used >= 4000 && usage.reserved >= usage.used, "{usage:?}");
        let ((), cost) = count(|| drop(buffer));
        assert_eq!(cost.total() - cost.calls("cuThreadExchangeStreamCaptureMode"), 1, "{cost}");
        stream.synchronize_blocking().unwrap();
        let after = pool.usage().unwrap();
        assert_eq!(after.used, 0);
        assert!(after.used_high >= 4000 && after.reserved >= 1, "{after:?}");
        pool.trim(0).unwrap();
        pool.reset_high_water().unwrap();
        let trimmed = pool.usage().unwrap();
        assert_eq!((trimmed.reserved, trimmed.used_high), (0, 0), "{trimmed:?}");
    });
}

#[test]
fn a_trim_that_keeps_everything_keeps_everything() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pool = context.pool(PoolOptions::default()).unwrap();
        let buffer = stream.zeros_from::<u8>(&pool, 1 << 20).unwrap();
        stream.synchronize_blocking().unwrap();
        let before = pool.usage().unwrap();
        for keep in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 2, 0] {
            pool.trim(keep).unwrap();
            let after = pool.usage().unwrap();
            assert_eq!((after.used, after.reserved), (before.used, before.reserved), "{keep}");
        }
        drop(buffer);
    });
}

#[test]
fn the_settings_of_a_pool_are_kept() {
    let context = setup();
    no_leaks(|| {
        let pool = context.pool(PoolOptions::default()).unwrap();
        assert_eq!(pool.release_threshold().unwrap(), 0);
        pool.set_release_threshold(1 << 20).unwrap();
        assert_eq!(pool.release_threshold().unwrap(), 1 << 20);
        for way in [PoolReuse::FollowEvents, PoolReuse::Opportunistic, PoolReuse::InternalDependencies] {
            assert!(pool.reuses(way).unwrap());
            pool.set_reuse(way, false).unwrap();
            assert!(!pool.reuses(way).unwrap());
        }
    });
}

#[test]
fn buffers_hold_their_pool() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let before = live().of(Kind::Pool);
        let pool = context.pool(PoolOptions::default()).unwrap();
        let (buffer, shared) =
            (home.zeros_from::<u32>(&pool, 8).unwrap(), home.zeros_from::<u32>(&pool, 8).unwrap());
        other.fill(&shared, 2).unwrap();
        drop(pool);
        assert_eq!(live().of(Kind::Pool), before + 1);
        home.fill(&buffer, 1).unwrap();
        assert_eq!(buffer.read_blocking(&home).unwrap(), [1; 8]);
        drop((buffer, shared));
        settle();
        assert!(until(SOON, || live().of(Kind::Pool) == before));
    });
}

#[test]
fn the_default_pool_is_not_destroyed() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let ((), cost) = count(|| drop(context.default_pool().unwrap()));
        cost.assert_calls(&[("cuDeviceGetDefaultMemPool", 1)]);
        let pool = context.default_pool().unwrap();
        let buffer = stream.zeros_from::<u32>(&pool, 8).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0; 8]);
    });
}

#[test]
fn a_pool_with_a_limit_says_when_it_is_reached() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let Ok(pool) = context.pool(PoolOptions { max_bytes: 1 << 25, ..Default::default() }) else {
            skip!("no limited pools here")
        };
        let Err(error) = stream.zeros_from::<u8>(&pool, 1 << 27) else {
            skip!("the driver ignores the limit")
        };
        assert_eq!(error, Error::PoolFull { asked: 1 << 27, limit: 1 << 25 });
        assert!(error.to_string().contains("PoolOptions::max_bytes"), "{error}");
        assert_eq!(stream.zeros_from::<u8>(&pool, 1 << 20).unwrap().len(), 1 << 20);
    });
}

#[test]
fn a_device_can_use_its_own_pool_and_others_once_granted() {
    if is_soft() {
        alone!("CUDA_SOFT_DEVICES" = "2");
    } else {
        alone!();
    }
    let context = setup();
    no_leaks(|| {
        let pool: MemPool = context.pool(PoolOptions::default()).unwrap();
        match pool.access(context.device()) {
            Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_SUPPORTED, .. }) => {
                skip!("the driver knows no access of pools")
            }
            access => assert_eq!(access.unwrap(), PoolAccess::ReadWrite),
        }
        let peers = Device::all().unwrap().into_iter().filter(|device| *device != context.device());
        for device in peers {
            if device.can_access(context.device()).unwrap() {
                assert_eq!(pool.access(device).unwrap(), PoolAccess::None);
                pool.grant_access(device).unwrap();
                assert_eq!(pool.access(device).unwrap(), PoolAccess::ReadWrite);
            }
        }
    });
}

#[test]
fn a_stream_that_is_short_of_memory_waits_for_what_is_being_freed() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.upload(&[1_u32; 16]).unwrap();
        other.fill(&buffer, 2).unwrap();
        drop(buffer);
        settle();
        let injection = cuda_tests::fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let (outcome, cost) = count(|| home.zeros::<u32>(16));
        assert!(injection.hit());
        assert_eq!(outcome.unwrap().read_blocking(&home).unwrap(), [0; 16]);
        assert_eq!((cost.calls("cuMemAllocAsync"), cost.calls("cuStreamWaitEvent")), (2, 1), "{cost}");
        assert_eq!(cost.calls("cuEventCreate"), cost.calls("cuEventDestroy"), "{cost}");
    });
}

#[test]
fn a_pool_that_is_refused_leaves_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let injection = cuda_tests::fail(Call::cuMemPoolCreate, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = context.pool(PoolOptions::default()).unwrap_err();
        assert!(injection.hit());
        assert!(error.to_string().starts_with("cuMemPoolCreate answered"), "{error}");
        let pool = context.pool(PoolOptions::default()).unwrap();
        cuda_tests::every_failure(|| stream.zeros_from::<u32>(&pool, 16));
    });
}

/// The home frees it, or the reaper if other streams have used it.
#[test]
fn memory_that_was_dropped_and_is_idle_is_not_in_use() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let pool = context.pool(PoolOptions::default()).unwrap();
        for time in 0..200 {
            let (own, shared) =
                (home.zeros_from::<u32>(&pool, 1000).unwrap(), home.zeros_from::<u32>(&pool, 1000).unwrap());
            other.fill(&shared, 1).unwrap();
            home.synchronize_blocking().unwrap();
            other.synchronize_blocking().unwrap();
            assert!(pool.usage().unwrap().used >= 8000);
            drop((own, shared));
            // Mostly the first question hears of it; where threads wait for processors, a later
            // one.
            assert!(until(SOON, || pool.usage().unwrap().used == 0), "at time {time}");
        }
        pool.trim(0).unwrap();
        assert_eq!(pool.usage().unwrap().reserved, 0);
    });
}
