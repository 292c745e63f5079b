//! Panicking destructors of other code, outside of graphs: the panic is contained.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_handles::capture::CaptureMode;
use cuda_handles::internal::{HeldStream, drop_behind};
use cuda_handles::reaper::{self, DropCause, DropFailure};
use cuda_handles::{Buffer, Context, Error, Owner, RegisterOptions, Stream, UserObject};
use cuda_sys::{CUresult, CUstreamCaptureMode, Call};
use cuda_tests::states::Foreign;
use cuda_tests::{Gate, SOON, alone, fail, in_callback, no_leaks, settle, setup, until};

static DROPPED: AtomicUsize = AtomicUsize::new(0);
static TOLD: Mutex<Vec<DropFailure>> = Mutex::new(Vec::new());

/// Panics when it is dropped, with a value that panics when it is dropped.
struct Bomb(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
        match self.0 {
            0 => panic!("bomb"),
            rest => std::panic::panic_any(Self(rest - 1)),
        }
    }
}

fn hook(failure: &DropFailure) {
    TOLD.lock().unwrap().push(failure.clone());
}

/// How many the hook was told of, with what they say.
fn told() -> usize {
    let told = TOLD.lock().unwrap();
    for failure in told.iter() {
        assert!(matches!(&failure.cause, DropCause::Panicked(message) if &**message == "bomb"), "{failure}");
        assert!(failure.to_string().ends_with("panicked: bomb"), "{failure}");
    }
    told.len()
}

fn foreign(stream: &Stream) -> Buffer<u32> {
    let buffer = stream.zeros::<u32>(8).unwrap();
    stream.synchronize_blocking().unwrap();
    let owner = (Bomb(0), buffer.clone());
    // SAFETY: the owner keeps the memory, which nobody else uses.
    unsafe { Buffer::from_foreign(stream.context(), buffer.address(), 8, owner) }.unwrap()
}

/// Drops so many bombs.
type Case = fn(&Context, &Stream) -> usize;

/// A host function with a bomb in it.
fn host_function() -> impl Fn() + Send + Sync + 'static {
    let bomb = Bomb(0);
    move || {
        let _ = &bomb;
    }
}

const CASES: [(&str, Case); 16] = [
    ("an owner", |_, _| {
        drop(Owner::other(Bomb(0)));
        1
    }),
    ("owners in a list", |_, _| {
        drop(vec![Owner::other(Bomb(0)), Owner::other(1), Owner::other(Bomb(0))]);
        2
    }),
    ("owners in an owner", |_, _| {
        drop(Owner::other((Owner::other(Bomb(0)), Owner::other(Bomb(0)))));
        2
    }),
    ("memory that was not used", |_, stream| {
        drop((foreign(stream), foreign(stream)));
        2
    }),
    ("parts of memory", |_, stream| {
        let memory = foreign(stream);
        let part = memory.slice(2..4).unwrap().to_buffer();
        drop(memory);
        drop(part);
        1
    }),
    ("memory in use", |_, stream| {
        let memory = [(); 3].map(|()| foreign(stream));
        let gate = Gate::close(stream);
        memory.iter().for_each(|memory| stream.fill(memory, 1).unwrap());
        drop(memory);
        gate.open();
        stream.synchronize_blocking().unwrap();
        3
    }),
    ("a capture that is dropped", |_, stream| {
        let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
        (0..2).for_each(|_| capture.keep(Owner::other(Bomb(0))));
        drop(capture);
        2
    }),
    ("a capture that is ended", |_, stream| {
        let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
        (0..2).for_each(|_| stream.enqueue().unwrap().keep(Owner::other(Bomb(0))).unwrap());
        drop(capture.end().unwrap());
        2
    }),
    ("a capture that is dropped while its thread unwinds", |_, stream| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
            (0..2).for_each(|_| capture.keep(Owner::other(Bomb(0))));
            std::panic::panic_any(7);
        }));
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&7));
        2
    }),
    ("nothing that captures", |_, stream| {
        stream.enqueue().unwrap().keep(Owner::other(Bomb(0))).unwrap();
        1
    }),
    ("host functions that the driver refuses", |_, stream| {
        for number in 0..2 {
            let refusal = fail(Call::cuLaunchHostFunc, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            let refused = match number {
                0 => stream.host(host_function()),
                _ => stream.host_once(host_function()),
            };
            assert!(refused.is_err() && refusal.hit());
        }
        2
    }),
    ("host functions of a capture", |_, stream| {
        let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
        (0..2).for_each(|_| stream.host(host_function()).unwrap());
        drop(capture.end().unwrap());
        2
    }),
    ("owners of registered memory", |context, stream| {
        let memory = [(); 2].map(|()| {
            let mut elements = Box::new([0_u64; 32]);
            let start = elements.as_mut_ptr();
            let options = RegisterOptions::default();
            // SAFETY: the owner has these elements, and nobody else uses them.
            unsafe { context.register_raw(start, 32, (elements, Bomb(0)), options) }.unwrap().share()
        });
        memory.iter().for_each(|memory| stream.clear(memory).unwrap());
        drop(memory);
        stream.synchronize_blocking().unwrap();
        2
    }),
    ("a user object", |context, stream| {
        let objects = [(); 2].map(|()| UserObject::new(context, Box::new(Bomb(0))).unwrap());
        in_callback(stream, move || drop(objects));
        stream.synchronize_blocking().unwrap();
        2
    }),
    ("a user object that the driver did not make", |context, _| {
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let failure = fail(Call::cuUserObjectCreate, 1, code);
        let error = UserObject::new(context, Box::new(Bomb(0))).err();
        assert!(failure.hit());
        assert_eq!(error, Some(Error::Driver { call: Call::cuUserObjectCreate, code }));
        1
    }),
    ("a value behind the work of a stream", |context, stream| {
        let held = [HeldStream::of(stream)];
        drop_behind(context, Bomb(0), &held);
        let gate = Gate::close(stream);
        drop_behind(context, Bomb(0), &held);
        gate.open();
        2
    }),
];

#[test]
fn a_panic_in_a_destructor_ends_nothing_else() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    for (what, case) in CASES {
        println!("{what}");
        no_leaks(|| {
            let stream = context.stream().unwrap();
            let (dropped, before) = (DROPPED.load(Ordering::SeqCst), told());
            let bombs = case(&context, &stream);
            let all = || {
                settle();
                (DROPPED.load(Ordering::SeqCst) - dropped, told() - before) == (bombs, bombs)
            };
            assert!(until(SOON, all), "{what}: {} of {bombs}", DROPPED.load(Ordering::SeqCst) - dropped);
            // The stream and the reaper are as good as before.
            let buffer = stream.upload(&[3_u32; 8]).unwrap();
            let other = context.stream().unwrap();
            assert_eq!(buffer.read_blocking(&other).unwrap(), [3; 8]);
        });
    }
}

/// The drop of what a panic carries is contained as well.
#[test]
fn panics_that_carry_panics_are_told_once() {
    alone!();
    let _context = setup();
    reaper::set_hook(|failure| {
        hook(failure);
        std::panic::panic_any(Bomb(1));
    });
    drop(Owner::other(Bomb(2)));
    // Three of the value, and two of the hook's own.
    assert_eq!(DROPPED.load(Ordering::SeqCst), 5);
    let told = TOLD.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert!(told[0].to_string().ends_with("panicked: with a value that is not text"), "{}", told[0]);
}

/// A capture of other code keeps owners by user objects.
#[test]
fn what_a_capture_of_other_code_keeps_panics_for_itself() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    no_leaks(|| {
        let foreign = Foreign::new(&context);
        // SAFETY: the stream lives longer than its handles.
        let stream = unsafe { Stream::from_raw(&context, foreign.as_raw()) }.unwrap();
        foreign.begin(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        (0..2).for_each(|_| stream.enqueue().unwrap().keep(Owner::other(Bomb(0))).unwrap());
        assert_eq!(DROPPED.load(Ordering::SeqCst), 0);
        // An otherwise empty capture is fine.
        let _ = foreign.end();
        assert!(until(SOON, || {
            settle();
            (DROPPED.load(Ordering::SeqCst), told()) == (2, 2)
        }));
    });
}
