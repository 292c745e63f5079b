//! Asking a driver in a child process, since loading one may crash or hang, and a process has one
//! driver.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use cuda_sys::{CUdevice_attribute, CUresult, Call, Loader};

use super::{FoundDevice, FoundDriver};
use crate::runner::{Driver, run_bounded};

/// A driver that takes longer to answer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The hidden command of the programs of this package that answers for one driver: its name and
/// that of the driver.
pub const COMMAND: &str = "ask-driver";

/// Asks the chosen driver and others, all at once.
pub(super) fn all(chosen: &Driver, others: &[PathBuf]) -> (FoundDriver, Vec<FoundDriver>) {
    std::thread::scope(|scope| {
        let others: Vec<_> =
            others.iter().map(|path| scope.spawn(|| in_child(&Driver::File(path.clone())))).collect();
        let chosen = in_child(chosen);
        (chosen, others.into_iter().filter_map(|asked| asked.join().ok()).collect())
    })
}

fn in_child(driver: &Driver) -> FoundDriver {
    let name = driver.argument().to_string_lossy().into_owned();
    let failed = |problem: String| FoundDriver {
        name: name.clone(),
        problem: Some(problem),
        ..FoundDriver::default()
    };
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    let mut command = Command::new(program);
    command.arg(COMMAND).arg(&name).envs(driver.library_path());
    match run_bounded(command, PATIENCE) {
        // The driver may have written, too.
        Ok(ended) => match ended.output.lines().find_map(|line| serde_json::from_str(line).ok()) {
            Some(found) => found,
            None if ended.status.is_none() => failed(format!("no answer within {} s", PATIENCE.as_secs())),
            None => failed(format!("asking it failed: {}", ended.output.trim())),
        },
        Err(error) => failed(error.to_string()),
    }
}

/// The child's part: loads the driver and prints what it says, as one line of JSON.
///
/// # Errors
/// The answer cannot be written as JSON.
pub fn answer(driver: &Driver) -> Result<()> {
    let name = driver.argument().to_string_lossy().into_owned();
    let mut found = FoundDriver { name, ..FoundDriver::default() };
    if let Err(error) = fill(driver, &mut found) {
        found.problem = Some(format!("{error:#}"));
    }
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

fn fill(driver: &Driver, found: &mut FoundDriver) -> Result<()> {
    let loader = match driver {
        // SAFETY: whoever names the file says that it is a driver; the search takes files with the
        // driver's name.
        Driver::File(path) => unsafe { Loader::file(path) },
        _ => Loader::system(),
    };
    let driver = loader.install()?;
    found.version = Some(driver.version().to_string());
    found.file = loaded_file();
    let works = |call: Call, answer: CUresult| -> Result<()> {
        let words = driver.describe(answer).map(|words| format!(" ({words})")).unwrap_or_default();
        ensure!(answer.is_success(), "{} answered {answer}{words}", call.name());
        Ok(())
    };
    // SAFETY: the first call of the driver; the flags are none.
    match unsafe { driver.cuInit(0) } {
        CUresult::CUDA_ERROR_NO_DEVICE => return Ok(()),
        code => works(Call::cuInit, code)?,
    }
    let mut count = 0;
    // SAFETY: the out pointer is valid.
    works(Call::cuDeviceGetCount, unsafe { driver.cuDeviceGetCount(&raw mut count) })?;
    for ordinal in 0..count {
        let mut device = 0;
        // SAFETY: the out pointer is valid.
        works(Call::cuDeviceGet, unsafe { driver.cuDeviceGet(&raw mut device, ordinal) })?;
        found.devices.push(describe(driver, device, &works)?);
    }
    Ok(())
}

fn describe(
    driver: &cuda_sys::Driver,
    device: i32,
    works: &impl Fn(Call, CUresult) -> Result<()>,
) -> Result<FoundDevice> {
    let mut name = [0_u8; 256];
    // SAFETY: the array has room for as many bytes.
    works(Call::cuDeviceGetName, unsafe { driver.cuDeviceGetName(name.as_mut_ptr().cast(), 255, device) })?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned();
    let mut bytes = 0;
    // SAFETY: the out pointer is valid.
    works(Call::cuDeviceTotalMem, unsafe { driver.cuDeviceTotalMem(&raw mut bytes, device) })?;
    let mut capability = [0; 2];
    let asked = [
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ];
    for (value, attribute) in capability.iter_mut().zip(asked) {
        // SAFETY: the out pointer is valid.
        let answer = unsafe { driver.cuDeviceGetAttribute(&raw mut *value, attribute, device) };
        works(Call::cuDeviceGetAttribute, answer)?;
    }
    let [major, minor] = capability;
    Ok(FoundDevice { name, capability: Some(format!("{major}.{minor}")), memory: Some(bytes as u64) })
}

/// The file of the driver in this process.
fn loaded_file() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut files = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    files.find(|file| file.contains("/libcuda.so")).map(PathBuf::from)
}
