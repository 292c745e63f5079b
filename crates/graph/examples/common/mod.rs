//! The common part of the examples: command line, driver, and output about a graph.

mod driver;
mod kinds;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cuda_graph::Graph;
use cuda_handles::{Context, Device};

use driver::{Choice, Chosen};

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: [--driver auto|soft|system|PATH] [--svg FILE] [--dot FILE] [--help]";

/// The options of an example.
pub(crate) struct Options {
    driver: Choice,
    svg: Option<PathBuf>,
    dot: Option<PathBuf>,
    /// Whether it runs on the software driver, which needs small sizes.
    pub(crate) is_soft: bool,
}

impl Options {
    /// Parses the command line. If an option is given twice, the later one counts.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { driver: Choice::Auto, svg: None, dot: None, is_soft: false };
        while let Some(name) = arguments.next() {
            let value =
                arguments.next().ok_or_else(|| format!("{name} is unknown or lacks its value\n{USAGE}"));
            match name.as_str() {
                "--driver" => options.driver = Choice::from(value?),
                "--svg" => options.svg = Some(PathBuf::from(value?)),
                "--dot" => options.dot = Some(PathBuf::from(value?)),
                _ => return Err(format!("{name} is unknown\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// Runs an example on the chosen driver. The example returns whether its results match the
/// reference.
pub(crate) fn example(run: impl FnOnce(&Context, &Options) -> Outcome<bool>) -> ExitCode {
    match start(run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(run: impl FnOnce(&Context, &Options) -> Outcome<bool>) -> Outcome<ExitCode> {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|one| one.into_string().map_err(|one| format!("{one:?} is no UTF-8")));
    let arguments = arguments.collect::<Result<Vec<String>, String>>()?;
    if arguments.iter().any(|one| one == "--help" || one == "-h") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut options = Options::parse(arguments.into_iter())?;
    let driver = match driver::choose(&options.driver)? {
        Chosen::Here { driver, soft } => {
            options.is_soft = soft;
            driver
        }
        Chosen::Elsewhere(code) => std::process::exit(code),
    };
    let device = Device::new(0)?;
    println!("driver  {}", driver::name(driver));
    println!("device  {}", driver::name_device(device)?);
    let is_good = run(&device.context()?, &options)?;
    println!("{}", if is_good { "all as the reference has it" } else { "NOT as the reference has it" });
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the node types of a graph, and draws it if the command line says so.
pub(crate) fn show(graph: &Graph, options: &Options) -> Outcome<()> {
    let kinds = kinds::kinds(graph)?;
    let list: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("graph   {} nodes: {}", kinds.values().sum::<usize>(), list.join(", "));
    if let Some(path) = &options.dot {
        write(path, &graph.to_dot()?)?;
    }
    if let Some(path) = &options.svg {
        write(path, &svg(graph)?)?;
    }
    println!();
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote   {}", path.display());
    Ok(())
}

#[cfg(feature = "svg")]
fn svg(graph: &Graph) -> Outcome<String> {
    Ok(graph.to_svg()?)
}

#[cfg(not(feature = "svg"))]
fn svg(_: &Graph) -> Outcome<String> {
    Err("--svg needs the feature: cargo run --features svg ...; --dot does not".into())
}
