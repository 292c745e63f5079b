//! Attributes and parameters of compiled kernels, read once.

use cuda_sys::CUfunction_attribute as Attribute;
use cuda_sys::{CUkernel, CUresult, Call};

use crate::context::Context;
use crate::error::Result;

/// One parameter in a kernel's parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its offset in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// The attributes of a compiled kernel; read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Threads that a block of it may have on its device.
    pub max_threads_per_block: u32,
    /// Bytes of shared memory that it declares itself.
    pub static_shared_bytes: u32,
    /// Bytes of dynamic shared memory that a launch may add, unless
    /// [`Kernel::set_max_dynamic_shared_bytes`](crate::Kernel::set_max_dynamic_shared_bytes) has
    /// changed that.
    pub max_dynamic_shared_bytes: u32,
    /// Bytes of constant memory that it declares.
    pub constant_bytes: u32,
    /// Bytes of local memory of each thread.
    pub local_bytes: u32,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// The PTX version of its source, ten times major plus minor.
    pub ptx_version: u32,
    /// The compute capability of its code, ten times major plus minor.
    pub binary_version: u32,
}

pub(super) fn read_attribute(context: &Context, kernel: CUkernel, attribute: Attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: the kernel's library is loaded and the out pointer valid.
    let code = unsafe {
        let device = context.device().as_raw();
        context.driver().cuKernelGetAttribute(&raw mut value, attribute, kernel, device)
    };
    context.check(Call::cuKernelGetAttribute, code)?;
    Ok(value)
}

/// Asks for one parameter after the other until the driver says that there is none.
pub(super) fn parameters(context: &Context, kernel: CUkernel) -> Result<Option<Box<[Parameter]>>> {
    let mut parameters = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the kernel's library is loaded and the out pointers are valid.
        let answer = unsafe {
            context.driver().cuKernelGetParamInfo(kernel, parameters.len(), &raw mut offset, &raw mut size)
        };
        match answer {
            Err(_older) => return Ok(None),
            Ok(CUresult::CUDA_ERROR_INVALID_VALUE) => return Ok(Some(parameters.into())),
            Ok(code) => context.check(Call::cuKernelGetParamInfo, code)?,
        }
        parameters.push(Parameter { offset, size });
    }
}

pub(super) fn attributes(context: &Context, kernel: CUkernel) -> Result<KernelAttributes> {
    let read =
        |attribute| read_attribute(context, kernel, attribute).map(|value| u32::try_from(value).unwrap_or(0));
    Ok(KernelAttributes {
        max_threads_per_block: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?
            .min(context.limits().max_threads_per_block),
        static_shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        max_dynamic_shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        constant_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        local_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptx_version: read(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binary_version: read(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
    })
}
