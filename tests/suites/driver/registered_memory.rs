//! Registered memory and host functions. Seen on an H100, driver 580.159.04.

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_sys::{CUresult, CUstreamCaptureMode, CUstreamCaptureStatus};
use cuda_tests::{SOON, until};

use crate::common::{IV, OK, Session, session};

const ALREADY: CUresult = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
const NOT: CUresult = CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
const PLAIN: u32 = cuda_sys::CU_MEMHOSTREGISTER_PORTABLE | cuda_sys::CU_MEMHOSTREGISTER_DEVICEMAP;
const PAGE: usize = 4096;

/// Pages of the host's own.
struct Pages(Vec<u8>, *mut u8);

impl Pages {
    fn new() -> Self {
        let mut memory = vec![0_u8; 17 * PAGE];
        let start = memory.as_mut_ptr();
        let start = start.wrapping_add(start.align_offset(PAGE));
        Self(memory, start)
    }

    fn at(&self, offset: usize) -> *mut c_void {
        assert!(offset <= 16 * PAGE && !self.0.is_empty());
        self.1.wrapping_add(offset).cast()
    }
}

/// The address of a page that was mapped and is no more.
fn unmapped() -> *mut c_void {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    unsafe {
        let page = libc::mmap(null_mut(), PAGE, libc::PROT_NONE, kind, -1, 0);
        assert_eq!(libc::munmap(page, PAGE), 0);
        page
    }
}

impl Session {
    fn register(&self, start: *mut c_void, len: usize) -> CUresult {
        unsafe { self.cuMemHostRegister(start, len, PLAIN) }
    }

    fn unregister(&self, start: *mut c_void) -> CUresult {
        unsafe { self.cuMemHostUnregister(start) }
    }
}

#[test]
fn a_range_is_registered_once_and_ranges_of_one_page_are_apart() {
    let (s, pages) = (session(), Pages::new());
    assert_eq!(s.register(pages.at(0), 4 * PAGE), OK);
    for (start, len) in [(0, 4 * PAGE), (PAGE, PAGE), (3 * PAGE, 2 * PAGE)] {
        assert_eq!(s.register(pages.at(start), len), ALREADY);
    }
    assert_eq!(s.unregister(pages.at(PAGE)), IV, "inside");
    assert_eq!(unsafe { s.cuMemFreeHost(pages.at(0)) }, IV);
    assert_eq!((s.unregister(pages.at(0)), s.unregister(pages.at(0))), (OK, NOT));
    let parts = [(4, 100), (200, 100), (104, 50)];
    assert_eq!(parts.map(|(start, len)| s.register(pages.at(start), len)), [OK; 3]);
    assert_eq!(parts.map(|(start, _)| s.unregister(pages.at(start))), [OK; 3]);
}

#[test]
fn what_cannot_be_registered_is_told_apart() {
    let (s, pages) = (session(), Pages::new());
    assert_eq!(
        (s.register(null_mut(), PAGE), s.register(pages.at(0), 0), s.register(null_mut(), 0)),
        (IV, IV, IV)
    );
    assert_eq!((s.unregister(null_mut()), s.unregister(pages.at(0))), (IV, NOT));
    for flags in [0, 1, 2, 3, 8, 11] {
        assert_eq!(unsafe { s.cuMemHostRegister(pages.at(0), PAGE, flags) }, OK, "{flags}");
        assert_eq!(s.unregister(pages.at(0)), OK);
    }
    for flags in [4, 15, 16, 32] {
        assert_eq!(unsafe { s.cuMemHostRegister(pages.at(0), PAGE, flags) }, IV, "{flags}");
    }
    // Other memory of the driver.
    let (mut pinned, mut plain, mut managed) = (null_mut(), 0, 0);
    unsafe {
        assert_eq!(s.cuMemHostAlloc(&mut pinned, 2 * PAGE, PLAIN), OK);
        assert_eq!(s.cuMemAlloc(&mut plain, 2 * PAGE), OK);
        assert_eq!(s.cuMemAllocManaged(&mut managed, 2 * PAGE, 1), OK);
    }
    assert_eq!((s.register(pinned, PAGE), s.unregister(pinned)), (IV, IV));
    for address in [plain, managed] {
        assert_eq!(s.register(with_exposed_provenance_mut(address as usize), PAGE), IV);
    }
    unsafe {
        assert_eq!(s.cuMemFreeHost(pinned), OK);
        assert_eq!((s.cuMemFree(plain), s.cuMemFree(managed)), (OK, OK));
    }
    // Invalid ranges.
    assert_eq!(s.register(pages.at(0), usize::MAX - PAGE + 1), IV);
    assert_eq!(s.register(unmapped(), PAGE), IV);
    assert_eq!(s.register(pages.at(0), 1 << 40), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
}

#[test]
fn registering_takes_a_context_and_unregistering_none() {
    let (s, pages) = (session(), Pages::new());
    unsafe {
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
        assert_eq!(s.register(pages.at(0), PAGE), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
        assert_eq!(s.register(pages.at(0), PAGE), OK);
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
        assert_eq!(s.unregister(pages.at(0)), OK);
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
    }
}

#[test]
fn captures_forbid_both_but_relaxed_ones() {
    use CUstreamCaptureMode as Mode;
    let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    let (active, invalid) = (
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
    );
    let s = session();
    for (mode, answer, then) in [
        (Mode::CU_STREAM_CAPTURE_MODE_GLOBAL, unsupported, invalid),
        (Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, unsupported, invalid),
        (Mode::CU_STREAM_CAPTURE_MODE_RELAXED, OK, active),
    ] {
        for unregisters in [false, true] {
            let pages = Pages::new();
            if unregisters {
                assert_eq!(s.register(pages.at(0), PAGE), OK);
            }
            let mut status = active;
            let mut graph = null_mut();
            unsafe {
                assert_eq!(s.cuStreamBeginCapture(s.stream, mode), OK);
                let answered =
                    if unregisters { s.unregister(pages.at(0)) } else { s.register(pages.at(0), PAGE) };
                assert_eq!(s.cuStreamIsCapturing(s.stream, &mut status), OK);
                assert_eq!((answered, status), (answer, then), "{mode:?}, unregisters: {unregisters}");
                s.cuStreamEndCapture(s.stream, &mut graph);
                if !graph.is_null() {
                    assert_eq!(s.cuGraphDestroy(graph), OK);
                }
            }
            if unregisters == (answer != OK) {
                assert_eq!(s.unregister(pages.at(0)), OK);
            }
        }
    }
}

#[test]
fn work_does_not_write_memory_registered_for_reading() {
    let (s, pages) = (session(), Pages::new());
    let mut plain = 0;
    unsafe {
        assert_eq!(s.cuMemAlloc(&mut plain, PAGE), OK);
        let read_only = cuda_sys::CU_MEMHOSTREGISTER_READ_ONLY;
        if s.cuMemHostRegister(pages.at(0), PAGE, PLAIN | read_only) != OK {
            assert_eq!(s.cuMemFree(plain), OK);
            cuda_tests::skip!("the device has no such memory");
        }
        assert_eq!(s.cuMemcpyHtoDAsync(plain, pages.at(0), PAGE, s.stream), OK);
        assert_eq!(s.cuMemcpyDtoHAsync(pages.at(0), plain, PAGE, s.stream), IV);
        assert_eq!(s.cuMemsetD8Async(pages.at(0).expose_provenance() as u64, 1, 64, s.stream), IV);
        assert_eq!(s.cuStreamSynchronize(s.stream), OK);
        assert_eq!((s.unregister(pages.at(0)), s.cuMemFree(plain)), (OK, OK));
    }
}

#[test]
fn a_batch_does_the_copies_before_one_to_memory_registered_for_reading() {
    let (s, pages) = (session(), Pages::new());
    if !s.has(13, 0) {
        cuda_tests::skip!("its layout came with 13.0");
    }
    let words = s.words(2);
    s.write(words, 7);
    let mut attributes = cuda_sys::CUmemcpyAttributes {
        srcAccessOrder: cuda_sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        ..Default::default()
    };
    let mut dsts = [words + 4, pages.at(0).expose_provenance() as u64];
    let (mut srcs, mut sizes, mut first) = ([words; 2], [4; 2], 0);
    unsafe {
        if s.cuMemHostRegister(pages.at(0), PAGE, PLAIN | cuda_sys::CU_MEMHOSTREGISTER_READ_ONLY) != OK {
            s.free(words);
            cuda_tests::skip!("the device has no such memory");
        }
        let (dsts, srcs, sizes) = (dsts.as_mut_ptr(), srcs.as_mut_ptr(), sizes.as_mut_ptr());
        let batch =
            s.cuMemcpyBatchAsync_v13000(dsts, srcs, sizes, 2, &mut attributes, &mut first, 1, s.stream);
        assert_eq!(batch.unwrap(), IV);
        assert_eq!(s.cuStreamSynchronize(s.stream), OK);
        assert_eq!(s.read(words + 4), 7);
        assert_eq!(s.unregister(pages.at(0)), OK);
    }
    s.free(words);
}

unsafe extern "C" fn hold(open: *mut c_void) {
    let open = unsafe { &*open.cast::<AtomicBool>() };
    let _ = until(SOON, || open.load(Ordering::SeqCst));
}

#[test]
fn unregistering_waits_for_all_work() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let (s, pages) = (session(), Pages::new());
    assert_eq!(s.register(pages.at(0), PAGE), OK);
    assert_eq!(unsafe { s.cuLaunchHostFunc(s.stream, Some(hold), (&raw const OPEN).cast_mut().cast()) }, OK);
    let (back, start) = (AtomicBool::new(false), pages.at(0).expose_provenance());
    let context = s.context.expose_provenance();
    let driver = cuda_tests::raw::driver();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (start, context) = (with_exposed_provenance_mut(start), with_exposed_provenance_mut(context));
            assert_eq!(unsafe { driver.cuCtxSetCurrent(context) }, OK);
            assert_eq!(unsafe { driver.cuMemHostUnregister(start) }, OK);
            back.store(true, Ordering::SeqCst);
        });
        assert!(!until(SOON / 100, || back.load(Ordering::SeqCst)), "it waits");
        OPEN.store(true, Ordering::SeqCst);
        assert!(until(SOON, || back.load(Ordering::SeqCst)), "until the work is done");
    });
}

static ANSWERS: [AtomicU32; 4] = [const { AtomicU32::new(u32::MAX) }; 4];

unsafe extern "C" fn nothing(_: *mut c_void) {}

struct Inside {
    stream: usize,
    other: usize,
    free: usize,
    registered: usize,
}

unsafe extern "C" fn try_all(inside: *mut c_void) {
    let inside = unsafe { &*inside.cast::<Inside>() };
    let driver = cuda_tests::raw::driver();
    let pointer = with_exposed_provenance_mut::<c_void>;
    let answers = unsafe {
        [
            driver.cuLaunchHostFunc(pointer(inside.stream).cast(), Some(nothing), null_mut()),
            driver.cuLaunchHostFunc(pointer(inside.other).cast(), Some(nothing), null_mut()),
            driver.cuMemHostRegister(pointer(inside.free), PAGE, PLAIN),
            driver.cuMemHostUnregister(pointer(inside.registered)),
        ]
    };
    for (at, answer) in ANSWERS.iter().zip(answers) {
        at.store(answer.0, Ordering::SeqCst);
    }
}

#[test]
fn inside_a_host_function_another_one_is_enqueued_and_nothing_registered() {
    let (s, pages) = (session(), Pages::new());
    let mut other = null_mut();
    unsafe { assert_eq!(s.cuStreamCreate(&mut other, 1), OK) };
    assert_eq!(s.register(pages.at(4 * PAGE), PAGE), OK);
    let inside = Inside {
        stream: s.stream.expose_provenance(),
        other: other.expose_provenance(),
        free: pages.at(0).expose_provenance(),
        registered: pages.at(4 * PAGE).expose_provenance(),
    };
    unsafe {
        assert_eq!(s.cuLaunchHostFunc(s.stream, Some(try_all), (&raw const inside).cast_mut().cast()), OK);
        assert_eq!((s.cuStreamSynchronize(s.stream), s.cuStreamSynchronize(other)), (OK, OK));
    }
    let refused = CUresult::CUDA_ERROR_NOT_PERMITTED.0;
    assert_eq!(ANSWERS.each_ref().map(|answer| answer.load(Ordering::SeqCst)), [0, 0, refused, refused]);
    assert_eq!(s.unregister(pages.at(4 * PAGE)), OK);
    unsafe {
        assert_eq!(s.cuLaunchHostFunc(s.stream, None, null_mut()), IV);
        assert_eq!(s.cuStreamDestroy(other), OK);
    }
}
