//! A loaded PTX module: its kernels and variables.

use std::sync::Arc;

use super::code::{Inst, Program};
use super::global::Global;
use super::jit::Cache;

/// A loaded PTX module. Cheap to clone, immutable.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(super) version: (u32, u32),
    pub(super) kernels: Vec<Kernel>,
    pub(super) program: Arc<Program>,
}

impl Image {
    /// The PTX version of the text, major and minor.
    pub(crate) fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The kernels (`.entry`) in the order of the text.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter()
    }

    /// Compiles functions after so many instructions from now on, or none at all.
    #[cfg(test)]
    pub(crate) fn compile_after(&self, instructions: Option<u64>) {
        self.kernels.iter().for_each(|kernel| kernel.native.compile_after(instructions));
    }

    /// Whether a kernel is compiled.
    #[cfg(all(test, feature = "jit", target_arch = "x86_64", target_os = "linux", not(interpreted)))]
    pub(crate) fn is_native(&self, kernel: &str) -> bool {
        self.kernel(kernel).is_some_and(|kernel| kernel.native.get(kernel.function).is_some())
    }

    /// Whether native code of a kernel calls no function of `math`.
    #[cfg(all(test, feature = "jit", target_arch = "x86_64", target_os = "linux", not(interpreted)))]
    pub(crate) fn is_translated(&self, kernel: &str) -> bool {
        let function = self.kernel(kernel).map(|kernel| kernel.function);
        let function = function.and_then(|function| self.program.functions.get(function as usize));
        function.is_some_and(super::jit::is_translated)
    }

    /// The kernel of that name.
    #[cfg(test)]
    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The variables of module scope in the global and constant spaces.
    pub(crate) fn globals(&self) -> &[Global] {
        &self.program.globals
    }

    /// The initial content of a variable, once `addresses` holds the address of each variable. The
    /// rest of the variable is 0.
    pub(crate) fn initial_bytes(&self, global: &Global, addresses: &[u64]) -> Vec<u8> {
        let mut bytes = global.initial.clone();
        for pointer in &global.pointers {
            let (at, width) = (pointer.offset as usize, usize::from(pointer.width.min(8)));
            let address = addresses.get(pointer.global as usize).copied().unwrap_or(0);
            let value = address.wrapping_add(pointer.addend) >> pointer.shift;
            if let Some(place) = bytes.get_mut(at..at + width) {
                place.copy_from_slice(&value.to_le_bytes()[..width]);
            }
        }
        bytes
    }
}

/// A kernel parameter in the parameter buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Param {
    /// First byte in the parameter buffer.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
    /// Alignment in bytes.
    pub(crate) align: u32,
}

/// The offset of a shared variable that a kernel does not use.
pub(super) const UNUSED: u32 = u32::MAX;

/// A kernel of an image.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) program: Arc<Program>,
    /// The native code of the program.
    pub(super) native: Arc<Cache>,
    /// Its index in [`Program::functions`].
    pub(super) function: u32,
    /// Offset of each shared variable of the program in this kernel's shared memory, or [`UNUSED`].
    pub(super) shared_offsets: Vec<u32>,
    pub(super) static_shared: u32,
    pub(super) local_bytes: u32,
    pub(super) max_threads: u32,
    pub(super) required: Option<[u32; 3]>,
}

impl Kernel {
    /// Name as in the text (mangled, for C++).
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The parameters in order.
    pub(crate) fn params(&self) -> &[Param] {
        &self.params
    }

    /// Size of the parameter buffer: the end of the last parameter.
    pub(crate) fn param_bytes(&self) -> u32 {
        self.params.last().map_or(0, |last| last.offset + last.size)
    }

    /// Whether each thread waits for the grids in front before it does anything else.
    pub(crate) fn waits_at_entry(&self) -> bool {
        let function = self.program.functions.get(self.function as usize);
        matches!(function.and_then(|function| function.code.first()), Some(Inst::GridWait))
    }

    /// The static shared memory of the kernel, in bytes.
    pub(crate) fn static_shared_bytes(&self) -> u32 {
        self.static_shared
    }

    /// Bytes of local memory per thread, calls included (recursion counted once).
    pub(crate) fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    /// An estimate of the 32-bit registers per thread, in the range a GPU reports.
    pub(crate) fn registers(&self) -> u32 {
        let function = self.program.functions.get(self.function as usize);
        function.map_or(0, |function| function.registers).clamp(8, 255)
    }

    /// Most threads per block (`.maxntid` or `.reqntid`, else 1024).
    pub(crate) fn max_threads(&self) -> u32 {
        self.max_threads
    }

    /// The block size that the kernel requires (`.reqntid`).
    pub(crate) fn required(&self) -> Option<[u32; 3]> {
        self.required
    }
}

/// One launch of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// What to run.
    pub(crate) kernel: &'a Kernel,
    /// Blocks in x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    /// The parameter buffer, [`Kernel::param_bytes`] long.
    pub(crate) params: &'a [u8],
    /// Device address of each of [`Image::globals`].
    pub(crate) globals: &'a [u64],
}
