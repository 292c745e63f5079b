//! Registered host memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Batch, Buffer, Error, HostBuffer, MemoryKind, MemorySpace, RegisterOptions, reaper};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Gate, Kind, SOON, alone, count, fail, in_callback, kernel, live, no_leaks, other_device, raw, settle,
    setup, until,
};

fn numbers() -> Vec<u32> {
    (0..1000).collect()
}

#[test]
fn a_vector_is_pinned_where_it_is_and_comes_back() {
    let context = setup();
    no_leaks(|| {
        let (vector, place) = (numbers(), |elements: &[u32]| elements.as_ptr().addr());
        let there = place(&vector);
        let (host, cost) = count(|| context.register(vector).unwrap());
        assert_eq!((cost.calls("cuMemHostRegister"), cost.live(Kind::Pinned)), (1, 1), "{cost}");
        let mut host: HostBuffer<u32> = host;
        assert_eq!((host.kind(), place(&host), host.len()), (MemoryKind::Registered, there, 1000));
        assert!(host.iter().copied().eq(0..1000), "its contents stay");
        host[3] = 33;
        let (vector, cost) = count(|| host.into_vec_blocking().unwrap());
        assert_eq!((cost.calls("cuMemHostUnregister"), cost.live(Kind::Pinned)), (1, -1), "{cost}");
        assert_eq!((place(&vector), vector.len(), vector[3]), (there, 1000, 33));
        // It can be registered again.
        assert!(context.register(vector).unwrap().into_vec_blocking().is_ok());
    });
}

#[test]
fn it_goes_wherever_pinned_memory_goes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let host = context.register(numbers()).unwrap().share();
        assert_eq!(host.as_buffer().allocation().space(), MemorySpace::Pinned);
        let info = context.address_info(host.as_buffer().address()).unwrap();
        assert_eq!(info.space, MemorySpace::Pinned);
        let buffer = stream.alloc::<u32>(1000).unwrap();
        let gate = Gate::close(&stream);
        let ((), cost) = count(|| {
            stream.copy(&host, &buffer).unwrap();
            stream.fill(&host, 1).unwrap();
            stream
                .copy(buffer.slice(500..).unwrap(), &context.register(vec![0_u32; 500]).unwrap().share())
                .unwrap();
        });
        assert_eq!((cost.calls("cuMemcpyHtoDAsync"), cost.calls("cuMemcpyDtoHAsync")), (1, 1), "{cost}");
        assert!(!stream.query().unwrap(), "no copy waited");
        gate.open();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), numbers());
        assert_eq!(host.read_blocking(&stream).unwrap(), [1; 1000]);
        // Kernels, batches and host functions take it.
        raw::launch(&stream, &kernel(&context, "increment"), 32, &[host.as_buffer().address(), 32]);
        let mut batch = Batch::new();
        batch.write(host.slice(40..41).unwrap(), 0, 7_u32).unwrap();
        stream.batch(&batch).unwrap();
        drop(batch);
        stream.host_with(&host, |view| view.set(999, 9).unwrap()).unwrap();
        stream.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap();
        assert_eq!((host[0], host[31], host[32], host[40], host[999]), (2, 2, 1, 7, 9));
    });
}

#[test]
fn a_dropped_buffer_waits_for_a_drain_and_then_the_owner_goes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let owner = Arc::new(Box::new([0_u64; 32]));
        let (weak, start) = (Arc::downgrade(&owner), owner.as_ptr().cast_mut());
        // SAFETY: the owner has these elements, and nobody else uses them.
        let host =
            unsafe { context.register_raw(start, 32, owner, RegisterOptions::default()) }.unwrap().share();
        stream.clear(&host).unwrap();
        let gate = Gate::close(&stream);
        stream.clear(&host).unwrap();
        let ((), cost) = count(|| drop(host));
        assert_eq!(cost.calls("cuMemHostUnregister"), 0, "{cost}");
        assert!(weak.upgrade().is_some(), "work uses it");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(until(SOON, || {
            reaper::drain();
            weak.strong_count() == 0
        }));
        settle();
    });
}

#[test]
fn an_owner_comes_back_when_nobody_else_has_the_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut elements = vec![5_u8; 100].into_boxed_slice();
        let start = elements.as_mut_ptr();
        // SAFETY: as above.
        let host = unsafe { context.register_raw(start, 100, elements, RegisterOptions::default()) }.unwrap();
        let refused = host.into_owner_blocking::<String>().unwrap_err();
        assert!(matches!(refused.error, Error::OtherOwner { .. }), "{refused:?}");
        assert!(refused.to_string().contains("alloc::string::String"), "{refused}");
        let refused = refused.value.into_vec_blocking().unwrap_err();
        assert!(refused.to_string().contains("Vec<u8>"), "{refused}");
        let shared = refused.value.share();
        stream.fill(&shared, 6).unwrap();
        let other = shared.clone();
        let shared = shared.try_unique().expect_err("somebody else has it");
        drop(other);
        stream.synchronize_blocking().unwrap();
        let owner = shared.try_unique().unwrap().into_owner_blocking::<Box<[u8]>>().unwrap();
        assert_eq!(owner[..], [6; 100]);
        // Pinned memory has no owner.
        let refused = context.pinned_zeros::<u8>(4).unwrap().into_vec_blocking().unwrap_err();
        assert!(matches!(refused.error, Error::OtherOwner { .. }));
        assert_eq!(refused.value[..], [0; 4]);
    });
}

#[test]
fn what_is_registered_already_is_refused_and_comes_back() {
    let context = setup();
    no_leaks(|| {
        let mut first = context.register(numbers()).unwrap();
        let (start, len) = (first.as_mut_ptr(), first.len());
        // SAFETY: it is refused.
        let refused =
            unsafe { context.register_raw(start, len, 7_u8, RegisterOptions::default()) }.unwrap_err();
        assert_eq!(refused.value, 7);
        let code = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        assert_eq!(refused.error, Error::Driver { call: Call::cuMemHostRegister, code });
        assert!(refused.to_string().contains("registered already"), "{refused}");
        assert_eq!(Error::from(refused), Error::Driver { call: Call::cuMemHostRegister, code });
        drop(first);
    });
}

#[test]
fn a_refusal_of_the_driver_changes_nothing() {
    let context = setup();
    no_leaks(|| {
        let refusal = fail(Call::cuMemHostRegister, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let refused = context.register(numbers()).unwrap_err();
        drop(refusal);
        assert_eq!(refused.value, numbers());
        let host = context.register(refused.value).unwrap();
        let refusal = fail(Call::cuMemHostUnregister, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        let refused = host.into_vec_blocking().unwrap_err();
        drop(refusal);
        assert!(matches!(refused.error, Error::Driver { call: Call::cuMemHostUnregister, .. }));
        assert_eq!(refused.value.into_vec_blocking().unwrap(), numbers());
    });
}

#[test]
fn no_bytes_are_registered_without_a_call_and_the_owner_is_kept() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (host, cost) = count(|| context.register(Vec::<u32>::with_capacity(8)).unwrap());
        cost.assert_calls(&[]);
        assert_eq!((host.len(), host.iter().next()), (0, None));
        let host = host.share();
        assert_eq!(host.as_buffer().address(), 0);
        stream.clear(&host).unwrap();
        let (vector, cost) = count(|| host.try_unique().unwrap().into_vec_blocking().unwrap());
        assert_eq!((vector.len(), vector.capacity(), cost.calls("cuMemHostUnregister")), (0, 8, 0));
        assert_eq!(context.register(vec![(); 3]).unwrap().into_vec_blocking().unwrap(), [(); 3]);
        let owner = Arc::new(());
        // SAFETY: there are no elements.
        let none = unsafe {
            context.register_raw(
                core::ptr::null_mut::<u64>(),
                0,
                Arc::clone(&owner),
                RegisterOptions::default(),
            )
        };
        let none = none.unwrap();
        assert_eq!((none[..].len(), Arc::strong_count(&owner)), (0, 2));
        drop(none);
        assert_eq!(Arc::strong_count(&owner), 1);
    });
}

#[test]
fn memory_may_start_anywhere() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut bytes = vec![1_u8; 300];
        let start = bytes.as_mut_ptr();
        let owner = Arc::new(bytes);
        let (one, two) = (Arc::clone(&owner), owner);
        // SAFETY: the parts are apart, and nobody else uses them.
        let (first, second) = unsafe {
            let plain = RegisterOptions::default();
            (
                context.register_raw(start.add(3), 100, one, plain),
                context.register_raw(start.add(200), 99, two, plain),
            )
        };
        let (first, second) = (first.unwrap().share(), second.unwrap().share());
        stream.fill(&first, 2).unwrap();
        stream.fill(second.slice(1..).unwrap(), 3).unwrap();
        stream.synchronize_blocking().unwrap();
        let (first, second) = (first.try_unique().unwrap(), second.try_unique().unwrap());
        assert_eq!((&first[..], second[0]), (&[2; 100][..], 1));
        assert!(second[1..].iter().all(|byte| *byte == 3));
    });
}

#[test]
fn memory_that_the_device_only_reads_is_copied_from() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut elements = numbers();
        let (start, len) = (elements.as_mut_ptr(), elements.len());
        let options = RegisterOptions { read_only: true };
        // SAFETY: the owner has these elements, and nobody writes them.
        let host = match unsafe { context.register_raw(start, len, elements, options) } {
            Err(refused) if matches!(refused.error, Error::Unsupported { .. }) => {
                cuda_tests::skip!("{refused}")
            }
            registered => registered.unwrap().share(),
        };
        let buffer = stream.alloc::<u32>(len).unwrap();
        stream.copy(&host, &buffer).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), numbers());
        let owner = host.try_unique().unwrap().into_owner_blocking::<Vec<u32>>().unwrap();
        assert_eq!(owner, numbers());
    });
}

#[test]
fn an_owner_whose_destructor_panics_harms_nobody() {
    struct Bomb(Arc<AtomicBool>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            panic!("dropped");
        }
    }
    alone!();
    let context = setup();
    no_leaks(|| {
        for len in [0, 64] {
            let mut memory = vec![0_u8; 64];
            let dropped = Arc::new(AtomicBool::new(false));
            let owner = Bomb(Arc::clone(&dropped));
            // SAFETY: the elements live until the drain below, and nobody uses them.
            let host =
                unsafe { context.register_raw(memory.as_mut_ptr(), len, owner, RegisterOptions::default()) };
            drop(host.unwrap());
            settle();
            assert!(dropped.load(Ordering::Relaxed));
        }
    });
}

#[test]
fn inside_a_host_function_nothing_is_unregistered() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (kept, dropped) = (context.register(numbers()).unwrap(), context.register(numbers()).unwrap());
        let (sender, receiver) = std::sync::mpsc::channel();
        let inside = context.clone();
        in_callback(&stream, move || {
            drop(dropped);
            let refused = kept.into_vec_blocking().unwrap_err();
            let registered = inside.register(numbers()).unwrap_err();
            let _ = sender.send((refused.error, registered.error, refused.value));
        });
        let (refused, registered, kept) = receiver.recv_timeout(SOON).unwrap();
        stream.synchronize_blocking().unwrap();
        for refused in [refused, registered] {
            let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
            assert!(matches!(refused, Error::Driver { code: found, .. } if found == code), "{refused:?}");
        }
        assert_eq!(kept.into_vec_blocking().unwrap(), numbers());
    });
}

#[test]
fn a_vector_comes_back_after_the_context_was_lost() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let (host, dropped) = (context.register(numbers()).unwrap(), context.register(numbers()).unwrap());
    raw::launch(&stream, &kernel(&context, "poke"), 1, &[0x40, 7]);
    let lost = stream.synchronize_blocking().unwrap_err();
    let (vector, cost) = count(|| {
        drop(dropped);
        host.into_vec_blocking().unwrap()
    });
    assert_eq!((vector, cost.total()), (numbers(), 0));
    let refused = context.register(numbers()).unwrap_err();
    assert_eq!((refused.error, refused.value), (lost, numbers()));
}

#[cfg(unix)]
#[test]
fn in_a_forked_child_it_is_left_alone() {
    alone!();
    let context = setup();
    let (host, dropped) = (context.register(numbers()).unwrap(), context.register(numbers()).unwrap());
    let mut given = Some((host, dropped));
    let mut in_child = || {
        let (host, dropped) = given.take().unwrap();
        let (refused, cost) = count(|| {
            drop(dropped);
            host.into_vec_blocking().map_err(|refused| refused.error)
        });
        let registered = context.register(vec![1_u8]).map_err(|refused| refused.error);
        u8::from(cost.total() != 0)
            + 2 * u8::from(!matches!(refused, Err(Error::Forked)))
            + 4 * u8::from(!matches!(registered, Err(Error::Forked)))
    };
    // SAFETY: what other threads may have locked is not waited for.
    let code = unsafe { cuda_tests::in_forked_child(&mut in_child) };
    assert_eq!(code, 0, "1: a driver call, 2: it came back, 4: it was registered");
    let (host, _dropped) = given.take().unwrap();
    assert_eq!(host.into_vec_blocking().unwrap(), numbers());
}

#[test]
fn memory_without_a_fill_is_one_call_and_has_its_size() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pool = context.pool(cuda_handles::PoolOptions::default()).unwrap();
        let before = live();
        let (buffer, cost) = count(|| stream.alloc::<u64>(33).unwrap());
        cost.assert_calls(&[("cuMemAllocAsync", 1), ("cuThreadExchangeStreamCaptureMode", 2)]);
        let (pooled, cost) = count(|| stream.alloc_from::<u64>(&pool, 33).unwrap());
        cost.assert_calls(&[("cuMemAllocFromPoolAsync", 1), ("cuThreadExchangeStreamCaptureMode", 2)]);
        assert_eq!(live().since(&before).of(Kind::Allocation), 2);
        for buffer in [&buffer, &pooled] {
            assert_eq!((buffer.len(), buffer.home()), (33, Some(&stream)));
            assert_eq!(buffer.read_blocking(&stream).unwrap().len(), 33, "whatever it holds");
            stream.clear(buffer).unwrap();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [0; 33]);
        }
        assert_eq!(pooled.allocation().pool(), Some(&pool));
        let (empty, cost) = count(|| stream.alloc::<u64>(0).unwrap());
        cost.assert_calls(&[]);
        assert!(empty.is_empty());
        assert!(matches!(stream.alloc::<u64>(usize::MAX), Err(Error::TooLarge { .. })));
    });
}

#[test]
fn clear_sets_all_bytes_of_any_elements_to_zero() {
    fn try_with<T: cuda_handles::Element + PartialEq + core::fmt::Debug>(
        stream: &cuda_handles::Stream,
        value: T,
    ) {
        let buffer: Buffer<T> = stream.upload(&[value; 9]).unwrap();
        let ((), cost) = count(|| stream.clear(buffer.slice(2..8).unwrap()).unwrap());
        cost.assert_calls(&[("cuMemsetD8Async", 1)]);
        let found = buffer.read_blocking(stream).unwrap();
        let zero = T::zeroed();
        assert_eq!(found, [value, value, zero, zero, zero, zero, zero, zero, value]);
    }
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        try_with(&stream, 0xff_u8);
        try_with(&stream, -1_i16);
        try_with(&stream, 1.5_f32);
        try_with(&stream, -1.0_f64);
        try_with(&stream, u128::MAX);
        try_with(&stream, [1_u8, 2, 3]);
        try_with(&stream, [1.0_f32; 3]);
        let ((), cost) = count(|| stream.clear(&stream.zeros::<u64>(0).unwrap()).unwrap());
        cost.assert_calls(&[]);
    });
}

#[test]
fn on_a_capturing_stream_memory_is_cleared_later() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1.5_f64; 4]).unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        stream.clear(&buffer).unwrap();
        let captured = capture.end().unwrap();
        let nodes = raw::nodes(captured.graph.as_raw());
        assert_eq!(nodes.iter().map(|node| raw::memset(*node).width).collect::<Vec<_>>(), [32]);
        assert_eq!(captured.records.into_owners().len(), 1, "the capture keeps the memory");
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1.5; 4], "nothing ran");
    });
}

#[test]
fn memory_of_another_context_is_neither_cleared_nor_allocated_from() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    cuda_tests::needs!(TwoDevices);
    let other = other_device().context().unwrap();
    let (stream, elsewhere) = (context.stream().unwrap(), other.stream().unwrap());
    let (buffer, pool) =
        (elsewhere.zeros::<u64>(4).unwrap(), other.pool(cuda_handles::PoolOptions::default()));
    let (pool, host) = (pool.unwrap(), other.register(numbers()).unwrap().share());
    let refused = [
        stream.clear(&buffer),
        stream.clear(&host),
        stream.alloc_from::<u8>(&pool, 8).map(drop),
        stream.host_with(&host, |_| ()),
        stream.host_once_with((&host, &host), |_| ()),
    ];
    for (index, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(Error::WrongContext { .. })), "{index}: {refused:?}");
    }
}
