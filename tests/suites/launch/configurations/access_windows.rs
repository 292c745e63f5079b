//! Access policy windows of launches and streams, by raw calls: the library sets none for launches.

use cuda_handles::{Kernel, Stream};
use cuda_sys::{
    CUaccessPolicyWindow, CUaccessProperty as Property, CUlaunchAttribute, CUlaunchAttributeID as Id,
    CUlaunchAttributeValue, CUlaunchConfig, CUresult,
};
use cuda_tests::{kernel, no_leaks, raw, setup, skip};

fn value(window: CUaccessPolicyWindow) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue::default();
    value.accessPolicyWindow = window;
    value
}

/// Launches `empty` with a window, and gives one to the stream.
fn answers(empty: &Kernel, stream: &Stream, window: CUaccessPolicyWindow) -> [CUresult; 2] {
    let id = Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    let value = value(window);
    let mut attribute = CUlaunchAttribute { id, value, ..CUlaunchAttribute::default() };
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream.as_raw(),
        attrs: &raw mut attribute,
        numAttrs: 1,
        ..CUlaunchConfig::default()
    };
    let (driver, none) = (raw::driver(), core::ptr::null_mut());
    // SAFETY: the kernel has no parameters and does nothing; the structures outlive the calls.
    unsafe {
        [
            driver.cuLaunchKernelEx(&raw const config, empty.function(), none, none),
            driver.cuStreamSetAttribute(stream.as_raw(), id, &raw const value),
        ]
    }
}

#[test]
fn launches_and_streams_take_windows_that_are_some() {
    let context = setup();
    if context.limits().compute_capability < (8, 0) {
        skip!("windows need compute capability 8.0");
    }
    no_leaks(|| {
        let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
        let buffer = stream.zeros::<u32>(256).unwrap();
        let whole = CUaccessPolicyWindow {
            base_ptr: core::ptr::with_exposed_provenance_mut(buffer.address() as usize),
            num_bytes: buffer.size_bytes(),
            hitRatio: 1.0,
            hitProp: Property::CU_ACCESS_PROPERTY_PERSISTING,
            missProp: Property::CU_ACCESS_PROPERTY_STREAMING,
        };
        let good = [
            whole,
            CUaccessPolicyWindow { hitRatio: 0.25, hitProp: Property::CU_ACCESS_PROPERTY_STREAMING, ..whole },
            CUaccessPolicyWindow { missProp: Property::CU_ACCESS_PROPERTY_NORMAL, ..whole },
            CUaccessPolicyWindow::default(),
            CUaccessPolicyWindow { hitRatio: f32::NAN, ..whole },
            CUaccessPolicyWindow { base_ptr: core::ptr::null_mut(), ..whole },
            CUaccessPolicyWindow { hitProp: Property(3), missProp: Property(3), ..whole },
        ];
        for window in good {
            assert_eq!(answers(&empty, &stream, window), [CUresult::CUDA_SUCCESS; 2], "{window:?}");
        }
        stream.synchronize_blocking().unwrap();
        let bad = [
            CUaccessPolicyWindow { hitRatio: 1.5, ..whole },
            CUaccessPolicyWindow { num_bytes: 1 << 40, ..whole },
            CUaccessPolicyWindow { missProp: Property::CU_ACCESS_PROPERTY_PERSISTING, ..whole },
        ];
        for window in bad {
            let refused = [CUresult::CUDA_ERROR_INVALID_VALUE; 2];
            assert_eq!(answers(&empty, &stream, window), refused, "{window:?}");
        }
    });
}
