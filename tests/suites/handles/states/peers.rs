//! Operations that need two devices.

use cuda_handles::{Buffer, Context, Device, MemPool, PoolAccess, PoolOptions, Stream};
use cuda_tests::other_device;
use cuda_tests::states::{CALLS, DEVICE, LEN, PURE, Refusal, Row, Things, done, drops, prepared, row};

cuda_tests::six_states!(rows, devices: 2);

fn second() -> Result<Device, Refusal> {
    Ok(other_device())
}

/// A stream and memory of the second device; the memory is settled.
fn there(_: &Things) -> Result<(Stream, Buffer<u32>), Refusal> {
    let context: Context = second()?.context()?;
    let stream = context.stream()?;
    let buffer = stream.zeros(LEN)?;
    stream.synchronize_blocking()?;
    Ok((stream, buffer))
}

fn pool(things: &Things) -> Result<(MemPool, Device), Refusal> {
    Ok((things.context.pool(PoolOptions::default())?, second()?))
}

fn rows() -> Vec<Row> {
    vec![
        prepared(
            "Device::can_access",
            DEVICE,
            |_| second(),
            |things, second| done(things.context.device().can_access(second)?),
        ),
        prepared("Device::context of another one", PURE, there, |_, (stream, _)| {
            done(stream.context().device().context()?)
        }),
        prepared("Stream::copy_peer", CALLS, there, |things, (_, buffer)| {
            Ok(things.home.copy_peer(&things.buffer, &buffer)?)
        }),
        prepared("Stream::copy_peer to here", CALLS, there, |things, (_, buffer)| {
            Ok(things.home.copy_peer(&buffer, &things.buffer)?)
        }),
        prepared("MemPool::access of another device", CALLS, pool, |_, (pool, second)| {
            done(pool.access(second)?)
        }),
        prepared("MemPool::grant_access, restrict_access", CALLS, pool, |_, (pool, second)| {
            pool.grant_access(second)?;
            // SAFETY: no work of that device knows the pool.
            Ok(unsafe { pool.restrict_access(second, PoolAccess::None) }?)
        }),
        row("Stream::copy_peer within a device", CALLS, |things| {
            let (from, to) = (things.buffer.slice(..8)?, things.buffer.slice(8..16)?);
            Ok(things.home.copy_peer(from, to)?)
        }),
        drops("drop of memory that another device used", |things| {
            let (stream, buffer) = there(things)?;
            things.home.copy_peer(&things.buffer, &buffer)?;
            Ok((buffer, stream))
        }),
        drops("drop of memory that was used on another device", |things| {
            let (stream, there) = there(things)?;
            let here = things.home.zeros::<u32>(LEN)?;
            stream.copy_peer(&here, &there)?;
            things.home.wait_for(&stream)?;
            Ok((here, there, stream))
        }),
    ]
}
