//! Every operation of the crate in each of the six states.

use cuda_handles::{Event, EventOptions, Image};
use cuda_launch::{
    Arguments, Launch, LaunchConfig, Occupancy, OwnedParams, StreamConfig, Tiled, Trigger, TypedKernel,
    kernel, params, per,
};
use cuda_tests::SMALL;
use cuda_tests::states::{CALLS, DEVICE, LEN, PURE, Refusal, Row, Things, done, drops, prepared, row};

cuda_tests::six_states!(rows);

const N: u32 = LEN as u32;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

fn typed(things: &Things) -> Result<increment, Refusal> {
    Ok(increment::load(&things.context)?)
}

fn config() -> LaunchConfig {
    per(LEN, 32)
}

fn holder(things: &Things) -> Result<OwnedParams, Refusal> {
    Ok(params![&things.buffer, N].into_owned())
}

fn event(things: &Things) -> Result<Event, Refusal> {
    Ok(things.context.event_with(EventOptions { timing: false, ..EventOptions::default() })?)
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = [launches(), queries(), typed_kernels()].into_iter().flatten().collect();
    if has_clusters() {
        rows.extend(of_compute_capability_9());
    }
    rows
}

fn has_clusters() -> bool {
    let context = cuda_tests::setup();
    context.limits().compute_capability >= (9, 0)
}

fn launches() -> Vec<Row> {
    vec![
        row("params!, into_owned, check", PURE, |things| {
            let params = params![&things.buffer, N];
            params.check(&things.increment)?;
            params.into_owned().check(&things.increment)?;
            Ok(())
        }),
        row("LaunchConfig::check", PURE, |things| Ok(config().check(&things.increment)?)),
        row("launch, built per call", CALLS, |things| {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            Ok(unsafe { things.increment.launch(&things.home, config(), params![&things.buffer, N]) }?)
        }),
        row("launch where the buffer is not at home", CALLS, |things| {
            // SAFETY: as above; nothing else uses the buffer.
            Ok(unsafe { things.increment.launch(&things.other, config(), params![&things.buffer, N]) }?)
        }),
        prepared("launch with an owning holder", CALLS, holder, |things, holder| {
            // SAFETY: as above.
            Ok(unsafe { things.increment.launch(&things.home, config(), &holder) }?)
        }),
        prepared(
            "launch that has to wait for the buffer's home",
            CALLS,
            |things| Ok(things.context.stream()?.zeros::<u32>(LEN)?),
            |things, buffer| {
                // SAFETY: as above.
                Ok(unsafe { things.increment.launch(&things.other, config(), params![&buffer, N]) }?)
            },
        ),
        row("launch with attributes", CALLS, |things| {
            let config = config().priority(0);
            // SAFETY: as above.
            Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
        }),
        row("cooperative launch", CALLS, |things| {
            let config = config().cooperative();
            // SAFETY: as above.
            Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
        }),
        drops("drop of an owning holder", |things| {
            let buffer = things.home.zeros::<u32>(LEN)?;
            Ok(params![&buffer, N].into_owned())
        }),
    ]
}

fn queries() -> Vec<Row> {
    vec![
        row("Occupancy::blocks_per_multiprocessor, best_block", CALLS, |things| {
            things.increment.blocks_per_multiprocessor(128, 0)?;
            done(things.increment.best_block(0)?)
        }),
        row("Occupancy::blocks_at_once", CALLS, |things| done(things.increment.blocks_at_once(&config())?)),
        row("Occupancy::shared_bytes_available", CALLS, |things| {
            done(things.increment.shared_bytes_available(1, 128)?)
        }),
        row("LaunchConfig::node_attributes", PURE, |things| {
            done(config().cooperative().node_attributes(&things.increment)?)
        }),
    ]
}

fn typed_kernels() -> Vec<Row> {
    vec![
        row("load of a typed kernel", CALLS, |things| done(typed(things)?)),
        // A kernel that is there already is found by its name, and the driver tells its layout.
        row("typed kernel of a library", CALLS, |things| {
            // SAFETY: the library is that of the declaration.
            done(unsafe { increment::of(things.increment.library()) }?)
        }),
        prepared("prepare of a typed kernel", PURE, typed, |things, kernel| {
            kernel.prepare(&config(), (&things.buffer, N))?;
            Ok(())
        }),
        prepared("launch of a typed kernel", CALLS, typed, |things, kernel| {
            Ok(kernel.launch(&things.home, config(), (&things.buffer, N))?)
        }),
        drops("drop of a typed kernel", typed),
    ]
}

/// Operations that older devices refuse.
fn of_compute_capability_9() -> Vec<Row> {
    vec![
        row("launch of clusters", CALLS, |things| {
            let config = config().cluster(2);
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
        }),
        prepared("launch with a completion event", CALLS, event, |things, event| {
            let config: StreamConfig<'_> = config().completion_event(&event);
            // SAFETY: as above.
            Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
        }),
        prepared("launch with a programmatic event", CALLS, event, |things, event| {
            let config = config().programmatic_event(&event, Trigger::BlockStart);
            // SAFETY: as above.
            Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
        }),
        row("LaunchConfig::check that asks the device", DEVICE, |things| {
            Ok(config().memory_sync_domain_map(0, 1).check(&things.increment)?)
        }),
        row("Occupancy::clusters_at_once", CALLS, |things| {
            done(things.increment.clusters_at_once(&config().cluster(2))?)
        }),
        row("Occupancy::largest_cluster", CALLS, |things| done(things.increment.largest_cluster(&config())?)),
        row("Tiled::encode", CALLS, |things| done(Tiled::new([8, 8], [8, 8]).encode(&things.buffer)?)),
        prepared(
            "params! with a tensor map, into_owned",
            PURE,
            |things| Ok(Tiled::new([8, 8], [8, 8]).encode(&things.buffer)?),
            |_, map| done(params![&map].into_owned()),
        ),
        drops("drop of a tensor map", |things| {
            Ok(Tiled::new([8, 8], [8, 8]).encode(&things.home.zeros::<u32>(LEN)?)?)
        }),
    ]
}
