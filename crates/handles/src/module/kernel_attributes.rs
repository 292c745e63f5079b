//! Reading and setting the attributes of a kernel.

use cuda_sys::CUfunction_attribute as Attribute;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::Call;

use super::kernel::Kernel;
use super::kernel_facts::read_attribute;
use crate::error::{Error, Result};

impl Kernel {
    /// Bytes of dynamic shared memory that a launch may add now; see
    /// [`set_max_dynamic_shared_bytes`](Self::set_max_dynamic_shared_bytes). No driver call.
    #[must_use]
    #[inline]
    pub fn max_dynamic_shared_bytes(&self) -> u32 {
        self.0.shared.max_dynamic_shared.load(Ordering::Relaxed)
    }

    /// A memo of [`cuda-launch`](https://docs.rs/cuda-launch) on the kernel's occupancy, in its own
    /// form; 0 once an attribute is set.
    #[doc(hidden)]
    #[must_use]
    pub fn occupancy_memo(&self) -> &AtomicU64 {
        &self.0.shared.occupancy
    }

    /// Lets launches add that many bytes of dynamic shared memory, up to the device's opt-in limit
    /// less the kernel's static shared memory. Applies to all users of the kernel on this device.
    ///
    /// Calls `cuKernelSetAttribute` (CUDA 12.0).
    ///
    /// # Errors
    /// More than the device allows ([`Error::Limit`](crate::Error::Limit)), or the driver refuses
    /// the call.
    #[doc(alias = "cuKernelSetAttribute")]
    #[doc(alias = "cudaFuncSetAttribute")]
    #[doc(alias = "cudaFuncAttributeMaxDynamicSharedMemorySize")]
    pub fn set_max_dynamic_shared_bytes(&self, bytes: u32) -> Result<()> {
        let limits = self.context().limits();
        let most = limits.max_shared_bytes_opt_in.max(limits.max_shared_bytes);
        let limit = most.saturating_sub(self.attributes().static_shared_bytes);
        if bytes > limit {
            let what = "the dynamic shared memory of a kernel, in bytes";
            return Err(Error::Limit { what, asked: bytes.into(), limit: limit.into() });
        }
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value)
    }

    /// One attribute as it is now, for the context's device.
    ///
    /// Calls `cuKernelGetAttribute` (CUDA 12.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuKernelGetAttribute")]
    #[doc(alias = "cudaFuncGetAttributes")]
    pub fn attribute(&self, attribute: Attribute) -> Result<i32> {
        self.context().ensure_usable()?;
        read_attribute(self.context(), self.as_raw(), attribute)
    }

    /// Sets one attribute, for the context's device and all users of the kernel there; such as
    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT` and
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
    ///
    /// Calls `cuKernelSetAttribute` (CUDA 12.0).
    ///
    /// # Errors
    /// The driver refuses the call; `INVALID_VALUE` for an attribute that cannot be set.
    #[doc(alias = "cuKernelSetAttribute")]
    #[doc(alias = "cuFuncSetAttribute")]
    #[doc(alias = "cudaFuncSetAttribute")]
    pub fn set_attribute(&self, attribute: Attribute, value: i32) -> Result<()> {
        let context = self.context();
        context.ensure_usable()?;
        // SAFETY: the kernel's library is loaded.
        let code = unsafe {
            let device = context.device().as_raw();
            context.driver().cuKernelSetAttribute(attribute, value, self.as_raw(), device)
        };
        context.check(Call::cuKernelSetAttribute, code)?;
        // The occupancy may depend on every attribute.
        self.0.shared.occupancy.store(0, Ordering::Relaxed);
        if attribute == Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES {
            self.0.shared.max_dynamic_shared.store(u32::try_from(value).unwrap_or(0), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Loads the kernel's code to the device now, where the driver would do it at the first launch.
    ///
    /// Calls `cuFuncLoad` (CUDA 12.4).
    ///
    /// # Errors
    /// The driver is older, or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuFuncLoad")]
    pub fn load_now(&self) -> Result<()> {
        let context = self.context();
        let _current = context.enter()?;
        // SAFETY: the function is alive as its library is.
        let code = unsafe { context.driver().cuFuncLoad(self.function()) }?;
        self.0.library.compiled(Call::cuFuncLoad, code)
    }
}
