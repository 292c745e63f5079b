//! The program: a cache with one graph, and calls with values of their own.

use std::error::Error;

use cuda_graph::{
    CacheOptions, CacheStatistics, ContextExt, Fallback, Graph, GraphCache, GraphParam, HostLoopExec,
    ParamValues, Test,
};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{kernel, per};
use cuda_sys::Version;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernel in the file has these parameters; each thread accesses the number of its
    // own index, if that is below `n`.
    unsafe in "../kernels/dispatch.ptx";

    fn scale(n: u32, factor: u32, summand: u32, numbers: InOut<u32>)
    where numbers.len() >= n, grid.x * block.x >= n, grid.y * grid.z * block.y * block.z == 1;
}

/// A place that calls the graph.
pub(crate) struct Site {
    pub(crate) name: &'static str,
    /// How many numbers it has.
    pub(crate) n: usize,
    /// What each round multiplies them by.
    pub(crate) factor: u32,
    /// The rounds of a call are 0 to this.
    pub(crate) most_rounds: u32,
}

impl Site {
    /// The rounds of a call.
    pub(crate) fn rounds(&self, call: u32) -> u32 {
        call % (self.most_rounds + 1)
    }
}

/// Everything that differs from call to call.
struct Values {
    numbers: GraphParam<[u32]>,
    /// The rounds that are left.
    counter: GraphParam<[u32]>,
    rounds: GraphParam<u32>,
    factor: GraphParam<u32>,
    call: GraphParam<u32>,
}

impl Values {
    /// The values of a call.
    fn of_call<'v>(&'v self, site: &'v Site, memory: &'v Memory, call: u32) -> impl ParamValues + 'v {
        (
            (&self.numbers, &memory.numbers),
            (&self.counter, &memory.counter),
            (&self.rounds, site.rounds(call)),
            (&self.factor, site.factor),
            (&self.call, call),
        )
    }
}

/// The caches, and what the graph is built of.
pub(crate) struct CallSites {
    context: Context,
    streams: [Stream; 2],
    scale: scale,
    /// With the device deciding; used if the driver has loops.
    cache: GraphCache<&'static str, Values>,
    /// With the host deciding.
    host: GraphCache<&'static str, Values, u64, HostLoopExec>,
}

/// The memory of a site on the device.
struct Memory {
    numbers: Buffer<u32>,
    counter: Buffer<u32>,
}

impl CallSites {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        Ok(Self {
            context: context.clone(),
            streams: [context.stream()?, context.stream()?],
            scale: scale::load(context)?,
            cache: GraphCache::new(CacheOptions::new()),
            host: GraphCache::new(CacheOptions::new().fallback(Fallback::HostLoopAlways)),
        })
    }

    /// Whether the driver has loops on the device.
    pub(crate) fn device_decides(&self) -> bool {
        self.context.driver().version() >= Version::new(12, 3)
    }

    /// The graph, for a picture.
    pub(crate) fn graph(&self) -> Result<Graph> {
        let memory = self.memory(&Site { name: "picture", n: 1, factor: 1, most_rounds: 0 })?;
        Ok(self.build(&memory)?.0)
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        self.cache.statistics()
    }

    pub(crate) fn host_statistics(&self) -> CacheStatistics {
        self.host.statistics()
    }

    /// The numbers of each site after so many calls from each, in turn and on two streams. Nothing
    /// waits before the last call.
    pub(crate) fn call_all(&mut self, sites: &[Site], calls: u32) -> Result<Vec<Vec<u32>>> {
        let memories = sites.iter().map(|site| self.memory(site)).collect::<Result<Vec<_>>>()?;
        for call in 0..calls {
            for (at, (site, memory)) in sites.iter().zip(&memories).enumerate() {
                let stream = &self.streams[at % self.streams.len()];
                self.cache.launch(
                    stream,
                    "loop",
                    0,
                    || self.build(memory),
                    |exec, values| exec.launch_with(stream, values.of_call(site, memory, call)),
                )?;
            }
        }
        self.numbers(&memories)
    }

    /// The same with the host deciding, which waits for each call.
    pub(crate) fn call_all_by_host(&mut self, sites: &[Site], calls: u32) -> Result<Vec<Vec<u32>>> {
        let memories = sites.iter().map(|site| self.memory(site)).collect::<Result<Vec<_>>>()?;
        let stream = &self.streams[0];
        for call in 0..calls {
            for (site, memory) in sites.iter().zip(&memories) {
                self.host.launch(
                    stream,
                    "loop",
                    0,
                    || self.build(memory),
                    |exec, values| exec.run_blocking_with(stream, values.of_call(site, memory, call)),
                )?;
            }
        }
        self.numbers(&memories)
    }

    fn memory(&self, site: &Site) -> Result<Memory> {
        let first: Vec<u32> = (0..).take(site.n).collect();
        let numbers = self.streams[0].upload(&first)?;
        Ok(Memory { numbers, counter: self.streams[0].zeros(1)? })
    }

    fn numbers(&self, memories: &[Memory]) -> Result<Vec<Vec<u32>>> {
        self.streams.iter().try_for_each(Stream::synchronize_blocking)?;
        memories.iter().map(|memory| Ok(memory.numbers.read_blocking(&self.streams[0])?)).collect()
    }

    /// Sets the counter, then changes the numbers until it is 0.
    fn build(&self, memory: &Memory) -> cuda_graph::Result<(Graph, Values)> {
        let graph = self.context.graph()?;
        let values = Values {
            numbers: graph.param(&memory.numbers)?,
            counter: graph.param(&memory.counter)?,
            rounds: graph.param(0_u32)?,
            factor: graph.param(1_u32)?,
            call: graph.param(0_u32)?,
        };
        let start = graph.root().fill(&values.counter, &values.rounds)?;
        start.then().while_loop(Test::nonzero(&values.counter), |body| {
            let (n, grid) = (values.numbers.len(), per(values.numbers.len(), 128));
            let numbers = &values.numbers;
            let first = body.root().launch(&self.scale, grid, (n, &values.factor, 1, numbers))?;
            let second = first.then().launch(&self.scale, grid, (n, 1, &values.call, numbers))?;
            // One less.
            second.then().launch(&self.scale, per(1, 1), (1, 1, u32::MAX, &values.counter))
        })?;
        Ok((graph, values))
    }
}
