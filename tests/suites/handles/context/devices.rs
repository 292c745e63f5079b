//! Devices: counted, opened, and absent.

use std::collections::HashSet;

use cuda_handles::{Device, Error};
use cuda_sys::{CUdevice_attribute, CUdevice_attribute_enum};
use cuda_tests::{alone, count, raw, setup};

#[test]
fn every_device_that_is_counted_can_be_opened() {
    let _context = setup();
    let count = Device::count().unwrap();
    assert!(count >= 1);
    let all = Device::all().unwrap();
    assert_eq!(all.len(), count);
    for (ordinal, device) in all.iter().enumerate() {
        assert_eq!(*device, Device::new(ordinal).unwrap());
        assert_eq!(device.ordinal(), ordinal);
        assert!(!device.name().unwrap().is_empty());
        assert!(device.total_memory().unwrap() > 1 << 20);
        assert!(device.compute_capability().unwrap() >= (5, 0));
    }
    let ids: HashSet<_> = all.iter().map(|device| format!("{:?}", device.uuid().unwrap())).collect();
    assert_eq!(ids.len(), count, "every device has an id of its own");
}

#[test]
fn a_device_that_is_not_there_is_an_error_saying_how_many_there_are() {
    let _context = setup();
    let found = Device::count().unwrap();
    for asked in [found, found + 6, usize::MAX] {
        let error = Device::new(asked).unwrap_err();
        assert_eq!(error, Error::NoDevice { asked, found });
        let text = error.to_string();
        assert!(text.contains(&asked.to_string()) && text.contains(&found.to_string()), "{text}");
    }
}

#[test]
fn a_machine_without_devices_is_an_error_not_a_panic() {
    alone!();
    cuda_soft::loader(cuda_soft::Config::new().devices(0)).install().unwrap();
    let error = Device::new(0).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::NoDevice { asked: 0, found: 0 }) || text.contains("CUDA_ERROR_NO_DEVICE"),
        "{error:?}: {text}"
    );
    assert!(Device::count().is_err() || Device::count().unwrap() == 0);
}

#[test]
fn several_devices_have_contexts_of_their_own() {
    alone!();
    cuda_soft::loader(cuda_soft::Config::new().devices(3)).install().unwrap();
    let contexts: Vec<_> = Device::all().unwrap().iter().map(|device| device.context().unwrap()).collect();
    assert_eq!(contexts.len(), 3);
    let raw: HashSet<_> = contexts.iter().map(|context| context.as_raw()).collect();
    assert_eq!(raw.len(), 3);
    assert_eq!(contexts[2].device().ordinal(), 2);
}

#[test]
fn no_driver_is_an_error_of_every_first_call() {
    alone!("CUDA_SYS_DRIVER" = "/nowhere/libcuda.so.1");
    for error in [Device::new(0).unwrap_err(), Device::count().unwrap_err(), Device::all().unwrap_err()] {
        let text = error.to_string();
        assert!(matches!(error, Error::Load(_)), "{error:?}");
        assert!(text.contains("/nowhere/libcuda.so.1"), "{text}");
    }
}

#[test]
fn limits_are_the_devices_attributes_and_cost_no_call() {
    let context = setup();
    let attribute = |attribute: CUdevice_attribute| {
        let mut value = 0;
        let device = context.device().as_raw();
        // SAFETY: the out pointer is valid and the device is there.
        raw::ok(unsafe { raw::driver().cuDeviceGetAttribute(&raw mut value, attribute, device) });
        u32::try_from(value).unwrap()
    };
    let (limits, cost) = count(|| context.limits());
    cost.assert_calls(&[]);
    type A = CUdevice_attribute_enum;
    assert_eq!(limits.max_threads_per_block, attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    let block = [
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    ];
    assert_eq!(limits.max_block, block.map(attribute));
    let grid = [
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    ];
    assert_eq!(limits.max_grid, grid.map(attribute));
    assert_eq!(limits.max_shared_bytes, attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    assert_eq!(
        limits.max_shared_bytes_opt_in,
        attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    );
    assert_eq!(limits.warp, attribute(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    assert_eq!(limits.multiprocessors, attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    let capability = (
        attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    assert_eq!(limits.compute_capability, capability);
    assert_eq!(context.device().compute_capability().unwrap(), capability);
}
