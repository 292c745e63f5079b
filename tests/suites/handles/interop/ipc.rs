//! Events and memory shared with another process.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use cuda_handles::{Context, Error, Event, EventOptions, IpcBuffer, IpcEvent, MemPool, PoolOptions, Stream};
use cuda_sys::CUresult;
use cuda_tests::{Kind, live, no_leaks, setup, skip};

const PIPE: &str = "CUDA_TEST_IPC";

/// Whether the driver under test does not do this at all.
fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Driver { code: CUresult::CUDA_ERROR_NOT_SUPPORTED, .. })
}

fn for_others(context: &Context) -> Event {
    context.event_with(EventOptions { timing: false, ipc: true, ..Default::default() }).unwrap()
}

#[test]
fn what_was_not_made_for_others_is_not_exported() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let error = context.event().unwrap().export().unwrap_err();
        assert!(error.to_string().contains("ipc: true"), "{error}");
        let plain = context.alloc_blocking::<u32>(4).unwrap().export().unwrap_err();
        assert!(plain.to_string().contains("shareable: true"), "{plain}");
        assert!(stream.zeros::<u32>(0).unwrap().export().is_err());
        assert!(stream.zeros::<u32>(4).unwrap().export().is_err(), "the device's own pool is not shareable");
    });
}

#[test]
fn an_event_imported_where_it_was_made_is_itself() {
    let context = setup();
    no_leaks(|| {
        let event = for_others(&context);
        let handle = match event.export() {
            Err(error) if is_unsupported(&error) => skip!("no events between processes: {error}"),
            handle => handle.unwrap(),
        };
        let handle = IpcEvent::from_bytes(handle.to_bytes());
        assert_eq!(context.import_event(&handle).unwrap(), event);
        assert_eq!(event.export().unwrap(), handle);
    });
}

/// Memory and an event that a stream of the parent orders: the child reads what the parent wrote,
/// writes, and records.
#[cfg(unix)]
#[test]
fn two_processes_share_an_event_and_pooled_memory() {
    if std::env::var_os(PIPE).is_some() {
        return child();
    }
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pool = match context.pool(PoolOptions { shareable: true, ..Default::default() }) {
            Err(error) if is_unsupported(&error) => skip!("no shareable pools: {error}"),
            pool => pool.unwrap(),
        };
        let event = for_others(&context);
        let handle = match event.export() {
            Err(error) if is_unsupported(&error) => skip!("no events between processes: {error}"),
            handle => handle.unwrap(),
        };
        let buffer = stream.zeros_from::<u32>(&pool, 1024).unwrap();
        stream.fill(&buffer, 41).unwrap();
        stream.record(&event).unwrap();
        let part = buffer.sub_buffer(512..).unwrap();
        let mut sent = handle.to_bytes().to_vec();
        sent.extend(part.export().unwrap().to_bytes());
        talk(&pool, &sent);
        assert_eq!(part.read_blocking(&stream).unwrap(), [42; 512], "the child's fill");
        assert_eq!(buffer.slice(..512).unwrap().read_blocking(&stream).unwrap(), [41; 512]);
        drop((buffer, part));
    });
}

/// Runs the test again in a process that gets the pool's descriptor and `sent`, and waits for its
/// end.
#[cfg(unix)]
fn talk(pool: &MemPool, sent: &[u8]) {
    use std::os::fd::AsRawFd;
    let descriptor = pool.export_fd().unwrap();
    // SAFETY: the descriptor is ours; the child inherits it.
    assert_eq!(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    let name = "interop::ipc::two_processes_share_an_event_and_pooled_memory";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(PIPE, descriptor.as_raw_fd().to_string())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(sent).unwrap();
    let mut ended = None;
    let _ = cuda_tests::until(std::time::Duration::from_secs(60), || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(ended.is_some_and(|status| status.success()), "the child: {ended:?}");
}

#[cfg(unix)]
fn child() {
    use std::os::fd::{FromRawFd, OwnedFd};
    let context = setup();
    let stream: Stream = context.stream().unwrap();
    let descriptor: i32 = std::env::var(PIPE).unwrap().parse().unwrap();
    // SAFETY: the parent left it open for this process.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let (mut event, mut memory) = ([0; 64], [0; 88]);
    std::io::stdin().read_exact(&mut event).unwrap();
    std::io::stdin().read_exact(&mut memory).unwrap();
    let pool = context.import_pool(&descriptor).unwrap();
    let event = context.import_event(&IpcEvent::from_bytes(event)).unwrap();
    let handle = IpcBuffer::from_bytes(memory);
    // SAFETY: the parent exported both and keeps the memory until this process has ended; the event
    // is behind its allocation.
    let import = || unsafe { pool.import::<u32>(&handle) }.unwrap();
    let (buffer, again) = (import(), import());
    assert!(std::sync::Arc::ptr_eq(buffer.allocation(), again.allocation()), "one owner");
    assert_eq!(buffer.len(), 512);
    stream.wait(&event).unwrap();
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [41; 512]);
    stream.fill(&buffer, 42).unwrap();
    stream.synchronize_blocking().unwrap();
    // The pool's memory is freed by the reaper, so the pool goes after it.
    let before = live().of(Kind::Pool);
    drop((buffer, again, pool));
    cuda_tests::settle();
    assert_eq!(live().of(Kind::Pool), before - 1);
}
