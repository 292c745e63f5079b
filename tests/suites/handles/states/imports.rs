//! Imports from other processes. Each test runs its table in a child, with handles of objects that
//! live in the parent.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use cuda_handles::{Buffer, Context, Event, EventOptions, IpcBuffer, IpcEvent, MemPool, PoolOptions};
use cuda_tests::states::{CALLS, LEN, Refusal, Row, Things, done, drops, prepared};
use cuda_tests::{setup, skip};

const VARIABLE: &str = "CUDA_TEST_IMPORTS";

cuda_tests::six_states!(
    rows,
    {
        let exports = match exports() {
            Ok(exports) => exports,
            Err(reason) => skip!("{reason}"),
        };
        cuda_tests::alone!("CUDA_TEST_IMPORTS" = exports.handles.as_str());
    },
    {}
);

/// The fault sweep over imports.
#[test]
fn whatever_call_of_an_import_fails_nothing_stays_behind() {
    let exports = match exports() {
        Ok(exports) => exports,
        Err(reason) => skip!("{reason}"),
    };
    cuda_tests::alone!("CUDA_TEST_IMPORTS" = exports.handles.as_str());
    let context = setup();
    let stream = cuda_tests::used_stream(&context);
    let cases = cuda_tests::sweep("imports", || -> Result<(), cuda_handles::Error> {
        let (descriptor, event, memory) = handles();
        // On a stream of its own: what the event does to it, the driver alone knows.
        let (event, own) = (context.import_event(&event)?, context.stream()?);
        own.wait(&event)?;
        own.record(&event)?;
        event.synchronize_blocking()?;
        let pool = context.import_pool(descriptor)?;
        // SAFETY: the parent keeps the memory until this process has ended.
        let memory: Buffer<u32> = unsafe { pool.import(&memory) }?;
        stream.fill(&memory, 3)?;
        assert_eq!(memory.read_blocking(&stream)?, [3; LEN]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

/// The exports for the children, with their owners; in a child without them.
struct Exports {
    handles: String,
    _owners: Option<(Event, Buffer<u32>, MemPool, OwnedFd)>,
}

fn exports() -> Result<Exports, cuda_handles::Error> {
    if let Ok(handles) = std::env::var(VARIABLE) {
        return Ok(Exports { handles, _owners: None });
    }
    let context = setup();
    let options = EventOptions { timing: false, ipc: true, ..EventOptions::default() };
    let event = context.event_with(options)?;
    let pool = context.pool(PoolOptions { shareable: true, ..PoolOptions::default() })?;
    let descriptor = pool.export_fd()?;
    let stream = context.stream()?;
    let buffer = stream.zeros_from::<u32>(&pool, LEN)?;
    stream.record(&event)?;
    stream.synchronize_blocking()?;
    // SAFETY: the descriptor is ours; the children inherit it.
    assert_eq!(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    let handles = format!(
        "{}:{}:{}",
        descriptor.as_raw_fd(),
        hex(&event.export()?.to_bytes()),
        hex(&buffer.export()?.to_bytes())
    );
    Ok(Exports { handles, _owners: Some((event, buffer, pool, descriptor)) })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    core::array::from_fn(|index| u8::from_str_radix(&hex[2 * index..][..2], 16).unwrap())
}

/// The pool's descriptor, the event and the memory.
fn handles() -> (BorrowedFd<'static>, IpcEvent, IpcBuffer) {
    let handles = std::env::var(VARIABLE).unwrap();
    let parts: Vec<_> = handles.split(':').collect();
    // SAFETY: the parent left it open for this process, which never closes it.
    let descriptor = unsafe { BorrowedFd::borrow_raw(parts[0].parse().unwrap()) };
    (descriptor, IpcEvent::from_bytes(bytes(parts[1])), IpcBuffer::from_bytes(bytes(parts[2])))
}

fn pool(context: &Context) -> Result<MemPool, Refusal> {
    Ok(context.import_pool(handles().0)?)
}

fn memory(things: &Things) -> Result<(Buffer<u32>, MemPool), Refusal> {
    let pool = pool(&things.context)?;
    // SAFETY: the parent exported it, with all work on it done, and keeps it until this process has
    // ended.
    Ok((unsafe { pool.import(&handles().2) }?, pool))
}

fn rows() -> Vec<Row> {
    vec![
        prepared(
            "Context::import_event",
            CALLS,
            |_| Ok(()),
            |things, ()| done(things.context.import_event(&handles().1)?),
        ),
        prepared("Context::import_pool", CALLS, |_| Ok(()), |things, ()| done(pool(&things.context)?)),
        prepared(
            "MemPool::import",
            CALLS,
            |things| pool(&things.context),
            |_, pool| {
                // SAFETY: as above.
                done(unsafe { pool.import::<u32>(&handles().2) }?)
            },
        ),
        drops("drop of an imported event", |things| Ok(things.context.import_event(&handles().1)?)),
        drops("drop of imported memory", memory),
        drops("drop of an imported pool", |things| pool(&things.context)),
    ]
}
