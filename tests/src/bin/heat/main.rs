//! The demo: heat on a plate, as one CUDA graph of kernel, memset and memcpy nodes, which is
//! replayed.
//!
//! It checks the results against plain Rust, compares plain launches with replays of the graph as
//! drawn and shaped, and draws the plate and the graph.

#[path = "../../../../crates/graph/examples/common/driver.rs"]
mod driver;
mod options;
mod picture;
mod plate;
mod reference;
mod simulation;
mod timing;

use std::error::Error;
use std::process::ExitCode;

use cuda_graph::{InstantiateOptions, Shape};
use cuda_handles::{Context, Device};
use indicatif::{ProgressBar, ProgressStyle};

use driver::Chosen;
use options::Options;
use plate::Task;
use simulation::Simulation;
use timing::Times;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Device and reference do the same operations in the same order, so they should not differ at all.
/// Temperatures are at most 1.
const TOLERANCE: f32 = 1e-6;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let (driver, soft) = match driver::choose(&options.driver)? {
        Chosen::Here { driver, soft } => (driver, soft),
        Chosen::Elsewhere(code) => std::process::exit(code),
    };
    if options.describe {
        println!("{}", driver::name(driver));
        for device in Device::all()? {
            println!("device {}: {}", device.ordinal(), driver::name_device(device)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    println!("driver  {}", driver::name(driver));
    let device = Device::new(0)?;
    println!("device  {}", driver::name_device(device)?);
    let (size, steps, rounds) = if soft { (128, 100, 4) } else { (1024, 200, 10) };
    let task = Task {
        size: options.size.map_or(size, |size| size as usize),
        steps: options.steps.map_or(steps, |steps| steps as usize),
        rounds,
    };
    heat(task, &device.context()?, &options)
}

fn heat(task: Task, context: &Context, options: &Options) -> Outcome<ExitCode> {
    let simulation = Simulation::new(task, context)?;
    let (stream, plain) = (simulation.stream(), simulation.plates()?);
    let (replayed, reshaped) = (simulation.plates()?, simulation.plates()?);
    let graph = simulation.graph(&replayed)?;
    let mut drawn = graph.instantiate()?;
    let shape = InstantiateOptions::new().shape(Shape::Auto);
    let mut shaped = simulation.graph(&reshaped)?.instantiate_with(shape)?;
    let Task { size, steps, rounds } = task;
    println!("plate   {size} x {size} cells, {rounds} rounds of {steps} steps");
    println!("graph   {} nodes, {} edges", graph.len()?, graph.edges()?.len());
    if let Some(report) = shaped.shape_report() {
        println!("shape   {report}");
    }

    let bar = progress(4 * rounds);
    let run = |name: &'static str, enqueue: &mut dyn FnMut() -> Outcome<()>| -> Outcome<Times> {
        bar.set_message(name);
        let mut times = Times::default();
        for _ in 0..rounds {
            times.round::<Box<dyn Error>>(&mut *enqueue, || Ok(stream.synchronize_blocking()?))?;
            bar.inc(1);
        }
        Ok(times)
    };
    let times = [
        (PLAIN, run(PLAIN, &mut || simulation.launch(&plain))?),
        (DRAWN, run(DRAWN, &mut || Ok(drawn.launch(stream)?))?),
        (SHAPED, run(SHAPED, &mut || Ok(shaped.launch(stream)?))?),
    ];
    bar.set_message("reference");
    let expected = reference::run(task, || bar.inc(1));
    bar.finish_and_clear();

    let found = replayed.read(stream)?;
    report(task, &times);
    let good = verify(PLAIN, &plain.read(stream)?, &expected)
        & verify(DRAWN, &found, &expected)
        & verify(SHAPED, &reshaped.read(stream)?, &expected);
    draw(task, options, &found, &graph.to_dot()?)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const PLAIN: &str = "plain launches";
const DRAWN: &str = "graph as drawn";
const SHAPED: &str = "graph shaped";

/// A progress bar, which is hidden unless on a terminal.
fn progress(rounds: usize) -> ProgressBar {
    let bar = ProgressBar::new(rounds as u64);
    match ProgressStyle::with_template("{msg:14} {wide_bar} {pos}/{len} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn report(task: Task, times: &[(&str, Times)]) {
    println!("\nmicroseconds for a step, median    until enqueued   until complete");
    for (name, times) in times {
        let (enqueued, complete) = times.per_step(task.steps);
        println!("{name:34} {enqueued:14.3} {complete:16.3}");
    }
    println!();
}

/// Whether all results of a run are those of the reference.
fn verify(name: &str, found: &reference::State, expected: &reference::State) -> bool {
    let differences = [
        ("on the plate", reference::largest_difference(&found.plate, &expected.plate)),
        ("in the recorded rows", reference::largest_difference(&found.records, &expected.records)),
        ("in the last step's largest change", (found.change - expected.change).abs()),
    ];
    let mut good = true;
    for (place, difference) in differences {
        // A NaN is wrong, too.
        if difference.is_nan() || difference > TOLERANCE {
            eprintln!(
                "error: {name}: {place} the largest difference is {difference}; {TOLERANCE:e} is allowed"
            );
            good = false;
        }
    }
    if good {
        let largest = differences.iter().map(|(_, difference)| *difference).fold(0.0, f32::max);
        println!(
            "{name:14} verified: largest difference {largest} from the reference ({TOLERANCE:e} is allowed)"
        );
    }
    good
}

fn draw(task: Task, options: &Options, found: &reference::State, dot: &str) -> Outcome<()> {
    std::fs::create_dir_all(&options.out)?;
    let (picture, graph) = (options.out.join("heat.png"), options.out.join("graph.dot"));
    picture::write(&picture, task.size, &found.plate)?;
    std::fs::write(&graph, dot)?;
    println!("wrote {} and {}", picture.display(), graph.display());
    Ok(())
}
