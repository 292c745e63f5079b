//! The whole crate once, on the software driver. The workspace's own suite tests its promises in
//! detail, on every driver.
#![cfg(not(loom))]

use cuda_handles::{Device, Error, Event, Image, Library, Stream, reaper};

const PTX: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry empty(.param .u32 count, .param .u64 data) { ret; }
";

#[test]
fn everything_once() -> Result<(), Error> {
    cuda_soft::loader(cuda_soft::Config::default()).install()?;
    let context = Device::new(0)?.context()?;
    let (home, other) = (context.stream()?, context.stream()?);

    let source = home.upload_blocking(&[1_u32, 2, 3, 4])?;
    let target = home.zeros::<u32>(4)?;
    assert!(source.allocation().is_settled() && !target.allocation().is_settled());
    other.copy(&source, &target)?;
    assert!(target.allocation().is_shared());
    other.fill(target.slice(..1)?, 9)?;
    assert_eq!(target.read_blocking(&other)?, [9, 2, 3, 4]);

    let event = context.event()?;
    other.record(&event)?;
    home.wait(&event)?;
    event.synchronize_blocking()?;
    // SAFETY: event and stream are alive.
    let found =
        unsafe { (Event::from_raw(&context, event.as_raw())?, Stream::from_raw(&context, home.as_raw())?) };
    assert_eq!(found, (event, home.clone()));

    let kernel = Library::load(&context, Image::Ptx(PTX))?.kernel("empty")?;
    let offsets: Vec<_> =
        kernel.parameters().unwrap_or_default().iter().map(|one| (one.offset, one.size)).collect();
    assert_eq!(offsets, [(0, 4), (8, 8)]);

    drop((source, target, other, kernel));
    reaper::drain();
    assert_eq!(reaper::pending(), 0);
    assert_eq!(context.lost(), None);
    Ok(())
}
