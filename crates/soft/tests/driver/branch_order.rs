//! The pseudorandom order of branches.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

use crate::common::*;
use cuda_soft::Config;
use cuda_sys::*;

static RAN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(index: *mut c_void) {
    RAN.lock().unwrap().push(index.addr());
}

/// Runs 16 nodes, of which each of the second half depends on one of the first half; returns their
/// order.
fn run_all(driver: &Driver) -> Vec<usize> {
    let (graph, stream) = (graph(driver), stream(driver));
    let mut nodes: Vec<CUgraphNode> = Vec::new();
    for index in 0..16usize {
        let params =
            CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(note), userData: std::ptr::without_provenance_mut(index) };
        let after: &[CUgraphNode] = if index < 8 { &[] } else { &nodes[15 - index..][..1] };
        let mut node = null_mut();
        let answer =
            unsafe { driver.cuGraphAddHostNode(&mut node, graph, after.as_ptr(), after.len(), &params) };
        assert_eq!(answer, OK);
        nodes.push(node);
    }
    let exec = instantiate(driver, graph);
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphDestroy(graph), OK);
        assert_eq!(driver.cuStreamDestroy(stream), OK);
    }
    let ran = std::mem::take(&mut *RAN.lock().unwrap());
    let at = |index: usize| ran.iter().position(|&other| other == index).unwrap();
    assert!((8..16).all(|index| at(15 - index) < at(index)), "{ran:?}");
    ran
}

#[test]
fn branches_run_in_the_order_of_creation() {
    let driver = &session();
    assert_eq!(run_all(driver), (0..16).collect::<Vec<_>>());
}

#[test]
fn a_seed_draws_an_order_that_the_edges_allow() {
    alone("branch_order::a_seed_draws_an_order_that_the_edges_allow", || {
        let driver = &session_with(Config::new().branch_order(7));
        let ran = run_all(driver);
        assert_ne!(ran, (0..16).collect::<Vec<_>>());
        // The same seed, the same order.
        assert_eq!(run_all(driver), ran);
    });
}
