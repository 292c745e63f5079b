//! Conditional nodes.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

fn handle(driver: &Driver, graph: CUgraph, default: u32) -> CUgraphConditionalHandle {
    let mut handle = 0;
    let made =
        unsafe { driver.cuGraphConditionalHandleCreate(&mut handle, graph, context(driver), default, 1) };
    assert_eq!(made.unwrap(), OK);
    handle
}

/// Adds a conditional node; its bodies.
fn conditional(
    driver: &Driver,
    graph: CUgraph,
    after: &[CUgraphNode],
    handle: CUgraphConditionalHandle,
    type_: CUgraphConditionalNodeType,
    size: u32,
) -> Result<(CUgraphNode, Vec<CUgraph>), CUresult> {
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL, ..Default::default() };
    params.__bindgen_anon_1.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, type_, size, phGraph_out: null_mut(), ctx: context(driver) };
    let mut node = null_mut();
    unsafe {
        let answer = driver.cuGraphAddNode(&mut node, graph, after.as_ptr(), after.len(), &mut params);
        if answer != OK {
            return Err(answer);
        }
        let bodies = params.__bindgen_anon_1.conditional.phGraph_out;
        Ok((node, std::slice::from_raw_parts(bodies, size as usize).to_vec()))
    }
}

const IF: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
const WHILE: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
const SWITCH: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH;

fn run(driver: &Driver, exec: CUgraphExec) {
    let stream = stream(driver);
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
}

#[test]
fn a_while_node_repeats_its_body() {
    let driver = &session();
    let library = library(driver);
    let (count_down, add) = (function(driver, library, "count_down"), function(driver, library, "add"));
    let (graph, address) = (graph(driver), words(driver, 2));
    let mut condition = handle(driver, graph, 1);
    let (_, bodies) = conditional(driver, graph, &[], condition, WHILE, 1).unwrap();
    let mut left = address;
    let mut arguments: [*mut c_void; 2] = [(&raw mut left).cast(), (&raw mut condition).cast()];
    let mut first = null_mut();
    unsafe {
        let params = params(count_down, &mut arguments);
        assert_eq!(driver.cuGraphAddKernelNode(&mut first, bodies[0], null(), 0, &params), OK);
    }
    word_node(driver, bodies[0], &[first], add, address + 4, 3);
    let exec = instantiate(driver, graph);
    unsafe {
        for launches in 1..=2 {
            assert_eq!(driver.cuMemsetD32(address, 5, 1), OK);
            run(driver, exec);
            assert_eq!(read(driver, address, 2), [0, 15 * launches]);
        }
        let mut clone = null_mut();
        assert_eq!(driver.cuGraphClone(&mut clone, graph), NS);
        assert_eq!(refusal(driver, graph, 0).0, NS);
        assert_eq!(driver.cuGraphDestroy(bodies[0]), IV);
        assert_eq!(driver.cuGraphClone(&mut clone, bodies[0]), NS);
    }
}

#[test]
fn if_and_switch_choose_a_body() {
    let driver = &session();
    let add = function(driver, library(driver), "add");
    let (graph, address) = (graph(driver), words(driver, 1));
    for (default, kind, size) in [(1, IF, 2), (0, IF, 2), (7, IF, 1), (2, SWITCH, 3), (3, SWITCH, 3)] {
        let condition = handle(driver, graph, default);
        let (_, bodies) = conditional(driver, graph, &[], condition, kind, size).unwrap();
        for (index, body) in bodies.iter().enumerate() {
            word_node(driver, *body, &[], add, address, 1 << (4 * index));
        }
    }
    run(driver, instantiate(driver, graph));
    // Then, else, then; the third; none.
    assert_eq!(read(driver, address, 1), [1 + 16 + 1 + 256]);
}

#[test]
fn handles_belong_to_one_node_each() {
    let driver = &session();
    let graph = graph(driver);
    let first = handle(driver, graph, 0);
    assert_eq!(first, 1);
    assert_eq!(conditional(driver, graph, &[], 0, IF, 1).unwrap_err(), IV);
    assert_eq!(conditional(driver, graph, &[], 2, IF, 1).unwrap_err(), IV);
    assert_eq!(conditional(driver, graph, &[], first, WHILE, 2).unwrap_err(), IV);
    assert_eq!(conditional(driver, graph, &[], first, IF, 3).unwrap_err(), IV);
    assert_eq!(conditional(driver, graph, &[], first, SWITCH, 0).unwrap_err(), IV);
    assert_eq!(refusal(driver, graph, 0), (IV, 5, null_mut()));
    let (node, bodies) = conditional(driver, graph, &[], first, IF, 1).unwrap();
    assert_eq!(conditional(driver, graph, &[], first, IF, 1).unwrap_err(), IV);
    // Handles count through the whole root graph.
    assert_eq!(handle(driver, bodies[0], 0), 2);
    let (inner, _) = conditional(driver, bodies[0], &[], 2, IF, 1).unwrap();
    unsafe {
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let params = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: null_mut() };
        let mut host = null_mut();
        assert_eq!(driver.cuGraphAddHostNode(&mut host, bodies[0], &inner, 1, &params), OK);
        assert_eq!(refusal(driver, graph, 0), (IV, 3, host));
        assert_eq!(driver.cuGraphDestroyNode(node), OK);
        assert_eq!(driver.cuGraphGetNodes(bodies[0], null_mut(), &mut 0), IV);
    }
    assert!(conditional(driver, graph, &[], first, IF, 1).is_ok());
    let none = unsafe { driver.cuGraphConditionalHandleCreate(&mut 0, graph, null_mut(), 0, 0) };
    assert_eq!(none.unwrap(), CUresult::CUDA_ERROR_INVALID_CONTEXT);
}

#[test]
fn a_condition_outside_its_graph_loses_the_context() {
    alone("conditionals::a_condition_outside_its_graph_loses_the_context", || {
        let driver = &session();
        let (function, stream) = (function(driver, library(driver), "count_down"), stream(driver));
        let (mut left, mut condition) = (words(driver, 1), 1u64);
        let mut arguments: [*mut c_void; 2] = [(&raw mut left).cast(), (&raw mut condition).cast()];
        unsafe {
            let launched = driver.cuLaunchKernel(
                function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                null_mut(),
            );
            assert_eq!(launched, OK);
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        }
    });
}
