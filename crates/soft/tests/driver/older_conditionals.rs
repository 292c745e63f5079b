//! Conditional nodes of older driver versions, with their bugs.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::{Config, control};
use cuda_sys::CUgraphConditionalNodeType as C;
use cuda_sys::*;

const IF: C = C::CU_GRAPH_COND_TYPE_IF;
const WHILE: C = C::CU_GRAPH_COND_TYPE_WHILE;
const SWITCH: C = C::CU_GRAPH_COND_TYPE_SWITCH;

fn posing(major: u16, minor: u8) -> Session {
    session_with(Config::new().version(Version::new(major, minor)))
}

fn handle(driver: &Driver, graph: CUgraph, default: u32) -> u64 {
    let mut handle = 0;
    let made =
        unsafe { driver.cuGraphConditionalHandleCreate(&mut handle, graph, context(driver), default, 1) };
    assert_eq!(made, Ok(OK));
    handle
}

/// The result of adding a conditional node, and its bodies.
fn conditional(
    driver: &Driver,
    graph: CUgraph,
    handle: u64,
    (type_, size): (C, u32),
) -> (CUresult, CUgraphNode, Vec<CUgraph>) {
    let mut params = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
    params.__bindgen_anon_1.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, type_, size, phGraph_out: null_mut(), ctx: context(driver) };
    let (answer, node) = add(driver, graph, &[], &mut params);
    if answer != OK {
        return (answer, node, Vec::new());
    }
    let bodies = unsafe { params.__bindgen_anon_1.conditional.phGraph_out };
    (answer, node, unsafe { std::slice::from_raw_parts(bodies, size as usize) }.to_vec())
}

fn child(driver: &Driver, graph: CUgraph) {
    let inner = self::graph(driver);
    empty(driver, inner, &[]);
    unsafe {
        assert_eq!(driver.cuGraphAddChildGraphNode(&mut null_mut(), graph, null(), 0, inner), OK);
        assert_eq!(driver.cuGraphDestroy(inner), OK);
    }
}

/// Launches once; returns the result of the stream.
fn outcome(driver: &Driver, graph: CUgraph) -> CUresult {
    let (exec, stream) = (instantiate(driver, graph), stream(driver));
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        driver.cuStreamSynchronize(stream)
    }
}

#[test]
fn before_12_3_there_are_no_conditions() {
    alone("older_conditionals::before_12_3_there_are_no_conditions", || {
        let driver = &posing(12, 2);
        let (own, context) = (graph(driver), context(driver));
        let made = unsafe { driver.cuGraphConditionalHandleCreate(&mut 0, own, context, 0, 0) };
        assert!(made.is_err());
        assert_eq!(conditional(driver, own, 1, (IF, 1)).0, IV);
        assert_eq!(nodes(driver, own).len(), 0);
    });
}

fn first_kinds(driver: &Driver) {
    let own = graph(driver);
    let one = handle(driver, own, 0);
    for refused in [(IF, 2), (SWITCH, 1), (SWITCH, 2)] {
        assert_eq!(conditional(driver, own, one, refused).0, IV, "{refused:?}");
    }
    assert_eq!(conditional(driver, own, one, (IF, 1)).0, OK);
    let two = handle(driver, own, 0);
    assert_eq!(conditional(driver, own, two, (WHILE, 1)).0, OK);
    let mut params = CUgraphNodeParams::default();
    let node = nodes(driver, own)[0];
    assert!(unsafe { driver.cuGraphNodeGetParams(node, &mut params) }.is_err());
}

#[test]
fn drivers_12_3_and_12_4_know_if_and_while() {
    alone("older_conditionals::drivers_12_3_and_12_4_know_if_and_while", || first_kinds(&posing(12, 4)));
}

#[test]
fn a_driver_12_3_knows_if_and_while() {
    alone("older_conditionals::a_driver_12_3_knows_if_and_while", || first_kinds(&posing(12, 3)));
}

#[test]
fn since_12_8_there_are_else_and_switch() {
    alone("older_conditionals::since_12_8_there_are_else_and_switch", || {
        let driver = &posing(12, 8);
        let own = graph(driver);
        for kind in [(IF, 2), (SWITCH, 3)] {
            let handle = handle(driver, own, 0);
            assert_eq!(conditional(driver, own, handle, kind).0, OK, "{kind:?}");
        }
        let mut params = CUgraphNodeParams::default();
        let node = nodes(driver, own)[0];
        assert!(unsafe { driver.cuGraphNodeGetParams(node, &mut params) }.is_err());
    });
}

#[test]
fn since_13_2_the_parameters_are_read_back() {
    alone("older_conditionals::since_13_2_the_parameters_are_read_back", || {
        let driver = &posing(13, 2);
        let own = graph(driver);
        handle(driver, own, 0);
        let handle = handle(driver, own, 0);
        let (_, node, bodies) = conditional(driver, own, handle, (SWITCH, 3));
        let mut params = CUgraphNodeParams::default();
        assert_eq!(unsafe { driver.cuGraphNodeGetParams(node, &mut params) }, Ok(OK));
        assert_eq!(params.type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        let told = unsafe { params.__bindgen_anon_1.conditional };
        assert_eq!((told.handle, told.type_, told.size), (handle, SWITCH, 3));
        assert_eq!(told.ctx, context(driver));
        assert_eq!(unsafe { std::slice::from_raw_parts(told.phGraph_out, 3) }, bodies);
    });
}

/// The device is lost by a conditional node with this code and in these words.
fn loses(driver: &Driver, graph: CUgraph, node: CUgraphNode, code: CUresult, words: &str) {
    assert_eq!(outcome(driver, graph), code);
    let sentence = control::last_fault().unwrap();
    assert!(sentence.contains(words) && sentence.contains(&format!("{:#x}", node.addr())), "{sentence}");
}

#[test]
fn before_12_8_an_empty_body_hangs() {
    alone("older_conditionals::before_12_8_an_empty_body_hangs", || {
        let driver = &posing(12, 4);
        let full = graph(driver);
        let (_, _, bodies) = conditional(driver, full, handle(driver, full, 0), (IF, 1));
        empty(driver, bodies[0], &[]);
        assert_eq!(outcome(driver, full), OK);
        let own = graph(driver);
        let (_, node, _) = conditional(driver, own, handle(driver, own, 0), (IF, 1));
        loses(driver, own, node, CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "empty body");
    });
}

fn children_of_two_bodies(version: (u16, u8), number: usize) {
    let driver = &posing(version.0, version.1);
    let fine = graph(driver);
    // An empty body, children in one body alone, and in those of a SWITCH.
    conditional(driver, fine, handle(driver, fine, 1), (IF, 2));
    let (_, _, bodies) = conditional(driver, fine, handle(driver, fine, 1), (IF, 1));
    child(driver, bodies[0]);
    let (_, _, bodies) = conditional(driver, fine, handle(driver, fine, 1), (SWITCH, 2));
    bodies.iter().for_each(|body| child(driver, *body));
    assert_eq!(outcome(driver, fine), OK);
    let own = graph(driver);
    let (_, node, bodies) = conditional(driver, own, handle(driver, own, 1), (IF, 2));
    child(driver, bodies[number]);
    if version >= (13, 0) {
        assert_eq!(outcome(driver, own), OK);
    } else {
        loses(driver, own, node, CUresult::CUDA_ERROR_LAUNCH_FAILED, "an IF with two bodies");
    }
}

#[test]
fn a_driver_12_8_misbehaves_with_children_in_two_bodies() {
    alone("older_conditionals::a_driver_12_8_misbehaves_with_children_in_two_bodies", || {
        children_of_two_bodies((12, 8), 0);
    });
}

#[test]
fn a_driver_12_9_misbehaves_with_children_in_two_bodies() {
    alone("older_conditionals::a_driver_12_9_misbehaves_with_children_in_two_bodies", || {
        children_of_two_bodies((12, 9), 1);
    });
}

#[test]
fn a_driver_13_0_takes_children_in_two_bodies() {
    alone("older_conditionals::a_driver_13_0_takes_children_in_two_bodies", || {
        children_of_two_bodies((13, 0), 1);
    });
}

#[test]
fn conditions_lie_thousands_deep_in_each_other() {
    alone("older_conditionals::conditions_lie_thousands_deep_in_each_other", || {
        let driver = &posing(13, 0);
        let (own, address) = (graph(driver), words(driver, 1));
        let add = function(driver, library(driver), "add");
        let mut place = own;
        for _ in 0..5000 {
            let (answer, _, bodies) = conditional(driver, place, handle(driver, own, 1), (IF, 1));
            assert_eq!(answer, OK);
            place = bodies[0];
        }
        word_node(driver, place, &[], add, address, 1);
        let (exec, stream) = (instantiate(driver, own), stream(driver));
        run(driver, exec, stream);
        assert_eq!(unsafe { driver.cuGraphExecUpdate(exec, own, null_mut()) }, OK);
        run(driver, exec, stream);
        assert_eq!(read(driver, address, 1), [2]);
        unsafe {
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
        }
    });
}
