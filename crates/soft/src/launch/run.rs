//! Running a kernel on the interpreter.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use cuda_sys::CUresult;

use super::check::Sizes;
use super::declared::Declared;
use crate::device::loss::{self, Loss};
use crate::driver;
use crate::driver::checks::Check;
use crate::memory::{self, Allocation, peer_access};
use crate::module::{Function, Module};
use crate::ptx::texture::{Texels, Texture};
use crate::ptx::{
    self, AccessKind, BegunGrid, Checks, DeviceMemory, Fault, FaultKind, Heap, MemoryFault, Span,
};
use crate::sync::lock;

/// Sets the values of conditional handles from kernels.
pub(crate) trait ConditionSetter: Send + Sync {
    /// Sets the value of a handle. Unknown handles have no effect.
    fn set(&self, handle: u64, value: u32);
}

/// Sees every access of a launch to global memory.
pub(crate) trait Watch: Sync {
    /// An access that memory allows.
    ///
    /// # Errors
    /// Returns a sentence that says why the access is wrong.
    fn note(&self, address: u64, len: usize, kind: AccessKind) -> Result<(), String>;
}

/// The memory that one launch can access. It keeps every allocation that the launch has accessed
/// alive until the launch ends.
struct View<'a> {
    held: Mutex<Vec<Arc<Allocation>>>,
    conditions: Option<&'a dyn ConditionSetter>,
    declared: Option<&'a Declared>,
    watch: Option<&'a dyn Watch>,
    module: &'a Module,
    checks: Checks,
}

impl DeviceMemory for View<'_> {
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault> {
        let found = memory::access(address, len, write).map_err(illegal)?;
        if !peer_access::is_in_reach_of_kernel(&found, &self.module.context) {
            return Err(self.out_of_reach(&found));
        }
        let span = Span {
            device_start: found.start,
            len: found.len as u64,
            host: found.host(),
            writable: found.is_writable(),
        };
        let mut held = lock(&self.held);
        if !held.iter().any(|other| other.id == found.id) {
            held.push(found);
        }
        Ok(span)
    }

    fn epoch(&self) -> u64 {
        memory::epoch()
    }

    fn epoch_counter(&self) -> Option<&AtomicU64> {
        Some(memory::epoch_counter())
    }

    fn is_watched(&self) -> bool {
        self.declared.is_some() || self.watch.is_some()
    }

    fn note(&self, address: u64, len: usize, kind: AccessKind) -> Result<(), MemoryFault> {
        if let Some(declared) = self.declared {
            declared.check(address, len, kind, &self.module.addresses).map_err(illegal)?;
        }
        self.watch.map_or(Ok(()), |watch| watch.note(address, len, kind).map_err(illegal))
    }

    fn checks(&self) -> Checks {
        self.checks
    }

    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault> {
        match self.conditions {
            Some(conditions) => {
                conditions.set(handle, value);
                Ok(())
            }
            None => Err(MemoryFault {
                kind: FaultKind::IllegalAddress,
                message: "a condition is set outside a graph with conditional nodes".to_owned(),
            }),
        }
    }

    fn heap(&self) -> Option<&Heap> {
        Some(&self.module.context.heap)
    }

    fn texture(&self, handle: u64) -> Result<Texture, MemoryFault> {
        let found = memory::texture::texture(handle);
        found.map(|object| object.texture).map_err(|_| MemoryFault::no_object("texture", handle))
    }

    fn surface(&self, handle: u64) -> Result<Texels, MemoryFault> {
        let found = memory::texture::surface(handle);
        found.map(|object| object.texture.texels).map_err(|_| MemoryFault::no_object("surface", handle))
    }

    fn cancelled(&self) -> bool {
        loss::is_lost(self.module.context.device)
    }
}

impl View<'_> {
    /// A touch of another device's memory without access. Both devices are lost.
    fn out_of_reach(&self, found: &Allocation) -> MemoryFault {
        let (own, other) = (self.module.context.device, found.device);
        let message = format!(
            "{} lies on device {other}, to whose memory the context of device {own} has no access",
            found.description()
        );
        loss::set(other, Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, message.clone()));
        illegal(message)
    }
}

fn loss_of(fault: Fault) -> Loss {
    Loss::new(code_of(fault.kind), fault.to_string())
}

/// The checks that the configuration names.
fn checks() -> Checks {
    let chosen = &driver::config().checks;
    Checks {
        unwritten_shared: chosen.contains(&Check::UnwrittenShared),
        shared_races: chosen.contains(&Check::SharedRaces),
        global_races: chosen.contains(&Check::GlobalRaces),
    }
}

fn illegal(message: String) -> MemoryFault {
    MemoryFault { kind: FaultKind::IllegalAddress, message }
}

fn code_of(kind: FaultKind) -> CUresult {
    match kind {
        FaultKind::IllegalAddress => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        FaultKind::Assert => CUresult::CUDA_ERROR_ASSERT,
        FaultKind::IllegalInstruction => CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        FaultKind::InvalidProgramCounter => CUresult::CUDA_ERROR_INVALID_PC,
        FaultKind::StackOverflow => CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
        FaultKind::BarrierDivergence => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        FaultKind::Trap
        | FaultKind::UnwrittenShared
        | FaultKind::Race
        | FaultKind::LaunchFailed
        | FaultKind::Cancelled => CUresult::CUDA_ERROR_LAUNCH_FAILED,
    }
}

/// A launch of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct KernelRun<'a> {
    pub(crate) function: &'a Function,
    pub(crate) sizes: &'a Sizes,
    /// The parameter buffer.
    pub(crate) params: &'a [u8],
    pub(crate) conditions: Option<&'a dyn ConditionSetter>,
    /// The memory that it may access; all of it, if `None`.
    pub(crate) declared: Option<&'a Declared>,
    pub(crate) watch: Option<&'a dyn Watch>,
}

impl<'a> KernelRun<'a> {
    /// Runs the kernel to completion.
    pub(crate) fn run(&self) -> Result<(), Loss> {
        self.finish(BegunGrid::default())
    }

    /// Begins the kernel while kernels in front have not ended. At most `most_threads` threads,
    /// rounded up to a block, wait for these then.
    pub(crate) fn begin(&self, most_threads: u64) -> Result<BegunGrid, Loss> {
        ptx::begin(&self.launch(), &self.view(), most_threads).map_err(loss_of)
    }

    /// Runs the rest of a kernel that has begun.
    pub(crate) fn finish(&self, begun: BegunGrid) -> Result<(), Loss> {
        ptx::finish(&self.launch(), &self.view(), begun).map_err(loss_of)
    }

    fn launch(&self) -> ptx::Launch<'a> {
        ptx::Launch {
            kernel: &self.function.code.kernel,
            grid: self.sizes.grid,
            block: self.sizes.block,
            dynamic_shared: self.sizes.shared,
            params: self.params,
            globals: &self.function.module.addresses,
        }
    }

    fn view(&self) -> View<'a> {
        View {
            held: Mutex::default(),
            conditions: self.conditions,
            declared: self.declared,
            watch: self.watch,
            module: &self.function.module,
            checks: checks(),
        }
    }
}
