//! How much memory of a device graphs have, and giving back what they do not use.

use cuda_sys::{CUgraphMem_attribute as Attribute, Call};

use crate::device::{Device, checked};
use crate::error::Result;

/// How much memory of a device the allocation nodes of graphs have, in bytes: those of all graphs of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphMemoryUsage {
    /// In use by graphs. A driver may count here what is reserved, until it is trimmed.
    pub used: u64,
    /// The most that was in use at a time since the last [reset](Device::reset_graph_memory_high_water).
    pub used_high: u64,
    /// Taken from the device. It rises with uploads and launches and falls by a [trim](Device::trim_graph_memory) alone.
    pub reserved: u64,
    /// The most that was taken at a time since the last [reset](Device::reset_graph_memory_high_water).
    pub reserved_high: u64,
}

impl Device {
    /// How much of its memory graphs have.
    ///
    /// Stands on `cuDeviceGetGraphMemAttribute`, CUDA 11.4; four calls, so the numbers may be of different moments.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuDeviceGetGraphMemAttribute")]
    pub fn graph_memory_usage(self) -> Result<GraphMemoryUsage> {
        Ok(GraphMemoryUsage {
            used: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_high: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
            reserved: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Makes both high-water marks of [`graph_memory_usage`](Self::graph_memory_usage) begin anew.
    ///
    /// Stands on `cuDeviceSetGraphMemAttribute`, CUDA 11.4.
    ///
    /// # Errors
    /// What the driver answers; the first mark may have been reset then.
    #[doc(alias = "cuDeviceSetGraphMemAttribute")]
    pub fn reset_graph_memory_high_water(self) -> Result<()> {
        self.reset_graph_memory(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?;
        self.reset_graph_memory(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    }

    /// Gives back to the device what graphs have reserved of it and do not use now. The next launch takes what it needs again, so this is for when
    /// graphs rest.
    ///
    /// Stands on `cuDeviceGraphMemTrim`, CUDA 11.4.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuDeviceGraphMemTrim")]
    pub fn trim_graph_memory(self) -> Result<()> {
        // SAFETY: the driver gives back what no graph uses.
        let code = unsafe { self.driver().cuDeviceGraphMemTrim(self.as_raw()) };
        checked(Call::cuDeviceGraphMemTrim, code)
    }

    fn graph_memory(self, attribute: Attribute) -> Result<u64> {
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        // SAFETY: the attribute is one of 64 bits, for which there is room.
        let code = unsafe { self.driver().cuDeviceGetGraphMemAttribute(self.as_raw(), attribute, value) };
        checked(Call::cuDeviceGetGraphMemAttribute, code)?;
        Ok(bytes)
    }

    fn reset_graph_memory(self, attribute: Attribute) -> Result<()> {
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        // SAFETY: the attribute is one of 64 bits, which are given.
        let code = unsafe { self.driver().cuDeviceSetGraphMemAttribute(self.as_raw(), attribute, value) };
        checked(Call::cuDeviceSetGraphMemAttribute, code)
    }
}
