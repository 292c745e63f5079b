//! A node's own copy of its kernel's arguments, for the read-back.

use std::ffi::c_void;

use super::copied_declaration::ListedLaunch;
use super::task::KernelSpec;

/// The memory that read-back pointers point to. Users may read it as long as the node lives, so it
/// is only accessed by raw pointers.
#[derive(Debug)]
pub(crate) struct ParamBlock {
    bytes: *mut [u64],
    pointers: *mut [*mut c_void],
    layout: Vec<(u32, u32)>,
    packed: Option<usize>,
    /// The launch with its declaration, if it has one.
    listed: Option<ListedLaunch>,
}

// SAFETY: the block is only written under the lock of the graphs.
unsafe impl Send for ParamBlock {}
// SAFETY: as above.
unsafe impl Sync for ParamBlock {}

impl ParamBlock {
    pub(crate) fn new(spec: &KernelSpec) -> Self {
        let params = spec.function.code.kernel.params();
        let layout: Vec<_> = params.iter().map(|param| (param.offset, param.size)).collect();
        let words = spec.arguments.bytes.len().div_ceil(8) + 1;
        let bytes = Box::into_raw(vec![0u64; words].into_boxed_slice());
        let base: *mut u8 = bytes.cast();
        let packed = spec.arguments.packed.then_some(spec.arguments.given);
        let pointers: Vec<*mut c_void> = match packed {
            // The list of `extra`: buffer, size, end. The size lies behind the bytes.
            Some(_) => {
                // SAFETY: the last word of the block.
                let size = unsafe { bytes.cast::<u64>().add(words - 1) };
                let key = |key: usize| core::ptr::without_provenance_mut(key);
                vec![key(1), base.cast(), key(2), size.cast(), key(0)]
            }
            // SAFETY: each parameter starts inside the block.
            None => layout.iter().map(|(offset, _)| unsafe { base.add(*offset as usize) }.cast()).collect(),
        };
        let pointers = Box::into_raw(pointers.into_boxed_slice());
        let mut block = Self { bytes, pointers, layout, packed, listed: None };
        block.set(spec);
        if let Some(given) = packed {
            // SAFETY: the last word of the block, which holds the size.
            unsafe { bytes.cast::<u64>().add(words - 1).write(given as u64) };
        }
        block
    }

    /// The block for new parameters: this one, at the same address, if the layout is the same.
    pub(crate) fn renewed(mut self, spec: &KernelSpec) -> Self {
        if !self.fits(spec) {
            return Self::new(spec);
        }
        self.set(spec);
        self
    }

    fn fits(&self, spec: &KernelSpec) -> bool {
        let params = spec.function.code.kernel.params();
        let same = params.iter().map(|param| (param.offset, param.size)).eq(self.layout.iter().copied());
        same && self.packed == spec.arguments.packed.then_some(spec.arguments.given)
    }

    fn set(&mut self, spec: &KernelSpec) {
        let bytes = &spec.arguments.bytes;
        // SAFETY: the block was made for as many bytes; it is only reached by raw pointers.
        unsafe { self.bytes.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        // The old launch first, since both have the same place in the list.
        self.listed = None;
        self.listed = ListedLaunch::of(spec, self.raw().0);
    }

    /// `kernelParams` and `extra` of the read-back.
    pub(crate) fn raw(&self) -> (*mut *mut c_void, *mut *mut c_void) {
        match self.packed {
            Some(_) => (core::ptr::null_mut(), self.pointers.cast()),
            None if self.layout.is_empty() => (core::ptr::null_mut(), core::ptr::null_mut()),
            None => (self.pointers.cast(), core::ptr::null_mut()),
        }
    }
}

impl Drop for ParamBlock {
    fn drop(&mut self) {
        // First, since other memory may get the address of the pointers.
        self.listed = None;
        // SAFETY: both came out of boxes and are given back once.
        unsafe {
            drop(Box::from_raw(self.bytes));
            drop(Box::from_raw(self.pointers));
        }
    }
}
