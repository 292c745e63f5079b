//! The arguments of a launch of a declared kernel, owned, each of which can be replaced.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::internal::KeptMemory;
use cuda_handles::{Allocation, Kernel};
use smallvec::SmallVec;

use crate::arguments::access::{AccessRanges, Accesses, Declaration, Memory};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::holder::Arguments;
use crate::arguments::params::{WORD, Word};
use crate::arguments::slot::ParameterSlot;
use crate::config::launch_config::LaunchConfig;
use crate::error::Result;

/// The memory of an argument, owned.
#[derive(Clone, Debug)]
pub struct StoredMemory {
    /// The allocation that owns it.
    pub allocation: KeptMemory,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The check of stored arguments against the declaration of their kernel.
pub(crate) type Check = fn(&Kernel, &StoredArguments, &LaunchConfig) -> Result<()>;

/// The arguments of a launch of a declared kernel. The graph parameters of cuda-graph replace them
/// one by one; [`check`](Self::check) checks them together.
#[derive(Clone, Debug)]
pub struct StoredArguments {
    declaration: &'static Declaration,
    check: Check,
    slots: Cow<'static, [ParameterSlot]>,
    /// The packed values. Padding is not initialised.
    words: SmallVec<[Word; 16]>,
    memory: SmallVec<[(usize, StoredMemory); 4]>,
    handles: SmallVec<[(usize, ConditionalHandle); 1]>,
}

impl StoredArguments {
    /// A copy of packed values. `pointers` leads to as many values as there are slots.
    ///
    /// # Safety
    /// Each pointer leads to as many bytes as its slot says, in the type of the declaration.
    pub(crate) unsafe fn copied(
        declaration: &'static Declaration,
        check: Check,
        slots: Cow<'static, [ParameterSlot]>,
        pointers: *mut *mut c_void,
    ) -> Self {
        let end = slots.iter().map(|slot| slot.end()).max().unwrap_or(0);
        let mut words: SmallVec<[Word; 16]> = SmallVec::new();
        words.resize(end.div_ceil(WORD), Word::uninit());
        for (position, slot) in slots.iter().enumerate() {
            // SAFETY: the caller's promise for the source; the slot lies in the words.
            unsafe {
                let to = words.as_mut_ptr().cast::<u8>().add(slot.offset());
                core::ptr::copy_nonoverlapping((*pointers.add(position)).cast::<u8>(), to, slot.size());
            }
        }
        Self { declaration, check, slots, words, memory: SmallVec::new(), handles: SmallVec::new() }
    }

    /// A copy of the arguments of an untyped launch, with the memory of those that are addresses,
    /// and the positions of the handles of conditions. [`check`](Self::check) accepts them as they
    /// are.
    ///
    /// # Safety
    /// The declaration is of the kernel that is launched, and has its memory at these positions.
    #[must_use]
    pub unsafe fn untyped<'m>(
        declaration: &'static Declaration,
        arguments: &impl Arguments,
        memory: impl IntoIterator<Item = (usize, Memory<'m>)>,
        handles: impl IntoIterator<Item = usize>,
    ) -> Self {
        fn unchecked(_: &Kernel, _: &StoredArguments, _: &LaunchConfig) -> Result<()> {
            Ok(())
        }
        let slots = arguments.slots().to_vec();
        let mut stored = arguments.with_pointers(|pointers| {
            // SAFETY: there is a pointer to the value of each slot.
            unsafe { Self::copied(declaration, unchecked, slots.into(), pointers) }
        });
        memory.into_iter().for_each(|(position, memory)| stored.push_memory(position, &memory));
        let handles = handles.into_iter().zip(arguments.handles());
        handles.for_each(|(position, handle)| stored.push_handle(position, handle));
        stored
    }

    pub(crate) fn push_memory(&mut self, position: usize, memory: &Memory<'_>) {
        let (allocation, start, bytes) = (memory.allocation.into(), memory.start, memory.bytes);
        self.memory.push((position, StoredMemory { allocation, start, bytes }));
    }

    pub(crate) fn push_stored(&mut self, position: usize, memory: StoredMemory) {
        self.memory.push((position, memory));
    }

    pub(crate) fn push_handle(&mut self, position: usize, handle: ConditionalHandle) {
        self.handles.push((position, handle));
    }

    /// Checks the arguments and a configuration against the declaration, for the kernel that they
    /// were prepared for. Makes no driver call.
    ///
    /// # Errors
    /// As for [`TypedKernel::prepare`](crate::TypedKernel::prepare).
    pub fn check(&self, kernel: &Kernel, config: &LaunchConfig) -> Result<()> {
        (self.check)(kernel, self, config)
    }

    /// The kernel's declaration.
    #[must_use]
    pub fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    /// The packed value of an argument, if it has this size.
    pub(crate) fn packed<T: Copy>(&self, position: usize) -> Option<T> {
        let slot = self.slots.get(position).filter(|slot| slot.size() == size_of::<T>())?;
        // SAFETY: the slot lies in the words. Only values of the declared types are written, and
        // the caller asks for that type.
        Some(unsafe { self.words.as_ptr().cast::<u8>().add(slot.offset()).cast::<T>().read_unaligned() })
    }

    /// The memory of an argument.
    #[must_use]
    pub fn memory(&self, position: usize) -> Option<&StoredMemory> {
        self.memory.iter().find(|(known, _)| *known == position).map(|(_, memory)| memory)
    }

    /// The memory of all arguments.
    pub fn all_memory_mut(&mut self) -> impl Iterator<Item = &mut StoredMemory> {
        self.memory.iter_mut().map(|(_, memory)| memory)
    }

    pub(crate) fn handle(&self, position: usize) -> Option<ConditionalHandle> {
        self.handles.iter().find(|(known, _)| *known == position).map(|(_, handle)| *handle)
    }

    /// The memory of all arguments, in their order.
    pub fn memories(&self) -> impl Iterator<Item = &StoredMemory> {
        self.memory.iter().map(|(_, memory)| memory)
    }

    /// The handles of conditions among the arguments, in their order.
    pub fn handles(&self) -> impl Iterator<Item = ConditionalHandle> {
        self.handles.iter().map(|(_, handle)| *handle)
    }

    /// Replaces a value; false if the argument has another size, or is memory or a handle.
    ///
    /// # Safety
    /// The bytes are a value of the parameter's declared type.
    pub unsafe fn set_value(&mut self, position: usize, bytes: &[MaybeUninit<u8>]) -> bool {
        let is_value = self.memory(position).is_none() && self.handle(position).is_none();
        match self.slots.get(position) {
            Some(slot) if is_value && slot.size() == bytes.len() => {
                // SAFETY: the slot lies in the words.
                unsafe {
                    let to = self.words.as_mut_ptr().cast::<MaybeUninit<u8>>().add(slot.offset());
                    core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                }
                true
            }
            _ => false,
        }
    }

    /// Replaces memory, of the same type of element; returns the one before. `None` if the argument
    /// is no memory given by its address; then nothing changes, and `memory` is dropped.
    ///
    /// # Safety
    /// The memory holds elements of the parameter's declared type.
    pub unsafe fn set_memory(&mut self, position: usize, memory: StoredMemory) -> Option<StoredMemory> {
        let parameter = self.declaration.memory.get(position).copied().flatten()?;
        let slot = *self.slots.get(position).filter(|slot| slot.size() == size_of::<u64>())?;
        let known = self.memory.iter_mut().find(|(known, _)| *known == position).map(|(_, memory)| memory)?;
        if !parameter.by_address {
            return None;
        }
        let address = memory.start.to_ne_bytes();
        // SAFETY: the slot lies in the words, and has eight bytes.
        unsafe {
            let to = self.words.as_mut_ptr().cast::<u8>().add(slot.offset());
            core::ptr::copy_nonoverlapping(address.as_ptr(), to, address.len());
        }
        Some(core::mem::replace(known, memory))
    }

    /// Calls `call` with an array of pointers to the packed values, valid until it returns.
    pub fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        let start = self.words.as_ptr().cast::<u8>();
        // The driver reads through these pointers and never writes.
        // SAFETY: the slots lie in the words.
        let pointer = |slot: &ParameterSlot| unsafe { start.add(slot.offset()) }.cast_mut().cast::<c_void>();
        let mut pointers: SmallVec<[*mut c_void; 16]> = self.slots.iter().map(pointer).collect();
        call(pointers.as_mut_ptr())
    }

    /// The memory accesses of a launch with these arguments.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        let mut accesses = Accesses::new(self.declaration);
        for (position, memory) in &self.memory {
            if let Some(parameter) = self.declaration.memory.get(*position).copied().flatten() {
                accesses.note(*position, &memory.borrowed(parameter.access.writes()), parameter);
            }
        }
        accesses
    }

    /// The ranges of [`accesses`](Self::accesses) that [are apart](Accesses::are_apart).
    #[must_use]
    pub fn ranges(&self) -> AccessRanges {
        let mut ranges = AccessRanges::default();
        for (position, memory) in &self.memory {
            ranges.note(*position, &memory.borrowed(false));
        }
        ranges
    }
}

impl StoredMemory {
    /// Whether it is the same part of the same allocation.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::<Allocation>::ptr_eq(&self.allocation, &other.allocation)
            && (self.start, self.bytes) == (other.start, other.bytes)
    }

    /// Becomes the same memory. Returns whether it was another one; else it counts no reference.
    pub fn replace_by(&mut self, other: &Self) -> bool {
        let is_new = !self.is_same(other);
        if is_new {
            *self = other.clone();
        }
        is_new
    }

    /// The number of elements of a size in bytes.
    #[must_use]
    pub fn count(&self, element: usize) -> u64 {
        self.bytes / (element as u64).max(1)
    }

    fn borrowed(&self, written: bool) -> Memory<'_> {
        Memory { allocation: &self.allocation, start: self.start, bytes: self.bytes, written }
    }
}
