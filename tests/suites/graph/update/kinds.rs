//! Each kind of node of an executable is set, and launches do what it says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

use cuda_graph::{ContextExt, RawCopy, RawMemory};
use cuda_handles::{Batch, Copy2d, Library, Owner};
use cuda_handles::{Compare, Image};
use cuda_launch::{params, per};
use cuda_tests::{Gate, SMALL, SOON, is_soft, no_leaks, settle, setup, until};

use crate::capture::{N, add_to, increment_all};
use crate::common::events::{is_captured, record_in_capture};

#[test]
fn kernels_get_other_arguments_configurations_and_functions() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (add, all) = (add_to::load(&context).unwrap(), increment_all::load(&context).unwrap());
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &x)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let mut other = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        // Another argument, another block, another kernel of another module, and back.
        exec.node(&node).set(&add, per(1, 1), (10, &x)).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&node).set(&add, per(4, 2), (100, &y)).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&node).set(&all, per(N, 4), (N as u32, &y)).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&node).set(&add, per(1, 1).shared_bytes(64), (1000, &x)).unwrap();
        exec.launch(&stream).unwrap();
        // The other executable and the graph have the first parameters.
        other.launch(&stream).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let mut expected = [0; N];
        expected[0] = 1 + 10 + 1000 + 1 + 1;
        assert_eq!(x.read_blocking(&stream).unwrap(), expected);
        let mut expected = [1; N];
        expected[0] = 401;
        assert_eq!(y.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn untyped_kernels_of_other_modules_with_other_parameters_are_taken() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let load = |name: &str| Library::load(&context, Image::Ptx(SMALL)).unwrap().kernel(name).unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let y = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let node = unsafe {
            graph.root().launch_untyped(&load("increment"), per(N, N as u32), params![&x, N as u32])
        }
        .unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        // SAFETY: as above, both buffers have N elements.
        unsafe {
            let params = params![&x, &y, 5_u32, N as u32];
            exec.node(&node).set_untyped(&load("offset_copy"), per(N, 8), params).unwrap();
            exec.launch(&stream).unwrap();
            exec.node(&node).set_untyped(&load("empty"), per(1, 1), params![]).unwrap();
            exec.launch(&stream).unwrap();
            exec.node(&node)
                .set_untyped(&load("increment"), per(N, N as u32), params![&y, N as u32])
                .unwrap();
        }
        exec.launch(&stream).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [1; N]);
        assert_eq!(y.read_blocking(&stream).unwrap(), [7; N]);
    });
}

#[test]
fn copies_get_other_memory_and_sizes_in_each_direction() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let device = stream.upload(&(0..64_u32).collect::<Vec<_>>()).unwrap();
        let target = stream.zeros::<u32>(64).unwrap();
        let pinned = |first: u32| {
            let mut memory = context.pinned_zeros::<u32>(64).unwrap();
            memory.iter_mut().zip(first..).for_each(|(to, from)| *to = from);
            memory.share()
        };
        let (host, more) = (pinned(100), pinned(200));
        let graph = context.graph().unwrap();
        let among = graph.root().copy(&device, &target).unwrap();
        let up = among.then().copy(&host, &device).unwrap();
        let down = up.then().copy(&target, &more).unwrap();
        let mut exec = graph.instantiate().unwrap();
        // Larger, smaller, shifted and of other buffers.
        let (wide, result) = (stream.upload(&[7_u32; 256]).unwrap(), stream.zeros::<u32>(256).unwrap());
        exec.node(&among).set(&wide, &result).unwrap();
        exec.node(&up).set(more.slice(..3).unwrap(), device.slice(8..11).unwrap()).unwrap();
        exec.node(&down).set(wide.slice(..5).unwrap(), host.slice(59..).unwrap()).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(result.read_blocking(&stream).unwrap(), [7; 256]);
        let mut expected: Vec<u32> = (0..64).collect();
        expected[8..11].copy_from_slice(&[200, 201, 202]);
        assert_eq!(device.read_blocking(&stream).unwrap(), expected);
        let mut expected: Vec<u32> = (100..164).collect();
        expected[59..].fill(7);
        assert_eq!(host.read_blocking(&stream).unwrap(), expected);
        assert_eq!(target.read_blocking(&stream).unwrap(), [0; 64]);
        // Pinned to pageable memory and back.
        let pageable = Arc::new(vec![9_u32; 64]);
        let from = RawMemory::at_host(pageable.as_ptr()).keep(Owner::shared(pageable.clone())).pageable();
        let to = RawMemory::at(device.address()).keep(&device);
        // SAFETY: the owners keep the memory, of which the host's is only read.
        unsafe { exec.node(&up).set_raw(RawCopy::new(from, to, 4 * 64)) }.unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(device.read_blocking(&stream).unwrap(), [9; 64]);
        exec.node(&up).set(&more, &device).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(device.read_blocking(&stream).unwrap()[..2], [200, 201]);
        drop(exec);
        assert!(until(SOON, || {
            settle();
            Arc::strong_count(&pageable) == 1
        }));
    });
}

#[test]
fn fills_get_other_values_widths_and_memory_and_become_clears() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.upload(&[u32::MAX; N]).unwrap();
        let bytes = stream.upload(&[1_u8; 5]).unwrap();
        let floats = stream.upload(&[1.5_f64; 4]).unwrap();
        let host = context.pinned_zeros::<u32>(4).unwrap().share();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&words, 3).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&fill).set(words.slice(2..4).unwrap(), 5).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&fill).set(&bytes, 8).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&fill).set_clear(&floats).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&fill).set(&host, 4).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&fill).set_2d(words.slice(8..).unwrap(), 4, [2, 1], 6).unwrap();
        exec.launch(&stream).unwrap();
        let mut expected = [u32::MAX; N];
        expected[2..4].fill(5);
        expected[8..10].fill(6);
        assert_eq!(words.read_blocking(&stream).unwrap(), expected);
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [8; 5]);
        assert_eq!(floats.read_blocking(&stream).unwrap(), [0.0; 4]);
        assert_eq!(host.read_blocking(&stream).unwrap(), [4; 4]);
    });
}

#[test]
fn of_a_rectangle_the_value_alone_is_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.zeros::<u32>(N).unwrap();
        let others = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill_2d(&words, 4, [2, 4], 3).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&fill).set_2d(&words, 4, [2, 4], 9).unwrap();
        exec.launch(&stream).unwrap();
        let right = [9, 9, 0, 0].repeat(4);
        assert_eq!(words.read_blocking(&stream).unwrap(), right);
        exec.node(&fill).set_2d(&words, 4, [3, 4], 1).unwrap_err();
        exec.node(&fill).set_2d(&words, 4, [2, 3], 1).unwrap_err();
        exec.node(&fill).set_2d(&others, 4, [2, 4], 1).unwrap_err();
        exec.node(&fill).set(&words, 1).unwrap_err();
        exec.node(&fill).set_clear(&words).unwrap_err();
        exec.launch(&stream).unwrap();
        assert_eq!(words.read_blocking(&stream).unwrap(), right);
        // A line does not become a rectangle either.
        let line = graph.root().fill(&others, 3).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&line).set_2d(&others, 4, [2, 4], 1).unwrap_err();
        exec.launch(&stream).unwrap();
        assert_eq!(others.read_blocking(&stream).unwrap(), [3; N]);
    });
}

#[test]
fn copies_of_two_dimensions_stay_as_they_are() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (from, to) = (stream.upload(&[4_u32; N]).unwrap(), stream.zeros::<u32>(N).unwrap());
        let flat = Copy2d {
            source: from.as_slice(),
            source_pitch: 4,
            destination: to.as_slice(),
            destination_pitch: 4,
            width: 2,
            height: 4,
        };
        let graph = context.graph().unwrap();
        let copy = graph.root().copy_2d(flat).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let refused = exec.node(&copy).set(&from, &to).unwrap_err().to_string();
        assert!(refused.contains("two or three dimensions stay as they are"), "{refused}");
        exec.launch(&stream).unwrap();
        assert_eq!(to.read_blocking(&stream).unwrap(), [4, 4, 0, 0].repeat(4));
    });
}

unsafe extern "C" fn raise(data: *mut core::ffi::c_void) {
    // SAFETY: the data is an atomic number that lives.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn host_nodes_call_other_closures_closures_with_views_and_c_functions() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (sender, receiver) = channel();
        let call = |number: u32| {
            let sender = sender.clone();
            move || {
                let _ = sender.send(number);
            }
        };
        let graph = context.graph().unwrap();
        let host = graph.root().host(call(1)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&host).set(call(2)).unwrap();
        exec.launch(&stream).unwrap();
        let mut numbers = context.pinned_zeros::<u32>(2).unwrap();
        numbers[1] = 3;
        let numbers = numbers.share();
        let views = sender.clone();
        exec.node(&host)
            .set_with(&numbers, move |view| {
                let _ = views.send(view.get(1).unwrap_or(0));
            })
            .unwrap();
        exec.launch(&stream).unwrap();
        let raised = Arc::new(AtomicU32::new(0));
        // SAFETY: the function takes a number, which the node keeps.
        unsafe { exec.node(&host).set_function(raise, AtomicU32::new(7)) }.unwrap();
        exec.launch(&stream).unwrap();
        let data = Arc::as_ptr(&raised).cast_mut().cast();
        // SAFETY: as above.
        unsafe { exec.node(&host).set_raw(raise, data, Owner::shared(Arc::clone(&raised))) }.unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&host).set(call(4)).unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(raised.load(Ordering::SeqCst), 1);
        exec.release();
        let is_back = until(SOON, || {
            settle();
            Arc::strong_count(&raised) == 1
        });
        assert!(is_back, "what an update brought goes after the next one");
    });
}

#[test]
fn the_new_event_is_recorded_and_the_old_one_is_not() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (old, new) = (context.event().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        let record = graph.root().record(&old).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(old.query().unwrap());
        exec.node(&record).set_event(&new).unwrap();
        // Recorded in a capture last, so that a record by a launch shows.
        for event in [&old, &new] {
            record_in_capture(event, &other);
        }
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(!is_captured(&new));
        assert!(is_captured(&old), "a capture recorded it last");
        // And back.
        exec.node(&record).set_event(&old).unwrap();
        exec.launch(&stream).unwrap();
        assert!(!is_captured(&old));
        assert_eq!(record.event().unwrap(), old);
        // Of an event that no capture has recorded, the launch is seen.
        let fresh = context.event().unwrap();
        exec.node(&record).set_event(&fresh).unwrap();
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        assert!(!fresh.query().unwrap());
        gate.open();
        assert!(until(SOON, || fresh.query().unwrap()));
    });
}

#[test]
fn another_event_is_waited_for() {
    let context = setup();
    no_leaks(|| {
        let (stream, first, second) =
            (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
        let (held, free) = (context.event().unwrap(), context.event().unwrap());
        let gate = Gate::close(&first);
        first.record(&held).unwrap();
        second.record(&free).unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait(&held).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&wait).set_event(&free).unwrap();
        exec.launch(&stream).unwrap();
        let idle = until(SOON, || stream.query().unwrap());
        assert!(idle, "it waits for the event that is free");
        exec.node(&wait).set_event(&held).unwrap();
        exec.launch(&stream).unwrap();
        assert!(!stream.query().unwrap(), "it waits for the event that is held");
        gate.open();
        assert!(until(SOON, || stream.query().unwrap()));
    });
}

#[test]
fn batches_get_other_values_and_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let flags = context.pinned_zeros::<u32>(4).unwrap().share();
        let others = context.pinned_zeros::<u32>(4).unwrap().share();
        let batch = |memory: &cuda_handles::SharedHostBuffer<u32>, value: u32| {
            let mut batch = Batch::new();
            batch.write(memory, 0, value).unwrap();
            batch.wait(memory, 0, Compare::Equal, value).unwrap();
            batch.write(memory, 1, value + 1).unwrap();
            batch
        };
        let graph = context.graph().unwrap();
        let node = graph.root().batch(&batch(&flags, 1)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&node).set(&batch(&others, 5)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(others.read_blocking(&stream).unwrap(), [5, 6, 0, 0]);
        assert_eq!(flags.read_blocking(&stream).unwrap(), [0; 4]);
        let mut shorter = Batch::new();
        shorter.write(&flags, 0, 1).unwrap();
        let mut otherwise = Batch::new();
        otherwise.write(&flags, 0, 1).unwrap();
        otherwise.write(&flags, 1, 1).unwrap();
        otherwise.write(&flags, 2, 1).unwrap();
        for wrong in [shorter, otherwise, Batch::new()] {
            exec.node(&node).set(&wrong).unwrap_err();
        }
        exec.node(&node).set(&batch(&flags, 8)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(flags.read_blocking(&stream).unwrap(), [8, 9, 0, 0]);
    });
}

#[test]
fn nodes_are_disabled_and_enabled_and_updates_of_disabled_ones_show_later() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(2).unwrap(), stream.zeros::<u32>(1).unwrap());
        let graph = context.graph().unwrap();
        // A fill of a row is not disabled.
        let fill = graph.root().fill_2d(&x, 1, [1, 2], 1).unwrap();
        let kernel = fill.then().launch(&add, per(1, 1), (10, &x)).unwrap();
        let copy = kernel.then().copy(x.slice(..1).unwrap(), &y).unwrap();
        let mut exec = graph.instantiate().unwrap();
        assert!(exec.node(&fill).is_enabled().unwrap() && exec.node(&copy).is_enabled().unwrap());
        let mut run = |fill_on: bool, kernel_on: bool, copy_on: bool| {
            exec.node(&fill).set_enabled(fill_on).unwrap();
            exec.node(&kernel).set_enabled(kernel_on).unwrap();
            exec.node(&copy).set_enabled(copy_on).unwrap();
            assert_eq!(exec.node(&kernel).is_enabled().unwrap(), kernel_on);
            exec.launch(&stream).unwrap();
            (x.read_blocking(&stream).unwrap()[0], y.read_blocking(&stream).unwrap()[0])
        };
        assert_eq!(run(true, true, true), (11, 11));
        assert_eq!(run(true, false, true), (1, 1));
        assert_eq!(run(false, true, false), (11, 1));
        assert_eq!(run(false, true, true), (21, 21));
        assert_eq!(run(false, false, false), (21, 21));
        exec.node(&kernel).set(&add, per(1, 1), (100, &x)).unwrap();
        exec.launch(&stream).unwrap();
        assert!(!exec.node(&kernel).is_enabled().unwrap());
        assert_eq!(x.read_blocking(&stream).unwrap()[0], 21);
        exec.node(&kernel).set_enabled(true).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap()[0], 121);
        // A new executable is enabled, with the graph's parameters.
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap(), [11]);
    });
}

#[test]
fn queued_launches_each_have_their_own_parameters() {
    let context = setup();
    no_leaks(|| {
        const RUNS: usize = 100;
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let results = stream.zeros::<u32>(RUNS).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (0, results.slice(..1).unwrap())).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let gate = is_soft().then(|| Gate::close(&stream));
        for run in 0..RUNS {
            let place = results.slice(run..=run).unwrap();
            exec.node(&node).set(&add, per(1, 1), (run as u32 + 1, place)).unwrap();
            exec.launch(&stream).unwrap();
        }
        drop(gate);
        let expected: Vec<u32> = (1..=RUNS as u32).collect();
        assert_eq!(results.read_blocking(&stream).unwrap(), expected);
    });
}
