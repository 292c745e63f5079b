//! Hints for managed memory. They are checked and have no effect.

use core::ffi::c_uint;

use cuda_sys::{CUdeviceptr, CUmem_advise, CUmemLocation, CUmemLocationType, CUstream};

use super::table::Entries;
use crate::device::context::check_device;
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::memory::{self, Origin};
use crate::stream;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuMemPrefetchAsync, cuMemAdvise, cuStreamAttachMemAsync, ..entries }
}

fn managed(address: u64, len: usize) -> Answer {
    let found = memory::find_range(address, len).filter(|found| found.origin == Origin::Managed);
    if len > 0 && found.is_some() { Ok(()) } else { Err(INVALID_VALUE) }
}

fn check_location(location: &CUmemLocation) -> Answer {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return if (2..=4).contains(&location.type_.0) { Ok(()) } else { Err(INVALID_VALUE) };
    }
    // SAFETY: the location type says that this field counts.
    check_device(unsafe { location.__bindgen_anon_1.id })
}

entries! {
    owned fn cuMemPrefetchAsync(
        dev_ptr: CUdeviceptr,
        count: usize,
        location: CUmemLocation,
        flags: c_uint,
        h_stream: CUstream,
    ) {
        let stream = stream::get(number(h_stream))?;
        managed(dev_ptr, count)?;
        check_location(&location)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        capture::refuse_on(&stream)?;
        stream.push(|| Ok(()));
        Ok(())
    }

    live fn cuMemAdvise(dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation) {
        managed(dev_ptr, count)?;
        match advice.0 {
            // Read-mostly and its opposite have no location.
            1 | 2 | 4 => Ok(()),
            3 | 5 | 6 => check_location(&location),
            _ => Err(INVALID_VALUE),
        }
    }

    owned fn cuStreamAttachMemAsync(h_stream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        let found = memory::find_start(dptr).filter(|found| found.origin == Origin::Managed).ok_or(INVALID_VALUE)?;
        if !matches!(flags, 1 | 2 | 4) || (length != 0 && length != found.len) {
            return Err(INVALID_VALUE);
        }
        stream.push(|| Ok(()));
        Ok(())
    }
}
