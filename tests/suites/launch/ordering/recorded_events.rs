//! Events recorded by launches, while other threads record them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use core::ffi::c_void;
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Error, EventOptions};
use cuda_launch::{Launch, params, per};
use cuda_sys::{CUfunction, CUlaunchConfig, CUresult};
use cuda_tests::{SOON, alone, chosen, install, kernel, needs, setup, until};

type Entry =
    unsafe extern "C" fn(*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void) -> CUresult;

static ENTRY: OnceLock<Entry> = OnceLock::new();
static BEHIND: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

unsafe extern "C" fn launch(
    config: *const CUlaunchConfig,
    function: CUfunction,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let entry = ENTRY.get().unwrap();
    // SAFETY: the caller's promise.
    let code = unsafe { entry(config, function, params, extra) };
    let behind = BEHIND.lock().unwrap().take();
    behind.into_iter().for_each(|behind| behind());
    code
}

#[test]
fn nobody_records_an_event_between_a_launch_and_the_note_of_it() {
    alone!();
    // SAFETY: the wrapper keeps to the interface of its call.
    let loader = unsafe {
        chosen().wrap(|table| {
            let _ = ENTRY.set(table.cuLaunchKernelEx);
            table.cuLaunchKernelEx = launch;
        })
    };
    install(loader);
    let context = setup();
    needs!(CompletionEvents, LaunchAttributes);
    let increment = kernel(&context, "increment");
    let [one, two, three] = [(); 3].map(|()| context.stream().unwrap());
    let event = context.event_with(EventOptions { timing: false, ..EventOptions::default() }).unwrap();
    let buffer = one.zeros::<u32>(8).unwrap();
    one.synchronize_blocking().unwrap();
    let capture = two.begin_capture(CaptureMode::Relaxed).unwrap();
    let recorded = std::sync::Arc::new(AtomicBool::new(false));
    let (sender, thread) = channel();
    let (records, noted, with) = (two.clone(), std::sync::Arc::clone(&recorded), event.clone());
    let behind = move || {
        let seen = std::sync::Arc::clone(&noted);
        let records = move || {
            records.record(&with).unwrap();
            seen.store(true, Ordering::SeqCst);
        };
        sender.send(std::thread::spawn(records)).unwrap();
        // As long as it would take.
        assert!(!until(Duration::from_millis(50), || noted.load(Ordering::SeqCst)));
    };
    *BEHIND.lock().unwrap() = Some(Box::new(behind));
    // SAFETY: the kernel increments that many elements.
    unsafe { increment.launch(&one, per(8, 8).completion_event(&event), params![&buffer, 8_u32]) }.unwrap();
    thread.recv_timeout(SOON).unwrap().join().unwrap();
    assert_eq!(event.query(), Err(Error::CapturedEvent), "the record came last");
    three.wait(&event).unwrap();
    assert_eq!((three.capture_id(), capture.streams()), (Some(capture.id()), 2));
    two.wait_for(&three).unwrap();
    capture.end().unwrap();
}
