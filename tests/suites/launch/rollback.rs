//! The fault sweep over the crate: each driver call of these scenarios fails in turn.

use cuda_handles::{EventOptions, Image};
use cuda_launch::{Error, Launch, Occupancy, Tiled, kernel as declare, params, per};
use cuda_tests::{Need, SMALL, kernel, setup, sweep, used_stream};

#[test]
fn launches_at_home_and_elsewhere() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("launches at home and elsewhere", || -> Result<(), Error> {
        let buffer = home.zeros::<u32>(16)?;
        for stream in [&home, &other] {
            // SAFETY: the arguments are the kernel's, the count is the buffer's, and the second
            // launch waits for the first.
            unsafe { increment.launch(stream, per(16, 16), params![&buffer, 16_u32]) }?;
            other.wait_for(&home)?;
        }
        assert_eq!(buffer.read_blocking(&other)?, [2; 16]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn launches_with_an_owning_holder() {
    let context = setup();
    let offset_copy = kernel(&context, "offset_copy");
    let stream = used_stream(&context);
    let cases = sweep("launches with an owning holder", || -> Result<(), Error> {
        let out = stream.zeros::<u32>(16)?;
        let from = stream.upload(&[1_u32; 16])?;
        let holder = params![&from, &out, 3_u32, 16_u32].into_owned();
        drop(from);
        // SAFETY: the arguments are the kernel's, and both buffers have 16 elements.
        unsafe { offset_copy.launch(&stream, per(16, 16), &holder) }?;
        drop(holder);
        assert_eq!(out.read_blocking(&stream)?, [4; 16]);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn from_the_image_to_the_result() {
    let context = setup();
    let cases = sweep("from the image to the result", || -> Result<(), Error> {
        let library = cuda_handles::Library::load(&context, cuda_handles::Image::Ptx(cuda_tests::SMALL))?;
        let saxpy = library.kernel("saxpy")?;
        let stream = context.stream()?;
        let (x, y) = (stream.upload(&[1.0_f32; 8])?, stream.zeros::<f32>(8)?);
        // SAFETY: the arguments are the kernel's, and both buffers have 8 elements.
        unsafe { saxpy.launch(&stream, per(8, 32), params![8_u32, 2.0_f32, &x, &y]) }?;
        assert_eq!(y.read_blocking(&stream)?, [2.0; 8]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

declare! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

#[test]
fn typed_kernels_and_attributes() {
    let context = setup();
    let home = used_stream(&context);
    let completes_events = Need::CompletionEvents.is_met() && Need::LaunchAttributes.is_met();
    let cases = sweep("typed kernels and attributes", || -> Result<(), Error> {
        let saxpy = saxpy::load(&context)?;
        let (x, y) = (home.upload(&[1.0_f32; 8])?, home.zeros::<f32>(8)?);
        saxpy.launch(&home, per(8, 32), (8, 2.0, &x, &y))?;
        let done = context.event_with(EventOptions { timing: false, ..EventOptions::default() })?;
        let config = per(8, 32).priority(0);
        if completes_events {
            saxpy.launch(&home, config.completion_event(&done), (8, 2.0, &x, &y))?;
        } else {
            saxpy.launch(&home, config, (8, 2.0, &x, &y))?;
        }
        assert_eq!(y.read_blocking(&home)?, [4.0; 8]);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn occupancy_and_tensor_maps() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let clusters = context.limits().compute_capability >= (9, 0);
    let buffer = context.alloc_blocking::<f32>(64 * 100).unwrap();
    let cases = sweep("occupancy and tensor maps", || -> Result<(), Error> {
        increment.blocks_per_multiprocessor(256, 0)?;
        increment.blocks_at_once(&per(256, 256))?;
        increment.best_block(0)?;
        increment.shared_bytes_available(1, 256)?;
        if clusters {
            increment.largest_cluster(&per(1024, 256).cluster(2))?;
            increment.clusters_at_once(&per(1024, 256).cluster(2))?;
            Tiled::new([64, 100], [32, 8]).encode(&buffer)?;
        }
        Ok(())
    });
    assert!(cases >= 5, "{cases}");
}
