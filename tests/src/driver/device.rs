//! The device under test, and another one.

use cuda_handles::Device;

pub(crate) const VARIABLE: &str = "CUDA_TEST_DEVICE";

/// The number of the device under test: 0, unless the environment variable `CUDA_TEST_DEVICE`
/// names another one.
///
/// # Panics
/// The variable is no number.
pub(crate) fn ordinal() -> usize {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("") => 0,
        Ok(number) => {
            number.parse().unwrap_or_else(|_| panic!("{VARIABLE} is `{number}`, which is no number"))
        }
    }
}

/// The device under test.
///
/// # Panics
/// There is no driver or no such device.
#[must_use]
pub fn device() -> Device {
    let number = ordinal();
    Device::new(number).unwrap_or_else(|error| panic!("device {number}: {error}"))
}

/// A device other than the one under test. A test asks [`needs!(TwoDevices)`](crate::needs) first.
///
/// # Panics
/// There is no driver or no second device.
#[must_use]
pub fn other_device() -> Device {
    let number = usize::from(ordinal() == 0);
    Device::new(number).unwrap_or_else(|error| panic!("device {number}: {error}"))
}
