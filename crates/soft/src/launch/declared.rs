//! The memory that a kernel declares to access, given before its launch.

use std::cell::RefCell;

use super::Watch;
use crate::memory::{self, Origin};
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
pub(crate) struct Declared(Vec<DeclaredMemory>);

thread_local! {
    /// What the next launch of a function by this thread declares.
    static NEXT: RefCell<Option<(u64, Declared)>> = const { RefCell::new(None) };
}

/// Sets what the next launch of `function` by this thread declares, or takes it back.
pub(crate) fn expect(next: Option<(u64, Vec<DeclaredMemory>)>) {
    NEXT.set(next.map(|(function, memory)| (function, Declared(memory))));
}

/// Takes what the launch of `function` declares.
pub(crate) fn take(function: u64) -> Option<Declared> {
    NEXT.take().filter(|(expected, _)| *expected == function).map(|(_, declared)| declared)
}

impl Declared {
    /// The sentence for an access outside of the declared memory, or for a write where the kernel
    /// declares to read.
    fn words(&self, address: u64, end: u64) -> String {
        let overlaps = |memory: &&DeclaredMemory| address < memory.start + memory.bytes && memory.start < end;
        if let Some(found) = self.0.iter().find(overlaps) {
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
        let nearest = self.0.iter().min_by_key(distance).map(|memory| {
            let DeclaredMemory { parameter, start, bytes, .. } = memory;
            format!("; the nearest one is `{parameter}`, {bytes} bytes at {start:#x}")
        });
        format!(
            "this is outside of what the kernel declares for its parameters{}",
            nearest.unwrap_or_default()
        )
    }
}

impl Watch for Declared {
    fn note(&self, address: u64, len: usize, kind: AccessKind) -> Result<(), String> {
        let end = address.saturating_add(len as u64);
        let allows = |memory: &DeclaredMemory| {
            address >= memory.start
                && end <= memory.start.saturating_add(memory.bytes)
                && (memory.written || kind == AccessKind::Read)
        };
        if self.0.iter().any(allows) {
            return Ok(());
        }
        // Variables of the image are not declared.
        match memory::access(address, len, false) {
            Ok(found) if found.origin == Origin::Variable => Ok(()),
            _ => Err(self.words(address, end)),
        }
    }
}
