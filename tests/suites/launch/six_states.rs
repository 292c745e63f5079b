//! Every operation of the crate in each of the six states.

use cuda_handles::{EventOptions, Image};
use cuda_launch::{
    Arguments, Launch, LaunchConfig, Occupancy, OwnedParams, StreamConfig, TypedKernel, kernel, params, per,
};
use cuda_tests::SMALL;
use cuda_tests::states::{CALLS, LEN, PURE, Refusal, Row, Things, done, drops, prepared, row};

cuda_tests::six_states!(rows);

const N: u32 = LEN as u32;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of its own number, if that is below `n`.
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

fn rows() -> Vec<Row> {
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
            |things| Ok(things.home.zeros::<u32>(LEN)?),
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
        prepared(
            "launch with a completion event",
            CALLS,
            |things| {
                Ok(things.context.event_with(EventOptions { timing: false, ..EventOptions::default() })?)
            },
            |things, event| {
                let config: StreamConfig<'_> = config().completion_event(&event);
                // SAFETY: as above.
                Ok(unsafe { things.increment.launch(&things.home, config, params![&things.buffer, N]) }?)
            },
        ),
        row("Occupancy::blocks_per_multiprocessor, best_block", CALLS, |things| {
            things.increment.blocks_per_multiprocessor(128, 0)?;
            done(things.increment.best_block(0)?)
        }),
        row("load of a typed kernel", CALLS, |things| done(typed(things)?)),
        prepared("prepare of a typed kernel", PURE, typed, |things, kernel| {
            kernel.prepare(&config(), (&things.buffer, N))?;
            Ok(())
        }),
        prepared("launch of a typed kernel", CALLS, typed, |things, kernel| {
            Ok(kernel.launch(&things.home, config(), (&things.buffer, N))?)
        }),
        drops("drop of a typed kernel", typed),
        drops("drop of an owning holder", |things| {
            let buffer = things.home.zeros::<u32>(LEN)?;
            Ok(params![&buffer, N].into_owned())
        }),
    ]
}
