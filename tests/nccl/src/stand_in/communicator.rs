//! Communicators of the stand-in.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuda_sys::{CUcontext, CUdevice, CUevent, CUkernel, CUlibrary, Driver};

use super::driver::{driver, kernels, new_event, ok, within};
use super::{Answer, INTERNAL_ERROR, Kernel};

const IMAGE: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
    concat!(include_str!("../../kernels/sum.ptx"), "\0").as_bytes(),
) {
    Ok(image) => image,
    Err(_) => c"",
};

/// The order of the kernels in a library.
const NAMES: [&core::ffi::CStr; 4] = [c"sum_f32", c"sum_f64", c"sum_u32", c"sum_u64"];

/// How long the end of communicators waits for graphs that use them. NCCL waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// One of the communicators that were made together.
pub(super) struct Rank {
    pub(super) clique: Arc<Clique>,
    pub(super) number: usize,
}

/// What they share.
pub(super) struct Clique {
    pub(super) devices: Vec<DevicePart>,
    library: CUlibrary,
    kernels: [CUkernel; 4],
    graphs: Mutex<Graphs>,
    changed: Condvar,
}

/// The part of one device.
pub(super) struct DevicePart {
    device: CUdevice,
    pub(super) context: CUcontext,
    /// Behind the last group.
    pub(super) serial: CUevent,
}

/// What graphs have of the communicators.
#[derive(Default)]
struct Graphs {
    /// How many there are.
    count: usize,
    /// The memory of those that are gone.
    garbage: Vec<(usize, u64)>,
    ended: usize,
}

// SAFETY: the driver's handles belong to no thread.
unsafe impl Send for Clique {}
// SAFETY: as above.
unsafe impl Sync for Clique {}

/// The memory of a captured group, by rank; the value of a user object of its graph.
pub(super) struct Plan {
    pub(super) clique: Arc<Clique>,
    pub(super) memory: Vec<(usize, u64)>,
}

/// Communicators for devices.
pub(super) fn create(devices: &[c_int]) -> Answer<Vec<Rank>> {
    let driver = driver()?;
    let mut parts = Vec::with_capacity(devices.len());
    for device in devices {
        match DevicePart::new(driver, *device) {
            Ok(part) => parts.push(part),
            Err(failure) => return Err(undone(driver, &parts, failure)),
        }
    }
    let loaded = match parts.first() {
        // SAFETY: the context was retained.
        Some(first) => unsafe { within(first.context, |driver| kernels(driver, IMAGE, NAMES)) },
        None => Err(super::INVALID_ARGUMENT),
    };
    let (library, kernels) = loaded.map_err(|failure| undone(driver, &parts, failure))?;
    let clique = Arc::new(Clique {
        devices: parts,
        library,
        kernels,
        graphs: Mutex::default(),
        changed: Condvar::new(),
    });
    Ok((0..devices.len()).map(|number| Rank { clique: Arc::clone(&clique), number }).collect())
}

fn undone(driver: &Driver, parts: &[DevicePart], failure: c_int) -> c_int {
    for part in parts {
        let _failed_before = part.end(driver);
    }
    failure
}

impl DevicePart {
    fn new(driver: &'static Driver, number: c_int) -> Answer<Self> {
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: the out pointer is valid.
        ok(unsafe { driver.cuDeviceGet(&raw mut device, number) })?;
        // SAFETY: the out pointer is valid.
        ok(unsafe { driver.cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
        // SAFETY: the context was retained.
        match unsafe { within(context, new_event) } {
            Ok(serial) => Ok(Self { device, context, serial }),
            Err(failure) => {
                // SAFETY: it was retained above.
                let _failed_before = unsafe { driver.cuDevicePrimaryCtxRelease(device) };
                Err(failure)
            }
        }
    }

    fn end(&self, driver: &Driver) -> Answer {
        // SAFETY: the event is ours; the driver keeps it for work in flight.
        ok(unsafe { driver.cuEventDestroy(self.serial) })?;
        // SAFETY: `new` retained it.
        ok(unsafe { driver.cuDevicePrimaryCtxRelease(self.device) })
    }
}

impl Rank {
    /// Ends the communicator; the last one ends what they share.
    pub(super) fn end(self) -> Answer {
        let mut graphs = self.clique.graphs();
        graphs.ended += 1;
        if graphs.ended < self.clique.devices.len() {
            return Ok(());
        }
        let (waited, late) = self
            .clique
            .changed
            .wait_timeout_while(graphs, PATIENCE, |graphs| graphs.count > 0)
            .unwrap_or_else(PoisonError::into_inner);
        drop(waited);
        if late.timed_out() {
            return Err(INTERNAL_ERROR);
        }
        self.clique.collect()?;
        let driver = driver()?;
        // SAFETY: no graph and no group uses the library any more.
        ok(unsafe { driver.cuLibraryUnload(self.clique.library) })?;
        self.clique.devices.iter().try_for_each(|part| part.end(driver))
    }
}

impl Clique {
    fn graphs(&self) -> MutexGuard<'_, Graphs> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kernel(&self, kernel: Kernel) -> CUkernel {
        let [f32s, f64s, u32s, u64s] = self.kernels;
        match kernel {
            Kernel::F32 => f32s,
            Kernel::F64 => f64s,
            Kernel::U32 => u32s,
            Kernel::U64 => u64s,
        }
    }

    /// Frees the memory of graphs that are gone.
    pub(super) fn collect(&self) -> Answer {
        let garbage = core::mem::take(&mut self.graphs().garbage);
        for (rank, address) in garbage {
            let Some(part) = self.devices.get(rank) else { continue };
            // SAFETY: the context is retained, and no graph uses the memory.
            unsafe { within(part.context, |driver| ok(driver.cuMemFree(address))) }?;
        }
        Ok(())
    }
}

impl Plan {
    pub(super) fn new(clique: &Arc<Clique>, memory: Vec<(usize, u64)>) -> Box<Self> {
        clique.graphs().count += 1;
        Box::new(Self { clique: Arc::clone(clique), memory })
    }

    /// Takes the plan of a graph that is gone back, on a thread of the driver: makes no call.
    ///
    /// # Safety
    /// It is a plan that was given to a graph.
    pub(super) unsafe extern "C" fn end(plan: *mut c_void) {
        // SAFETY: the caller's promise.
        let plan = unsafe { Box::from_raw(plan.cast::<Self>()) };
        let mut graphs = plan.clique.graphs();
        graphs.count -= 1;
        graphs.garbage.extend(&plan.memory);
        drop(graphs);
        plan.clique.changed.notify_all();
    }
}
