//! The program: a training step as a captured graph.
//!
//! Each share of the samples has a replica of the network, on a device of its own or beside other
//! shares. The gradients of all shares are added on each device, in the graph, and all replicas
//! take the same step.
//!
//! ```text
//!   device 0   units ──► errors ──► gradients ──┐     ┌──► descend
//!                                               sum of all
//!   device 1   units ──► errors ──► gradients ──┘     └──► descend
//! ```

use std::error::Error;

use cuda_graph::{Graph, GraphExec, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{kernel, per};
use cuda_tests_nccl::{Communicator, Group, Nccl};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and access numbers below the products
    // in the conditions.
    unsafe in "../kernels/data_parallel.ptx";

    fn units(samples: u32, inputs: u32, count: u32, x: In<f32>, parameters: In<f32>, outputs: Out<f32>)
    where x.len() >= samples * inputs, parameters.len() >= count * inputs + count,
        outputs.len() >= samples * count;

    fn errors(
        samples: u32, inputs: u32, count: u32, outputs: In<f32>, parameters: In<f32>, targets: In<f32>,
        errors: Out<f32>
    )
    where outputs.len() >= samples * count, parameters.len() >= count * inputs + count + count + 1,
        targets.len() >= samples, errors.len() >= samples;

    fn gradients(
        samples: u32, inputs: u32, count: u32, x: In<f32>, outputs: In<f32>, errors: In<f32>,
        parameters: In<f32>, gradients: Out<f32>
    )
    where x.len() >= samples * inputs, outputs.len() >= samples * count, errors.len() >= samples,
        parameters.len() >= count * inputs + count + count + 1,
        gradients.len() >= count * inputs + count + count + 1;

    fn add_shares(count: u32, shares: u32, gradients: In<f32>, total: Out<f32>)
    where gradients.len() >= count * shares, total.len() >= count;

    fn descend(count: u32, rate: f32, gradients: In<f32>, parameters: InOut<f32>)
    where gradients.len() >= count, parameters.len() >= count;
}

/// The network and its training.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) inputs: usize,
    pub(crate) units: usize,
    /// The samples of a share.
    pub(crate) samples: usize,
    pub(crate) rate: f32,
}

impl Task {
    pub(crate) fn parameters(self) -> usize {
        self.units * self.inputs + 2 * self.units + 1
    }
}

/// The samples of a share.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    pub(crate) x: Vec<f32>,
    pub(crate) targets: Vec<f32>,
}

/// A replica of the network with a share of the samples.
struct Share {
    stream: Stream,
    kernels: Kernels,
    x: Buffer<f32>,
    targets: Buffer<f32>,
    parameters: Buffer<f32>,
    outputs: Buffer<f32>,
    errors: Buffer<f32>,
    gradients: Buffer<f32>,
    /// The sum of the gradients of all shares.
    total: Buffer<f32>,
}

struct Kernels {
    units: units,
    errors: errors,
    gradients: gradients,
    add_shares: add_shares,
    descend: descend,
}

/// How gradients of all shares are added.
pub(crate) enum Reduction {
    /// By NCCL, with a communicator for each share.
    Nccl(Vec<Communicator>),
    /// By copies to each share, and a kernel that adds them in their order: the copies of each.
    Own(Vec<Buffer<f32>>),
}

/// The graph of a training step, with everything that it uses.
pub(crate) struct DataParallel {
    task: Task,
    shares: Vec<Share>,
    graph: Graph,
    step: GraphExec,
}

impl Reduction {
    /// By NCCL, on the devices of these contexts.
    pub(crate) fn nccl(nccl: &Nccl, contexts: &[&Context]) -> Result<Self> {
        Ok(Self::Nccl(Communicator::all(nccl, contexts)?))
    }

    /// By copies and kernels of our own.
    pub(crate) fn own(contexts: &[&Context], task: Task) -> Result<Self> {
        let numbers = task.parameters() * contexts.len();
        let copies: cuda_handles::Result<_> =
            contexts.iter().map(|context| context.alloc_blocking(numbers)).collect();
        Ok(Self::Own(copies?))
    }

    /// Adds the gradients, on streams that capture.
    fn add(&self, shares: &[Share], task: Task) -> Result<()> {
        match self {
            Self::Nccl(communicators) => {
                let mut group = Group::new();
                for (share, communicator) in shares.iter().zip(communicators) {
                    group.all_reduce_sum(communicator, &share.stream, &share.gradients, &share.total);
                }
                Ok(group.enqueue()?)
            }
            Self::Own(copies) => {
                for share in shares {
                    for other in shares {
                        share.stream.wait_for(&other.stream)?;
                    }
                }
                shares.iter().zip(copies).try_for_each(|(share, copies)| share.add(shares, copies, task))
            }
        }
    }
}

impl DataParallel {
    /// Shares on the devices of these contexts, which may be the same, with the same parameters.
    pub(crate) fn new(
        contexts: &[&Context],
        task: Task,
        samples: &[Samples],
        parameters: &[f32],
        reduction: &Reduction,
    ) -> Result<Self> {
        let shares = contexts
            .iter()
            .zip(samples)
            .map(|(context, samples)| Share::new(context, task, samples, parameters));
        let shares = shares.collect::<Result<Vec<_>>>()?;
        let (first, others) = shares.split_first().ok_or("there are no shares")?;
        let captured = first.stream.try_capture(CaptureMode::ThreadLocal, |capture| {
            let first = capture.stream();
            others.iter().try_for_each(|share| share.stream.wait_for(first))?;
            shares.iter().try_for_each(|share| share.find_gradients(task))?;
            reduction.add(&shares, task)?;
            shares.iter().try_for_each(|share| share.descend(task))?;
            others.iter().try_for_each(|share| first.wait_for(&share.stream))?;
            Ok::<_, Box<dyn Error>>(())
        });
        let (graph, ()) = captured?;
        Ok(Self { task, step: graph.instantiate()?, graph, shares })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Trains so many steps, and waits for them.
    pub(crate) fn train(&mut self, steps: usize) -> Result<()> {
        let Some(share) = self.shares.first() else { return Ok(()) };
        for _ in 0..steps {
            self.step.launch(&share.stream)?;
        }
        Ok(share.stream.synchronize_blocking()?)
    }

    /// The parameters of each replica.
    pub(crate) fn parameters(&self) -> Result<Vec<Vec<f32>>> {
        let read = |share: &Share| Ok(share.parameters.read_blocking(&share.stream)?);
        self.shares.iter().map(read).collect()
    }

    /// The mean squared error in the last step.
    pub(crate) fn loss(&self) -> Result<f32> {
        let mut sum = 0.0;
        for share in &self.shares {
            let errors = share.errors.read_blocking(&share.stream)?;
            sum += errors.iter().map(|error| error * error).sum::<f32>();
        }
        Ok(sum / (self.shares.len() * self.task.samples) as f32)
    }
}

impl Share {
    fn new(context: &Context, task: Task, samples: &Samples, parameters: &[f32]) -> Result<Self> {
        let Task { units, samples: count, .. } = task;
        let kernels = Kernels {
            units: self::units::load(context)?,
            errors: errors::load(context)?,
            gradients: gradients::load(context)?,
            add_shares: add_shares::load(context)?,
            descend: descend::load(context)?,
        };
        let stream = context.stream()?;
        // Plain memory, which all devices reach.
        let upload = |numbers: &[f32]| {
            let memory = context.alloc_blocking(numbers.len())?;
            memory.write_blocking(&stream, numbers)?;
            Ok::<_, cuda_handles::Error>(memory)
        };
        Ok(Self {
            kernels,
            x: upload(&samples.x)?,
            targets: upload(&samples.targets)?,
            parameters: upload(parameters)?,
            outputs: context.alloc_blocking(count * units)?,
            errors: context.alloc_blocking(count)?,
            gradients: context.alloc_blocking(task.parameters())?,
            total: context.alloc_blocking(task.parameters())?,
            stream,
        })
    }

    /// Enqueues what finds the gradients of the share.
    fn find_gradients(&self, task: Task) -> Result<()> {
        let Self { stream, kernels, x, targets, parameters, outputs, errors, gradients, .. } = self;
        let (samples, inputs, count) = (task.samples as u32, task.inputs as u32, task.units as u32);
        let config = per(task.samples * task.units, 64);
        kernels.units.launch(stream, config, (samples, inputs, count, x, parameters, outputs))?;
        let config = per(task.samples, 64);
        kernels.errors.launch(
            stream,
            config,
            (samples, inputs, count, outputs, parameters, targets, errors),
        )?;
        let config = per(task.parameters(), 64);
        let arguments = (samples, inputs, count, x, outputs, errors, parameters, gradients);
        Ok(kernels.gradients.launch(stream, config, arguments)?)
    }

    /// Enqueues copies of the gradients of all shares, and their sum.
    fn add(&self, shares: &[Self], copies: &Buffer<f32>, task: Task) -> Result<()> {
        let count = task.parameters();
        for (number, other) in shares.iter().enumerate() {
            let place = copies.slice(number * count..(number + 1) * count)?;
            self.stream.copy_peer(&other.gradients, place)?;
        }
        let arguments = (count as u32, shares.len() as u32, copies, &self.total);
        Ok(self.kernels.add_shares.launch(&self.stream, per(count, 64), arguments)?)
    }

    /// Enqueues the step.
    fn descend(&self, task: Task) -> Result<()> {
        let count = task.parameters();
        let arguments = (count as u32, task.rate, &self.total, &self.parameters);
        Ok(self.kernels.descend.launch(&self.stream, per(count, 64), arguments)?)
    }
}
