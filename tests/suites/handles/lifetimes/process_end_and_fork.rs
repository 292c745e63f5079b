//! The end of a process with objects alive, and forked children.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Device, Error, Event, GraphHandle, Kernel, Stream, UserObject};
use cuda_tests::{Gate, alone, count, in_forked_child, kernel, setup, until};

type Things = (Stream, Event, Buffer<u32>, Buffer<u32>, Kernel);

static KEPT: OnceLock<Things> = OnceLock::new();

/// The parent of this one bounds how long it may take to end.
#[test]
fn a_process_ends_with_objects_alive_and_work_for_the_reaper() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let shared = home.zeros::<u32>(8).unwrap();
    other.fill(&shared, 1).unwrap();
    let kept =
        (home.clone(), context.event().unwrap(), home.zeros(8).unwrap(), shared, kernel(&context, "empty"));
    assert!(KEPT.set(kept).is_ok());
    for _ in 0..100 {
        let buffer = home.zeros::<u32>(8).unwrap();
        other.fill(&buffer, 1).unwrap();
        drop(kernel(&context, "empty"));
    }
}

#[test]
fn a_process_ends_while_work_is_in_flight() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let gate = Gate::close(&other);
    let buffer = home.zeros::<u32>(8).unwrap();
    other.fill(&buffer, 1).unwrap();
    drop(buffer);
    std::thread::spawn(move || {
        let _ = until(Duration::from_millis(200), || false);
        gate.open();
    });
}

#[cfg(unix)]
#[test]
fn a_forked_child_drops_without_calling_the_driver() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let (plain, shared) = (home.upload(&[1_u32; 8]).unwrap(), home.upload(&[1_u32; 8]).unwrap());
    other.fill(&shared, 1).unwrap();
    let (event, saxpy) = (context.event().unwrap(), kernel(&context, "saxpy"));
    home.synchronize_blocking().unwrap();
    let things = (plain.clone(), shared.clone(), event.clone(), saxpy.clone(), home.clone(), other.clone());
    let in_child = || {
        drop(things);
        let ((), cost) = count(|| drop((plain.clone(), shared, event, saxpy)));
        let quiet = cost.total_anywhere() == 0;
        let refused =
            matches!(home.query(), Err(Error::Forked)) && matches!(context.event(), Err(Error::Forked));
        let ((), cost) = count(|| drop((home.clone(), other)));
        u8::from(!quiet) + 2 * u8::from(!refused) + 4 * u8::from(cost.total_anywhere() != 0)
    };
    // SAFETY: what other threads may have locked is not used there.
    let code = unsafe { in_forked_child(in_child) };
    assert_eq!(code, 0, "1: drops called the driver, 2: a call was not refused, 4: as 1, for streams");
    assert_eq!(plain.read_blocking(&home).unwrap(), [1; 8], "the parent goes on");
}

#[cfg(unix)]
#[test]
fn a_forked_child_waits_for_no_lock_of_events_and_captures() {
    alone!();
    let context = setup();
    let (recording, capturing) = (context.stream().unwrap(), context.stream().unwrap());
    let event = context.event().unwrap();
    let legacy = context.legacy_stream();
    let capture = capturing.begin_capture(CaptureMode::Relaxed).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Holds the event's lock most of the time.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                recording.record(&event).unwrap();
            }
        });
        let in_child = || {
            let recorded = matches!(legacy.record(&event), Err(Error::Forked));
            let waited = matches!(legacy.wait(&event), Err(Error::Forked));
            capture.keep(capturing.clone());
            u8::from(!recorded) + 2 * u8::from(!waited) + 4 * u8::from(capture.streams() != 0)
        };
        let codes = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            // SAFETY: what other threads may have locked is not used there.
            [(); 20].map(|()| unsafe { in_forked_child(in_child) })
        }));
        over.store(true, Ordering::Relaxed);
        let codes = codes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(
            codes, [0; 20],
            "1: a record was not refused, 2: a wait, 4: streams take part in a capture"
        );
    });
    capture.end().unwrap();
}

#[cfg(unix)]
#[test]
fn a_forked_child_waits_for_no_lock_of_memory_graphs_and_hooks() {
    const FORKS: usize = 60;
    alone!();
    let context = setup();
    let streams = [(); 3].map(|()| context.stream().unwrap());
    let pinned = context.pinned_zeros::<u32>(64).unwrap().share();
    let device = streams[0].zeros::<u32>(64).unwrap();
    let over = AtomicBool::new(false);
    let until_over = |work: &dyn Fn()| {
        while !over.load(Ordering::Relaxed) {
            work();
        }
    };
    std::thread::scope(|scope| {
        // Between them they hold the locks of users of memory, of graphs, of clones, of spare
        // memory and of the hook most of the time.
        scope.spawn(|| {
            until_over(&|| {
                // In turns: a stream that used it last need not look.
                for stream in &streams[..2] {
                    stream.copy(&pinned, &device).unwrap();
                    stream.synchronize_blocking().unwrap();
                }
            });
        });
        scope.spawn(|| {
            until_over(&|| {
                cuda_handles::reaper::set_hook(|_| ());
                drop(GraphHandle::create(&context).unwrap());
                drop(context.pinned_zeros::<u32>(8).unwrap());
            });
        });
        let codes = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            [(); FORKS].map(|()| {
                let object = UserObject::new(&context, Box::new(1_u32)).unwrap();
                let graph = GraphHandle::create(&context).unwrap();
                let in_child = || {
                    let forked = |refused: Option<Error>| matches!(refused, Some(Error::Forked));
                    let copied = forked(streams[2].copy(&pinned, &device).err())
                        && forked(streams[1].copy(&device, &pinned).err())
                        && forked(streams[2].wait_for(&streams[1]).err())
                        && forked(context.synchronize_blocking().err());
                    let made = forked(context.pinned_zeros::<u32>(8).err())
                        && forked(object.retain_on(&graph).err())
                        && forked(Device::new(0).and_then(Device::context).err());
                    cuda_handles::reaper::set_hook(|_| ());
                    let thread = cuda_handles::reaper::manual();
                    drop(cuda_handles::clones::alone(&context));
                    // SAFETY: nothing is done with it, and the child destroys nothing.
                    let again = unsafe { GraphHandle::from_raw_owned(&context, graph.as_raw()) };
                    let ((), cost) = count(|| drop((again, graph, object)));
                    let drained = cuda_handles::reaper::drain();
                    let quiet = cost.total_anywhere() == 0 && drained == 0;
                    u8::from(!copied) + 2 * u8::from(!made) + 4 * u8::from(!thread) + 8 * u8::from(!quiet)
                };
                // SAFETY: what other threads may have locked is not waited for: that is what is
                // tried.
                unsafe { in_forked_child(in_child) }
            })
        }));
        over.store(true, Ordering::Relaxed);
        let codes = codes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(
            codes, [0; FORKS],
            "1: a use of memory was not refused, 2: a call, 4: a thread, 8: a drop"
        );
    });
}

/// Owners of memory that the device was still using as the process began to exit.
#[cfg(unix)]
static LEFT: std::sync::Mutex<Option<Box<dyn core::any::Any + Send>>> = std::sync::Mutex::new(None);

/// Ends the process as a failed one when it is dropped.
#[cfg(unix)]
struct NotYet(#[allow(dead_code, reason = "the memory")] Vec<u32>);

#[cfg(unix)]
impl Drop for NotYet {
    fn drop(&mut self) {
        // SAFETY: it ends the process.
        unsafe { libc::_exit(99) };
    }
}

#[cfg(unix)]
extern "C" fn drop_what_is_left() {
    drop(LEFT.lock().unwrap().take());
}

#[cfg(unix)]
#[test]
fn memory_that_the_device_may_be_using_stays_to_the_end_of_the_process() {
    // A search for leaks would find what is left alone.
    alone!("ASAN_OPTIONS" = "detect_leaks=0");
    // SAFETY: the handler panics only as the test fails. It runs after those of the library, which
    // come later.
    unsafe { libc::atexit(drop_what_is_left) };
    let context = setup();
    let stream = context.stream().unwrap();
    let source = stream.zeros::<u32>(4).unwrap();
    let behind = context.alloc_blocking::<u32>(4).unwrap();
    let mut vector = vec![0_u32; 4];
    let start = vector.as_mut_ptr();
    // SAFETY: the elements are those of the vector, which nobody else uses.
    let registered =
        unsafe { context.register_raw(start, 4, NotYet(vector), cuda_handles::RegisterOptions::default()) };
    let registered = registered.unwrap().share();
    let owner = (NotYet(Vec::new()), behind.clone());
    // SAFETY: the memory is that of the buffer, which the owner keeps.
    let foreign =
        unsafe { cuda_handles::Buffer::<u32>::from_foreign(&context, behind.address(), 4, owner) }.unwrap();
    stream.copy(&source, &registered).unwrap();
    stream.copy(&source, &foreign).unwrap();
    *LEFT.lock().unwrap() = Some(Box::new((registered, foreign)));
}
