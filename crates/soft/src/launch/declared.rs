//! The memory that a launch of a kernel declares to access.

use std::cell::RefCell;
use std::sync::Arc;

use crate::memory;
use crate::module::Function;
use crate::ptx::AccessKind;

/// The memory of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredMemory {
    pub(crate) parameter: String,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) written: bool,
}

/// The memory of all parameters of a launch.
#[derive(Debug)]
pub(crate) struct Declared {
    memory: Vec<DeclaredMemory>,
}

thread_local! {
    /// What launches and kernel nodes of a function declare that this thread makes.
    static EXPECTED: RefCell<Option<(u64, Arc<Declared>)>> = const { RefCell::new(None) };
}

/// Sets what launches and kernel nodes of `function` declare that this thread makes, until the next
/// call.
pub(crate) fn expect(expected: Option<(u64, Vec<DeclaredMemory>)>) {
    let expected = expected.map(|(function, memory)| (function, Arc::new(Declared { memory })));
    // At the end of the thread, nothing is declared any more.
    let _ = EXPECTED.try_with(|slot| slot.replace(expected));
}

/// What this thread declares for a function, which may also be given by its kernel.
pub(crate) fn expected(function: &Function) -> Option<Arc<Declared>> {
    // A destructor of another thread-local may launch after the end of this one.
    let declared = EXPECTED.try_with(|expected| {
        let expected = expected.borrow();
        let (of, declared) = expected.as_ref()?;
        [function.handle, function.kernel].contains(of).then(|| Arc::clone(declared))
    });
    declared.ok().flatten()
}

impl Declared {
    /// Checks an access that memory allows, by a kernel of an image with variables at these
    /// addresses, which are not declared.
    ///
    /// # Errors
    /// Returns a sentence that says why the declaration does not allow it.
    pub(crate) fn check(
        &self,
        address: u64,
        len: usize,
        kind: AccessKind,
        variables: &[u64],
    ) -> Result<(), String> {
        let end = address.saturating_add(len as u64);
        let allows = |memory: &DeclaredMemory| {
            address >= memory.start
                && end <= memory.start.saturating_add(memory.bytes)
                && (memory.written || kind == AccessKind::Read)
        };
        if self.memory.iter().any(allows) {
            return Ok(());
        }
        match memory::access(address, len, false) {
            Ok(found) if variables.contains(&found.start) => Ok(()),
            _ => Err(self.words(address, end)),
        }
    }

    /// The sentence for an access outside of the declared memory, or for a write where the kernel
    /// declares to read.
    fn words(&self, address: u64, end: u64) -> String {
        let overlaps = |memory: &&DeclaredMemory| address < memory.start + memory.bytes && memory.start < end;
        if let Some(found) = self.memory.iter().find(overlaps) {
            let DeclaredMemory { parameter, start, bytes, .. } = found;
            return if address >= *start && end <= start + bytes {
                format!("the kernel declares only to read its parameter `{parameter}`")
            } else {
                format!("this is partly outside of parameter `{parameter}`, {bytes} bytes at {start:#x}")
            };
        }
        let distance = |memory: &&DeclaredMemory| {
            let behind = address.saturating_sub(memory.start + memory.bytes);
            behind.max(memory.start.saturating_sub(end))
        };
        let nearest = self.memory.iter().min_by_key(distance).map(|memory| {
            let DeclaredMemory { parameter, start, bytes, .. } = memory;
            format!("; the nearest one is `{parameter}`, {bytes} bytes at {start:#x}")
        });
        format!(
            "this is outside of what the kernel declares for its parameters{}",
            nearest.unwrap_or_default()
        )
    }
}
