//! Every captured call finds its node, whatever the driver makes of it.

use cuda_graph::{Error, StreamExt};
use cuda_handles::{BarrierScope, Batch, Compare, Copy2d, Copy3d, Stream};
use cuda_launch::{Launch, LaunchConfig, params, per};
use cuda_tests::{Need, kernel, no_leaks, setup};

/// Captures calls one after the other; each makes one node and matches it.
fn all_match(
    stream: &Stream,
    calls: usize,
    work: impl FnOnce(&Stream) -> Result<(), Error>,
) -> Result<(), Error> {
    let capture = stream.graph_builder().begin()?;
    work(capture.stream())?;
    let ended = capture.end()?;
    assert_eq!((ended.graph().len()?, ended.unmatched()?), (calls, 0));
    Ok(())
}

#[test]
fn fills_of_every_width_and_length() -> Result<(), Error> {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream()?;
        let bytes = stream.zeros::<u8>(1 << 16)?;
        let halves = stream.zeros::<u16>(1 << 12)?;
        let words = stream.zeros::<u32>(1 << 16)?;
        let host = context.pinned_zeros::<u32>(64)?.share();
        stream.synchronize_blocking()?;
        let lengths = [1, 2, 3, 4, 7, 8, 64, 4096, 1 << 16];
        all_match(&stream, 3 * lengths.len() + 6, |stream| {
            for len in lengths {
                stream.fill(bytes.slice(..len)?, 0x5a)?;
                stream.clear(bytes.slice(..len)?)?;
                stream.fill(words.slice(..len)?, 0x0102_0304)?;
            }
            stream.fill(&halves, 0x5aa5)?;
            stream.fill(bytes.slice(1..8)?, 0)?;
            stream.fill(&words, 0)?;
            stream.fill(&host, 1)?;
            stream.fill_2d(&words, 64, [16, 8], 3)?;
            Ok(stream.fill_2d(&bytes, 256, [100, 4], 3)?)
        })
    })
}

#[test]
fn copies_of_every_direction_and_shape() -> Result<(), Error> {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream()?;
        let (from, to) = (stream.zeros::<u32>(4096)?, stream.zeros::<u32>(4096)?);
        let (source, target) =
            (context.pinned_zeros::<u32>(4096)?.share(), context.pinned_zeros::<u32>(4096)?.share());
        let managed = context.managed_zeros::<u32>(64)?.share();
        stream.synchronize_blocking()?;
        let flat = Copy2d {
            source: from.as_slice(),
            source_pitch: 64,
            destination: to.as_slice(),
            destination_pitch: 32,
            width: 16,
            height: 8,
        };
        all_match(&stream, 11, |stream| {
            stream.copy(&from, &to)?;
            stream.copy(from.slice(1..4)?, to.slice(2..5)?)?;
            stream.copy(&source, &to)?;
            stream.copy(&from, &target)?;
            stream.copy(&source, &target)?;
            stream.copy(&managed, to.slice(..64)?)?;
            stream.copy_2d(flat)?;
            stream.copy_2d(Copy2d { source: source.as_slice(), ..flat })?;
            stream.copy_3d(Copy3d {
                depth: 2,
                height: 4,
                source_rows: 8,
                destination_rows: 8,
                ..flat.layer()
            })?;
            stream.write(to.slice(..4)?, &[1, 2, 3, 4])?;
            Ok(stream.write(&to, &vec![5; 4096])?)
        })
    })
}

#[test]
fn launches_with_and_without_attributes() -> Result<(), Error> {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let saxpy = kernel(&context, "saxpy");
        let stream = context.stream()?;
        let (x, y) = (stream.zeros::<f32>(64)?, stream.zeros::<f32>(64)?);
        let numbers = stream.zeros::<u32>(64)?;
        stream.synchronize_blocking()?;
        let clusters = Need::LaunchAttributes.is_met();
        all_match(&stream, 5 + usize::from(clusters), |stream| {
            for count in [1_u32, 2, 64] {
                // SAFETY: the arguments are the kernel's, and the buffer has as many elements.
                unsafe { increment.launch(stream, per(64, 32), &params![&numbers, count]) }?;
            }
            // SAFETY: as above.
            unsafe { saxpy.launch(stream, per(64, 32), &params![64_u32, 2.0_f32, &x, &y]) }?;
            // SAFETY: as above.
            unsafe { saxpy.launch(stream, per(64, 32).priority(-1), &params![64_u32, 3.0_f32, &y, &x]) }?;
            if clusters {
                let config = LaunchConfig::new(4, 32).cluster(2);
                // SAFETY: as above.
                unsafe { increment.launch(stream, config, &params![&numbers, 64_u32]) }?;
            }
            Ok(())
        })
    })
}

#[test]
fn host_functions_and_batches() -> Result<(), Error> {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream()?;
        let words = context.alloc_blocking::<u32>(8)?;
        let host = context.pinned_zeros::<u32>(8)?.share();
        stream.synchronize_blocking()?;
        let (mut batch, mut fenced) = (Batch::new(), Batch::new());
        batch.write(&words, 0, 7)?.wait(&words, 0, Compare::AtLeast, 7)?;
        fenced.barrier(BarrierScope::Device).write(&words, 1, 1)?;
        all_match(&stream, 4, |stream| {
            stream.host(|| {})?;
            stream.host_with(&host, |view| {
                let _ = view.set(0, 1);
            })?;
            stream.batch(&batch)?;
            Ok(stream.batch(&fenced)?)
        })
    })
}
