//! Running a kernel on the interpreter.

use std::sync::{Arc, Mutex};

use cuda_sys::CUresult;

use super::check::Sizes;
use crate::device::loss::{self, Loss};
use crate::memory::{self, Allocation};
use crate::module::Function;
use crate::ptx::{self, DeviceMemory, FaultKind, MemoryFault, Span};
use crate::sync::lock;

/// Sets the values of conditional handles from kernels.
pub(crate) trait ConditionSetter: Send + Sync {
    /// Sets the value of a handle. Unknown handles have no effect.
    fn set(&self, handle: u64, value: u32);
}

/// The memory that one launch can access. It keeps every allocation that the launch has accessed
/// alive until the launch ends.
struct View<'a> {
    held: Mutex<Vec<Arc<Allocation>>>,
    conditions: Option<&'a dyn ConditionSetter>,
    device: i32,
}

impl DeviceMemory for View<'_> {
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault> {
        let found = memory::access(address, len, write)
            .map_err(|message| MemoryFault { kind: FaultKind::IllegalAddress, message })?;
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

    fn cancelled(&self) -> bool {
        loss::is_lost(self.device)
    }
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
        FaultKind::Trap | FaultKind::LaunchFailed | FaultKind::Cancelled => {
            CUresult::CUDA_ERROR_LAUNCH_FAILED
        }
    }
}

/// Runs a kernel to completion.
pub(crate) fn run(
    function: &Function,
    sizes: &Sizes,
    params: &[u8],
    conditions: Option<&dyn ConditionSetter>,
) -> Result<(), Loss> {
    let launch = ptx::Launch {
        kernel: &function.code.kernel,
        grid: sizes.grid,
        block: sizes.block,
        dynamic_shared: sizes.shared,
        params,
        globals: &function.module.addresses,
    };
    let view = View { held: Mutex::default(), conditions, device: function.module.context.device };
    ptx::run(&launch, &view).map_err(|fault| Loss::new(code_of(fault.kind), fault.to_string()))
}
