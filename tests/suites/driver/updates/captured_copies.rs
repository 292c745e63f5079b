//! Updates of copies that were captured with and without a current context.

use std::ptr::null_mut;

use cuda_sys::*;

use crate::common::table::{Table, said};
use crate::common::*;

const LEN: usize = 16;

/// The ways to capture a copy.
#[derive(Clone, Copy)]
enum Way {
    DeviceToDevice,
    Any,
    DeviceToHost,
}

/// Two sources and two destinations.
struct Memory {
    sources: [CUdeviceptr; 2],
    destinations: [CUdeviceptr; 2],
}

impl Session {
    fn managed(&self) -> CUdeviceptr {
        let mut address = 0;
        assert_eq!(unsafe { self.cuMemAllocManaged(&mut address, LEN, 1) }, OK);
        address
    }

    fn pooled(&self) -> CUdeviceptr {
        let mut address = 0;
        assert_eq!(unsafe { self.cuMemAllocAsync(&mut address, LEN, self.stream) }, OK);
        assert_eq!(unsafe { self.cuStreamSynchronize(self.stream) }, OK);
        address
    }

    fn pinned(&self) -> CUdeviceptr {
        let mut start = null_mut();
        assert_eq!(unsafe { self.cuMemHostAlloc(&mut start, LEN, 0) }, OK);
        start.expose_provenance() as CUdeviceptr
    }

    /// Captures one copy; the context is current during the call, or none is.
    fn capture_copy(&self, way: Way, current: bool, from: CUdeviceptr, to: CUdeviceptr) -> CUgraph {
        let mut graph = null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        unsafe {
            assert_eq!(self.cuStreamBeginCapture(self.stream, mode), OK);
            let host = std::ptr::with_exposed_provenance_mut(to as usize);
            let answer = self.while_current(current, || match way {
                Way::DeviceToDevice => self.cuMemcpyDtoDAsync(to, from, LEN, self.stream),
                Way::Any => self.cuMemcpyAsync(to, from, LEN, self.stream),
                Way::DeviceToHost => self.cuMemcpyDtoHAsync(host, from, LEN, self.stream),
            });
            assert_eq!(answer, OK);
            assert_eq!(self.cuStreamEndCapture(self.stream, &mut graph), OK);
        }
        graph
    }

    fn copy_of(&self, node: CUgraphNode) -> CUgraphNodeParams {
        let mut params = copy_params(self, 1, 1, 1);
        let copy = unsafe { &mut params.__bindgen_anon_1.memcpy.copyParams };
        assert_eq!(unsafe { self.cuGraphMemcpyNodeGetParams(node, copy) }, OK);
        params
    }

    fn set_node(&self, exec: CUgraphExec, node: CUgraphNode, params: CUgraphNodeParams) -> CUresult {
        let mut params = params;
        unsafe { self.cuGraphExecNodeSetParams(exec, node, &mut params) }
    }

    /// Makes calls while the context is current, or while none is.
    fn while_current<R>(&self, current: bool, calls: impl FnOnce() -> R) -> R {
        if current {
            return calls();
        }
        assert_eq!(unsafe { self.cuCtxSetCurrent(null_mut()) }, OK);
        let answer = calls();
        assert_eq!(unsafe { self.cuCtxSetCurrent(self.context) }, OK);
        answer
    }
}

/// The parameters with another source and destination, where some are given.
fn with(params: CUgraphNodeParams, from: Option<u64>, to: Option<u64>) -> CUgraphNodeParams {
    let mut params = params;
    let copy = unsafe { &mut params.__bindgen_anon_1.memcpy.copyParams };
    if let Some(from) = from {
        copy.srcDevice = from;
    }
    match to {
        Some(to) if copy.dstMemoryType == CUmemorytype::CU_MEMORYTYPE_HOST => {
            copy.dstHost = std::ptr::with_exposed_provenance_mut(to as usize);
        }
        Some(to) => copy.dstDevice = to,
        None => {}
    }
    params
}

/// One row: the types of the memory, and the answers to updates. The context is current while the
/// copy is captured and while it is updated, or it is not.
fn answers(driver: &Session, way: Way, [captured, updated]: [bool; 2], memory: &Memory) -> String {
    let ([from, other_from], [to, other_to]) = (memory.sources, memory.destinations);
    let graph = driver.capture_copy(way, captured, from, to);
    let node = driver.nodes(graph)[0];
    let params = driver.copy_of(node);
    let copy = unsafe { params.__bindgen_anon_1.memcpy.copyParams };
    let types = [copy.srcMemoryType.0, copy.dstMemoryType.0];
    let set = |from, to| {
        let exec = driver.instantiate(graph);
        let answer = driver.while_current(updated, || driver.set_node(exec, node, with(params, from, to)));
        driver.run(exec);
        driver.end(exec);
        said(answer)
    };
    let sets =
        [(None, None), (None, Some(other_to)), (Some(other_from), None)].map(|(from, to)| set(from, to));
    let exec = driver.instantiate(graph);
    let next = driver.capture_copy(way, captured, from, other_to);
    let (answer, result, _) = driver.while_current(updated, || driver.update(exec, next));
    driver.run(exec);
    driver.end(exec);
    // The graph's node gets the context before an executable is made.
    let mut same = params;
    assert_eq!(unsafe { driver.cuGraphNodeSetParams(node, &mut same) }, OK);
    let mended = set(Some(other_from), Some(other_to));
    driver.destroy(&[graph, next]);
    format!("types {types:?}; {}; whole {} {result}; set before {mended}", sets.join(", "), said(answer))
}

#[test]
fn a_copy_captured_without_any_context_is_not_set() {
    let driver = session();
    let mut table = Table::default();
    let plain = [(); 4].map(|()| driver.words(LEN / 4));
    let managed = [(); 4].map(|()| driver.managed());
    let pooled = [(); 4].map(|()| driver.pooled());
    let pinned = [(); 2].map(|()| driver.pinned());
    let between = |from: [CUdeviceptr; 4], to: [CUdeviceptr; 4]| Memory {
        sources: [from[0], from[1]],
        destinations: [to[2], to[3]],
    };
    let to_host = |from: [CUdeviceptr; 4]| Memory { sources: [from[0], from[1]], destinations: pinned };
    let rows = [
        ("device, plain", Way::DeviceToDevice, between(plain, plain)),
        ("device, of pools", Way::DeviceToDevice, between(pooled, pooled)),
        ("device, plain to pool", Way::DeviceToDevice, between(plain, pooled)),
        ("any, plain", Way::Any, between(plain, plain)),
        ("any, managed", Way::Any, between(managed, managed)),
        ("any, of pools", Way::Any, between(pooled, pooled)),
        ("any, pool to managed", Way::Any, between(pooled, managed)),
        ("any, managed to pool", Way::Any, between(managed, pooled)),
        ("plain to host", Way::DeviceToHost, to_host(plain)),
    ];
    for (what, way, memory) in &rows {
        for (contexts, how) in [
            ([true, true], "current"),
            ([false, true], "none, then current"),
            ([true, false], "current, then none"),
            ([false, false], "none"),
        ] {
            table.row(format!("{what}, {how}"), answers(&driver, *way, contexts, memory));
        }
    }
    plain.into_iter().chain(managed).chain(pooled).for_each(|address| driver.free(address));
    for address in pinned {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        assert_eq!(unsafe { driver.cuMemFreeHost(start) }, OK);
    }
    table.is(CAPTURED);
}

const CAPTURED: &str = "
device, plain, current: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, plain, none, then current: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, plain, current, then none: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, plain, none: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, of pools, current: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, of pools, none, then current: types [2, 2]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
device, of pools, current, then none: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, of pools, none: types [2, 2]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
device, plain to pool, current: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, plain to pool, none, then current: types [2, 2]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
device, plain to pool, current, then none: types [2, 2]; ok, ok, ok; whole ok 0; set before ok
device, plain to pool, none: types [2, 2]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, plain, current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, plain, none, then current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, plain, current, then none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, plain, none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed, current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed, none, then current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed, current, then none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed, none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, of pools, current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, of pools, none, then current: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, of pools, current, then none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, of pools, none: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, pool to managed, current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, pool to managed, none, then current: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, pool to managed, current, then none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, pool to managed, none: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, managed to pool, current: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed to pool, none, then current: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
any, managed to pool, current, then none: types [4, 4]; ok, ok, ok; whole ok 0; set before ok
any, managed to pool, none: types [4, 4]; ok, INVALID_VALUE, INVALID_VALUE; whole ok 0; set before ok
plain to host, current: types [2, 1]; ok, ok, ok; whole ok 0; set before ok
plain to host, none, then current: types [2, 1]; ok, ok, ok; whole ok 0; set before ok
plain to host, current, then none: types [2, 1]; ok, ok, ok; whole ok 0; set before ok
plain to host, none: types [2, 1]; ok, ok, ok; whole ok 0; set before ok
";

#[test]
fn a_unified_copy_stays_so() {
    let driver = session();
    let memory = [(); 3].map(|()| driver.words(LEN / 4));
    let graph = driver.capture_copy(Way::Any, true, memory[0], memory[1]);
    let node = driver.nodes(graph)[0];
    let exec = driver.instantiate(graph);
    let described = copy_params(&driver, memory[0], memory[2], LEN);
    assert_eq!(driver.set_node(exec, node, described), IV);
    let unified = with(driver.copy_of(node), None, Some(memory[2]));
    assert_eq!(driver.set_node(exec, node, unified), OK);
    driver.run(exec);
    driver.end(exec);
    driver.destroy(&[graph]);
    memory.into_iter().for_each(|address| driver.free(address));
}
