//! Four ways to launch the step of each token with its position and its cache.

use std::time::{Duration, Instant};

use cuda_graph::Update;
use cuda_handles::Buffer;

use super::program::{Decoder, Result, Results};

/// How the kernels get position and cache.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// One graph. Both are graph parameters, set for each token.
    Parameters,
    /// A graph for each token, by which the executable is updated.
    Update,
    /// A graph and an executable for each token.
    Rebuild,
    /// One graph. The kernels read both from memory, which is written before each launch.
    Memory,
}

/// The results of all tokens and their times.
pub(crate) struct Decoded {
    pub(crate) results: Results,
    /// The time on the host for each token.
    pub(crate) on_host: Vec<Duration>,
    /// The time of all tokens, until the device is done.
    pub(crate) in_all: Duration,
}

impl Way {
    /// Decodes all tokens, from the beginning.
    pub(crate) fn decode(self, decoder: &Decoder) -> Result<Decoded> {
        let caches = decoder.start()?;
        match self {
            Self::Parameters => with_parameters(decoder, &caches),
            Self::Update => with_updates(decoder, &caches),
            Self::Rebuild => with_rebuilds(decoder, &caches),
            Self::Memory => with_memory(decoder, &caches),
        }
    }
}

fn with_parameters(decoder: &Decoder, caches: &[Buffer<f32>]) -> Result<Decoded> {
    let step = decoder.graph_with_parameters(0, &caches[0])?;
    let mut exec = step.graph.instantiate()?;
    all_tokens(decoder, caches, |position, cache| {
        Ok(exec.launch_with(&decoder.stream, ((&step.position, position), (&step.cache, cache)))?)
    })
}

fn with_updates(decoder: &Decoder, caches: &[Buffer<f32>]) -> Result<Decoded> {
    let mut exec = decoder.graph_of(0, &caches[0])?.instantiate()?;
    all_tokens(decoder, caches, |position, cache| match exec.update(&decoder.graph_of(position, cache)?)? {
        Update::Updated => Ok(exec.launch(&decoder.stream)?),
        Update::Refused(refusal) => Err(refusal.to_string().into()),
    })
}

fn with_rebuilds(decoder: &Decoder, caches: &[Buffer<f32>]) -> Result<Decoded> {
    all_tokens(decoder, caches, |position, cache| {
        let mut exec = decoder.graph_of(position, cache)?.instantiate()?;
        Ok(exec.launch(&decoder.stream)?)
    })
}

fn with_memory(decoder: &Decoder, caches: &[Buffer<f32>]) -> Result<Decoded> {
    let place = decoder.stream.zeros(2)?;
    // SAFETY: each launch is behind a write of such a position and address. The caches are freed in
    // the order of the stream, behind the launches.
    let graph = unsafe { decoder.graph_from_memory(&place) }?;
    let mut exec = graph.instantiate()?;
    all_tokens(decoder, caches, |position, cache| {
        decoder.stream.write(&place, &[u64::from(position), cache.address()])?;
        Ok(exec.launch(&decoder.stream)?)
    })
}

/// Launches the step of each token with its position and the cache of its speaker. Waits after
/// every eighth token, so that the queue never fills up; these waits are not the host's time.
fn all_tokens(
    decoder: &Decoder,
    caches: &[Buffer<f32>],
    mut launch: impl FnMut(u32, &Buffer<f32>) -> Result<()>,
) -> Result<Decoded> {
    let mut on_host = Vec::new();
    let start = Instant::now();
    for token in 0..decoder.sizes.tokens {
        let (speaker, position) = decoder.sizes.turn(token);
        let start = Instant::now();
        launch(position, &caches[speaker])?;
        on_host.push(start.elapsed());
        if token % 8 == 7 {
            decoder.stream.synchronize_blocking()?;
        }
    }
    decoder.stream.synchronize_blocking()?;
    let in_all = start.elapsed();
    Ok(Decoded { results: decoder.results(caches)?, on_host, in_all })
}
