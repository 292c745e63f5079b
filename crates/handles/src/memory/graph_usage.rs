//! The device memory of graphs: how much they have, and trimming it.

use cuda_sys::{CUgraphMem_attribute as Attribute, Call};

use crate::context::Context;
use crate::error::Result;

/// The device memory of the allocation nodes of all graphs of the process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphMemoryUsage {
    /// In use by graphs. Some drivers count reserved memory here until it is trimmed.
    pub used: u64,
    /// The most that was in use at a time since the last
    /// [reset](Context::reset_graph_memory_high_water).
    pub used_high: u64,
    /// Taken from the device. Uploads and launches raise it; only a
    /// [trim](Context::trim_graph_memory) lowers it.
    pub reserved: u64,
    /// The most that was taken at a time since the last
    /// [reset](Context::reset_graph_memory_high_water).
    pub reserved_high: u64,
}

impl Context {
    /// How much memory of its device graphs have.
    ///
    /// Calls `cuDeviceGetGraphMemAttribute` (CUDA 11.4); four calls, so the numbers may be of
    /// different moments.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceGetGraphMemAttribute")]
    #[doc(alias = "cudaDeviceGetGraphMemAttribute")]
    pub fn graph_memory_usage(&self) -> Result<GraphMemoryUsage> {
        Ok(GraphMemoryUsage {
            used: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_high: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
            reserved: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Makes both high-water marks of [`graph_memory_usage`](Self::graph_memory_usage) begin anew.
    ///
    /// Calls `cuDeviceSetGraphMemAttribute` (CUDA 11.4).
    ///
    /// # Errors
    /// The driver refuses the call; the first mark may have been reset then.
    #[doc(alias = "cuDeviceSetGraphMemAttribute")]
    pub fn reset_graph_memory_high_water(&self) -> Result<()> {
        self.reset_graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?;
        self.reset_graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    }

    /// Returns reserved memory that graphs do not use now to the device. The next launch takes what
    /// it needs again, so call this while graphs rest.
    ///
    /// Memory that was dropped counts until the reaper has freed it, in the order of the streams
    /// that used it. [`memory_info`](Self::memory_info) waits for that where the streams are idle.
    ///
    /// Calls `cuDeviceGraphMemTrim` (CUDA 11.4).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceGraphMemTrim")]
    #[doc(alias = "cudaDeviceGraphMemTrim")]
    pub fn trim_graph_memory(&self) -> Result<()> {
        self.ensure_usable()?;
        // SAFETY: the driver gives back what no graph uses.
        let code = unsafe { self.driver().cuDeviceGraphMemTrim(self.device().as_raw()) };
        self.check(Call::cuDeviceGraphMemTrim, code)
    }

    fn graph_memory(&self, attribute: Attribute) -> Result<u64> {
        self.ensure_usable()?;
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        // SAFETY: the attribute is one of 64 bits, for which there is room.
        let code =
            unsafe { self.driver().cuDeviceGetGraphMemAttribute(self.device().as_raw(), attribute, value) };
        self.check(Call::cuDeviceGetGraphMemAttribute, code)?;
        Ok(bytes)
    }

    fn reset_graph_memory(&self, attribute: Attribute) -> Result<()> {
        self.ensure_usable()?;
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        // SAFETY: the attribute is one of 64 bits, which are given.
        let code =
            unsafe { self.driver().cuDeviceSetGraphMemAttribute(self.device().as_raw(), attribute, value) };
        self.check(Call::cuDeviceSetGraphMemAttribute, code)
    }
}
