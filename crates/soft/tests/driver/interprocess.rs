//! Memory and events shared by two processes.

use std::ffi::{c_int, c_void};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

const PEER: &str = "CUDA_SOFT_TEST_PEER";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> [u8; 64] {
    let bytes: Vec<u8> =
        (0..64).map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// This test again in another process, with arguments.
fn peer(name: &str, words: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(PEER, words.join(" "))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn shared_pool(driver: &Driver) -> CUmemoryPool {
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut pool = null_mut();
    assert_eq!(unsafe { driver.cuMemPoolCreate(&mut pool, &props) }, OK);
    pool
}

fn export(driver: &Driver, pool: CUmemoryPool) -> OwnedFd {
    let mut descriptor: c_int = -1;
    let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    unsafe {
        assert_eq!(driver.cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), pool, kind, 0), OK);
        OwnedFd::from_raw_fd(descriptor)
    }
}

fn import(driver: &Driver, descriptor: c_int) -> Result<CUmemoryPool, CUresult> {
    let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let handle: *mut c_void = std::ptr::without_provenance_mut(descriptor as usize);
    let mut pool = null_mut();
    match unsafe { driver.cuMemPoolImportFromShareableHandle(&mut pool, handle, kind, 0) } {
        OK => Ok(pool),
        code => Err(code),
    }
}

fn shared_event(driver: &Driver) -> CUevent {
    let mut event = null_mut();
    assert_eq!(unsafe { driver.cuEventCreate(&mut event, 2 | 4) }, OK);
    event
}

/// The other process: waits for the event, sees the words, adds to them, and records the second
/// event.
fn as_peer(driver: &Driver, words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(words[0]).unwrap();
    let pool = import(driver, file.as_raw_fd()).unwrap();
    drop(file);
    let mut data = CUmemPoolPtrExportData { reserved: unhex(words[1]) };
    let [first, second] = [words[2], words[3]].map(|handle| {
        let handle = CUipcEventHandle { reserved: unhex(handle).map(|byte| byte as i8 as _) };
        let mut event = null_mut();
        assert_eq!(unsafe { driver.cuIpcOpenEventHandle(&mut event, handle) }, OK);
        event
    });
    let stream = stream(driver);
    unsafe {
        let mut address = 0;
        assert_eq!(driver.cuMemPoolImportPointer(&mut address, pool, &mut data), OK);
        let mut none = 0;
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut none, 64, pool, stream), IV);
        assert_eq!(driver.cuMemPoolExportPointer(&mut data, address), IV);
        assert_eq!(driver.cuEventQuery(second), OK);
        assert_eq!(driver.cuEventQuery(first), CUresult::CUDA_ERROR_NOT_READY);
        assert_eq!(driver.cuStreamWaitEvent(stream, first, 0), OK);
        let mut seen = [0u32; 4];
        println!("\nready");
        assert_eq!(driver.cuMemcpyDtoHAsync(seen.as_mut_ptr().cast(), address, 16, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(seen, [5; 4]);
        assert_eq!(driver.cuEventQuery(first), OK);
        assert_eq!(driver.cuMemsetD32Async(address, 6, 4, stream), OK);
        assert_eq!(driver.cuEventRecord(second, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuMemcpyDtoH(seen.as_mut_ptr().cast(), address, 16), IV);
        assert_eq!(driver.cuEventDestroy(first), OK);
        assert_eq!(driver.cuEventDestroy(second), OK);
        assert_eq!(driver.cuMemPoolDestroy(pool), OK);
    }
}

#[test]
fn pool_memory_and_events_are_shared() {
    let driver = &session();
    if let Ok(words) = std::env::var(PEER) {
        return as_peer(driver, &words);
    }
    let (pool, stream) = (shared_pool(driver), stream(driver));
    let (first, second) = (shared_event(driver), shared_event(driver));
    let descriptor = export(driver, pool);
    let mut address = 0;
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    let gate = Gate::close(driver, stream);
    unsafe {
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut address, 16, pool, stream), OK);
        assert_eq!(driver.cuMemsetD32Async(address, 5, 4, stream), OK);
        assert_eq!(driver.cuEventRecord(first, stream), OK);
        assert_eq!(driver.cuMemPoolExportPointer(&mut data, address), OK);
        let handles = [first, second].map(|event| {
            let mut handle = CUipcEventHandle { reserved: [0; 64] };
            assert_eq!(driver.cuIpcGetEventHandle(&mut handle, event), OK);
            let mut own = null_mut();
            let answer = driver.cuIpcOpenEventHandle(&mut own, handle);
            assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_CONTEXT);
            hex(&handle.reserved.map(|byte| byte as u8))
        });
        let path = format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd());
        let [one, two] = handles;
        let mut other =
            peer("interprocess::pool_memory_and_events_are_shared", &[path, hex(&data.reserved), one, two]);
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"));
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        // The other's record counts here too: as soon as it is made, then as soon as it is reached.
        eventually("the record of the other process", || {
            read(driver, address, 4) == [6; 4] && driver.cuEventQuery(second) == OK
        });
        assert_eq!(driver.cuEventSynchronize(second), OK);
        assert!(other.wait().unwrap().success());
        assert_eq!(read(driver, address, 4), [6; 4]);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuEventDestroy(first), OK);
        assert_eq!(driver.cuEventDestroy(second), OK);
        assert_eq!(driver.cuMemPoolDestroy(pool), OK);
    }
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let driver = &session();
    let mut pool = null_mut();
    let mut event = null_mut();
    let mut handle = CUipcEventHandle { reserved: [0; 64] };
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    let stream = stream(driver);
    let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    unsafe {
        assert_eq!(driver.cuDeviceGetDefaultMemPool(&mut pool, 0), OK);
        let mut out: c_int = -1;
        assert_eq!(driver.cuMemPoolExportToShareableHandle((&raw mut out).cast(), pool, kind, 0), IV);
        let mut address = 0;
        assert_eq!(driver.cuMemAllocAsync(&mut address, 64, stream), OK);
        assert_eq!(driver.cuMemPoolExportPointer(&mut data, address), IV);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuEventCreate(&mut event, 2), OK);
        assert_eq!(driver.cuIpcGetEventHandle(&mut handle, event), IV);
        assert_eq!(driver.cuEventDestroy(event), OK);
        assert_eq!(driver.cuIpcOpenEventHandle(&mut event, handle), IV);
    }
    assert_eq!(import(driver, -1), Err(IV));
    let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(import(driver, other.as_raw_fd()), Err(IV));
    // Pointers of one pool are none of another.
    let (one, two) = (shared_pool(driver), shared_pool(driver));
    let imported = import(driver, export(driver, two).as_raw_fd()).unwrap();
    unsafe {
        let (mut address, mut found) = (0, 0);
        assert_eq!(driver.cuMemAllocFromPoolAsync(&mut address, 64, one, stream), OK);
        assert_eq!(driver.cuMemPoolExportPointer(&mut data, address), OK);
        assert_eq!(driver.cuMemPoolImportPointer(&mut found, imported, &mut data), IV);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        for pool in [one, two, imported] {
            assert_eq!(driver.cuMemPoolDestroy(pool), OK);
        }
    }
}

#[test]
fn pools_give_their_own_device_access_always() {
    let driver = &session();
    let pool = shared_pool(driver);
    let mut access = CUmemAccessDesc::default();
    access.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let mut flags = CUmemAccess_flags(0);
    unsafe {
        assert_eq!(driver.cuMemPoolGetAccess(&mut flags, pool, &mut access.location), OK);
        assert_eq!(flags.0, 3);
        assert_eq!(driver.cuMemPoolSetAccess(pool, &access, 1), IV);
        access.flags = CUmemAccess_flags(3);
        assert_eq!(driver.cuMemPoolSetAccess(pool, &access, 1), OK);
        access.location.__bindgen_anon_1.id = 9;
        assert_eq!(driver.cuMemPoolSetAccess(pool, &access, 1), CUresult::CUDA_ERROR_INVALID_DEVICE);
        assert_eq!(driver.cuMemPoolSetAccess(pool, std::ptr::null(), 1), IV);
        assert_eq!(driver.cuMemPoolDestroy(pool), OK);
    }
}

/// The other process: opens the memory in a context that ends.
fn in_a_context_that_ends(driver: &Driver, handle: CUipcMemHandle) {
    let (primary, mut other, mut address) = (context(driver), null_mut(), 0);
    unsafe {
        assert_eq!(driver.cuCtxCreate(&mut other, null_mut(), 0, 0, 0), OK);
        assert_eq!(driver.cuIpcOpenMemHandle(&mut address, handle, 1), OK);
        assert_eq!(driver.cuCtxDestroy(other), OK);
        assert_eq!(driver.cuCtxSetCurrent(primary), OK);
        assert_eq!(driver.cuIpcCloseMemHandle(address), IV);
    }
}

/// The other process: opens the memory twice, changes it, closes it twice.
fn as_neighbour(driver: &Driver, words: &str) {
    let handle = CUipcMemHandle { reserved: unhex(words).map(|byte| byte as i8 as _) };
    let (mut one, mut two) = (0, 0);
    unsafe {
        assert_eq!(driver.cuIpcOpenMemHandle(&mut one, handle, 0), IV);
        assert_eq!(driver.cuIpcOpenMemHandle(&mut one, handle, 1), OK);
        assert_eq!(driver.cuIpcOpenMemHandle(&mut two, handle, 1), OK);
        assert_eq!(one, two);
        assert_eq!(read(driver, one, 4), [3; 4]);
        assert_eq!(driver.cuMemsetD32(one, 4, 4), OK);
        assert_eq!(driver.cuMemFree(one), IV);
        let mut again = handle;
        assert_eq!(driver.cuIpcGetMemHandle(&mut again, one), IV);
        assert_eq!(driver.cuIpcCloseMemHandle(one), OK);
        assert_eq!(read(driver, one, 4), [4; 4]);
        assert_eq!(driver.cuIpcCloseMemHandle(one), OK);
        assert_eq!(driver.cuIpcCloseMemHandle(one), IV);
        assert_eq!(driver.cuMemsetD32(one, 5, 4), IV);
    }
    in_a_context_that_ends(driver, handle);
}

#[test]
fn plain_memory_is_shared() {
    let driver = &session();
    if let Ok(words) = std::env::var(PEER) {
        return as_neighbour(driver, &words);
    }
    let address = words(driver, 4);
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    let (mut none, mut pooled) = (0, 0);
    unsafe {
        assert_eq!(driver.cuMemsetD32(address, 3, 4), OK);
        assert_eq!(driver.cuMemAllocAsync(&mut pooled, 64, null_mut()), OK);
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, pooled), IV);
        assert_eq!(driver.cuMemFreeAsync(pooled, null_mut()), OK);
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, address + 4), OK);
        let answer = driver.cuIpcOpenMemHandle(&mut none, handle, 1);
        assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_CONTEXT);
    }
    let other = peer("interprocess::plain_memory_is_shared", &[hex(&handle.reserved.map(|byte| byte as u8))]);
    let output = other.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(read(driver, address, 4), [4; 4]);
    assert_eq!(unsafe { driver.cuMemFree(address) }, OK);
}
