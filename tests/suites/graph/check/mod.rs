//! `Graph::check`: the faults that it finds, and the graphs in which it finds none.

use cuda_graph::{ContextExt, Finding, Frontier, Graph, KernelNode, Report, Severity};
use cuda_handles::{Buffer, Context, GraphSlice, Slice, Stream};
use cuda_launch::{kernel, params, per};

mod no_false_alarms;
mod planted_faults;
mod random_graphs;
mod reports;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each thread touches the elements
    // of its own number, if that is below `n`.
    unsafe in "../../../kernels/fill.ptx";

    pub(crate) fn fill(n: u32, value: f32, out: Out<f32>) where out.len() >= n;
    pub(crate) fn scale(n: u32, factor: f32, values: InOut<f32>) where values.len() >= n;
}

kernel! {
    // SAFETY: as above.
    unsafe in "../../../kernels/saxpy.ptx";

    pub(crate) fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n;
}

kernel! {
    // SAFETY: the kernel in the file has these parameters, and touches the first element alone.
    unsafe in "../../../kernels/conditions.ptx";

    pub(crate) fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
    pub(crate) fn set_to(value: u32, handle: ConditionalHandle);
}

/// Elements of each buffer: an 8 by 8 matrix.
pub(crate) const N: usize = 64;

/// Kernels and memory.
pub(crate) struct Lab {
    pub(crate) context: Context,
    pub(crate) stream: Stream,
    fill: fill,
    scale: scale,
    saxpy: saxpy,
    count_down: count_down,
    set_to: set_to,
    pub(crate) a: Buffer<f32>,
    pub(crate) b: Buffer<f32>,
    pub(crate) c: Buffer<f32>,
    pub(crate) count: Buffer<u32>,
}

impl Lab {
    pub(crate) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let buffer = || stream.zeros::<f32>(N).unwrap();
        Self {
            fill: fill::load(context).unwrap(),
            scale: scale::load(context).unwrap(),
            saxpy: saxpy::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            set_to: set_to::load(context).unwrap(),
            a: buffer(),
            b: buffer(),
            c: buffer(),
            count: stream.zeros(8).unwrap(),
            context: context.clone(),
            stream,
        }
    }

    pub(crate) fn graph(&self) -> Graph {
        self.context.graph().unwrap()
    }

    /// A kernel that writes.
    pub(crate) fn write<'a>(
        &self,
        at: &Frontier<'_>,
        out: impl Into<Slice<'a, f32>>,
        name: &str,
    ) -> KernelNode {
        let out = out.into();
        at.launch(&self.fill, per(N, 32), (out.len() as u32, 1.0, out)).unwrap().named(name)
    }

    /// A kernel that writes memory of the graph.
    pub(crate) fn own(&self, at: &Frontier<'_>, out: GraphSlice<'_, f32>, name: &str) -> KernelNode {
        let n = out.as_operand().len() as u32;
        at.launch(&self.fill, per(N, 32), (n, 1.0, out)).unwrap().named(name)
    }

    /// A kernel that reads and writes.
    pub(crate) fn change<'a>(
        &self,
        at: &Frontier<'_>,
        values: impl Into<Slice<'a, f32>>,
        name: &str,
    ) -> KernelNode {
        let values = values.into();
        at.launch(&self.scale, per(N, 32), (values.len() as u32, 2.0, values)).unwrap().named(name)
    }

    /// A kernel that reads one slice and reads and writes another.
    pub(crate) fn add<'a, 'b>(
        &self,
        at: &Frontier<'_>,
        x: impl Into<Slice<'a, f32>>,
        y: impl Into<Slice<'b, f32>>,
        name: &str,
    ) -> KernelNode {
        let (x, y) = (x.into(), y.into());
        let n = x.len().min(y.len()) as u32;
        at.launch(&self.saxpy, per(N, 32), (n, 2.0, x, y)).unwrap().named(name)
    }

    /// A kernel without a declaration, of which nobody knows what it reads and writes.
    pub(crate) fn untyped(
        &self,
        at: &Frontier<'_>,
        x: &Buffer<f32>,
        y: &Buffer<f32>,
        name: &str,
    ) -> KernelNode {
        use cuda_launch::TypedKernel;
        // SAFETY: these are the kernel's arguments, and both buffers have as many elements.
        unsafe { at.launch_untyped(self.saxpy.kernel(), per(N, 32), params![N as u32, 2.0_f32, x, y]) }
            .unwrap()
            .named(name)
    }
}

/// The findings and their nodes, without notes.
pub(crate) fn seen(report: &Report) -> Vec<(&'static str, Vec<String>)> {
    let grave = report.findings().iter().filter(|finding| finding.severity() > Severity::Note);
    let mut seen: Vec<_> = grave.map(one).collect();
    seen.sort();
    seen
}

fn one(finding: &Finding) -> (&'static str, Vec<String>) {
    let mut names: Vec<String> = finding.nodes().iter().map(|node| node.name().to_owned()).collect();
    if let Finding::UnusedCondition { setters, .. } = finding {
        names.extend(setters.iter().cloned());
    }
    names.sort();
    (finding.class(), names)
}
