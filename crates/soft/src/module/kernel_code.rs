//! The code of a kernel and the attributes that users can set.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::ptx::{Image, Kernel};

/// The attributes of a kernel that users can set.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Dynamic shared memory allowed, in bytes.
    pub(crate) dynamic_shared: AtomicI32,
    pub(crate) carveout: AtomicI32,
    pub(crate) non_portable_cluster: AtomicBool,
    pub(crate) cluster_policy: AtomicI32,
}

/// The parts of a kernel that its functions in all contexts share.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) kernel: Kernel,
    pub(crate) name: CString,
    pub(crate) ptx_version: i32,
    /// The bytes of the constants of its image.
    pub(crate) const_bytes: u32,
    pub(crate) settings: Settings,
}

impl Code {
    /// The most dynamic shared memory of a block, in bytes.
    pub(crate) fn most_dynamic_shared(&self) -> u32 {
        self.settings.dynamic_shared.load(Ordering::Relaxed).max(0).unsigned_abs()
    }
}

pub(super) fn codes(image: &Image) -> Vec<Arc<Code>> {
    let (major, minor) = image.version();
    let ptx_version = i32::try_from(major.saturating_mul(10).saturating_add(minor)).unwrap_or(0);
    let constants = image.globals().iter().filter(|global| global.is_const);
    let const_bytes = constants.fold(0, |end: u64, constant| {
        end.next_multiple_of(constant.align.max(1)).saturating_add(constant.size)
    });
    let const_bytes = u32::try_from(const_bytes).unwrap_or(u32::MAX);
    let code = |kernel: &Kernel| {
        let free = (48 << 10) - i32::try_from(kernel.static_shared_bytes()).unwrap_or(i32::MAX);
        let settings = Settings {
            dynamic_shared: AtomicI32::new(free.max(0)),
            carveout: AtomicI32::new(-1),
            non_portable_cluster: AtomicBool::new(false),
            cluster_policy: AtomicI32::new(0),
        };
        let name = CString::new(kernel.name()).unwrap_or_default();
        Arc::new(Code { kernel: kernel.clone(), name, ptx_version, const_bytes, settings })
    };
    image.kernels().map(code).collect()
}
