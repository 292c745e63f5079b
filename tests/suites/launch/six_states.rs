//! Every operation of the crate in each of the six states.

use cuda_launch::{Arguments, Launch, LaunchConfig, OwnedParams, params, per};
use cuda_tests::alone;
use cuda_tests::states::{CALLS, LEN, PURE, Refusal, Row, State, Things, drops, prepared, row, try_all};

#[test]
fn without_a_current_context() {
    try_all(State::NoContext, &rows());
}

#[test]
fn with_another_context_current() {
    try_all(State::OtherContext, &rows());
}

#[test]
fn while_this_thread_captures() {
    try_all(State::CapturingHere, &rows());
}

#[test]
fn while_another_thread_captures_in_global_mode() {
    try_all(State::CapturingElsewhere, &rows());
}

#[test]
fn inside_a_host_function() {
    alone!();
    try_all(State::Callback, &rows());
}

#[test]
fn with_the_context_lost() {
    alone!();
    try_all(State::Lost, &rows());
}

const N: u32 = LEN as u32;

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
        drops("drop of an owning holder", |things| {
            let buffer = things.home.zeros::<u32>(LEN)?;
            Ok(params![&buffer, N].into_owned())
        }),
    ]
}
