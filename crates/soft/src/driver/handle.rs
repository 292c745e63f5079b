//! Handles: numbers that are looked up in tables of live objects and never dereferenced.
//!
//! Misuse of a handle cannot harm the process. No address of this form is ever mapped, so code that
//! dereferences a handle itself crashes, as it would with the real driver. The slot of a destroyed
//! object is reused for the next one, as the real driver reuses addresses.

/// The kinds of objects. The handles of each kind lie in a range of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Kind {
    Context = 1,
    Stream,
    Event,
    Module,
    Function,
    Library,
    Kernel,
    Pool,
    Graph,
    Node,
    Exec,
    UserObject,
    Link,
    Semaphore,
    Array,
    Texture,
    Surface,
}

/// No machine of today has canonical addresses with bit 62 alone set.
const MARK: u64 = 1 << 62;
const STRIDE: u64 = 64;

/// The live objects of one kind.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    kind: Kind,
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, entries: Vec::new(), free: Vec::new() }
    }

    const fn base(&self) -> u64 {
        MARK | (self.kind as u64) << 40
    }

    /// The handle of the slot with this index.
    pub(crate) const fn nth_handle(kind: Kind, index: usize) -> u64 {
        (MARK | (kind as u64) << 40) + STRIDE * (index as u64 + 1)
    }

    fn index(&self, handle: u64) -> Option<usize> {
        let offset = handle.checked_sub(self.base() + STRIDE)?;
        if offset % STRIDE == 0 { usize::try_from(offset / STRIDE).ok() } else { None }
    }

    /// Adds the object that `make` builds from its handle.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let handle = self.base() + STRIDE * (index as u64 + 1);
        let value = make(handle);
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = Some(value);
        }
        handle
    }

    pub(crate) fn insert(&mut self, value: T) -> u64 {
        self.insert_with(|_| value)
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        self.entries.get(self.index(handle)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.entries.get_mut(index)?.as_mut()
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let index = self.index(handle)?;
        let value = self.entries.get_mut(index)?.take()?;
        self.free.push(index);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// Removes the objects for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.as_ref().is_some_and(|value| !keep(value)) {
                *entry = None;
                self.free.push(index);
            }
        }
    }
}

/// A handle as a pointer of the C interface.
pub(crate) fn to_raw<T>(handle: u64) -> *mut T {
    core::ptr::without_provenance_mut(handle as usize)
}

/// The number behind a pointer of the C interface.
pub(crate) fn number<T>(raw: *mut T) -> u64 {
    raw.addr() as u64
}
