//! Memory that several processes have: files without a name, handed on as descriptors or found
//! through the process that made them.

use crate::sync::lock;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// Files are mapped in pieces that start at multiples of this.
pub(crate) const PAGE: u64 = 4096;

const MAGIC: [u8; 8] = *b"cudasoft";
/// The layout of files and handles, which processes of another version of this driver may have
/// otherwise.
const LAYOUT: u8 = 1;

/// What a file is for, so that a descriptor of another one is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    Pool = 1,
    Event,
    Plain,
    Semaphore,
}

/// What every file begins with. The bytes are the same in all processes, as they are all of this
/// driver.
pub(crate) const IDENTITY: usize = 24;

/// The identity of a file: what nobody else has, and its purpose.
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

    /// The identity in these bytes, if they are one of that purpose.
    pub(crate) fn read(bytes: &[u8], purpose: Purpose) -> Option<Self> {
        let bytes: [u8; IDENTITY] = bytes.get(..IDENTITY)?.try_into().ok()?;
        let is_known = bytes[..8] == MAGIC && bytes[20] == purpose as u8 && bytes[22] == LAYOUT;
        is_known.then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> [u8; IDENTITY] {
        self.0
    }

    /// The process that made the file.
    pub(crate) fn process(&self) -> u32 {
        u32::from_le_bytes([self.0[16], self.0[17], self.0[18], self.0[19]])
    }

    /// A number that the maker noted.
    pub(crate) fn detail(&self) -> u8 {
        self.0[21]
    }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    identity: Identity,
    /// Where the next piece starts; only the process that made the file adds pieces.
    end: Mutex<u64>,
}

/// Who has a descriptor can write to the file, but not make it shorter, and not forbid anything to
/// others.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;

fn seal(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the file is one in memory with just these seals.
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

    /// The file behind a descriptor of this process, which stays the caller's. Whatever else a
    /// descriptor is of, it is no such file.
    pub(crate) fn from_descriptor(descriptor: RawFd, purpose: Purpose) -> Option<Self> {
        // SAFETY: any number may be asked for a copy; a bad one answers an error.
        let raw = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        // SAFETY: the descriptor was just made, and nobody else has it.
        if raw < 0 { None } else { Self::open(unsafe { File::from_raw_fd(raw) }, purpose) }
    }

    /// The file that another process made, by the descriptor that it has there.
    pub(crate) fn of_process(identity: Identity, descriptor: RawFd, purpose: Purpose) -> Option<Self> {
        let path = format!("/proc/{}/fd/{descriptor}", identity.process());
        // Nothing else is opened: that could wait, or do something.
        if !fs::read_link(&path).ok()?.as_os_str().as_encoded_bytes().starts_with(b"/memfd:cuda-soft") {
            return None;
        }
        let file = fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
        Self::open(file, purpose).filter(|found| found.identity == identity)
    }

    fn open(file: File, purpose: Purpose) -> Option<Self> {
        let len = file.metadata().ok()?.len();
        // A file that others can make shorter would end this process by a signal at the next
        // access.
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

    /// A descriptor of its own for the caller.
    pub(crate) fn export(&self) -> io::Result<RawFd> {
        Ok(OwnedFd::from(self.file.try_clone()?).into_raw_fd())
    }

    /// A piece that another process put behind the first page.
    pub(crate) fn map_piece(&self, offset: u64, len: usize) -> io::Result<Mapping> {
        if offset < PAGE { Err(io::ErrorKind::InvalidInput.into()) } else { self.map(offset, len) }
    }

    /// A new piece of the file; its offset and its bytes here.
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

    /// Makes the file as long as that, unless it is already: another process may have made it
    /// longer, and nobody makes it shorter.
    fn reach(&self, len: u64) -> io::Result<()> {
        let is_there = || Ok::<bool, io::Error>(self.file.metadata()?.len() >= len);
        if is_there()? {
            return Ok(());
        }
        let outcome = self.file.set_len(len);
        if is_there()? { Ok(()) } else { outcome }
    }

    /// A piece of the file, as bytes of this process.
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

    /// Gives the memory of a piece back to the system; it reads as zeros then.
    pub(crate) fn discard(&self, offset: u64, len: usize) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        if let (Ok(offset), Ok(len)) = (libc::off_t::try_from(offset), libc::off_t::try_from(len)) {
            // SAFETY: the descriptor is open. If the system cannot do it, the memory stays until
            // the file is gone.
            let _ = unsafe { libc::fallocate(self.descriptor(), mode, offset, len) };
        }
    }
}

/// Bytes of a file in this process.
#[derive(Debug)]
pub(crate) struct Mapping {
    host: *mut u8,
    len: usize,
}

// SAFETY: the bytes are shared between processes anyway; whoever accesses them does so by atomics,
// or under the rules of the interface.
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
