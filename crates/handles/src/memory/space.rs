//! Memory spaces, and the driver's information on an address.

use core::ffi::c_void;
use core::fmt;

use cuda_sys::{CUdevice, CUdeviceptr, CUmemorytype, CUpointer_attribute as Attribute, Call};

use crate::context::Context;
use crate::error::{MemoryKind, Result};

/// The space that memory lies in, as far as copies and fills care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemorySpace {
    /// On a device.
    Device,
    /// On the host, pinned or registered: devices reach it.
    Pinned,
    /// Wherever it is used.
    Managed,
    /// On the host, and the driver does not know of it.
    Pageable,
    /// On another device than the device of the work.
    Peer,
    /// Wherever the driver finds it: memory of another owner.
    Found,
}

impl MemorySpace {
    /// How the driver's descriptions of copies call it.
    #[must_use]
    pub fn memory_type(self) -> CUmemorytype {
        match self {
            Self::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Self::Pinned | Self::Pageable => CUmemorytype::CU_MEMORYTYPE_HOST,
            Self::Managed | Self::Peer | Self::Found => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        }
    }
}

impl fmt::Display for MemorySpace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
            Self::Managed => "managed",
            Self::Pageable => "pageable",
            Self::Peer => "peer device",
            Self::Found => "foreign",
        })
    }
}

impl MemoryKind {
    /// The space of memory of this kind.
    #[must_use]
    pub fn space(self) -> MemorySpace {
        match self {
            Self::Pooled | Self::Plain | Self::Global | Self::Imported | Self::Graph => MemorySpace::Device,
            Self::Pinned | Self::Registered => MemorySpace::Pinned,
            Self::Managed => MemorySpace::Managed,
            Self::Foreign => MemorySpace::Found,
        }
    }
}

/// The driver's information on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AddressInfo {
    /// Its space. [`MemorySpace::Pageable`] is memory that the driver does not know: pageable host
    /// memory, or no memory at all.
    pub space: MemorySpace,
    /// The start of the allocation that contains it; 0 if the driver does not know.
    pub start: CUdeviceptr,
    /// How many bytes that memory has; 0 if the driver does not know.
    pub bytes: usize,
}

impl AddressInfo {
    /// The bytes from `address` to the end of its memory, where the driver knows.
    #[must_use]
    pub fn room_at(&self, address: CUdeviceptr) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        if self.bytes == 0 { None } else { self.bytes.checked_sub(offset) }
    }
}

impl Context {
    /// Asks the driver about an address.
    ///
    /// Calls `cuPointerGetAttributes` (CUDA 7.0), with the context made current for it.
    ///
    /// # Errors
    /// The driver refuses the call. An address that it does not know is none.
    #[doc(alias = "cuPointerGetAttribute")]
    #[doc(alias = "cuPointerGetAttributes")]
    #[doc(alias = "cudaPointerGetAttributes")]
    pub fn address_info(&self, address: CUdeviceptr) -> Result<AddressInfo> {
        let mut kind = CUmemorytype(0);
        let (mut managed, mut device): (u32, CUdevice) = (0, self.device().as_raw());
        let (mut start, mut bytes): (CUdeviceptr, usize) = (0, 0);
        let mut attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        ];
        let mut places: [*mut c_void; 5] = [
            (&raw mut kind).cast(),
            (&raw mut managed).cast(),
            (&raw mut device).cast(),
            (&raw mut start).cast(),
            (&raw mut bytes).cast(),
        ];
        let _current = self.enter()?;
        // SAFETY: there is a place for each attribute, of the attribute's type; the address is
        // asked about, not used.
        let code = unsafe {
            let count = attributes.len() as u32;
            self.driver().cuPointerGetAttributes(count, attributes.as_mut_ptr(), places.as_mut_ptr(), address)
        };
        self.check(Call::cuPointerGetAttributes, code)?;
        let space = match kind {
            _ if managed != 0 => MemorySpace::Managed,
            CUmemorytype::CU_MEMORYTYPE_DEVICE if device != self.device().as_raw() => MemorySpace::Peer,
            CUmemorytype::CU_MEMORYTYPE_DEVICE => MemorySpace::Device,
            CUmemorytype::CU_MEMORYTYPE_HOST => MemorySpace::Pinned,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => MemorySpace::Found,
            _ => MemorySpace::Pageable,
        };
        Ok(AddressInfo { space, start, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_is_left() {
        let info = AddressInfo { space: MemorySpace::Device, start: 0x1000, bytes: 64 };
        assert_eq!(
            [0x1000, 0x1010, 0x1040, 0x1041, 0xfff].map(|address| info.room_at(address)),
            [Some(64), Some(48), Some(0), None, None]
        );
        let unknown = AddressInfo { bytes: 0, ..info };
        assert_eq!(unknown.room_at(0x1000), None);
    }
}
