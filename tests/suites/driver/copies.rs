//! Copies of rows from and to pageable memory. Seen on an H200, driver 580.159.04.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_sys::*;

use crate::calls;
use crate::common::{OK, Session, session};

const ROWS: usize = 3;
const WIDTH: usize = 100;

/// Pages of which every second one may not be touched. Each of the others begins with a row.
struct Rows {
    start: *mut u8,
    page: usize,
}

impl Rows {
    const PAGES: usize = 2 * ROWS - 1;

    /// All bytes that may be touched are `byte`.
    fn new(byte: u8) -> Self {
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let start = unsafe { libc::mmap(null_mut(), Self::PAGES * page, protection, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        unsafe { start.cast::<u8>().write_bytes(byte, Self::PAGES * page) };
        for row in 1..ROWS {
            let gap = start.wrapping_byte_add((2 * row - 1) * page);
            assert_eq!(unsafe { libc::mprotect(gap, page, libc::PROT_NONE) }, 0);
        }
        Self { start: start.cast(), page }
    }

    /// The distance between rows.
    fn pitch(&self) -> usize {
        2 * self.page
    }

    /// A row and the byte behind it.
    fn row(&self, row: usize) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.start.wrapping_add(row * self.pitch()), WIDTH + 1) }
    }

    /// A copy of the rows to `device`, one behind the other.
    fn upload(&self, device: CUdeviceptr) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: self.start.cast(),
            srcPitch: self.pitch(),
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: device,
            dstPitch: WIDTH,
            WidthInBytes: WIDTH,
            Height: ROWS,
            ..Default::default()
        }
    }

    fn download(&self, device: CUdeviceptr) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: device,
            srcPitch: WIDTH,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: self.start.cast(),
            dstPitch: self.pitch(),
            WidthInBytes: WIDTH,
            Height: ROWS,
            ..Default::default()
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.start.cast(), Self::PAGES * self.page) };
    }
}

/// Copies by a call, by a call on a stream, and by a graph that was captured.
fn each_way(s: &Session, copy: &CUDA_MEMCPY2D, then: impl Fn(&str)) {
    unsafe {
        assert_eq!(s.cuMemcpy2D(copy), OK);
        then("a call");
        assert_eq!(s.cuMemcpy2DAsync(copy, s.stream), OK);
        s.wait();
        then("on a stream");
        let (mut graph, relaxed) = (null_mut(), CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        assert_eq!(s.cuStreamBeginCapture(s.stream, relaxed), OK);
        assert_eq!(s.cuMemcpy2DAsync(copy, s.stream), OK);
        assert_eq!(s.cuStreamEndCapture(s.stream, &mut graph), OK);
        let exec = calls::instantiate(s, graph);
        calls::run(s, exec, s.stream);
        then("in a graph");
        s.end(exec);
        s.destroy(&[graph]);
    }
}

/// Fills device memory and waits for the fill, which streams that do not wait for the legacy stream
/// would overtake.
fn fill(s: &Session, device: CUdeviceptr, byte: u8, len: usize) {
    unsafe {
        assert_eq!(s.cuMemsetD8(device, byte, len), OK);
        assert_eq!(s.cuCtxSynchronize(), OK);
    }
}

#[test]
fn rows_of_the_host_are_read_without_the_gaps() {
    let s = session();
    let (rows, device) = (Rows::new(3), s.words(100));
    each_way(&s, &rows.upload(device), |how| {
        let mut bytes = [0u8; ROWS * WIDTH + 1];
        let out: *mut c_void = bytes.as_mut_ptr().cast();
        assert_eq!(unsafe { s.cuMemcpyDtoH(out, device, bytes.len()) }, OK);
        fill(&s, device, 0, bytes.len());
        assert!(bytes[..ROWS * WIDTH].iter().all(|byte| *byte == 3), "{how}: {bytes:?}");
        assert_eq!(bytes[ROWS * WIDTH], 0, "{how}");
    });
    s.free(device);
}

#[test]
fn rows_of_the_host_are_written_without_the_gaps() {
    let s = session();
    let (rows, device) = (Rows::new(3), s.words(100));
    let byte = std::cell::Cell::new(4);
    fill(&s, device, byte.get(), ROWS * WIDTH);
    each_way(&s, &rows.download(device), |how| {
        for row in 0..ROWS {
            let (row, behind) = rows.row(row).split_at(WIDTH);
            assert!(row.iter().all(|found| *found == byte.get()), "{how}: {row:?}");
            assert_eq!(behind, [3], "{how}");
        }
        byte.set(byte.get() + 1);
        fill(&s, device, byte.get(), ROWS * WIDTH);
    });
    s.free(device);
}
