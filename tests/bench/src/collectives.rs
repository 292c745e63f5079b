//! All-reduces of two devices: NCCL's group of calls, and replays of a graph that raw calls have
//! captured and one of this library.
//!
//! The raw sides call NCCL and the driver by tables of functions: what a program in C does, to the
//! machine code of the calls.

use core::ptr;
use std::time::{Duration, Instant};

use cuda_graph::{GraphExec, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Device, Stream};
use cuda_sys::{CUevent, CUstreamCaptureMode, Driver};
use cuda_tests_nccl::{Communicator, Group, Nccl, Number, SUM, settle};

use crate::Outcome;
use crate::bench::Bench;
use crate::driver::Choice;
use crate::graphs::{Patience, rounds};
use crate::measure::LEAST;
use crate::raw::{RawExec, RawGraph, ok};
use crate::record::{OURS, Part, RAW, Row, Side};

/// The side that makes NCCL's calls each time.
pub(crate) const GROUP: &str = "group";

/// The sizes in bytes. The software driver takes long for the last one.
const SIZES: [(usize, &str); 3] = [(1 << 10, "1 KiB"), (256 << 10, "256 KiB"), (64 << 20, "64 MiB")];

/// Measures all sizes. Returns why nothing was measured, if nothing could be.
pub(crate) fn all_reduces(
    bench: &Bench,
    driver: &Choice,
    is_quick: bool,
    filter: Option<&str>,
    done: &mut dyn FnMut(Row) -> Outcome<()>,
) -> Outcome<Option<String>> {
    let nccl = match nccl(driver) {
        Ok(nccl) => nccl,
        Err(why) => return Ok(Some(why)),
    };
    let other = Device::new(1)?.context()?;
    let contexts = [&bench.context, &other];
    let communicators = Communicator::all(&nccl, &contexts)?;
    eprintln!("all-reduces by {nccl}");
    let (most, time, least) = match driver {
        _ if is_quick => (1, Duration::ZERO, 3),
        Choice::Soft => (2, Duration::ZERO, 10),
        _ => (SIZES.len(), Duration::from_secs(2), LEAST),
    };
    for (bytes, name) in SIZES.into_iter().take(most) {
        let name = format!("all-reduce of {name}");
        if filter.is_none_or(|text| name.contains(text)) {
            let mut ways = Ways::new(bench, &nccl, &communicators, contexts, bytes / size_of::<f32>())?;
            let patience = Patience { time, rounds: [least, 10_000], in_a_row: 1, cold: 0 };
            ways.measure(&name, patience)?.into_iter().try_for_each(&mut *done)?;
        }
    }
    drop(communicators);
    settle();
    Ok(None)
}

/// NCCL, or its stand-in on the software driver; or why neither can run.
fn nccl(driver: &Choice) -> Result<Nccl, String> {
    if *driver == Choice::Null {
        return Err("the driver that does nothing has one device".to_owned());
    }
    match Device::count() {
        Ok(2..) => {}
        Ok(count) => return Err(format!("they need two devices, and there are {count}")),
        Err(error) => return Err(error.to_string()),
    }
    if *driver == Choice::Soft {
        Ok(Nccl::stand_in())
    } else {
        Nccl::load().map_err(|error| error.to_string())
    }
}

/// An all-reduce of so many numbers, in three ways.
struct Ways<'b> {
    raw: RawGroup<'b>,
    replayed: RawExec,
    ours: GraphExec,
    streams: [Stream; 2],
}

/// The calls of a group, and what they use.
struct RawGroup<'b> {
    nccl: &'b Nccl,
    communicators: &'b [Communicator],
    streams: [Stream; 2],
    memory: [Buffer<f32>; 2],
    count: usize,
}

impl<'b> Ways<'b> {
    fn new(
        bench: &Bench,
        nccl: &'b Nccl,
        communicators: &'b [Communicator],
        [here, there]: [&Context; 2],
        count: usize,
    ) -> Outcome<Self> {
        let streams = || Ok::<_, cuda_handles::Error>([here.stream()?, there.stream()?]);
        let memory = [here.alloc_blocking(count)?, there.alloc_blocking(count)?];
        let raw = RawGroup { nccl, communicators, streams: streams()?, memory, count };
        let streams = streams()?;
        for (memory, stream) in raw.memory.iter().zip(&raw.streams) {
            stream.fill(memory, 0.0)?;
            stream.synchronize_blocking()?;
        }
        // Once without a capture, for what NCCL makes when ranks first meet.
        raw.call()?;
        raw.wait()?;
        let replayed = raw.capture(bench, there)?;
        let [first, second] = &streams;
        let (graph, ()) = first.try_capture(CaptureMode::ThreadLocal, |capture| {
            second.wait_for(capture.stream())?;
            let mut group = Group::new();
            for ((communicator, stream), memory) in communicators.iter().zip(&streams).zip(&raw.memory) {
                group.all_reduce_sum(communicator, stream, memory, memory);
            }
            group.enqueue()?;
            capture.stream().wait_for(second)?;
            Ok::<_, Box<dyn core::error::Error>>(())
        })?;
        Ok(Self { raw, replayed, ours: graph.instantiate()?, streams })
    }

    /// The times until all is enqueued, and until all is done.
    fn measure(&mut self, name: &str, patience: Patience) -> Outcome<[Row; 2]> {
        let mut samples: [[Vec<f64>; 2]; 3] = Default::default();
        let mut turned = false;
        rounds(patience, &mut |counts| {
            // Each finds the caches as the one before has left them, so the replays change places.
            turned = !turned;
            let group = self.group()?;
            let ours = if turned { Some(self.our_replay()?) } else { None };
            let raw = self.raw_replay()?;
            let times = [group, raw, ours.map_or_else(|| self.our_replay(), Ok)?];
            if counts {
                for (samples, times) in samples.iter_mut().zip(times) {
                    for (samples, time) in samples.iter_mut().zip(times) {
                        samples.push(time.as_secs_f64() * 1e9);
                    }
                }
            }
            Ok(())
        })?;
        let row = |what: &str, number: usize| {
            let sides = [GROUP, RAW, OURS].into_iter().zip(&samples);
            let sides = sides.map(|(side, samples)| Side::new(side, samples[number].clone())).collect();
            Row::in_turn(Part::Collectives, format!("{name}, {what}"), sides)
        };
        Ok([row("enqueued", 0), row("done", 1)])
    }

    fn group(&mut self) -> Outcome<[Duration; 2]> {
        let start = Instant::now();
        self.raw.call()?;
        let enqueued = start.elapsed();
        self.raw.wait()?;
        Ok([enqueued, start.elapsed()])
    }

    fn raw_replay(&mut self) -> Outcome<[Duration; 2]> {
        let [first, _] = &self.raw.streams;
        let start = Instant::now();
        self.replayed.launch_on(first)?;
        let enqueued = start.elapsed();
        first.synchronize_blocking()?;
        Ok([enqueued, start.elapsed()])
    }

    fn our_replay(&mut self) -> Outcome<[Duration; 2]> {
        let [first, _] = &self.streams;
        let start = Instant::now();
        self.ours.launch(first)?;
        let enqueued = start.elapsed();
        first.synchronize_blocking()?;
        Ok([enqueued, start.elapsed()])
    }
}

impl RawGroup<'_> {
    fn call(&self) -> Outcome<()> {
        let api = self.nccl.api();
        let mut status = vec![
            // SAFETY: groups may be started on any thread.
            unsafe { (api.group_start)() },
        ];
        for ((communicator, stream), memory) in self.communicators.iter().zip(&self.streams).zip(&self.memory)
        {
            let memory = ptr::with_exposed_provenance_mut(memory.address() as usize);
            let (raw, stream, type_) = (communicator.as_raw(), stream.as_raw(), f32::TYPE);
            // SAFETY: communicator, stream and memory live, and are of one device.
            status.push(unsafe { (api.all_reduce)(memory, memory, self.count, type_, SUM, raw, stream) });
        }
        // SAFETY: a group is open.
        status.push(unsafe { (api.group_end)() });
        match status.into_iter().find(|status| *status != 0) {
            None => Ok(()),
            Some(status) => Err(format!("a raw call of NCCL answered {status}").into()),
        }
    }

    fn wait(&self) -> Outcome<()> {
        Ok(self.streams.iter().try_for_each(Stream::synchronize_blocking)?)
    }

    /// Captures the calls by raw calls.
    fn capture(&self, bench: &Bench, there: &Context) -> Outcome<RawExec> {
        let driver = bench.driver();
        let [first, second] = [self.streams[0].as_raw(), self.streams[1].as_raw()];
        let fork = new_event(driver)?;
        let join = there.with_current(|| new_event(driver))??;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let mut graph = ptr::null_mut();
        // SAFETY: streams and events live, and the out pointer is valid.
        unsafe {
            ok(driver.cuStreamBeginCapture(first, mode))?;
            ok(driver.cuEventRecord(fork, first))?;
            ok(driver.cuStreamWaitEvent(second, fork, 0))?;
            self.call()?;
            ok(driver.cuEventRecord(join, second))?;
            ok(driver.cuStreamWaitEvent(first, join, 0))?;
            ok(driver.cuStreamEndCapture(first, &raw mut graph))?;
            ok(driver.cuEventDestroy(fork))?;
            ok(driver.cuEventDestroy(join))?;
        }
        RawGraph::of(bench, graph).instantiate()
    }
}

fn new_event(driver: &Driver) -> Outcome<CUevent> {
    let mut event = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    ok(unsafe { driver.cuEventCreate(&raw mut event, 2) })?;
    Ok(event)
}
