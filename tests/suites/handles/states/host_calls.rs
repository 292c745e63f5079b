//! Host functions and registered memory.

use cuda_handles::{HostBuffer, RegisterOptions, SharedHostBuffer};
use cuda_tests::states::{
    CALLS, LEN, PERMITTED, PURE, Refusal, Row, State, Things, done, drops, prepared, row,
};

fn registered(things: &Things) -> Result<HostBuffer<u32>, Refusal> {
    Ok(things.context.register(vec![7_u32; LEN]).map_err(|refused| refused.error)?)
}

fn shared(things: &Things) -> Result<SharedHostBuffer<u32>, Refusal> {
    Ok(registered(things)?.share())
}

fn used(things: &Things) -> Result<SharedHostBuffer<u32>, Refusal> {
    let memory = shared(things)?;
    things.other.fill(&memory, 1)?;
    Ok(memory)
}

pub(crate) fn rows() -> Vec<Row> {
    [calls(), memory()].into_iter().flatten().collect()
}

fn calls() -> Vec<Row> {
    vec![
        row("Stream::host", PERMITTED, |things| Ok(things.other.host(|| ())?)),
        row("Stream::host_once", PERMITTED, |things| Ok(things.other.host_once(|| ())?)),
        prepared("Stream::host_with", PERMITTED, shared, |things, memory| {
            Ok(things.other.host_with(&memory, |view| drop(view.to_vec()))?)
        }),
        prepared("Stream::host_once_with", PERMITTED, shared, |things, memory| {
            Ok(things.other.host_once_with(&memory, |view| drop(view.to_vec()))?)
        }),
        prepared("SharedHostBuffer::try_view", PURE, shared, |_, memory| {
            let view = memory.try_view().expect("nobody else looks");
            view.set(1, 2)?;
            assert_eq!((view.get(0), view.get(1)), (Some(7), Some(2)));
            Ok(())
        }),
    ]
}

fn memory() -> Vec<Row> {
    vec![
        row("Context::register", CALLS, |things| done(registered(things)?)),
        row("Context::register_raw", CALLS, |things| {
            let mut elements = vec![0_u32; LEN];
            let (start, len) = (elements.as_mut_ptr(), elements.len());
            // SAFETY: the owner has these elements, and nobody else uses them.
            let memory =
                unsafe { things.context.register_raw(start, len, elements, RegisterOptions::default()) };
            done(memory.map_err(|refused| refused.error)?)
        }),
        prepared(
            "HostBuffer::into_vec_blocking",
            // The vector comes back from a lost context, without a call.
            CALLS.but(State::Lost, cuda_tests::states::Expected::Works),
            registered,
            |_, memory| done(memory.into_vec_blocking().map_err(|refused| refused.error)?),
        ),
        drops("drop of registered memory", registered),
        drops("drop of registered memory in use", used),
        row("Stream::alloc", CALLS, |things| done(things.home.alloc::<u32>(LEN)?)),
        prepared("Stream::alloc_from", CALLS, super::pool, |things, pool| {
            done(things.home.alloc_from::<u32>(&pool, LEN)?)
        }),
        row("Stream::clear", PERMITTED, |things| Ok(things.home.clear(&things.buffer)?)),
    ]
}
