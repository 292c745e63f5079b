//! Devices, and the initialisation of the driver.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::{CUdevice, CUdevice_attribute, CUresult, CUuuid, Call, Driver};

use crate::error::{Error, Result};
use crate::sync::process;

/// One CUDA device. It is a number; getting it initialises the driver.
#[derive(Clone, Copy)]
pub struct Device {
    raw: CUdevice,
    ordinal: usize,
    is_one_of_several: bool,
    driver: &'static Driver,
}

impl Device {
    /// How many devices there are. Loads and initialises the driver if that has not happened. A
    /// driver that sees no device counts 0.
    ///
    /// Calls `cuInit` and `cuDeviceGetCount` (CUDA 2.0).
    ///
    /// # Errors
    /// There is no usable driver, or it does not initialise.
    #[doc(alias = "cuDeviceGetCount")]
    #[doc(alias = "cudaGetDeviceCount")]
    pub fn count() -> Result<usize> {
        match initialised() {
            Ok(driver) => count(driver),
            Err(Error::Driver { code: CUresult::CUDA_ERROR_NO_DEVICE, .. }) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The device with this ordinal, from 0. Loads and initialises the driver if that has not
    /// happened.
    ///
    /// Calls `cuInit` and `cuDeviceGet` (CUDA 2.0).
    ///
    /// # Errors
    /// There is no usable driver, it does not initialise, or the device does not exist
    /// ([`NoDevice`](crate::Error::NoDevice)).
    #[doc(alias = "cuInit")]
    #[doc(alias = "cuDeviceGet")]
    #[doc(alias = "cudaSetDevice")]
    #[doc(alias = "cudaGetDevice")]
    pub fn new(ordinal: usize) -> Result<Self> {
        let found = Self::count()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < found);
        let number = number.ok_or(Error::NoDevice { asked: ordinal, found })?;
        let driver = initialised()?;
        let mut raw = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { driver.cuDeviceGet(&raw mut raw, number) };
        checked(Call::cuDeviceGet, code)?;
        Ok(Self { raw, ordinal, is_one_of_several: found > 1, driver })
    }

    /// The device that the driver knows by this value.
    pub(crate) fn with_raw(raw: CUdevice) -> Result<Self> {
        let found = Self::all()?;
        let count = found.len();
        let asked = usize::try_from(raw).unwrap_or(usize::MAX);
        found.into_iter().find(|device| device.raw == raw).ok_or(Error::NoDevice { asked, found: count })
    }

    /// All devices.
    ///
    /// # Errors
    /// As [`count`](Self::count) and [`new`](Self::new).
    pub fn all() -> Result<Vec<Self>> {
        (0..Self::count()?).map(Self::new).collect()
    }

    /// The number by which the driver counts it, from 0.
    #[must_use]
    pub fn ordinal(self) -> usize {
        self.ordinal
    }

    /// Whether the process sees other devices, too.
    pub(crate) fn is_one_of_several(self) -> bool {
        self.is_one_of_several
    }

    /// The driver's own value.
    #[must_use]
    pub fn as_raw(self) -> CUdevice {
        self.raw
    }

    /// The driver of the process.
    #[must_use]
    pub fn driver(self) -> &'static Driver {
        self.driver
    }

    /// The product's name.
    ///
    /// Calls `cuDeviceGetName` (CUDA 2.0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceGetName")]
    #[doc(alias = "cudaGetDeviceProperties")]
    pub fn name(self) -> Result<String> {
        let mut text: [c_char; 256] = [0; 256];
        // SAFETY: the buffer has the length that is given; the driver ends the name with a zero.
        let code = unsafe { self.driver.cuDeviceGetName(text.as_mut_ptr(), 255, self.raw) };
        checked(Call::cuDeviceGetName, code)?;
        // SAFETY: the last byte is zero whatever the driver wrote before it.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// The device's 16 byte identity, the same in every process.
    ///
    /// Calls `cuDeviceGetUuid` (CUDA 11.4).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceGetUuid")]
    pub fn uuid(self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.driver.cuDeviceGetUuid(&raw mut uuid, self.raw) };
        checked(Call::cuDeviceGetUuid, code)?;
        Ok(bytemuck::cast(uuid.bytes))
    }

    /// One attribute, in the unit that the driver's documentation gives it.
    ///
    /// Calls `cuDeviceGetAttribute` (CUDA 2.0).
    ///
    /// # Errors
    /// The driver refuses the call; `INVALID_VALUE` for an attribute that it does not know.
    #[doc(alias = "cuDeviceGetAttribute")]
    #[doc(alias = "cudaDeviceGetAttribute")]
    pub fn attribute(self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.driver.cuDeviceGetAttribute(&raw mut value, attribute, self.raw) };
        checked(Call::cuDeviceGetAttribute, code)?;
        Ok(value)
    }

    /// The device's memory, in bytes.
    ///
    /// Calls `cuDeviceTotalMem` (CUDA 3.2).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceTotalMem")]
    pub fn total_memory(self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { self.driver.cuDeviceTotalMem(&raw mut bytes, self.raw) };
        checked(Call::cuDeviceTotalMem, code)?;
        Ok(bytes)
    }

    /// The compute capability, such as (9, 0).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses the call.
    #[doc(alias = "cuDeviceComputeCapability")]
    pub fn compute_capability(self) -> Result<(u32, u32)> {
        let part = |attribute| self.attribute(attribute).map(|value| u32::try_from(value).unwrap_or(0));
        Ok((
            part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.ordinal == other.ordinal
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ordinal.hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Device").field(&self.ordinal).finish()
    }
}

/// The driver, loaded and initialised.
pub(crate) fn initialised() -> Result<&'static Driver> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if process::is_forked() {
        return Err(Error::Forked);
    }
    let driver = cuda_sys::driver()?;
    if !DONE.load(Ordering::Acquire) {
        // SAFETY: the call takes no pointers and may be repeated.
        checked(Call::cuInit, unsafe { driver.cuInit(0) })?;
        // After the driver's own: handlers run in the opposite order.
        process::watch();
        DONE.store(true, Ordering::Release);
    }
    Ok(driver)
}

fn count(driver: &Driver) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the out pointer is valid.
    checked(Call::cuDeviceGetCount, unsafe { driver.cuDeviceGetCount(&raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The result of a call that has to do with no context.
pub(crate) fn checked(call: Call, code: CUresult) -> Result<()> {
    if code.is_success() { Ok(()) } else { Err(Error::Driver { call, code }) }
}
