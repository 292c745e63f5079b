//! Host functions with views of pinned, registered and managed memory.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_handles::capture::CaptureMode;
use cuda_handles::{CallbackPanic, Context, Error, HostView, MemoryKind, SharedHostBuffer, set_panic_hook};
use cuda_tests::{Gate, SOON, alone, count, no_leaks, other_device, setup};

/// A buffer of each kind, with 0, 1, 2 and so on in it.
fn all(context: &Context, len: u32) -> [SharedHostBuffer<u32>; 3] {
    let numbers = || (0..len).collect::<Vec<_>>();
    let (mut pinned, mut managed) =
        (context.pinned_zeros(len as usize).unwrap(), context.managed_zeros(len as usize).unwrap());
    pinned.copy_from_slice(&numbers());
    managed.copy_from_slice(&numbers());
    [pinned, managed, context.register(numbers()).unwrap()].map(cuda_handles::HostBuffer::share)
}

static TOLD: Mutex<Vec<CallbackPanic>> = Mutex::new(Vec::new());

fn told() -> Vec<CallbackPanic> {
    core::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn a_function_reads_and_writes_what_the_device_reads_and_writes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in all(&context, 64) {
            let buffer = stream.zeros::<u32>(64).unwrap();
            let (sender, receiver) = channel();
            stream.fill(&buffer, 7).unwrap();
            stream.copy(&buffer, &host).unwrap();
            stream
                .host_once_with(&host, move |view| {
                    let _ = sender.send(view.to_vec());
                    view.copy_from_slice(&[9; 64]).unwrap();
                    view.set(3, 11).unwrap();
                })
                .unwrap();
            stream.copy(&host, &buffer).unwrap();
            let mut expected = [9; 64];
            expected[3] = 11;
            assert_eq!(buffer.read_blocking(&stream).unwrap(), expected);
            assert_eq!(receiver.recv_timeout(SOON).unwrap(), [7; 64]);
            let unique = host.try_unique().expect("the function has been called");
            assert_eq!(unique[..], expected);
        }
    });
}

#[test]
fn views_have_the_elements_and_their_bounds() {
    let context = setup();
    no_leaks(|| {
        for host in all(&context, 10) {
            let view = host.try_view().unwrap();
            assert_eq!((view.len(), view.is_empty()), (10, false));
            assert_eq!((view.get(0), view.get(9), view.get(10)), (Some(0), Some(9), None));
            assert_eq!(view.get(usize::MAX), None);
            assert!(view.iter().eq(0..10));
            let refused = view.set(10, 1).unwrap_err();
            assert_eq!(refused, Error::Bounds { start: 10, end: 11, len: 10 });
            let refused = view.set(usize::MAX, 1).unwrap_err();
            assert_eq!(refused, Error::Bounds { start: usize::MAX, end: usize::MAX, len: 10 });
            let mut part = [0; 9];
            let length = |what, found| Err(Error::Length { what, expected: 10, found });
            assert_eq!(view.read_into(&mut part), length("the slice to read into", 9));
            assert_eq!(view.copy_from_slice(&[1; 11]), length("the slice to write", 11));
            assert_eq!(view.to_vec(), (0..10).collect::<Vec<_>>());
            view.set(9, 90).unwrap();
            let mut all = [0; 10];
            view.read_into(&mut all).unwrap();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 90]);
        }
    });
}

#[test]
fn elements_of_every_size_are_read_and_written_whole() {
    fn try_with<T: cuda_handles::Element + PartialEq + core::fmt::Debug>(context: &Context, value: T) {
        let host = context.pinned_zeros::<T>(5).unwrap().share();
        let view = host.try_view().unwrap();
        for index in [0, 1, 4] {
            view.set(index, value).unwrap();
        }
        let (zero, value) = (T::zeroed(), Some(value));
        assert_eq!((view.get(0), view.get(1), view.get(2)), (value, value, Some(zero)));
        assert_eq!((view.get(3), view.get(4)), (Some(zero), value));
        assert_eq!(view.to_vec().len(), 5);
    }
    let context = setup();
    no_leaks(|| {
        try_with(&context, 0xfe_u8);
        try_with(&context, -2_i16);
        try_with(&context, 1.5_f32);
        try_with(&context, -1e300_f64);
        try_with(&context, u128::MAX - 1);
        try_with(&context, [1_u32, 2, 3]);
        try_with(&context, [1_u8, 2, 3, 4, 5, 6, 7]);
        try_with(&context, ());
    });
}

#[test]
fn several_buffers_and_parts_of_one_are_looked_at_together() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let floats = context.pinned_zeros::<f64>(2).unwrap().share();
        let [numbers, ..] = all(&context, 8);
        let (first, second) = (numbers.slice(..4).unwrap(), numbers.slice(4..).unwrap());
        let (sender, receiver) = channel();
        // Parts of one allocation are one thing to look at, not two that exclude each other.
        stream
            .host_once_with((&floats, first, second), move |(floats, first, second)| {
                floats.set(1, second.iter().map(f64::from).sum()).unwrap();
                first.copy_from_slice(&second.to_vec()).unwrap();
                let _ = sender.send((first.len(), second.get(0)));
            })
            .unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(receiver.recv_timeout(SOON).unwrap(), (4, Some(4)));
        assert_eq!(floats.try_unique().unwrap()[..], [0.0, 22.0]);
        assert_eq!(numbers.try_unique().unwrap()[..], [4, 5, 6, 7, 4, 5, 6, 7]);
    });
}

#[test]
fn memory_is_kept_until_the_call_and_nobody_has_it_alone_before() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in all(&context, 4) {
            let gate = Gate::close(&stream);
            stream.host_with(&host, |view| drop(view.to_vec())).unwrap();
            let host = host.try_unique().expect_err("a function waits");
            let kept = host.clone();
            drop(host);
            let kept = kept.try_unique().expect_err("a function waits");
            gate.open();
            stream.synchronize_blocking().unwrap();
            assert_eq!(kept.try_unique().expect("it was called")[..], [0, 1, 2, 3]);
            // The function alone has it.
            let dropped = context.pinned_zeros::<u32>(4).unwrap().share();
            let gate = Gate::close(&stream);
            let (sender, receiver) = channel();
            stream.host_once_with(&dropped, move |view| drop(sender.send(view.to_vec()))).unwrap();
            drop(dropped);
            gate.open();
            assert_eq!(receiver.recv_timeout(SOON).unwrap(), [0; 4]);
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn a_function_whose_memory_somebody_looks_at_is_not_called_and_the_hook_is_told() {
    alone!();
    let context = setup();
    set_panic_hook(|trouble| TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(trouble.clone()));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [free, ..] = all(&context, 4);
        for host in all(&context, 4) {
            let calls = Arc::new(Mutex::new(0));
            let inside = Arc::clone(&calls);
            let look = move |_: &(HostView<u32>, HostView<u32>)| *inside.lock().unwrap() += 1;
            let view = host.try_view().unwrap();
            assert!(host.try_view().is_none(), "one at a time");
            assert!(free.try_view().is_some(), "others are free");
            stream.host_with((&free, host.slice(2..).unwrap()), look.clone()).unwrap();
            stream.synchronize_blocking().unwrap();
            assert_eq!(*calls.lock().unwrap(), 0);
            let told = told();
            assert_eq!((told.len(), told[0].was_called), (1, false), "{told:?}");
            let text = told[0].to_string();
            assert!(text.contains("somebody_looks_at") && text.contains("was not called"), "{text}");
            assert!(free.try_view().is_some(), "what it took is free again");
            drop(view);
            stream.host_with((&free, &host), look).unwrap();
            stream.synchronize_blocking().unwrap();
            assert_eq!((*calls.lock().unwrap(), Arc::strong_count(&calls)), (1, 1));
        }
    });
    assert!(told().is_empty());
}

/// Neither a panic nor a refusal leaves anything taken.
#[test]
fn a_function_that_panics_lets_go_of_its_memory() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in all(&context, 4) {
            stream.host_with(&host, |_| panic!("in the middle")).unwrap();
            stream.host_with(&host, |view| view.set(4, 1).unwrap()).unwrap();
            stream.synchronize_blocking().unwrap();
            assert!(host.try_view().is_some());
            assert_eq!(host.try_unique().unwrap()[..], [0, 1, 2, 3]);
        }
    });
}

#[test]
fn memory_that_the_host_does_not_reach_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pooled = stream.zeros::<u32>(4).unwrap();
        let plain = context.alloc_blocking::<u32>(4).unwrap();
        for (buffer, kind) in [(&pooled, MemoryKind::Pooled), (&plain, MemoryKind::Plain)] {
            let (refused, cost) = count(|| stream.host_with(buffer.as_slice(), |_| ()).unwrap_err());
            cost.assert_calls(&[]);
            assert_eq!(refused, Error::NotOnHost { kind });
            assert!(refused.to_string().contains(&format!("cannot look at {kind} memory")), "{refused}");
        }
    });
}

#[test]
fn no_elements_are_an_ordinary_view() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let empty = context.pinned_zeros::<u64>(0).unwrap().share();
        let [some, ..] = all(&context, 4);
        let (sender, receiver) = channel();
        let look = move |(empty, none): &(HostView<u64>, HostView<u32>)| {
            let _ = sender.send((empty.to_vec(), none.get(0), empty.len(), none.is_empty()));
        };
        stream.host_once_with((&empty, some.slice(4..).unwrap()), look).unwrap();
        assert_eq!(receiver.recv_timeout(SOON).unwrap(), (Vec::new(), None, 0, true));
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn no_elements_of_the_devices_memory_are_an_ordinary_view() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (buffer, empty) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u64>(0).unwrap());
        let (sender, receiver) = channel();
        stream
            .host_once_with((buffer.slice(2..2).unwrap(), empty.as_slice()), move |(one, other)| {
                let _ = sender.send((one.to_vec(), other.to_vec()));
            })
            .unwrap();
        assert_eq!(receiver.recv_timeout(SOON).expect("it is called"), (Vec::new(), Vec::new()));
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn a_function_drops_the_last_owners_of_its_memory_and_its_stream() {
    let context = setup();
    no_leaks(|| {
        for host in all(&context, 64) {
            let stream = context.stream().unwrap();
            let (sender, receiver) = channel();
            let buffer = stream.upload(&[7_u32; 64]).unwrap();
            stream.write(&host, &[3; 64]).unwrap();
            stream.copy(&buffer, &host).unwrap();
            let own = (stream.clone(), host.clone(), buffer);
            stream
                .host_once_with((&host, host.slice(3..40).unwrap()), move |(whole, part)| {
                    drop(own);
                    let _ = sender.send((whole.to_vec(), part.to_vec()));
                })
                .unwrap();
            drop((stream, host));
            assert_eq!(receiver.recv_timeout(SOON).unwrap(), (vec![7; 64], vec![7; 37]));
        }
    });
}

#[test]
fn a_captured_function_keeps_its_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [host, ..] = all(&context, 4);
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        stream.host_with(&host, |view| drop(view.to_vec())).unwrap();
        let captured = capture.end().unwrap();
        let host = host.try_unique().expect_err("the capture has it");
        drop(captured);
        assert_eq!(host.try_unique().unwrap()[..], [0, 1, 2, 3]);
    });
}

#[test]
fn a_function_of_another_context_gets_no_memory() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    cuda_tests::needs!(TwoDevices);
    let other = other_device().context().unwrap();
    let stream = other.stream().unwrap();
    let [host, ..] = all(&context, 4);
    let (refused, cost) = count(|| stream.host_with(&host, |_| ()).unwrap_err());
    cost.assert_calls(&[]);
    assert!(matches!(refused, Error::WrongContext { .. }), "{refused:?}");
}
