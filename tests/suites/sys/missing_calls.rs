//! Calls that the driver is too old for.

use core::ptr;

use cuda_sys::{Call, Version};
use cuda_tests::alone;

#[test]
fn a_call_newer_than_the_driver_is_an_error_with_both_versions() {
    alone!();
    let driver = cuda_soft::loader(cuda_soft::Config::new().version(Version::new(12, 2))).install().unwrap();
    assert_eq!(driver.version(), Version::new(12, 2));
    let mut size = 0;
    // SAFETY: the driver does not have the call, so nothing is called.
    let missing = unsafe { driver.cuKernelGetParamInfo(ptr::null_mut(), 0, &raw mut size, ptr::null_mut()) };
    let missing = missing.unwrap_err();
    assert_eq!(missing.call, Call::cuKernelGetParamInfo);
    assert_eq!(missing.found, Version::new(12, 2));
    let text = missing.to_string();
    assert!(text.contains("cuKernelGetParamInfo"), "{text}");
    assert!(text.contains("12.4") && text.contains("12.2"), "{text}");
}

#[test]
fn a_newer_layout_of_an_old_call_is_missing_where_the_call_is_there() {
    alone!();
    let driver = cuda_soft::loader(cuda_soft::Config::new().version(Version::new(12, 2))).install().unwrap();
    assert!(driver.table().cuGraphAddNode_v12030.is_none());
    assert_eq!(driver.missing(Call::cuGraphAddNode_v12030).call.since(), Version::new(12, 3));
}

#[test]
fn a_pose_has_the_calls_of_its_version() {
    alone!();
    let driver = cuda_soft::loader(cuda_soft::Config::new().version(Version::new(12, 4))).install().unwrap();
    let table = driver.table();
    assert!(table.cuKernelGetParamInfo.is_some(), "12.4");
    assert!(table.cuGraphAddNode_v12030.is_some(), "12.3");
    assert!(table.cuKernelGetLibrary.is_none(), "12.5");
}
