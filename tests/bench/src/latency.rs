//! Whether drops on another thread hold up launches.
//!
//! A kernel runs for 200 ms. Meanwhile another thread drops objects, and this one keeps launching.
//! If the driver waits for the device in a drop, a launch takes as long as the kernel still runs.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cuda_handles::{Buffer, Context, Device, Image, Kernel, Library, SharedHostBuffer, Stream, reaper};
use cuda_launch::{Launch, LaunchConfig, params};

use crate::Outcome;
use crate::driver::Choice;
use crate::statistics::quantile;

const SMALL: &str = include_str!("../../suites/ptx/small.ptx");
const SPIN: &str = include_str!("../../kernels/spin.ptx");

/// How long the kernel runs, and over how much of that the drops are spread.
const BUSY: Duration = Duration::from_millis(200);
const DROPPING: Duration = Duration::from_millis(160);
/// No launch may take longer on a GPU. The software driver shares its cores with everything else.
const LIMIT: Duration = Duration::from_millis(1);

/// Of fewer launches, there is no part of 99.9 %.
const THOUSAND: usize = 1000;

const ROUNDS: usize = 5;
/// Objects of each kind in a round.
const EACH: usize = 16;
/// Launches before the queue is emptied: a full one would hold launches up by itself.
const BATCH: usize = 64;

/// A kind of object to drop, and how to make one: the stream of the kernel has used its memory.
type Make = fn(&Scene) -> Outcome<Thing>;

#[derive(Debug)]
enum Thing {
    Buffer(#[allow(dead_code)] Buffer<u8>),
    Pinned(#[allow(dead_code)] SharedHostBuffer<u8>),
    Stream(#[allow(dead_code)] Stream),
    Library(#[allow(dead_code)] Kernel),
}

const KINDS: [(&str, Make); 8] = [
    ("pooled buffers", |scene| Ok(Thing::Buffer(scene.home.zeros(1 << 16)?))),
    ("pooled buffers, in use elsewhere", |scene| {
        let buffer = scene.home.zeros(1 << 16)?;
        scene.busy.fill(&buffer, 1)?;
        Ok(Thing::Buffer(buffer))
    }),
    ("pooled buffers with their streams", |scene| {
        let buffer = scene.context.stream()?.zeros(1 << 16)?;
        scene.busy.fill(&buffer, 1)?;
        Ok(Thing::Buffer(buffer))
    }),
    ("plain buffers", |scene| {
        let buffer = scene.context.alloc_blocking(1 << 16)?;
        scene.busy.fill(&buffer, 1)?;
        Ok(Thing::Buffer(buffer))
    }),
    ("pinned buffers", |scene| Ok(Thing::Pinned(scene.context.pinned_zeros(1 << 16)?.share()))),
    ("pinned buffers, in use", |scene| {
        let (pinned, buffer) = (scene.context.pinned_zeros(1 << 16)?.share(), scene.home.zeros(1 << 16)?);
        scene.busy.copy(&pinned, &buffer)?;
        Ok(Thing::Pinned(pinned))
    }),
    ("streams", |scene| {
        let stream = scene.context.stream()?;
        stream.zeros::<u8>(16).map(drop)?;
        Ok(Thing::Stream(stream))
    }),
    ("libraries", |scene| Ok(Thing::Library(load(&scene.context, SMALL, "empty")?))),
];

struct Scene {
    context: Context,
    launching: Stream,
    busy: Stream,
    home: Stream,
    empty: Kernel,
    spin: Kernel,
}

fn load(context: &Context, image: &str, kernel: &str) -> Outcome<Kernel> {
    Ok(Library::load(context, Image::Ptx(image))?.kernel(kernel)?)
}

/// Launch times by the kind of object dropped meanwhile, in microseconds.
type Times = Vec<Vec<f64>>;

pub(crate) fn run(driver: &Choice) -> Outcome<ExitCode> {
    let context = Device::new(0)?.context()?;
    println!("driver  CUDA {} from {}", context.driver().version(), context.driver().origin());
    println!("device  {}", context.device().name()?);
    let scene = Scene {
        launching: context.stream()?,
        busy: context.stream()?,
        home: context.stream()?,
        empty: load(&context, SMALL, "empty")?,
        spin: load(&context, SPIN, "spin")?,
        context,
    };
    // The first call of each kind is slow by itself.
    round(&scene, &mut vec![Vec::new(); KINDS.len() + 1])?;
    let mut times: Times = vec![Vec::new(); KINDS.len() + 1];
    for _ in 0..ROUNDS {
        round(&scene, &mut times)?;
        quiet_round(&scene, &mut times)?;
    }
    let slowest = report(times);
    let good = *driver == Choice::Soft || slowest <= LIMIT.as_secs_f64() * 1e6;
    if !good {
        eprintln!("error: a launch took {slowest:.1} us while something was dropped; {LIMIT:?} is allowed");
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a table and returns the slowest launch beside a drop.
fn report(times: Times) -> f64 {
    println!(
        "\nmicroseconds for a launch{:>16} {:>9} {:>9} {:>9}",
        "launches", "median", "99.9 %", "slowest"
    );
    let names = KINDS.iter().map(|(name, _)| *name).chain(["nothing"]);
    for (name, times) in names.zip(&times) {
        let [median, most, slowest] = [0.5, 0.999, 1.0].map(|part| quantile(times, part));
        let most = if times.len() < THOUSAND { "-".to_owned() } else { format!("{most:.2}") };
        println!("beside {name:34}{:9} {median:9.2} {most:>9} {slowest:9.2}", times.len());
    }
    times.iter().take(KINDS.len()).map(|times| quantile(times, 1.0)).fold(0.0, f64::max)
}

/// Launches while another thread drops.
fn round(scene: &Scene, times: &mut Times) -> Outcome<()> {
    let mut things = Vec::new();
    for _ in 0..EACH {
        for (kind, (_, make)) in KINDS.iter().enumerate() {
            things.push((kind, make(scene)?));
        }
    }
    scene.context.synchronize_blocking()?;
    let pause = DROPPING / u32::try_from(things.len())?;
    let dropping = AtomicUsize::new(KINDS.len());
    occupy(scene)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            for (kind, thing) in things {
                dropping.store(kind, Ordering::SeqCst);
                drop(thing);
                thread::sleep(pause);
            }
            dropping.store(KINDS.len(), Ordering::SeqCst);
        });
        launch_while_busy(scene, &dropping, times)
    })?;
    // The drain waits for the device.
    reaper::drain();
    Ok(())
}

/// The same without drops, for comparison.
fn quiet_round(scene: &Scene, times: &mut Times) -> Outcome<()> {
    occupy(scene)?;
    launch_while_busy(scene, &AtomicUsize::new(KINDS.len()), times)
}

fn occupy(scene: &Scene) -> Outcome<()> {
    let nanoseconds = u64::try_from(BUSY.as_nanos())?;
    // SAFETY: the argument is the kernel's; it touches no memory.
    unsafe { scene.spin.launch(&scene.busy, LaunchConfig::new(1, 1), params![nanoseconds]) }?;
    Ok(())
}

fn launch_while_busy(scene: &Scene, dropping: &AtomicUsize, times: &mut Times) -> Outcome<()> {
    while !scene.busy.query()? {
        for _ in 0..BATCH {
            let start = Instant::now();
            // SAFETY: the kernel does nothing.
            unsafe { scene.empty.launch(&scene.launching, LaunchConfig::new(1, 1), params![]) }?;
            let time = start.elapsed();
            // Read after the launch: a launch that was held up has seen the drop begin.
            if let Some(times) = times.get_mut(dropping.load(Ordering::SeqCst)) {
                times.push(time.as_secs_f64() * 1e6);
            }
        }
        scene.launching.synchronize_blocking()?;
    }
    Ok(())
}
