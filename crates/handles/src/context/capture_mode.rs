//! The calling thread's capture mode, exchanged around calls that the driver forbids near a
//! capture.
//!
//! A capture in GLOBAL mode on any thread, or in THREAD_LOCAL mode on this one, is invalidated by
//! some unrelated calls: allocations and frees on other streams, queries and waits, instantiation
//! and destruction of executables, unloading. The driver allows them on a thread whose own mode is
//! RELAXED. Only this guard changes the mode.

use core::marker::PhantomData;

use cuda_sys::{CUstreamCaptureMode, Driver};

/// The calling thread is in RELAXED mode until this is dropped.
#[derive(Debug)]
#[must_use = "the mode is put back when the guard is dropped"]
pub struct Relaxed {
    driver: &'static Driver,
    before: Option<CUstreamCaptureMode>,
    /// The mode belongs to the thread, and so does the guard.
    _thread: PhantomData<*mut ()>,
}

/// Puts the calling thread into RELAXED mode, also inside a host function. If the driver refuses,
/// nothing changes, and the following calls give their own answers.
///
/// Calls `cuThreadExchangeStreamCaptureMode` (CUDA 10.1).
#[doc(alias = "cuThreadExchangeStreamCaptureMode")]
#[doc(alias = "cudaThreadExchangeStreamCaptureMode")]
#[inline]
pub fn relaxed(driver: &'static Driver) -> Relaxed {
    let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    Relaxed { driver, before, _thread: PhantomData }
}

impl Drop for Relaxed {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            exchange(self.driver, before);
        }
    }
}

fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Option<CUstreamCaptureMode> {
    // SAFETY: the pointer is valid; the driver reads the new mode from it and writes the old one.
    let code = unsafe { driver.cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    code.is_success().then_some(mode)
}
