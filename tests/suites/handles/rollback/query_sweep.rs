//! The fault sweep over what asks the driver, over pools and what other processes get of them, and
//! over registered memory and linked images.

use cuda_handles::{
    Batch, Error, EventOptions, Image, Kernel, Library, Linker, LoadOptions, PoolAccess, PoolOptions,
    RegisterOptions,
};
use cuda_tests::{SMALL, is_soft, on_two_devices, other_device, setup, sweep, used_stream};

#[test]
fn questions_about_a_context() {
    let context = setup();
    let stream = used_stream(&context);
    let flags = context.alloc_blocking::<u64>(4).unwrap();
    let cases = sweep("questions about a context", || -> Result<(), Error> {
        let buffer = stream.zeros::<u32>(8)?;
        assert!(!context.stream_priorities()?.is_empty());
        context.address_info(buffer.address())?;
        context.with_current(|| ())?;
        assert!(stream.capture_info()?.is_none());
        context.device().can_access(context.device())?;
        let mut batch = Batch::new();
        batch.write(&flags, 0, 1)?;
        match batch.check(&context) {
            // Not every device writes numbers of 64 bits.
            Err(Error::Unsupported { .. }) => Ok(()),
            checked => checked,
        }
    });
    assert!(cases >= 10, "{cases}");
}

#[test]
fn pools_and_their_access() {
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("pools and their access", || -> Result<(), Error> {
        let pool = context.pool(PoolOptions::default())?;
        pool.release_threshold()?;
        pool.access(context.device())?;
        context.default_pool()?.release_threshold()?;
        let buffer = stream.zeros_from::<u32>(&pool, 8)?;
        assert_eq!(buffer.read_blocking(&stream)?, [0; 8]);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn pools_within_reach_of_another_device() {
    on_two_devices!();
    let context = setup();
    let second = other_device();
    let other = second.context().unwrap();
    let stream = used_stream(&context);
    // The reaper gets its stream there, which it keeps.
    drop(other.alloc_blocking::<u32>(1).unwrap());
    if !context.device().can_access(second).unwrap() {
        cuda_tests::skip!("the devices do not reach each other's memory");
    }
    let far = other.alloc_blocking::<u32>(8).unwrap();
    let cases = sweep("pools within reach of another device", || -> Result<(), Error> {
        let pool = context.pool(PoolOptions::default())?;
        pool.grant_access(second)?;
        let (buffer, of_the_device) = (stream.zeros_from::<u32>(&pool, 8)?, stream.zeros::<u32>(8)?);
        assert!(buffer.allocation().is_reachable_from(&other)?);
        assert!(!of_the_device.allocation().is_reachable_from(&other)?);
        // SAFETY: no work of the other device uses the pool's memory.
        unsafe { pool.restrict_access(second, PoolAccess::None) }?;
        context.enable_peer_access(&other)?;
        stream.copy_peer(&buffer, &far)?;
        stream.synchronize_blocking()
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn exports_to_other_processes() {
    let context = setup();
    if !is_soft() {
        cuda_tests::skip!("exported memory stays with the driver for a while on a GPU");
    }
    let stream = used_stream(&context);
    let cases = sweep("exports to other processes", || -> Result<(), Error> {
        let options = EventOptions { timing: false, ipc: true, ..EventOptions::default() };
        let event = context.event_with(options)?;
        assert_eq!(context.import_event(&event.export()?)?, event);
        let pool = context.pool(PoolOptions { shareable: true, ..PoolOptions::default() })?;
        #[cfg(unix)]
        drop(context.import_pool(pool.export_fd()?)?);
        stream.zeros_from::<u32>(&pool, 8)?.export()?;
        stream.synchronize_blocking()
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn memory_registered_by_its_address() {
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("memory registered by its address", || -> Result<(), Error> {
        let mut elements = vec![3_u32; 1024];
        let (start, len) = (elements.as_mut_ptr(), elements.len());
        // SAFETY: the owner has these elements, and nobody else uses them.
        let memory = unsafe { context.register_raw(start, len, elements, RegisterOptions::default()) };
        let memory = memory.map_err(|refused| refused.error)?.share();
        let buffer = stream.zeros::<u32>(1024)?;
        stream.copy(&memory, &buffer)?;
        assert_eq!(buffer.read_blocking(&stream)?[1023], 3);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn images_linked_and_loaded_with_options() {
    let context = setup();
    let cases = sweep("images linked and loaded with options", || -> Result<(), Error> {
        let options = LoadOptions { max_registers: Some(64), ..LoadOptions::default() };
        let library = Library::load_with(&context, Image::Ptx(SMALL), &options)?;
        let raw = library.kernel("increment")?.as_raw();
        // SAFETY: the library is loaded. Nobody holds the kernel, so that the driver is asked.
        let kernel = unsafe { Kernel::from_raw_in(raw, Some(&library)) }?;
        assert!(["increment", ""].contains(&kernel.name()));
        let mut linker = Linker::with(&context, &options)?;
        linker.add("small", Image::Ptx(SMALL))?;
        assert!(!linker.link_to_image()?.is_empty());
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn archives_that_the_driver_refuses() {
    let context = setup();
    if !is_soft() {
        cuda_tests::skip!("a GPU's driver may link an archive without members");
    }
    let cases = sweep("archives that the driver refuses", || -> Result<(), Error> {
        match Linker::new(&context)?.add_archive("empty.a", b"!<arch>\n").map(drop) {
            Err(Error::Jit { log, .. }) if log.contains("PTX texts alone") => Ok(()),
            other => other,
        }
    });
    assert!(cases >= 5, "{cases}");
}
