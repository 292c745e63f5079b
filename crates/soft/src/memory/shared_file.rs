//! Memory shared between processes: anonymous files, passed on as descriptors or found through the
//! process that created them.

use crate::sync::lock;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// Pieces of a file start at multiples of this.
pub(crate) const PAGE: u64 = 4096;

const MAGIC: [u8; 8] = *b"cudasoft";
/// The version of the layout of files and handles.
const LAYOUT: u8 = 1;

/// The purpose of a file, so that a descriptor of another file is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    Pool = 1,
    Event,
    Plain,
    Semaphore,
}

/// The bytes with which every file begins.
pub(crate) const IDENTITY: usize = 24;

/// The identity of a file: unique, with its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity([u8; IDENTITY]);

impl Identity {
    fn new(purpose: Purpose, detail: u8) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut bytes = [0; IDENTITY];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let own = now.wrapping_mul(64).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&own.to_le_bytes());
        bytes[16..20].copy_from_slice(&std::process::id().to_le_bytes());
        bytes[20] = purpose as u8;
        bytes[21] = detail;
        bytes[22] = LAYOUT;
        Self(bytes)
    }

    /// The identity in these bytes, if they are the identity of a file with that purpose.
    pub(crate) fn read(bytes: &[u8], purpose: Purpose) -> Option<Self> {
        let bytes: [u8; IDENTITY] = bytes.get(..IDENTITY)?.try_into().ok()?;
        let is_known = bytes[..8] == MAGIC && bytes[20] == purpose as u8 && bytes[22] == LAYOUT;
        is_known.then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> [u8; IDENTITY] {
        self.0
    }

    /// The process that created the file.
    pub(crate) fn process(&self) -> u32 {
        u32::from_le_bytes([self.0[16], self.0[17], self.0[18], self.0[19]])
    }

    /// A number that the creator chose.
    pub(crate) fn detail(&self) -> u8 {
        self.0[21]
    }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    identity: Identity,
    /// Where the next piece starts. Only the process that created the file adds pieces.
    end: Mutex<u64>,
}

/// Holders of a descriptor can write to the file, but neither shrink it nor add seals.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;

fn seal(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the file is an anonymous file with exactly these seals.
fn is_sealed(file: &File) -> bool {
    // SAFETY: the descriptor is open; one that cannot have seals answers an error.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) == SEALS }
}

impl SharedFile {
    pub(crate) fn create(purpose: Purpose, detail: u8) -> io::Result<Self> {
        // SAFETY: the name is a C string.
        let raw =
            unsafe { libc::memfd_create(c"cuda-soft".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        let file = unsafe { File::from_raw_fd(raw) };
        file.set_len(PAGE)?;
        seal(&file)?;
        let identity = Identity::new(purpose, detail);
        let own = Self { file, identity, end: Mutex::new(PAGE) };
        let first = own.map(0, IDENTITY)?;
        // SAFETY: the mapping is a page long, and nobody else knows it yet.
        unsafe { first.host.copy_from_nonoverlapping(identity.0.as_ptr(), IDENTITY) };
        Ok(own)
    }

    /// The file behind a descriptor, which stays the caller's; `None` for descriptors of anything
    /// else.
    pub(crate) fn from_descriptor(descriptor: RawFd, purpose: Purpose) -> Option<Self> {
        // SAFETY: any number may be asked for a copy; a bad one answers an error.
        let raw = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        // SAFETY: the descriptor was just made, and nobody else has it.
        if raw < 0 { None } else { Self::open(unsafe { File::from_raw_fd(raw) }, purpose) }
    }

    /// The file that another process created, by its descriptor there.
    pub(crate) fn of_process(identity: Identity, descriptor: RawFd, purpose: Purpose) -> Option<Self> {
        let path = format!("/proc/{}/fd/{descriptor}", identity.process());
        // Opening anything else could block or have side effects.
        if !fs::read_link(&path).ok()?.as_os_str().as_encoded_bytes().starts_with(b"/memfd:cuda-soft") {
            return None;
        }
        let file = fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
        Self::open(file, purpose).filter(|found| found.identity == identity)
    }

    fn open(file: File, purpose: Purpose) -> Option<Self> {
        let len = file.metadata().ok()?.len();
        // If others could shrink the file, an access would raise a signal here.
        if len < PAGE || !is_sealed(&file) {
            return None;
        }
        let mut bytes = [0; IDENTITY];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).ok()?;
        let identity = Identity::read(&bytes, purpose)?;
        Some(Self { file, identity, end: Mutex::new(len) })
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A new descriptor for the caller.
    pub(crate) fn export(&self) -> io::Result<RawFd> {
        Ok(OwnedFd::from(self.file.try_clone()?).into_raw_fd())
    }

    /// Maps a piece that another process added.
    pub(crate) fn map_piece(&self, offset: u64, len: usize) -> io::Result<Mapping> {
        if offset < PAGE { Err(io::ErrorKind::InvalidInput.into()) } else { self.map(offset, len) }
    }

    /// Adds a piece to the file; returns its offset and its mapping.
    pub(crate) fn add(&self, len: usize) -> io::Result<(u64, Mapping)> {
        let mut end = lock(&self.end);
        let offset = *end;
        let after = offset.checked_add(len as u64).and_then(|end| end.checked_next_multiple_of(PAGE));
        let after = after.ok_or(io::ErrorKind::OutOfMemory)?;
        self.reach(after)?;
        let mapping = self.map(offset, len)?;
        *end = after;
        Ok((offset, mapping))
    }

    /// Grows the file to that length. Another process may have grown it already; nobody shrinks it.
    fn reach(&self, len: u64) -> io::Result<()> {
        let is_there = || Ok::<bool, io::Error>(self.file.metadata()?.len() >= len);
        if is_there()? {
            return Ok(());
        }
        let outcome = self.file.set_len(len);
        if is_there()? { Ok(()) } else { outcome }
    }

    /// Maps a piece of the file.
    pub(crate) fn map(&self, offset: u64, len: usize) -> io::Result<Mapping> {
        let known = self.file.metadata()?.len();
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= known);
        if len == 0 || !inside || !offset.is_multiple_of(PAGE) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address that the system chooses touches no other memory.
        let host =
            unsafe { libc::mmap(core::ptr::null_mut(), len, protection, flags, self.descriptor(), start) };
        if host == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { host: host.cast(), len })
    }

    /// Releases the memory of a piece to the system. It reads as zeros afterwards.
    pub(crate) fn discard(&self, offset: u64, len: usize) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        if let (Ok(offset), Ok(len)) = (libc::off_t::try_from(offset), libc::off_t::try_from(len)) {
            // SAFETY: the descriptor is open. If the system cannot do it, the memory stays until
            // the file is gone.
            let _ = unsafe { libc::fallocate(self.descriptor(), mode, offset, len) };
        }
    }
}

/// A mapped piece of a file.
#[derive(Debug)]
pub(crate) struct Mapping {
    host: *mut u8,
    len: usize,
}

// SAFETY: the bytes are shared between processes anyway. Every access is atomic, or follows the
// rules of the interface.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn host(&self) -> *mut u8 {
        self.host
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody holds it any more.
        let _ = unsafe { libc::munmap(self.host.cast(), self.len) };
    }
}
