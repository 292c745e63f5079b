//! Events and pooled memory of other processes.
//!
//! The handles are bytes, to be carried by any means: a pipe, a file, shared memory. A pool goes by
//! a file descriptor, which a socket can carry and a child can inherit. Importing the same handle
//! again gives the owner that is there already.

use core::fmt;
use std::collections::HashMap;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use cuda_sys::{CUipcEventHandle, CUmemAllocationHandleType, CUmemPoolPtrExportData, Call};

use crate::context::{Context, capture_mode, lock_unless_inside};
use crate::error::{Error, Result};
use crate::memory::{Allocation, Buffer, Element, MemPool, PoolAccess};
use crate::stream::{Event, WeakEvent};
use crate::sync::{Lock, Rank};

/// An event as another process can import it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcEvent([u8; 64]);

impl IpcEvent {
    /// The handle that an export gave, from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be carried to another process.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 64] {
        self.0
    }
}

/// Pooled memory as another process can import it, that has imported its pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcBuffer {
    data: [u8; 64],
    /// The whole allocation's.
    bytes: u64,
    /// The part's, from the start of the allocation.
    offset: u64,
    part: u64,
}

impl IpcBuffer {
    /// The handle that an export gave, from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 88]) -> Self {
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|index| bytes[at + index]));
        let data = core::array::from_fn(|index| bytes[index]);
        Self { data, bytes: word(64), offset: word(72), part: word(80) }
    }

    /// The bytes, to be carried to another process.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 88] {
        let mut bytes = [0; 88];
        bytes[..64].copy_from_slice(&self.data);
        for (at, word) in [(64, self.bytes), (72, self.offset), (80, self.part)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

type ImportTable<K, W> = Lock<Option<HashMap<K, W>>>;

static EVENTS: ImportTable<(usize, IpcEvent), WeakEvent> = Lock::new(Rank::Imports, None);
static ALLOCATIONS: ImportTable<(usize, [u8; 64]), Weak<Allocation>> = Lock::new(Rank::Imports, None);

/// The owner of an imported handle, or the one that `import` makes. Lookups wait meanwhile.
fn find_or_import<K: Eq + core::hash::Hash, W, O>(
    context: &Context,
    known: &ImportTable<K, W>,
    key: K,
    upgrade: impl Fn(&W) -> Option<O>,
    import: impl FnOnce() -> Result<(W, O)>,
) -> Result<O> {
    let mut found = Vec::new();
    // The driver may be mapping memory for the thread that has it.
    let mut known = lock_unless_inside(context, "the table of what was imported", known)?;
    let table = known.get_or_insert_default();
    if let Some(owner) = table.get(&key).and_then(&upgrade) {
        return Ok(owner);
    }
    // Owners that are held for the look must not be dropped under the lock.
    table.retain(|_, weak| {
        upgrade(weak).is_some_and(|owner| {
            found.push(owner);
            true
        })
    });
    let (weak, owner) = import()?;
    table.insert(key, weak);
    drop(known);
    drop(found);
    Ok(owner)
}

impl Event {
    /// A handle for other processes. The event was created with
    /// [`EventOptions::ipc`](crate::EventOptions::ipc).
    ///
    /// Calls `cuIpcGetEventHandle` (CUDA 4.1).
    ///
    /// # Errors
    /// The event is not for other processes, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "cudaIpcGetEventHandle")]
    pub fn export(&self) -> Result<IpcEvent> {
        let context = self.context();
        context.ensure_usable()?;
        if self.options().is_some_and(|options| !options.ipc) {
            return Err(Error::NotShareable {
                what: "the event",
                how: "EventOptions { ipc: true, timing: false, .. }",
            });
        }
        let mut handle = CUipcEventHandle::default();
        let _current = context.enter()?;
        let _mode = capture_mode::relaxed(context.driver());
        // SAFETY: the event is alive and the out pointer valid.
        let code = unsafe { context.driver().cuIpcGetEventHandle(&raw mut handle, self.as_raw()) };
        context.check(Call::cuIpcGetEventHandle, code)?;
        let handle = IpcEvent(bytemuck::cast(handle.reserved));
        // Imports of it in this process return this event.
        let weak = || Ok((self.downgrade(), self.clone()));
        find_or_import(context, &EVENTS, (context.as_raw().addr(), handle), WeakEvent::upgrade, weak)?;
        Ok(handle)
    }
}

impl Context {
    /// The event that another process exported. It keeps no times. Importing it again gives the
    /// same.
    ///
    /// Its last record is unknown until it is recorded here: a wait for it on a capturing stream
    /// goes to the driver, which invalidates the capture unless the event was recorded in it. If
    /// other code of this process has recorded it in a capture, by the driver's handle, then
    /// [`Event::query`], [`Event::synchronize_blocking`], [`Event::elapsed_since`] and a wait of
    /// the legacy stream invalidate that capture.
    ///
    /// Calls `cuIpcOpenEventHandle` (CUDA 4.1).
    ///
    /// # Errors
    /// The bytes are not such a handle, its process is gone, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuIpcOpenEventHandle")]
    #[doc(alias = "cudaIpcOpenEventHandle")]
    pub fn import_event(&self, handle: &IpcEvent) -> Result<Event> {
        self.ensure_usable()?;
        find_or_import(self, &EVENTS, (self.as_raw().addr(), *handle), WeakEvent::upgrade, || {
            let event = self.open_event(handle)?;
            Ok((event.downgrade(), event))
        })
    }

    fn open_event(&self, handle: &IpcEvent) -> Result<Event> {
        let _current = self.enter()?;
        let _mode = capture_mode::relaxed(self.driver());
        let mut raw = core::ptr::null_mut();
        let handle = CUipcEventHandle { reserved: bytemuck::cast(handle.0) };
        // SAFETY: the context is current and the out pointer valid; the driver checks the handle.
        let code = unsafe { self.driver().cuIpcOpenEventHandle(&raw mut raw, handle) };
        self.check(Call::cuIpcOpenEventHandle, code)?;
        Ok(Event::imported(self, raw))
    }

    /// The pool behind a descriptor that another process exported. Memory cannot be allocated from
    /// it, but [imported](MemPool::import). The descriptor may be closed afterwards.
    ///
    /// Calls `cuMemPoolImportFromShareableHandle`, `cuMemPoolGetAccess` and, where the device may
    /// not use the pool yet, `cuMemPoolSetAccess` (CUDA 11.2).
    ///
    /// # Errors
    /// The descriptor is not of a pool, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[cfg(unix)]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[doc(alias = "cudaMemPoolImportFromShareableHandle")]
    pub fn import_pool(&self, descriptor: impl AsFd) -> Result<MemPool> {
        self.ensure_usable()?;
        let _current = self.enter()?;
        let mut raw = core::ptr::null_mut();
        let fd = descriptor.as_fd().as_raw_fd();
        let handle = core::ptr::without_provenance_mut(usize::try_from(fd).unwrap_or(usize::MAX));
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let mode = capture_mode::relaxed(self.driver());
        // SAFETY: for this type of handle the pointer is the descriptor itself; the out pointer is
        // valid.
        let code = unsafe { self.driver().cuMemPoolImportFromShareableHandle(&raw mut raw, handle, kind, 0) };
        drop(mode);
        self.check(Call::cuMemPoolImportFromShareableHandle, code)?;
        let pool = MemPool::wrap(self, raw, true);
        if pool.access(self.device())? != PoolAccess::ReadWrite {
            pool.grant_access(self.device())?;
        }
        Ok(pool)
    }
}

#[cfg(unix)]
impl MemPool {
    /// A descriptor for other processes. The pool was created with
    /// [`PoolOptions::shareable`](crate::PoolOptions::shareable).
    ///
    /// Calls `cuMemPoolExportToShareableHandle` (CUDA 11.2).
    ///
    /// # Errors
    /// The pool is not shareable (`INVALID_VALUE`), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[doc(alias = "cudaMemPoolExportToShareableHandle")]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let context = self.context();
        context.ensure_usable()?;
        let mut fd: core::ffi::c_int = -1;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the pool is alive; for this type of handle the driver writes a descriptor.
        let code = unsafe {
            let out = (&raw mut fd).cast();
            context.driver().cuMemPoolExportToShareableHandle(out, self.as_raw(), kind, 0)
        };
        drop(mode);
        context.check(Call::cuMemPoolExportToShareableHandle, code)?;
        // SAFETY: the driver has just made it for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl MemPool {
    /// Memory that another process exported of the pool that this one was imported from. Importing
    /// it again gives the same allocation. It is unmapped when the last handle is gone and the work
    /// with it is done.
    ///
    /// Calls `cuMemPoolImportPointer` (CUDA 11.2).
    ///
    /// # Safety
    /// - `handle` comes unchanged from [`Buffer::export`] on memory of that pool.
    /// - The other process keeps the memory until all that is made of the result here is dropped,
    ///   and [`reaper::pending`](crate::reaper::pending) is 0 or this process has ended.
    /// - Work here is ordered behind the allocation there, by an event for instance.
    ///
    /// [`reaper::pending`]: crate::reaper::pending
    ///
    /// # Errors
    /// The part does not hold whole elements, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemPoolImportPointer")]
    #[doc(alias = "cudaMemPoolImportPointer")]
    pub unsafe fn import<T: Element>(&self, handle: &IpcBuffer) -> Result<Buffer<T>> {
        let context = self.context();
        context.ensure_usable()?;
        let number = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        let allocation = find_or_import(
            context,
            &ALLOCATIONS,
            (context.as_raw().addr(), handle.data),
            Weak::upgrade,
            || {
                let mut address = 0;
                let mut data = CUmemPoolPtrExportData { reserved: handle.data };
                let _current = context.enter()?;
                let mode = capture_mode::relaxed(context.driver());
                // SAFETY: the pool is alive and the pointers are valid; the handle is the caller's
                // promise.
                let code = unsafe {
                    context.driver().cuMemPoolImportPointer(&raw mut address, self.as_raw(), &raw mut data)
                };
                drop(mode);
                context.check(Call::cuMemPoolImportPointer, code)?;
                let allocation = Arc::new(Allocation::imported(self, address, number(handle.bytes)));
                Ok((Arc::downgrade(&allocation), allocation))
            },
        )?;
        let part = number(handle.offset)..number(handle.offset.saturating_add(handle.part));
        Buffer::<u8>::of(allocation).sub_buffer(part)?.cast()
    }
}

impl<T: Element> Buffer<T> {
    /// A handle for other processes. The memory is of a [shareable](crate::PoolOptions::shareable)
    /// pool.
    ///
    /// Calls `cuMemPoolExportPointer` (CUDA 11.2).
    ///
    /// # Errors
    /// The memory is of another kind, or of a pool that is not shareable (`INVALID_VALUE`); there
    /// are no bytes; or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemPoolExportPointer")]
    #[doc(alias = "cudaMemPoolExportPointer")]
    pub fn export(&self) -> Result<IpcBuffer> {
        let (allocation, context) = (self.allocation(), self.allocation().context());
        context.ensure_usable()?;
        if allocation.home().is_none() || allocation.bytes() == 0 {
            let how = "Stream::zeros_from and a pool with PoolOptions { shareable: true, .. }";
            return Err(Error::NotShareable { what: "the memory", how });
        }
        let mut data = CUmemPoolPtrExportData::default();
        let mode = capture_mode::relaxed(context.driver());
        // SAFETY: the allocation is alive and the out pointer valid.
        let code = unsafe { context.driver().cuMemPoolExportPointer(&raw mut data, allocation.address()) };
        drop(mode);
        context.check(Call::cuMemPoolExportPointer, code)?;
        Ok(IpcBuffer {
            data: data.reserved,
            bytes: allocation.bytes() as u64,
            offset: self.address() - allocation.address(),
            part: self.size_bytes() as u64,
        })
    }
}

impl fmt::Debug for IpcEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IpcEvent(..)")
    }
}

impl fmt::Debug for IpcBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IpcBuffer")
            .field("bytes", &self.bytes)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
