//! Pinned memory of the host.

use cuda_handles::{
    Buffer, Error, HostBuffer, MemoryKind, Owner, PoolOptions, SharedHostBuffer, Slice, reaper,
};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, Kind, SOON, alone, count, fail, in_callback, live, no_leaks, settle, setup, until};

/// Both kinds of memory that the host reaches.
fn both(context: &cuda_handles::Context, len: usize) -> [HostBuffer<u32>; 2] {
    [context.pinned_zeros(len).unwrap(), context.managed_zeros(len).unwrap()]
}

#[test]
fn host_memory_is_a_slice_of_zeros_while_unique() {
    let context = setup();
    no_leaks(|| {
        for (mut host, kind) in
            both(&context, 1000).into_iter().zip([MemoryKind::Pinned, MemoryKind::Managed])
        {
            assert_eq!((host.kind(), host.len()), (kind, 1000));
            assert_eq!(host.context(), &*context);
            assert!(host.iter().all(|value| *value == 0));
            host[3] = 7;
            host[999] = 8;
            let ((), cost) = count(|| assert_eq!((host[3], host[999]), (7, 8)));
            cost.assert_calls(&[]);
        }
    });
}

#[test]
fn it_goes_to_the_device_and_back_without_a_wait_in_between() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for mut source in both(&context, 256) {
            let values: Vec<u32> = (0..256).collect();
            source.copy_from_slice(&values);
            let (source, target) = (source.share(), context.pinned_zeros::<u32>(256).unwrap().share());
            let gate = Gate::close(&stream);
            let buffer = stream.zeros::<u32>(256).unwrap();
            stream.copy(&source, &buffer).unwrap();
            stream.copy(&buffer, &target).unwrap();
            assert!(!stream.query().unwrap(), "nothing waited for the gate");
            gate.open();
            stream.synchronize_blocking().unwrap();
            let target = target.try_unique().unwrap();
            assert_eq!(target[..], values[..]);
        }
    });
}

#[test]
fn the_host_gets_it_back_when_nobody_has_it_and_its_streams_are_idle() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in both(&context, 64) {
            let shared = host.share();
            let clone = shared.clone();
            let shared = shared.try_unique().unwrap_err();
            drop(clone);
            let owner = Owner::from(&shared);
            let shared = shared.try_unique().unwrap_err();
            drop(owner);
            let part: Buffer<u32> = shared.as_buffer().sub_buffer(3..4).unwrap();
            let shared = shared.try_unique().unwrap_err();
            drop(part);
            let host = shared.try_unique().unwrap();
            let shared = host.share();
            let gate = Gate::close(&stream);
            stream.fill(&shared, 5).unwrap();
            let shared = shared.try_unique().unwrap_err();
            gate.open();
            stream.synchronize_blocking().unwrap();
            let host = shared.try_unique().unwrap();
            assert!(host.iter().all(|value| *value == 5));
        }
    });
}

#[test]
fn a_busy_stream_that_never_used_it_does_not_matter() {
    let context = setup();
    no_leaks(|| {
        let (used, busy) = (context.stream().unwrap(), context.stream().unwrap());
        let shared = context.pinned_zeros::<u32>(64).unwrap().share();
        let gate = Gate::close(&busy);
        used.fill(&shared, 1).unwrap();
        used.synchronize_blocking().unwrap();
        assert_eq!(shared.try_unique().unwrap()[63], 1);
        gate.open();
    });
}

#[test]
fn work_of_a_stream_without_handles_still_counts() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut shared = context.pinned_zeros::<u32>(64).unwrap().share();
        let gate = Gate::close(&stream);
        stream.fill(&shared, 9).unwrap();
        drop(stream);
        shared = shared.try_unique().unwrap_err();
        gate.open();
        let mut kept = Some(shared);
        let mut unique = None;
        let back = until(SOON, || match kept.take().unwrap().try_unique() {
            Ok(host) => {
                unique = Some(host);
                true
            }
            Err(shared) => {
                kept = Some(shared);
                false
            }
        });
        assert!(back);
        assert!(unique.unwrap().iter().all(|value| *value == 9));
    });
}

#[test]
fn shared_memory_is_read_and_written_by_copies() {
    let context = setup();
    no_leaks(|| {
        let (one, other) = (context.stream().unwrap(), context.stream().unwrap());
        for host in both(&context, 8) {
            let shared = host.share();
            shared.write_blocking(&one, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
            assert_eq!(shared.read_blocking(&other).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(shared.slice(2..4).unwrap().read_blocking(&one).unwrap(), [3, 4]);
            let second = context.pinned_zeros::<u32>(8).unwrap().share();
            one.copy(&shared, &second).unwrap();
            assert_eq!(second.read_blocking(&one).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
            let slice = Slice::from(&second);
            assert_eq!((slice.len(), second.len(), second.is_empty()), (8, 8, false));
        }
    });
}

#[test]
fn each_kind_of_copy_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (device, pinned) =
            (stream.zeros::<u32>(8).unwrap(), context.pinned_zeros::<u32>(8).unwrap().share());
        let other = context.pinned_zeros::<u32>(8).unwrap().share();
        let managed = context.managed_zeros::<u32>(8).unwrap().share();
        // Once, for what a first use costs.
        for shared in [&pinned, &other, &managed] {
            stream.copy(&device, shared).unwrap();
        }
        let ((), cost) = count(|| stream.copy(&device, &pinned).unwrap());
        cost.assert_calls(&[("cuMemcpyDtoHAsync", 1)]);
        let ((), cost) = count(|| stream.copy(&pinned, &device).unwrap());
        cost.assert_calls(&[("cuMemcpyHtoDAsync", 1)]);
        let ((), cost) = count(|| stream.copy(&pinned, &other).unwrap());
        cost.assert_calls(&[("cuMemcpyAsync", 1)]);
        let ((), cost) = count(|| stream.copy(&managed, &device).unwrap());
        cost.assert_calls(&[("cuMemcpyAsync", 1)]);
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn dropped_memory_is_given_to_the_next_and_freed_by_a_drain_alone() {
    let context = setup();
    no_leaks(|| {
        for first in both(&context, 1000) {
            let kind = first.kind();
            let make = || match kind {
                MemoryKind::Pinned => context.pinned_zeros::<u32>(1000).unwrap(),
                _ => context.managed_zeros::<u32>(1000).unwrap(),
            };
            let mut first = first;
            first.fill(u32::MAX);
            let address = first.as_ptr();
            let ((), cost) = count(|| drop(first));
            cost.assert_calls(&[]);
            let (second, cost) = count(make);
            assert_eq!(cost.calls("cuMemHostAlloc") + cost.calls("cuMemAllocManaged"), 0, "{cost}");
            assert_eq!(second.as_ptr(), address);
            assert!(second.iter().all(|value| *value == 0), "zeros again");
            let before = live();
            drop(second);
            assert_eq!(live(), before, "the drop freed it");
            settle();
            assert!(live() != before, "the drain did not");
        }
    });
}

#[test]
fn memory_in_use_is_given_to_the_next_only_after_the_work() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let shared = context.pinned_zeros::<u32>(1 << 12).unwrap().share();
        // There is another one to give: a new one might make the driver wait for the gate.
        drop(context.pinned_zeros::<u32>(1 << 12).unwrap());
        let gate = Gate::close(&stream);
        let address = shared.as_slice().address();
        stream.fill(&shared, 1).unwrap();
        drop(shared);
        let other = context.pinned_zeros::<u32>(1 << 12).unwrap();
        assert_ne!(other.as_ptr().addr() as u64, address, "the fill has yet to come");
        reaper::drain();
        assert!(reaper::pending() > 0);
        gate.open();
        settle();
        assert!(other.iter().all(|value| *value == 0));
    });
}

#[test]
fn nothing_but_a_drain_frees_pinned_memory_whoever_asks_for_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Pinned);
        for _ in 0..20 {
            let shared = context.pinned_zeros::<u8>(100).unwrap().share();
            stream.fill(&shared, 1).unwrap();
            stream.synchronize_blocking().unwrap();
            drop(shared);
            let all = until(SOON, || reaper::pending() == 0);
            assert!(all);
        }
        assert_eq!(live().of(Kind::Pinned), before + 1, "one block serves all");
    });
}

#[test]
fn host_memory_of_no_elements_is_an_ordinary_value() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (host, cost) = count(|| context.pinned_zeros::<u32>(0).unwrap());
        assert_eq!(cost.calls("cuMemHostAlloc"), 0);
        assert!(host.is_empty());
        let shared = host.share();
        stream.fill(&shared, 1).unwrap();
        assert!(shared.read_blocking(&stream).unwrap().is_empty());
        assert!(shared.try_unique().unwrap().is_empty());
    });
}

#[test]
fn host_memory_that_cannot_be_had_is_an_error_with_the_numbers() {
    let context = setup();
    no_leaks(|| {
        settle();
        let injection = fail(Call::cuMemHostAlloc, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = context.pinned_zeros::<u32>(1 << 22).unwrap_err();
        assert!(injection.hit());
        assert!(matches!(error, Error::OutOfHostMemory { asked, .. } if asked == 1 << 24), "{error:?}");
        assert!(error.to_string().contains("reaper::drain"), "{error}");
        assert!(matches!(context.pinned_zeros::<u64>(usize::MAX), Err(Error::TooLarge { .. })));
    });
}

#[test]
fn foreign_memory_goes_back_to_its_owner_when_no_work_uses_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let inner = stream.upload(&[1_u32, 2, 3, 4]).unwrap();
        let watch = std::sync::Arc::new(inner);
        let weak = std::sync::Arc::downgrade(&watch);
        // SAFETY: the memory lives as long as its owner, and its work is done.
        let make = |owner| unsafe { Buffer::<u32>::from_foreign(&context, watch.address(), 4, owner) };
        let buffer = make(std::sync::Arc::clone(&watch)).unwrap();
        assert_eq!(buffer.allocation().kind(), MemoryKind::Foreign);
        assert_eq!(buffer.home(), None);
        drop(buffer);
        assert_eq!(weak.strong_count(), 1, "nothing used it: given back at once");
        let buffer = make(std::sync::Arc::clone(&watch)).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2, 3, 4]);
        let gate = Gate::close(&stream);
        stream.fill(&buffer, 7).unwrap();
        drop(buffer);
        reaper::drain();
        assert_eq!(weak.strong_count(), 2, "the fill is in flight");
        gate.open();
        assert!(until(SOON, || weak.strong_count() == 1));
        assert_eq!(watch.read_blocking(&stream).unwrap(), [7; 4]);
    });
}

#[test]
fn foreign_memory_that_cannot_be_is_refused() {
    let context = setup();
    // SAFETY: none of them is made.
    unsafe {
        assert!(matches!(Buffer::<u32>::from_foreign(&context, 0, 1, ()), Err(Error::Cast { .. })));
        assert!(matches!(Buffer::<u32>::from_foreign(&context, 2, 1, ()), Err(Error::Cast { .. })));
        assert!(matches!(
            Buffer::<u32>::from_foreign(&context, u64::MAX - 3, 1, ()),
            Err(Error::Cast { .. })
        ));
        let empty = Buffer::<u32>::from_foreign(&context, 0, 0, ());
        assert!(empty.is_ok_and(|buffer| buffer.is_empty()));
    }
}

#[test]
fn memory_is_dropped_in_a_host_function_without_a_refusal() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (unused, used) =
            (context.pinned_zeros::<u32>(8).unwrap(), context.pinned_zeros::<u32>(8).unwrap());
        let used = used.share();
        stream.fill(&used, 1).unwrap();
        let plain = context.alloc_blocking::<u32>(8).unwrap();
        stream.fill(&plain, 1).unwrap();
        let pool = context.pool(PoolOptions::default()).unwrap();
        in_callback(&stream, move || drop((unused, used, plain, pool)));
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn memory_of_a_lost_context_is_dropped_without_calls_and_its_owners_with_it() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let (unused, shared) =
        (context.pinned_zeros::<u32>(8).unwrap(), context.pinned_zeros::<u32>(8).unwrap().share());
    let (plain, pool) =
        (context.alloc_blocking::<u32>(8).unwrap(), context.pool(PoolOptions::default()).unwrap());
    let pooled = stream.zeros_from::<u32>(&pool, 8).unwrap();
    let owner = std::sync::Arc::new(stream.zeros::<u32>(8).unwrap());
    let weak = std::sync::Arc::downgrade(&owner);
    // SAFETY: the owner is the memory.
    let foreign = unsafe { Buffer::<u32>::from_foreign(&context, owner.address(), 8, owner) }.unwrap();
    for buffer in [&plain, &pooled, &foreign, shared.as_buffer()] {
        stream.fill(buffer, 1).unwrap();
    }
    stream.synchronize_blocking().unwrap();
    let injection = fail(Call::cuStreamSynchronize, 1, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(matches!(stream.synchronize_blocking(), Err(Error::ContextLost(_))));
    assert!(injection.hit());
    drop(injection);
    assert!(matches!(context.pinned_zeros::<u32>(8), Err(Error::ContextLost(_))));
    assert!(matches!(context.alloc_blocking::<u32>(8), Err(Error::ContextLost(_))));
    assert!(matches!(stream.copy(&plain, &shared), Err(Error::ContextLost(_))));
    let shared = shared.try_unique().unwrap_err();
    assert_eq!(unused[0], 0);
    let ((), cost) = count(|| drop((unused, shared, plain, pooled, pool, foreign)));
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
    assert!(until(SOON, || weak.strong_count() == 0));
    let (_, cost) = count(reaper::drain);
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
}

#[test]
fn handles_of_host_memory_go_between_threads() {
    fn goes<T: Send + Sync>(_: &T) {}
    let context = setup();
    no_leaks(|| {
        let host = context.pinned_zeros::<u32>(4).unwrap();
        goes(&host);
        let shared: SharedHostBuffer<u32> = host.share();
        goes(&shared);
        assert!(format!("{shared:?}").contains("Pinned"));
    });
}
