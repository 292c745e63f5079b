//! Raw handles of the driver find their owners.

use core::ptr;
use std::collections::HashSet;

use cuda_handles::{Event, EventOptions, Kernel, Stream, StreamOptions};
use cuda_tests::{Kind, count, kernel, live, no_leaks, raw, setup};

#[test]
fn a_raw_stream_finds_its_owner() {
    let context = setup();
    no_leaks(|| {
        let stream = context
            .stream_with(StreamOptions { blocking_with_legacy: true, ..StreamOptions::default() })
            .unwrap();
        // SAFETY: the stream lives.
        let (found, cost) = count(|| unsafe { Stream::from_raw(&context, stream.as_raw()) }.unwrap());
        cost.assert_calls(&[]);
        assert_eq!(found, stream);
        assert_eq!(found.id(), stream.id());
        drop(stream);
        assert!(found.query().unwrap(), "the found handle owns it too");
    });
}

#[test]
fn a_raw_event_finds_its_owner_with_what_cannot_be_asked_back() {
    let context = setup();
    no_leaks(|| {
        let options = EventOptions { timing: true, ..EventOptions::default() };
        let event = context.event_with(options).unwrap();
        // SAFETY: the event lives.
        let found = unsafe { Event::from_raw(&context, event.as_raw()) }.unwrap();
        assert_eq!(found, event);
        assert!(found.options().is_some_and(|options| options.timing));
    });
}

#[test]
fn a_raw_kernel_finds_its_owner() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        // SAFETY: the kernel lives.
        let found = unsafe { Kernel::from_raw(saxpy.as_raw()) }.unwrap();
        assert_eq!(found, saxpy);
        assert_eq!(found.name(), "saxpy");
        drop(saxpy);
        assert_eq!(found.library().kernel("saxpy").unwrap(), found, "the library is kept");
    });
}

#[test]
fn a_kernel_asked_for_twice_is_the_same() {
    let context = setup();
    no_leaks(|| {
        let first = kernel(&context, "saxpy");
        let second = first.library().kernel("saxpy").unwrap();
        assert_eq!(first, second);
        assert_eq!(first.as_raw(), second.as_raw());
    });
}

#[test]
fn a_foreign_stream_is_used_but_not_destroyed() {
    let context = setup();
    no_leaks(|| {
        let mut foreign = ptr::null_mut();
        context
            // SAFETY: the out pointer is valid.
            .with_current(|| raw::ok(unsafe { raw::driver().cuStreamCreate(&raw mut foreign, 1) }))
            .unwrap();
        // SAFETY: the stream lives until the end of the test.
        let stream = unsafe { Stream::from_raw(&context, foreign) }.unwrap();
        let buffer = stream.upload(&[1_u32, 2]).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2]);
        drop(buffer);
        let before = live().of(Kind::Stream);
        drop(stream);
        cuda_tests::settle();
        assert_eq!(live().of(Kind::Stream), before, "it is not ours to destroy");
        // SAFETY: the stream is ours, and nothing uses it any more.
        raw::ok(unsafe { raw::driver().cuStreamDestroy(foreign) });
    });
}

#[test]
fn an_address_given_out_again_belongs_to_its_new_owner() {
    let context = setup();
    no_leaks(|| {
        let mut ids = HashSet::new();
        let mut addresses = HashSet::new();
        for _ in 0..200 {
            let stream = context.stream().unwrap();
            // SAFETY: the stream lives.
            let found = unsafe { Stream::from_raw(&context, stream.as_raw()) }.unwrap();
            assert_eq!(found.id(), stream.id());
            assert!(ids.insert(stream.id()), "an id came twice");
            addresses.insert(stream.as_raw() as usize);
        }
        assert!(addresses.len() < 200, "the driver gives addresses out again, or this test shows nothing");
    });
}

#[test]
fn the_raw_value_of_a_dropped_stream_finds_nobody() {
    let context = setup();
    no_leaks(|| {
        let old = context.stream().unwrap();
        let (raw_value, id) = (old.as_raw(), old.id());
        drop(old);
        cuda_tests::settle();
        // SAFETY: the value is only looked up; the handle that may come back owns nothing and is
        // dropped unused.
        match unsafe { Stream::from_raw(&context, raw_value) } {
            Ok(stranger) => assert_ne!(stranger.id(), id),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

#[test]
fn owners_are_found_and_dropped_by_many_threads_at_once() {
    let context = setup();
    no_leaks(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let context = &*context;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let event = context.event().unwrap();
                        let raw_value = event.as_raw();
                        // SAFETY: the event lives.
                        let found = unsafe { Event::from_raw(context, raw_value) }.unwrap();
                        drop(event);
                        assert!(found.query().unwrap());
                        assert_eq!(found.as_raw(), raw_value);
                    }
                });
            }
        });
    });
}
