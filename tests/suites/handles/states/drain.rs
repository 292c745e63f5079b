//! Drains. They make the driver wait, inside a host function for the function itself.

use std::sync::mpsc::channel;

use cuda_handles::{Image, Library, UserObject, reaper};
use cuda_sys::Call;
use cuda_tests::{SMALL, SOON, in_callback, no_leaks, setup, trace, until};

/// Leaves an object of each kind for a drain.
fn leave_something(context: &cuda_handles::Context) -> usize {
    drop(Library::load(context, Image::Ptx(SMALL)).unwrap());
    drop(context.pinned_zeros::<u32>(1 << 20).unwrap());
    drop(context.managed_zeros::<u32>(1 << 20).unwrap());
    assert!(until(SOON, || reaper::pending() == 1), "the library alone is pending");
    reaper::pending()
}

#[test]
fn draining_inside_a_host_function_does_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pending = leave_something(&context);
        let (sender, receiver) = channel();
        let (found, calls) = trace(|| {
            in_callback(&stream, move || {
                let _ = sender.send((std::thread::current().id(), reaper::drain(), reaper::pending()));
            });
            receiver.recv_timeout(SOON)
        });
        let (thread, drained, left) = found.expect("draining hangs");
        assert_eq!((drained, left), (0, pending));
        let calls: Vec<_> = calls.iter().filter(|step| step.thread == thread).map(|step| step.call).collect();
        assert_eq!(calls, [Call::cuCtxGetCurrent], "the question alone");
        stream.synchronize_blocking().unwrap();
        assert!(reaper::drain() >= 3, "the library and two blocks");
        assert_eq!(reaper::pending(), 0);
    });
}

/// The destructor of what a user object owns runs on the reaper's thread, where draining does
/// nothing either; that of a drop is anywhere.
#[test]
fn draining_inside_a_destructor_of_a_user_object_does_nothing() {
    struct Drains(std::sync::mpsc::Sender<usize>);
    impl Drop for Drains {
        fn drop(&mut self) {
            let _ = self.0.send(reaper::drain());
        }
    }
    let context = setup();
    no_leaks(|| {
        let _ = leave_something(&context);
        let (sender, receiver) = channel();
        drop(UserObject::new(&context, Box::new(Drains(sender))).unwrap());
        assert_eq!(receiver.recv_timeout(SOON), Ok(0));
    });
}
