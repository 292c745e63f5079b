//! Error messages: lists are short, text of others is harmless to a terminal, and the advice works.

use core::fmt;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Error, Image, Library, reaper};
use cuda_sys::{CUresult, CUstreamCaptureMode};
use cuda_tests::{Need, fail, no_leaks, raw, setup};

fn text<T: fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().to_string()
}

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// An image with so many kernels that do nothing.
fn many(count: usize) -> String {
    let kernels = (0..count).map(|number| format!(".visible .entry kernel_{number}() {{ ret; }}\n"));
    HEAD.chars().chain(kernels.collect::<String>().chars()).collect()
}

#[test]
fn of_many_kernels_the_nearest_are_named() {
    let context = setup();
    no_leaks(|| {
        let image = many(2000);
        let library = Library::load(&context, Image::Ptx(&image)).unwrap();
        let error = text(library.kernel("kernel_177O"));
        assert!(error.starts_with("the library has no kernel `kernel_177O`"), "{error}");
        if Need::KernelNames.is_met() {
            assert!(error.contains("; it has 2000, of which the nearest are `kernel_177"), "{error}");
            assert_eq!(error.matches('`').count(), 2 + 2 * 12, "{error}");
            assert!(error.contains("`kernel_1770`") && error.len() < 400, "{error}");
        }
        assert!(text(library.kernel(&"x".repeat(10_000))).len() < 11_000);
        drop(library);
        reaper::drain();
    });
}

#[test]
fn names_of_others_do_nothing_to_a_terminal() {
    let context = setup();
    no_leaks(|| {
        let image = many(1);
        let library = Library::load(&context, Image::Ptx(&image)).unwrap();
        let error = text(library.kernel("a\0b\n\u{1b}[31m\u{202e}"));
        assert!(error.contains(r"`a\u{0}b\n\u{1b}[31m\u{202e}`"), "{error}");
        assert!(!error.chars().any(char::is_control), "{error:?}");
        drop(library);
        // A log keeps its lines, whatever the text that it tells of.
        let broken = format!("{HEAD}.visible .entry k() {{ \u{1b}[31m\u{7}; }}");
        let error =
            text(Library::load(&context, Image::Ptx(&broken)).and_then(|library| library.kernel("k")));
        assert!(!error.chars().any(|one| one.is_control() && one != '\n' && one != '\t'), "{error:?}");
        reaper::drain();
    });
}

#[test]
fn a_first_use_that_other_code_captures_names_what_settles_it() {
    let context = setup();
    no_leaks(|| {
        let (home, user) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(8).unwrap();
        let theirs = user.lend();
        let begin = || {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            // SAFETY: the stream lives.
            raw::ok(unsafe { raw::driver().cuStreamBeginCapture(theirs, mode) });
        };
        let end = || {
            let mut graph = core::ptr::null_mut();
            // SAFETY: the stream lives, the out pointer is valid, and the graph is ours.
            unsafe {
                raw::ok(raw::driver().cuStreamEndCapture(theirs, &raw mut graph));
                raw::ok(raw::driver().cuGraphDestroy(graph));
            }
        };
        begin();
        let error = user.fill(&buffer, 1).unwrap_err();
        assert_eq!(error, Error::CapturedFirstUse);
        let error = error.to_string();
        assert!(
            error.contains("`Stream::synchronize_blocking`") && error.contains("`Stream::wait_for`"),
            "{error}"
        );
        // In the capture: the host waits for the home.
        home.synchronize_blocking().unwrap();
        user.fill(&buffer, 1).unwrap();
        end();
        // Before the capture: the stream waits for it, or uses the memory.
        for waits in [true, false] {
            let buffer = home.zeros::<u32>(8).unwrap();
            match waits {
                true => user.wait_for(&home).unwrap(),
                false => user.fill(&buffer, 2).unwrap(),
            }
            begin();
            user.fill(&buffer, 1).unwrap();
            end();
        }
    });
}

/// The memory's home captures, and the stream that is to use the memory does not.
#[test]
fn a_first_use_beside_a_capturing_home_names_the_home_and_what_settles_it() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let used = home.zeros::<u32>(8).unwrap();
        other.fill(&used, 1).unwrap();
        let buffer = home.zeros::<u32>(8).unwrap();
        let capture = home.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let error = other.fill(&buffer, 1).unwrap_err();
        assert_eq!(error, Error::CapturingHome { home: home.id() });
        let error = error.to_string();
        let number = format!("the stream number {} ", home.id());
        assert!(error.contains(&number) && error.contains("`other.wait_for(&home)`"), "{error}");
        // It was used before the capture.
        other.fill(&used, 2).unwrap();
        // The other stream joins the capture.
        other.wait_for(&home).unwrap();
        other.fill(&buffer, 1).unwrap();
        home.wait_for(&other).unwrap();
        drop(capture.end().unwrap());
        other.fill(&buffer, 1).unwrap();
    });
}

/// Where the driver says no to a time and nobody here knows why, its code is told with what it
/// means.
#[test]
fn codes_of_elapsed_time_are_explained() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (start, end) = (context.event().unwrap(), context.event().unwrap());
        for event in [&start, &end] {
            stream.record(event).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        for (code, meaning) in [
            (CUresult::CUDA_ERROR_INVALID_HANDLE, "never recorded, or was created without timing"),
            (CUresult::CUDA_ERROR_INVALID_VALUE, "last recorded in a capture"),
        ] {
            let injected = fail(cuda_sys::Call::cuEventElapsedTime, 1, code);
            let error = text(end.elapsed_since(&start));
            assert!(injected.hit() && error.contains(meaning), "{error}");
        }
    });
}
