//! Whether memory stays as it is over many replays with a new buffer each.
//!
//! Each replay takes a new pooled buffer as a graph parameter, which is dropped right after the
//! launch. In the end, all of them have to be free. The process may have grown by a little only.

use std::process::ExitCode;
use std::time::Instant;

use cuda_graph::{ContextExt, GraphExec, GraphParam};
use cuda_handles::{Context, Device, MemPool, Stream};
use cuda_launch::{kernel, per};
use cuda_tests::{SOON, resident, until};

use crate::Outcome;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread accesses the element of
    // its own number, if that is below `n`.
    unsafe in "../../suites/ptx/small.ptx";

    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

/// The elements of a buffer: 1 KiB.
const N: usize = 256;

/// Replays until everything is in place: the pool, the reaper's thread, the allocator's lists.
const WARM_UP: u32 = 20_000;

/// Replays between two waits. They may all be in the queue, with their buffers.
const SHARE: u32 = 1000;

/// Bytes of the pool that may be in use at a time: of 16 shares. One is in the queue, and the
/// reaper, which lets buffers go, is behind by six at times on a busy machine. A million buffers
/// would take 1 GiB.
const MOST_USED: u64 = 16 * SHARE as u64 * (N * size_of::<f32>()) as u64;

/// KiB by which the process may grow. The smallest thing on the heap takes 32 bytes, so a million
/// replays that leave one each would need 31 MiB.
const MOST_GROWTH: u64 = 8 << 10;

struct Scene {
    stream: Stream,
    pool: MemPool,
    exec: GraphExec,
    factor: GraphParam<f32>,
    target: GraphParam<[f32]>,
    /// Bytes of the pool while one buffer is a parameter.
    used_at_rest: u64,
}

pub(crate) fn run(count: u32) -> Outcome<ExitCode> {
    let context = Device::new(0)?.context()?;
    println!("driver  CUDA {} from {}", context.driver().version(), context.driver().origin());
    println!("device  {}", context.device().name()?);
    let mut scene = Scene::new(&context)?;
    scene.replay(WARM_UP)?;
    let mut is_good = scene.rest("start")?;
    scene.pool.reset_high_water()?;
    let (start, began) = (resident(), Instant::now());
    scene.replay(count)?;
    let each = began.elapsed().as_secs_f64() * 1e9 / f64::from(count.max(1));
    let most = scene.pool.usage()?.used_high;
    is_good &= scene.rest("end")?;
    let end = resident();
    println!("{count} replays with a new buffer of {} KiB each, {each:.0} ns for each", N * 4 / 1024);
    println!("pool      {} KiB at most, {} are allowed", most >> 10, MOST_USED >> 10);
    is_good &= most <= MOST_USED;
    match (start, end) {
        (Some(start), Some(end)) => {
            println!(
                "resident  {start} KiB at the start, {end} KiB at the end, {MOST_GROWTH} more are allowed"
            );
            is_good &= end <= start + MOST_GROWTH;
        }
        _ => println!("resident  not known on this system"),
    }
    if !is_good {
        eprintln!("error: memory has grown");
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Scene {
    fn new(context: &Context) -> Outcome<Self> {
        let (stream, pool) = (context.stream()?, context.default_pool()?);
        let kernel = saxpy::load(context)?;
        let x = stream.upload(&[1.0; N])?;
        let graph = context.graph()?;
        let (factor, target) = (graph.param(0.0_f32)?, graph.param(&stream.zeros::<f32>(N)?)?);
        graph.root().launch(&kernel, per(N, 128), (N as u32, &factor, &x, &target))?;
        let exec = graph.instantiate()?;
        let mut scene = Self { stream, pool, exec, factor, target, used_at_rest: 0 };
        scene.replay(1)?;
        scene.used_at_rest = scene.pool.usage()?.used;
        Ok(scene)
    }

    /// Launches with a new buffer each, and looks at the last one of each share.
    fn replay(&mut self, count: u32) -> Outcome<()> {
        for number in 1..=count {
            let (factor, buffer) = (number as f32, self.stream.zeros::<f32>(N)?);
            self.exec.launch_with(&self.stream, ((&self.factor, factor), (&self.target, &buffer)))?;
            if number % SHARE == 0 || number == count {
                let found = buffer.read_blocking(&self.stream)?;
                if found.iter().any(|found| *found != factor) {
                    return Err(format!("replay {number} has another result").into());
                }
            }
        }
        Ok(())
    }

    /// Whether all buffers but the last one become free.
    fn rest(&mut self, when: &str) -> Outcome<bool> {
        self.exec.release();
        let used = || self.pool.usage().map_or(u64::MAX, |usage| usage.used);
        let is_good = until(SOON, || used() <= self.used_at_rest);
        println!("pool      {} KiB at the {when}, {} at rest", used() >> 10, self.used_at_rest >> 10);
        Ok(is_good)
    }
}
