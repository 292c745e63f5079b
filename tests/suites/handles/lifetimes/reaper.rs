//! The reaper: it holds nobody up, and works without its thread.

use std::sync::mpsc::channel;

use cuda_handles::{UserObject, reaper};
use cuda_tests::{SOON, alone, no_leaks, setup, until};

/// A value whose drop takes until somebody says so.
struct Slow(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>);

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.1.send(());
        let _ = self.0.recv_timeout(SOON);
    }
}

#[test]
fn a_slow_destructor_keeps_no_memory_from_being_freed() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(64).unwrap();
        other.fill(&buffer, 1).unwrap();
        let (go, wait) = channel();
        let (started, begun) = channel();
        drop(UserObject::new(&context, Box::new(Slow(wait, started))).unwrap());
        begun.recv_timeout(SOON).expect("the reaper drops it");
        assert_eq!(reaper::pending(), 1);
        drop(buffer);
        let freed = until(SOON, || reaper::pending() == 1);
        reaper::drain();
        assert!(freed, "freed meanwhile; waiting: {}", reaper::pending());
        go.send(()).unwrap();
    });
}

#[test]
fn without_a_thread_things_wait_for_a_drain() {
    alone!();
    assert!(reaper::manual());
    let context = setup();
    assert!(reaper::manual(), "asking again changes nothing");
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let buffer = home.zeros::<u32>(64).unwrap();
    other.fill(&buffer, 1).unwrap();
    drop(buffer);
    assert_eq!(reaper::pending(), 1);
    let (started, begun) = channel();
    let (go, wait) = channel();
    go.send(()).unwrap();
    drop(UserObject::new(&context, Box::new(Slow(wait, started))).unwrap());
    assert!(!until(std::time::Duration::from_millis(50), || reaper::pending() != 2));
    assert!(begun.try_recv().is_err(), "no thread drops it");
    assert!(reaper::drain() >= 2);
    assert_eq!(reaper::pending(), 0);
    begun.try_recv().expect("dropped by this thread");
}

#[test]
fn a_running_thread_cannot_be_done_without() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let buffer = home.zeros::<u32>(64).unwrap();
    other.fill(&buffer, 1).unwrap();
    assert!(!reaper::manual());
}
