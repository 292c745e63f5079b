//! Calls that the driver refuses are named, and leave nothing behind.

use cuda_handles::{Error, Image, Library};
use cuda_sys::{CUresult, Call};
use cuda_tests::{SMALL, every_failure, fail, no_leaks, on_two_devices, other_device, setup};

#[test]
fn a_refused_call_is_named_with_its_code_and_the_drivers_sentence() {
    let context = setup();
    no_leaks(|| {
        let injection = fail(Call::cuEventCreate, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        let error = context.event().unwrap_err();
        assert!(injection.hit());
        assert_eq!(
            error,
            Error::Driver { call: Call::cuEventCreate, code: CUresult::CUDA_ERROR_INVALID_VALUE }
        );
        let text = error.to_string();
        assert!(text.starts_with("cuEventCreate answered CUDA_ERROR_INVALID_VALUE (1): "), "{text}");
        assert!(text.contains("invalid"), "{text}");
        drop(context.event().unwrap());
    });
}

#[test]
fn whatever_call_of_an_operation_fails_nothing_stays_behind() {
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let ready = home.upload_blocking(&[1_u32; 16]).unwrap();
    let shared = || -> Result<_, Error> {
        let buffer = home.zeros::<u32>(16)?;
        other.fill(&buffer, 1)?;
        buffer.read_blocking(&other)
    };
    // Once before, so that both streams have what they keep for as long as they live.
    shared().unwrap();
    assert!(every_failure(|| context.stream()) >= 1);
    assert!(every_failure(|| context.event()) >= 1);
    assert!(every_failure(|| home.zeros::<u32>(16)) >= 2);
    assert!(every_failure(|| home.upload_blocking(&[1_u32; 16])) >= 2);
    // Objects that these leave are counted as theirs.
    assert!(every_failure(|| home.upload(&[1_u32; 16]).and_then(|_buffer| home.synchronize_blocking())) >= 3);
    assert!(every_failure(|| home.write(&ready, &[1; 16]).and_then(|()| home.synchronize_blocking())) >= 2);
    assert!(every_failure(|| home.fill(&ready, 1)) >= 1);
    assert!(every_failure(|| ready.read_blocking(&home)) >= 1);
    assert!(every_failure(|| ready.write_blocking(&home, &[2; 16])) >= 1);
    assert!(every_failure(|| Library::load(&context, Image::Ptx(SMALL))?.kernel("saxpy")) >= 2);
    assert!(every_failure(shared) >= 5);
    assert_eq!(ready.read_blocking(&home).unwrap(), [2; 16]);
}

/// A context is retained once in a process, so this is one of a device that nobody has used.
#[test]
fn whatever_call_fails_a_context_is_retained_afterwards() {
    on_two_devices!();
    let context = setup();
    let device = other_device();
    assert!(every_failure(|| device.context()) >= 2);
    assert_ne!(device.context().unwrap(), *context);
    drop(device.context().unwrap().stream().unwrap());
}

#[test]
fn a_wait_that_failed_is_made_by_the_next_use() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let gate = cuda_tests::Gate::close(&home);
        let buffer = home.zeros::<u32>(16).unwrap();
        let injection = fail(Call::cuStreamWaitEvent, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        other.fill(&buffer, 1).unwrap_err();
        assert!(injection.hit());
        assert!(other.query().unwrap(), "nothing was enqueued");
        other.fill(&buffer, 2).unwrap();
        assert!(!other.query().unwrap(), "this one waits");
        gate.open();
        assert_eq!(buffer.read_blocking(&other).unwrap(), [2; 16]);
    });
}

#[test]
fn memory_waiting_to_be_freed_is_freed_before_the_device_counts_as_full() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let injection = fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let outcome = stream.zeros::<u32>(16);
        assert!(injection.hit());
        match outcome {
            Ok(buffer) => {
                assert_eq!(buffer.read_blocking(&stream).unwrap(), [0; 16], "tried again after a drain")
            }
            Err(error) => assert!(matches!(error, Error::OutOfMemory { asked: 64, .. }), "{error:?}"),
        }
    });
}
