//! The choice of the driver, and the names of driver and device.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use cuda_handles::Device;
use cuda_sys::{Driver, Loader};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The driver to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Soft,
    System,
    File(PathBuf),
}

impl From<String> for Choice {
    fn from(name: String) -> Self {
        match name.as_str() {
            "auto" => Self::Auto,
            "soft" => Self::Soft,
            "system" => Self::System,
            _ => Self::File(PathBuf::from(name)),
        }
    }
}

/// The driver in use, or the exit code of a second process that used another one.
pub(crate) enum Chosen {
    Here { driver: &'static Driver, soft: bool },
    Elsewhere(i32),
}

/// Installs a driver. `Auto` takes the system's driver if it has a device, and the software driver
/// otherwise, with the reason printed.
pub(crate) fn choose(choice: &Choice) -> Outcome<Chosen> {
    match choice {
        Choice::Soft => soft(),
        Choice::System => Ok(Chosen::Here { driver: Loader::system().install()?, soft: false }),
        Choice::File(path) => {
            // SAFETY: whoever names a library on the command line promises that it is a driver.
            let loader = unsafe { Loader::file(path) };
            Ok(Chosen::Here { driver: loader.install()?, soft: false })
        }
        Choice::Auto => automatic(),
    }
}

/// The software driver, which poses as two devices unless the environment says otherwise.
fn soft() -> Outcome<Chosen> {
    let config = cuda_soft::Config::from_environment()?;
    let config = match std::env::var_os("CUDA_SOFT_DEVICES") {
        None => config.devices(2),
        Some(_) => config,
    };
    let driver = cuda_soft::loader(config).install()?;
    Ok(Chosen::Here { driver, soft: true })
}

fn automatic() -> Outcome<Chosen> {
    // The user asked for a library named in the environment: its failure is an error.
    let named = std::env::var_os("CUDA_SYS_DRIVER").is_some_and(|path| !path.is_empty());
    let driver = match Loader::from_environment().install() {
        Ok(driver) => driver,
        Err(error) if named => return Err(error.into()),
        Err(error) => {
            println!("using the software driver: {error}");
            return soft();
        }
    };
    let reason = match Device::count() {
        Ok(1..) => return Ok(Chosen::Here { driver, soft: false }),
        Ok(0) => "the system's driver has no device".to_owned(),
        Err(error) => error.to_string(),
    };
    if named {
        return Err(reason.into());
    }
    println!("using the software driver: {reason}");
    again_with_soft()
}

/// Starts a second process with the software driver: a process can have one driver only.
fn again_with_soft() -> Outcome<Chosen> {
    let arguments = std::env::args_os().skip(1);
    let status =
        Command::new(std::env::current_exe()?).args(arguments).args(["--driver", "soft"]).status()?;
    Ok(Chosen::Elsewhere(status.code().unwrap_or(1)))
}

pub(crate) fn name(driver: &Driver) -> String {
    format!("CUDA {} from {}", driver.version(), driver.origin())
}

pub(crate) fn name_device(device: Device) -> Outcome<String> {
    let (major, minor) = device.compute_capability()?;
    let gib = device.total_memory()? as f64 / f64::from(1 << 30);
    Ok(format!("{}, compute capability {major}.{minor}, {gib:.1} GiB", device.name()?))
}
