//! Data-parallel training of a small network: each device has half of the samples, and the
//! gradients are added inside of the graph of a step, by NCCL where there is one, and by copies and
//! a kernel. The result is that of one device, to the bit: the sum of two numbers has no order.
//!
//! ```sh
//! cargo run -p cuda-graph --example data_parallel -- --driver soft
//! NCCL_NVLS_ENABLE=0 cargo run --release -p cuda-graph --example data_parallel -- --driver system
//! ```
//!
//! The software driver poses as two devices. With one device there is nothing to show.

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;
use std::time::Instant;

use cuda_handles::{Context, Device};
use cuda_tests_nccl::{Nccl, settle};

use common::Options;
use program::{DataParallel, Reduction, Result, Samples, Task};

fn main() -> ExitCode {
    common::example(run)
}

/// The task with its samples, and the parameters before and after.
struct Training {
    task: Task,
    steps: usize,
    samples: Vec<Samples>,
    parameters: Vec<f32>,
    expected: Vec<f32>,
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    if Device::count()? < 2 {
        println!("there is one device");
        return Ok(true);
    }
    let other = Device::new(1)?.context()?;
    let (one, two) = ([context, context], [context, &other]);
    let samples = if options.is_soft { 16 } else { 256 };
    let task = Task { inputs: 6, units: 12, samples, rate: 0.2 / samples as f32 };
    let training = Training::new(task, 300, two.len());

    let alone = training.program(&one, &Reduction::own(&one, task)?)?;
    let copies = training.program(&two, &Reduction::own(&two, task)?)?;
    common::show(copies.graph(), options)?;
    println!("network {} parameters, {} samples on each of two devices", task.parameters(), task.samples);
    let mut is_good = training.run("one device", alone)?;
    is_good &= training.run("two devices, own sum", copies)?;
    match nccl(options) {
        Ok(nccl) => {
            println!("        {nccl}");
            let program = training.program(&two, &Reduction::nccl(&nccl, &two)?)?;
            is_good &= training.run("two devices, NCCL", program)?;
            settle();
        }
        Err(why) => println!("        without NCCL: {why}"),
    }
    Ok(is_good)
}

/// NCCL, or why there is none.
fn nccl(options: &Options) -> std::result::Result<Nccl, String> {
    if options.is_soft {
        return Err("it opens the system's driver by itself".to_owned());
    }
    Nccl::load().map_err(|error| error.to_string())
}

impl Training {
    fn new(task: Task, steps: usize, shares: usize) -> Self {
        let (samples, parameters) =
            (reference::samples(task, shares), reference::numbers(3, task.parameters()));
        let expected = reference::train(task, &samples, parameters.clone(), steps);
        Self { task, steps, samples, parameters, expected }
    }

    fn program(&self, contexts: &[&Context], reduction: &Reduction) -> Result<DataParallel> {
        DataParallel::new(contexts, self.task, &self.samples, &self.parameters, reduction)
    }

    /// Trains, and prints. Returns whether all replicas are as the reference.
    fn run(&self, name: &str, mut program: DataParallel) -> Result<bool> {
        program.train(1)?;
        let before = program.loss()?;
        let start = Instant::now();
        program.train(self.steps - 1)?;
        let time = start.elapsed() / (self.steps - 1) as u32;
        let replicas = program.parameters()?;
        let is_good = replicas.iter().all(|replica| *replica == self.expected);
        let after = program.loss()?;
        let equal = if is_good { "equal to the bit" } else { "NOT equal" };
        println!("{name:21} loss {before:.4} to {after:.6} in {} steps of {time:.1?}; {equal}", self.steps);
        Ok(is_good && after < before)
    }
}
