//! Interprocess events and memory.

use core::ffi::{c_char, c_uint};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cuda_sys::{CUdeviceptr, CUevent, CUipcEventHandle, CUipcMemHandle};

use super::event::{DISABLE_TIMING, INTERPROCESS};
use super::table::Entries;
use crate::device::context::{check_device, current};
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, required};
use crate::driver::result_code::{Answer, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE};
use crate::memory::shared_file::{IDENTITY, Identity, Purpose, SharedFile};
use crate::memory::{self, Allocation, Origin, Request};
use crate::stream;
use crate::stream::event;
use crate::stream::shared_records::SharedRecords;
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuIpcGetEventHandle,
        cuIpcOpenEventHandle,
        cuIpcGetMemHandle,
        cuIpcOpenMemHandle,
        cuIpcCloseMemHandle,
        ..entries
    }
}

/// The content of a handle: the file, its descriptor in the process that created it, and a piece of
/// the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct IpcHandle {
    identity: Identity,
    descriptor: i32,
    offset: u64,
    len: u64,
    device: i32,
}

const DESCRIPTOR: usize = IDENTITY;
const DEVICE: usize = IDENTITY + 4;
const OFFSET: usize = IDENTITY + 8;
const LEN: usize = IDENTITY + 16;

impl IpcHandle {
    fn of(file: &SharedFile) -> Self {
        Self { identity: file.identity(), descriptor: file.descriptor(), offset: 0, len: 0, device: 0 }
    }

    fn write(&self) -> [c_char; 64] {
        let mut bytes = [0u8; 64];
        bytes[..IDENTITY].copy_from_slice(&self.identity.bytes());
        bytes[DESCRIPTOR..DEVICE].copy_from_slice(&self.descriptor.to_le_bytes());
        bytes[DEVICE..OFFSET].copy_from_slice(&self.device.to_le_bytes());
        bytes[OFFSET..LEN].copy_from_slice(&self.offset.to_le_bytes());
        bytes[LEN..LEN + 8].copy_from_slice(&self.len.to_le_bytes());
        bytes.map(|byte| byte as c_char)
    }

    /// Parses a handle of another process. The process that created a handle cannot open it.
    fn read(handle: &[c_char; 64], purpose: Purpose) -> Answer<Self> {
        let bytes = handle.map(|byte| byte as u8);
        let int =
            |at: usize| bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map(i32::from_le_bytes);
        let word =
            |at: usize| bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map(u64::from_le_bytes);
        let read = || {
            Some(Self {
                identity: Identity::read(&bytes, purpose)?,
                descriptor: int(DESCRIPTOR)?,
                device: int(DEVICE)?,
                offset: word(OFFSET)?,
                len: word(LEN)?,
            })
        };
        let ticket = read().ok_or(INVALID_VALUE)?;
        if ticket.identity.process() == std::process::id() { Err(INVALID_CONTEXT) } else { Ok(ticket) }
    }

    fn open(&self, purpose: Purpose) -> Answer<SharedFile> {
        SharedFile::of_process(self.identity, self.descriptor, purpose).ok_or(INVALID_HANDLE)
    }
}

/// Opened memory of another process.
struct OpenCount {
    allocation: Arc<Allocation>,
    /// How often it was opened and not closed.
    count: usize,
}

impl OpenCount {
    fn is_there(&self) -> bool {
        memory::find_start(self.allocation.start).is_some_and(|found| found.id == self.allocation.id)
    }
}

type OpenedMemory = HashMap<IpcHandle, OpenCount>;

static OPEN: Mutex<Option<OpenedMemory>> = Mutex::new(None);

fn with_open<R>(act: impl FnOnce(&mut OpenedMemory) -> R) -> R {
    let mut open = lock(&OPEN);
    let open = open.get_or_insert_default();
    // Memory that ended with its context is no longer open.
    open.retain(|_, known| known.is_there());
    act(open)
}

/// Opens memory, or opens it once more.
fn open_memory(ticket: IpcHandle, context: u64) -> Answer<u64> {
    with_open(|open| {
        if let Some(known) = open.get_mut(&ticket) {
            known.count = known.count.saturating_add(1);
            return Ok(known.allocation.start);
        }
        let file = Arc::new(ticket.open(Purpose::Plain)?);
        check_device(ticket.device).map_err(|_| INVALID_VALUE)?;
        let request = Request {
            origin: Origin::Imported,
            len: usize::try_from(ticket.len).map_err(|_| INVALID_VALUE)?,
            device: ticket.device,
            context,
            pool: 0,
            flags: 0,
        };
        let allocation = memory::import(&file, ticket.offset, request)?;
        let start = allocation.start;
        open.insert(ticket, OpenCount { allocation, count: 1 });
        Ok(start)
    })
}

/// Closes memory once; returns it if that was the last time.
fn close_memory(address: u64) -> Answer<Option<Arc<Allocation>>> {
    with_open(|open| {
        let found = open.iter_mut().find(|(_, known)| known.allocation.start == address);
        let (ticket, known) = found.ok_or(INVALID_VALUE)?;
        known.count -= 1;
        let (ticket, is_last) = (*ticket, known.count == 0);
        Ok(if is_last { open.remove(&ticket).map(|known| known.allocation) } else { None })
    })
}

entries! {
    live fn cuIpcGetEventHandle(out: *mut CUipcEventHandle, event: CUevent) {
        required(out)?;
        let event = event::get(number(event))?;
        let records = event.records.as_ref().filter(|_| event.flags & INTERPROCESS != 0).ok_or(INVALID_VALUE)?;
        put(out, CUipcEventHandle { reserved: IpcHandle::of(records.file()).write() })
    }

    live fn cuIpcOpenEventHandle(out: *mut CUevent, handle: CUipcEventHandle) {
        required(out)?;
        let context = current()?;
        let file = IpcHandle::read(&handle.reserved, Purpose::Event)?.open(Purpose::Event)?;
        let records = SharedRecords::over(file).map_err(|_| INVALID_HANDLE)?;
        // An opened event cannot be exported again: its flags lack INTERPROCESS.
        put(out, to_raw(event::create(context, DISABLE_TIMING, Some(records))))
    }

    live fn cuIpcGetMemHandle(out: *mut CUipcMemHandle, dptr: CUdeviceptr) {
        required(out)?;
        let found = memory::find(dptr).filter(|found| found.origin == Origin::Plain).ok_or(INVALID_VALUE)?;
        let (file, offset) = found.shared_at().ok_or(INVALID_VALUE)?;
        let ticket = IpcHandle { offset, len: found.len as u64, device: found.device, ..IpcHandle::of(file) };
        put(out, CUipcMemHandle { reserved: ticket.write() })
    }

    guarded fn cuIpcOpenMemHandle(out: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint) {
        /// The only flag, which is mandatory.
        const LAZY_PEER_ACCESS: c_uint = 1;
        required(out)?;
        let context = current()?;
        if flags != LAZY_PEER_ACCESS {
            return Err(INVALID_VALUE);
        }
        put(out, open_memory(IpcHandle::read(&handle.reserved, Purpose::Plain)?, context.handle)?)
    }

    guarded fn cuIpcCloseMemHandle(dptr: CUdeviceptr) {
        if let Some(ended) = close_memory(dptr)? {
            stream::while_idle(|| memory::remove(&ended, "cuIpcCloseMemHandle"));
        }
        Ok(())
    }
}
