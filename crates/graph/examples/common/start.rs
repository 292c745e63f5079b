//! What the numbered examples start with: a context on the driver that the command line names.

mod driver;

use std::error::Error;

use cuda_handles::{Context, Device};

use driver::{Choice, Chosen};

/// The first device's context. `--driver auto|soft|system|PATH` names the driver; other options are
/// left alone.
pub(crate) fn context() -> Result<Context, Box<dyn Error>> {
    let named = std::env::args().skip_while(|argument| argument != "--driver").nth(1);
    let (driver, soft) = match driver::choose(&named.map_or(Choice::Auto, Choice::from))? {
        Chosen::Here { driver, soft } => (driver, soft),
        // The second process has done all.
        Chosen::Elsewhere(code) => std::process::exit(code),
    };
    let device = Device::new(0)?;
    println!("driver  {}", driver::name(driver));
    println!("device  {}", driver::name_device(device)?);
    if soft {
        println!("        (in software: times say nothing)");
    }
    Ok(device.context()?)
}
