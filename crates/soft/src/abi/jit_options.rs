//! JIT options. This driver only uses the log buffers.

use core::ffi::{c_char, c_uint, c_void};

use cuda_sys::CUjit_option;

use crate::driver::pointer::required;
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// A log buffer.
#[derive(Debug, Default)]
pub(crate) struct Log {
    buffer: *mut c_char,
    room: usize,
    size_out: *mut *mut c_void,
}

/// The logs of a load.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) error: Log,
    pub(crate) info: Log,
}

// SAFETY: the pointers are only followed by calls whose caller promises that the buffers are there.
unsafe impl Send for Logs {}

impl Logs {
    /// # Safety
    /// Both arrays are valid for `count` elements, the buffers for the sizes given, until the load
    /// ends.
    pub(crate) unsafe fn read(
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        count: c_uint,
    ) -> Answer<Self> {
        let mut logs = Self::default();
        /// Longer lists are refused.
        const MOST: c_uint = 1024;
        if count > MOST {
            return Err(INVALID_VALUE);
        }
        if count > 0 {
            required(options)?;
            required(values)?;
        }
        for index in 0..count as usize {
            // SAFETY: the caller's promise.
            let (option, place) = unsafe { (options.add(index).read_unaligned(), values.add(index)) };
            // SAFETY: as above.
            let value = unsafe { place.read_unaligned() };
            match option {
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER => logs.error.buffer = value.cast(),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER => logs.info.buffer = value.cast(),
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    // The value is a 32-bit number in place of a pointer. The size of the log is
                    // written there, too.
                    (logs.error.room, logs.error.size_out) = (value.addr() & 0xffff_ffff, place);
                }
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => {
                    (logs.info.room, logs.info.size_out) = (value.addr() & 0xffff_ffff, place);
                }
                CUjit_option(0..=35) => {}
                _ => return Err(INVALID_VALUE),
            }
        }
        Ok(logs)
    }

    /// The logs without the places of their sizes, for calls that come after the one that gave
    /// them. Programs such as cuda.core keep the buffers until then, but not the array of values.
    pub(crate) fn without_sizes(mut self) -> Self {
        (self.error.size_out, self.info.size_out) = (core::ptr::null_mut(), core::ptr::null_mut());
        self
    }
}

impl Log {
    /// # Safety
    /// As promised when the logs were read.
    pub(crate) unsafe fn write(&self, text: &str) {
        let mut written = 0;
        if !self.buffer.is_null() && self.room > 0 {
            let len = text.len().min(self.room - 1);
            // The reported length includes the terminator.
            written = if len == 0 { 0 } else { len + 1 };
            // SAFETY: `len` bytes and the end fit into the room.
            unsafe {
                self.buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
                self.buffer.add(len).write(0);
            }
        }
        if !self.size_out.is_null() {
            // SAFETY: the place of the option's value.
            unsafe { self.size_out.write_unaligned(core::ptr::without_provenance_mut(written)) };
        }
    }
}
