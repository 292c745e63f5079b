//! Tests of the interpreter, on PTX that NVRTC made (`data/`, with its CUDA C++ source) and on PTX
//! written here.

mod checks;
mod cooperation;
mod coverage;
mod evaluate;
mod faults;
mod formats;
mod forms;
mod fuzz;
mod grid;
mod heap;
mod instructions;
mod kernels;
mod load;
mod matrices;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux", not(interpreted)))]
mod native;
mod products;
mod races;
mod scalar_forms;
mod speed;
mod tensors;
mod transfers;
mod video;
mod warps;
mod wgmma;
mod wide;

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Fault;
use super::{Checks, DeviceMemory, FaultKind, Image, Launch, MemoryFault, Span, run};

pub(super) const BASIC: &str = include_str!("data/basic.ptx");
pub(super) const COOPERATION: &str = include_str!("data/cooperation.ptx");
pub(super) const FUNCTIONS: &str = include_str!("data/functions.ptx");
pub(super) const CONDITIONAL: &str = include_str!("data/conditional.ptx");

/// Device address, bytes, contents.
type Buffer = (u64, usize, Box<[UnsafeCell<u64>]>);

/// Global memory of a test: buffers far apart.
pub(super) struct Memory {
    buffers: Vec<Buffer>,
    pub(super) epoch: AtomicU64,
    pub(super) conditions: Mutex<Vec<(u64, u32)>>,
    pub(super) translations: AtomicU64,
    pub(super) checks: Checks,
}

impl Default for Memory {
    /// An empty memory, with all checks.
    fn default() -> Self {
        Memory {
            buffers: Vec::new(),
            epoch: AtomicU64::new(0),
            conditions: Mutex::default(),
            translations: AtomicU64::new(0),
            checks: Checks { unwritten_shared: true, shared_races: true, global_races: true },
        }
    }
}

// SAFETY: kernels reach the cells through raw pointers and atomically; the tests read them when no
// kernel runs.
unsafe impl Sync for Memory {}

/// Plain values in buffers.
pub(super) trait Plain: Copy {
    const BYTES: usize;
    fn to_bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}
macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Plain for $t {
            const BYTES: usize = size_of::<$t>();
            fn to_bytes(self) -> Vec<u8> { self.to_le_bytes().to_vec() }
            fn from_bytes(bytes: &[u8]) -> Self { <$t>::from_le_bytes(bytes.try_into().unwrap()) }
        }
    )*};
}
plain!(u8, u16, u32, u64, i32, i64, f32, f64);

pub(super) fn bytes_of<T: Plain>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_bytes()).collect()
}

impl Memory {
    /// A new buffer with those contents; its device address.
    pub(super) fn put<T: Plain>(&mut self, values: &[T]) -> u64 {
        let bytes = bytes_of(values);
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            UnsafeCell::new(u64::from_le_bytes(word))
        });
        let start = 0x7_0000_0000 + 0x10_0000 * self.buffers.len() as u64;
        self.buffers.push((start, bytes.len(), words.collect()));
        start
    }

    pub(super) fn get<T: Plain>(&self, address: u64) -> Vec<T> {
        let (_, len, words) = self.buffers.iter().find(|(start, _, _)| *start == address).unwrap();
        // SAFETY: no kernel runs while a test reads.
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| unsafe { *word.get() }.to_le_bytes()).take(*len).collect();
        bytes.chunks_exact(T::BYTES).map(T::from_bytes).collect()
    }
}

impl DeviceMemory for Memory {
    fn translate(&self, address: u64, len: usize, _write: bool) -> Result<Span, MemoryFault> {
        self.translations.fetch_add(1, Ordering::Relaxed);
        for (start, bytes, words) in &self.buffers {
            if address >= *start && address + len as u64 <= start + *bytes as u64 {
                let host = words.as_ptr().cast::<u8>().cast_mut();
                return Ok(Span { device_start: *start, len: *bytes as u64, host, writable: true });
            }
        }
        Err(MemoryFault { kind: FaultKind::IllegalAddress, message: "no allocation there".into() })
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn epoch_counter(&self) -> Option<&AtomicU64> {
        Some(&self.epoch)
    }

    fn checks(&self) -> Checks {
        self.checks
    }

    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault> {
        if handle == 0 {
            return Err(MemoryFault { kind: FaultKind::IllegalAddress, message: "no such condition".into() });
        }
        self.conditions.lock().unwrap().push((handle, value));
        Ok(())
    }
}

/// Loads a text that must be right.
pub(super) fn load(text: &str) -> Image {
    match Image::parse(text) {
        Ok(image) => image,
        Err(errors) => {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", lines.join("\n"));
        }
    }
}

/// A kernel argument.
pub(super) fn arg<T: Plain>(value: T) -> Vec<u8> {
    value.to_bytes()
}

/// Loads the text and launches one of its kernels, with the image's variables in buffers of their
/// own.
pub(super) fn launch(
    image: &Image,
    memory: &mut Memory,
    name: &str,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    args: &[Vec<u8>],
) -> Result<Vec<u64>, Fault> {
    let globals: Vec<u64> =
        image.globals().iter().map(|global| memory.put(&vec![0_u8; global.size as usize])).collect();
    for (global, &address) in image.globals().iter().zip(&globals) {
        let bytes = image.initial_bytes(global, &globals);
        let (_, _, words) = memory.buffers.iter().find(|(start, _, _)| *start == address).unwrap();
        for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            // SAFETY: no kernel runs yet.
            unsafe { *word.get() = u64::from_le_bytes(value) };
        }
    }
    let kernel = image.kernel(name).unwrap();
    let mut params = vec![0; kernel.param_bytes() as usize];
    assert_eq!(args.len(), kernel.params().len());
    for (arg, param) in args.iter().zip(kernel.params()) {
        assert_eq!(arg.len(), param.size as usize);
        params[param.offset as usize..][..arg.len()].copy_from_slice(arg);
    }
    let launch = Launch { kernel, grid, block, dynamic_shared, params: &params, globals: &globals };
    run(&launch, memory).map(|()| globals)
}
