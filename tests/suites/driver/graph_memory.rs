//! What the device tells of the memory that graphs have mapped.

use std::ffi::c_void;

use crate::common::*;
use crate::memory_nodes::{alloc, free};
use cuda_sys::*;

type A = CUgraphMem_attribute;
const ALL: [A; 4] = [
    A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
    A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
    A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
    A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
];

/// All four in steps of 32 MiB.
fn steps(driver: &Session) -> [u64; 4] {
    ALL.map(|attribute| {
        let mut bytes = u64::MAX;
        let value: *mut c_void = (&raw mut bytes).cast();
        assert_eq!(unsafe { driver.cuDeviceGetGraphMemAttribute(0, attribute, value) }, OK);
        assert_eq!(bytes % (32 << 20), 0, "{attribute:?}");
        bytes >> 25
    })
}

fn set(driver: &Session, attribute: A, mut bytes: u64) -> CUresult {
    unsafe { driver.cuDeviceSetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) }
}

fn trim(driver: &Session) {
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
        assert_eq!(set(driver, attribute, 0), OK);
    }
}

#[test]
fn graph_memory_rises_by_launches_and_falls_by_a_trim() {
    let driver = session();
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
    let own = driver.graph();
    let (_, address) = alloc(&driver, own, &[], 1 << 20);
    let exec = driver.instantiate(own);
    assert_eq!(steps(&driver), [0; 4]);
    driver.run(exec);
    assert_eq!(steps(&driver), [1; 4]);
    // What lives is not trimmed.
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    assert_eq!(driver.try_read(address, &mut 0), OK);
    assert_eq!(steps(&driver), [1; 4]);
    driver.free(address);
    driver.end(exec);
    assert_eq!(steps(&driver), [1; 4]);
    driver.destroy(&[own]);
    assert_eq!(steps(&driver), [1; 4]);
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    assert_eq!(steps(&driver), [0, 1, 0, 1]);
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
}

#[test]
fn an_upload_maps_the_memory() {
    let driver = session();
    trim(&driver);
    let own = driver.graph();
    let (first, address) = alloc(&driver, own, &[], 40 << 20);
    free(&driver, own, &[first], address);
    let exec = driver.instantiate(own);
    assert_eq!(unsafe { driver.cuGraphUpload(exec, driver.stream) }, OK);
    driver.wait();
    assert_eq!(steps(&driver), [2; 4]);
    driver.run(exec);
    assert_eq!(steps(&driver), [2; 4]);
    driver.end(exec);
    driver.destroy(&[own]);
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
}

#[test]
fn highs_are_set_to_0_and_nothing_else_is_set() {
    let driver = session();
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] {
        assert_eq!(set(&driver, attribute, 0), IV);
    }
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
        assert_eq!(set(&driver, attribute, 1), IV);
        assert_eq!(set(&driver, attribute, 0), OK);
    }
    let mut bytes = 0u64;
    let unknown = CUgraphMem_attribute(99);
    assert_eq!(unsafe { driver.cuDeviceGetGraphMemAttribute(0, unknown, (&raw mut bytes).cast()) }, IV);
}
