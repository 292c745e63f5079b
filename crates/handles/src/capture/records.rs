//! STUB
use crate::graph::Owner;
/// s
#[derive(Debug, Default)]
pub struct Records;
impl Records {
    /// s
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        core::iter::empty()
    }
    /// s
    pub fn kept(&self) -> &[Owner] {
        &[]
    }
}
/// s
#[derive(Clone, Copy, Debug)]
pub struct Record<'r>(&'r Records);
impl<'r> Record<'r> {
    /// s
    pub fn work(&self) -> Work {
        Work::Host { function: 0, data: 0 }
    }
    /// s
    pub fn arguments(&self) -> impl Iterator<Item = Option<&'r [u8]>> {
        core::iter::empty()
    }
    /// s
    pub fn owners(&self) -> impl Iterator<Item = &'r Owner> {
        core::iter::empty()
    }
    /// s
    pub fn handles(&self) -> &'r [u64] {
        &[]
    }
}
/// s
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Work {
    Kernel { kernel: usize, grid: [u32; 3], block: [u32; 3], shared: u32 },
    Copy { source: u64, destination: u64, bytes: u64 },
    Fill { destination: u64, bytes: u64 },
    Host { function: usize, data: usize },
    Batch { first: u64, count: u32 },
}
/// s
#[derive(Debug)]
pub struct CaptureInfo;
impl crate::Stream {
    /// s
    pub fn capture_info(&self) -> crate::Result<Option<CaptureInfo>> {
        Ok(None)
    }
}
