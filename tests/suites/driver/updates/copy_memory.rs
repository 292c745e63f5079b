//! The kinds of device memory that an update of a copy exchanges.

use std::ptr::null_mut;

use cuda_sys::*;

use crate::common::table::{Table, said};
use crate::common::*;

const LEN: usize = 16;

/// Memory of each kind, twice.
struct Kinds {
    pool: CUmemoryPool,
    all: [(&'static str, [CUdeviceptr; 2]); 4],
}

impl Kinds {
    fn new(driver: &Session) -> Self {
        let mut pool = null_mut();
        let mut props = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            ..Default::default()
        };
        props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        assert_eq!(unsafe { driver.cuMemPoolCreate(&mut pool, &props) }, OK);
        let twice = |make: &dyn Fn(&mut CUdeviceptr) -> CUresult| {
            [(); 2].map(|()| {
                let mut address = 0;
                assert_eq!(make(&mut address), OK);
                address
            })
        };
        let stream = driver.stream;
        let all = unsafe {
            [
                ("plain", twice(&|address| driver.cuMemAlloc(address, LEN))),
                ("managed", twice(&|address| driver.cuMemAllocManaged(address, LEN, 1))),
                ("pooled", twice(&|address| driver.cuMemAllocAsync(address, LEN, stream))),
                ("own pool", twice(&|address| driver.cuMemAllocFromPoolAsync(address, LEN, pool, stream))),
            ]
        };
        driver.wait();
        Self { pool, all }
    }

    fn free(self, driver: &Session) {
        for (kind, addresses) in self.all {
            for address in addresses {
                match kind {
                    "plain" | "managed" => driver.free(address),
                    _ => assert_eq!(unsafe { driver.cuMemFreeAsync(address, driver.stream) }, OK),
                }
            }
        }
        driver.wait();
        assert_eq!(unsafe { driver.cuMemPoolDestroy(self.pool) }, OK);
    }
}

/// The answers to a node update and to a whole update that change a copy, of device memory as it is
/// described.
fn answers(driver: &Session, old: [CUdeviceptr; 2], new: [CUdeviceptr; 2]) -> String {
    let graph = |[from, to]: [CUdeviceptr; 2]| {
        let own = driver.graph();
        let mut params = copy_params(driver, from, to, LEN);
        let (answer, node) = driver.add(own, &[], &mut params);
        assert_eq!(answer, OK);
        (own, node, params)
    };
    let ((own, node, _), (next, _, mut params)) = (graph(old), graph(new));
    let exec = driver.instantiate(own);
    let set = unsafe { driver.cuGraphExecNodeSetParams(exec, node, &mut params) };
    driver.run(exec);
    driver.end(exec);
    let exec = driver.instantiate(own);
    let (whole, result, _) = driver.update(exec, next);
    driver.run(exec);
    driver.end(exec);
    driver.destroy(&[own, next]);
    match (set, whole, result) {
        (OK, OK, 0) => "taken".to_owned(),
        (IV, UPDATE_FAILED, 5) => "refused".to_owned(),
        _ => format!("{} and {} {result}", said(set), said(whole)),
    }
}

#[test]
fn memory_of_pools_and_other_memory_are_not_exchanged() {
    let driver = session();
    let (mut table, kinds) = (Table::default(), Kinds::new(&driver));
    let other = driver.words(LEN / 4);
    for (was, [old, _]) in kinds.all {
        for (is, [_, new]) in kinds.all {
            let source = answers(&driver, [old, other], [new, other]);
            let destination = answers(&driver, [other, old], [other, new]);
            table.row(format!("{was} to {is}"), format!("source {source}, destination {destination}"));
        }
    }
    driver.free(other);
    kinds.free(&driver);
    table.is(EXCHANGED);
}

const EXCHANGED: &str = "
plain to plain: source taken, destination taken
plain to managed: source taken, destination taken
plain to pooled: source refused, destination refused
plain to own pool: source refused, destination refused
managed to plain: source taken, destination taken
managed to managed: source taken, destination taken
managed to pooled: source refused, destination refused
managed to own pool: source refused, destination refused
pooled to plain: source refused, destination refused
pooled to managed: source refused, destination refused
pooled to pooled: source taken, destination taken
pooled to own pool: source taken, destination taken
own pool to plain: source refused, destination refused
own pool to managed: source refused, destination refused
own pool to pooled: source taken, destination taken
own pool to own pool: source taken, destination taken
";

#[test]
fn memory_of_pools_has_no_context() {
    let driver = session();
    let kinds = Kinds::new(&driver);
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    for (kind, addresses) in kinds.all {
        let mut context: CUcontext = null_mut();
        let answer =
            unsafe { driver.cuPointerGetAttribute((&raw mut context).cast(), attribute, addresses[0]) };
        let expected = if matches!(kind, "plain" | "managed") { driver.context } else { null_mut() };
        assert_eq!((answer, context), (OK, expected), "{kind}");
    }
    kinds.free(&driver);
}
