//! Handles and files that other processes manipulate: none ends this process, and no nonsense is
//! imported.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;

use crate::common::*;
use cuda_soft::control::ExternalSemaphore;
use cuda_sys::*;

const FD: CUmemAllocationHandleType = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

fn shared_pool(driver: &Driver) -> CUmemoryPool {
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: FD,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut pool = null_mut();
    assert_eq!(unsafe { driver.cuMemPoolCreate(&mut pool, &props) }, OK);
    pool
}

fn export(driver: &Driver, pool: CUmemoryPool) -> File {
    let mut descriptor: c_int = -1;
    unsafe {
        assert_eq!(driver.cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), pool, FD, 0), OK);
        File::from_raw_fd(descriptor)
    }
}

fn import_pool(driver: &Driver, descriptor: c_int) -> (CUresult, CUmemoryPool) {
    let handle: *mut c_void = std::ptr::without_provenance_mut(descriptor as usize);
    let mut pool = null_mut();
    let answer = unsafe { driver.cuMemPoolImportFromShareableHandle(&mut pool, handle, FD, 0) };
    (answer, pool)
}

fn import_semaphore(driver: &Driver, descriptor: c_int) -> CUresult {
    let desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
        type_: CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
        handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 { fd: descriptor },
        ..Default::default()
    };
    unsafe { driver.cuImportExternalSemaphore(&mut null_mut(), &desc) }
}

/// A file in memory with these bytes and seals.
fn memory_file(bytes: &[u8], seals: c_int) -> File {
    unsafe {
        let raw = libc::memfd_create(c"cuda-soft".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        assert!(raw >= 0);
        let mut file = File::from_raw_fd(raw);
        file.write_all(bytes).unwrap();
        assert_eq!(libc::fcntl(raw, libc::F_ADD_SEALS, seals), 0);
        file
    }
}

fn first_page(file: &File) -> Vec<u8> {
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    page
}

#[test]
fn descriptors_of_other_things_are_refused() {
    leaves_nothing("foreign_handles::descriptors_of_other_things_are_refused", || {
        let driver = &session();
        let pool = shared_pool(driver);
        let (exported, semaphore) = (export(driver, pool), ExternalSemaphore::new().unwrap());
        let semaphore = File::from(semaphore.descriptor().unwrap());
        let (reader, writer) = std::io::pipe().unwrap();
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        let (of_pool, of_semaphore) = (first_page(&exported), first_page(&semaphore));
        let changed = |at: usize| {
            let mut page = of_pool.clone();
            page[at] ^= 1;
            memory_file(&page, seals)
        };
        let others: Vec<(&str, OwnedFd)> = vec![
            ("a pipe to read", reader.into()),
            ("a pipe to write", writer.into()),
            ("nothing", File::open("/dev/null").unwrap().into()),
            ("zeros", File::open("/dev/zero").unwrap().into()),
            ("a folder", File::open("/").unwrap().into()),
            ("a program", File::open(std::env::current_exe().unwrap()).unwrap().into()),
            ("no bytes", memory_file(&[], seals).into()),
            ("a file that can get shorter", memory_file(&of_pool, 0).into()),
            ("another that can", memory_file(&of_semaphore, libc::F_SEAL_GROW).into()),
            ("one that cannot be written", memory_file(&of_pool, seals | libc::F_SEAL_WRITE).into()),
            ("half a page", memory_file(&of_pool[..2048], seals).into()),
            ("another mark", changed(0).into()),
            ("another purpose", changed(20).into()),
            ("another layout", changed(22).into()),
        ];
        for (what, file) in &others {
            assert_ne!(import_pool(driver, file.as_raw_fd()).0, OK, "{what}");
            assert_ne!(import_semaphore(driver, file.as_raw_fd()), OK, "{what}");
        }
        // Each has the other's purpose.
        assert_ne!(import_pool(driver, semaphore.as_raw_fd()).0, OK);
        assert_ne!(import_semaphore(driver, exported.as_raw_fd()), OK);
        for descriptor in [-1, -2, c_int::MIN, c_int::MAX, 1 << 20] {
            assert_ne!(import_pool(driver, descriptor).0, OK);
            assert_ne!(import_semaphore(driver, descriptor), OK);
        }
        assert_eq!(unsafe { driver.cuMemPoolDestroy(pool) }, OK);
    });
}

#[test]
fn nobody_makes_a_shared_file_shorter() {
    leaves_nothing("foreign_handles::nobody_makes_a_shared_file_shorter", || {
        let driver = &session();
        let (pool, stream) = (shared_pool(driver), stream(driver));
        let file = export(driver, pool);
        let mut address = 0;
        unsafe {
            assert_eq!(driver.cuMemAllocFromPoolAsync(&mut address, 1 << 16, pool, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            let len = file.metadata().unwrap().len();
            assert!(file.set_len(0).is_err() && file.set_len(len - 1).is_err());
            assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW), -1);
            // What it may do: write anywhere, make holes, and make the file longer.
            for at in (0..len).step_by(8) {
                file.write_all_at(&[0xff; 8], at).unwrap();
            }
            assert_eq!(read(driver, address, 4), [u32::MAX; 4]);
            let holes = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            assert_eq!(libc::fallocate(file.as_raw_fd(), holes, 0, len as libc::off_t), 0);
            assert_eq!(read(driver, address, 4), [0; 4]);
            file.set_len(len + (1 << 20)).unwrap();
            let mut more = 0;
            assert_eq!(driver.cuMemAllocFromPoolAsync(&mut more, 1 << 16, pool, stream), OK);
            assert_eq!(driver.cuMemsetD32Async(more, 7, 1 << 14, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(read(driver, more, 2), [7; 2]);
            // The header is gone, so nobody imports it any more.
            assert_eq!(import_pool(driver, file.as_raw_fd()).0, IV);
            for address in [address, more] {
                assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
            }
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn pointers_that_mean_nothing_are_refused() {
    leaves_nothing("foreign_handles::pointers_that_mean_nothing_are_refused", || {
        let driver = &session();
        let (pool, stream) = (shared_pool(driver), stream(driver));
        let (answer, imported) = import_pool(driver, export(driver, pool).as_raw_fd());
        assert_eq!(answer, OK);
        let (mut address, mut data) = (0, CUmemPoolPtrExportData::default());
        let import = |data: &mut CUmemPoolPtrExportData| {
            let mut address = 77;
            let answer = unsafe { driver.cuMemPoolImportPointer(&mut address, imported, data) };
            assert!(answer == OK || address == 77);
            (answer, address)
        };
        unsafe {
            assert_eq!(driver.cuMemAllocFromPoolAsync(&mut address, 1 << 16, pool, stream), OK);
            assert_eq!(driver.cuMemPoolExportPointer(&mut data, address), OK);
            // The identity of the file, then the offset and the size.
            const OFFSET: usize = 24;
            const SIZE: usize = 32;
            for at in 0..23 {
                let mut other = data;
                other.reserved[at] ^= 0x40;
                assert_eq!(import(&mut other).0, IV, "byte {at}");
            }
            let words = [0, 1, 4095, 1 << 32, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 4095, u64::MAX];
            for word in words {
                for (place, is_always_wrong) in [(OFFSET, true), (SIZE, !(1..1 << 16).contains(&word))] {
                    let mut other = data;
                    other.reserved[place..place + 8].copy_from_slice(&word.to_le_bytes());
                    let (answer, address) = import(&mut other);
                    assert_eq!(answer == IV, is_always_wrong, "{word} at {place}: {answer}");
                    if answer == OK {
                        assert_eq!(driver.cuMemFree(address), OK);
                    }
                }
            }
            assert_eq!(import(&mut CUmemPoolPtrExportData::default()).0, IV);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuMemPoolDestroy(imported), OK);
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn handles_that_mean_nothing_are_refused() {
    leaves_nothing("foreign_handles::handles_that_mean_nothing_are_refused", || {
        let driver = &session();
        let (mut event, address) = (null_mut(), words(driver, 16));
        let (mut of_event, mut of_memory) = (CUipcEventHandle::default(), CUipcMemHandle::default());
        let open_event = |handle| unsafe { driver.cuIpcOpenEventHandle(&mut null_mut(), handle) };
        let open_memory = |handle| unsafe { driver.cuIpcOpenMemHandle(&mut 0, handle, 1) };
        unsafe {
            assert_eq!(driver.cuEventCreate(&mut event, 2 | 4), OK);
            assert_eq!(driver.cuIpcGetEventHandle(&mut of_event, event), OK);
            assert_eq!(driver.cuIpcGetMemHandle(&mut of_memory, address), OK);
        }
        // Every handle with a byte changed, of which some name another process, and the other
        // kind's.
        for at in 0..64 {
            for change in [1, 0x40, -1] {
                let (mut event, mut memory) = (of_event, of_memory);
                event.reserved[at] ^= change;
                memory.reserved[at] ^= change;
                assert_ne!(open_event(event), OK, "byte {at}");
                assert_ne!(open_memory(memory), OK, "byte {at}");
            }
        }
        assert_ne!(open_event(CUipcEventHandle { reserved: of_memory.reserved }), OK);
        assert_ne!(open_memory(CUipcMemHandle { reserved: of_event.reserved }), OK);
        for fill in [0, 1, -1] {
            assert_ne!(open_event(CUipcEventHandle { reserved: [fill; 64] }), OK);
            assert_ne!(open_memory(CUipcMemHandle { reserved: [fill; 64] }), OK);
        }
        unsafe {
            assert_eq!(driver.cuEventDestroy(event), OK);
            assert_eq!(driver.cuMemFree(address), OK);
        }
    });
}
