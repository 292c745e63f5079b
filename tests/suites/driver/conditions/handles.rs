//! Conditional handles: their numbers, their users, and refused conditional nodes.

use std::ptr::null_mut;

use crate::common::table::{Table, said};
use crate::common::*;
use cuda_sys::*;
use cuda_tests::{needs, skip};

#[test]
fn conditions_are_numbered_per_root_graph() {
    let driver = session();
    needs!(Conditionals);
    let (own, other, inner) = (driver.graph(), driver.graph(), driver.graph());
    assert_eq!(driver.condition(own, 0), 1);
    let (_, bodies) = driver.conditional(own, &[], 1, (IF, 1));
    let (_, child) = driver.child(own, inner);
    let embedded = driver.embedded(child);
    // Through bodies and the graphs of child nodes.
    assert_eq!(driver.condition(bodies[0], 0), 2);
    assert_eq!(driver.condition(embedded, 0), 3);
    assert_eq!(driver.condition(own, 0), 4);
    assert_eq!(driver.condition(other, 0), 1);
    // Where it was made makes no difference.
    driver.conditional(embedded, &[], 2, (IF, 1));
    driver.conditional(bodies[0], &[], 3, (WHILE, 1));
    driver.conditional(own, &[], 4, (IF, 1));
    // That of another graph is a number; here it is free.
    driver.conditional(other, &[], 1, (IF, 1));
    driver.destroy(&[own, other, inner]);
}

#[test]
fn a_condition_belongs_to_one_node() {
    let driver = session();
    needs!(Conditionals);
    let own = driver.graph();
    let handle = driver.condition(own, 0);
    for (what, number) in [("0", 0), ("unknown", 2), ("far", u64::MAX)] {
        assert_eq!(driver.try_conditional(own, number, (IF, 1)), IV, "{what}");
    }
    // A refused add leaves it free.
    assert_eq!(driver.try_conditional(own, handle, (WHILE, 2)), IV);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    assert_eq!(driver.try_conditional(own, handle, (IF, 1)), IV);
    assert_eq!(driver.try_conditional(bodies[0], handle, (IF, 1)), IV);
    // So does the end of the node, also of one in a body of what ends.
    let inner = driver.condition(own, 0);
    driver.conditional(bodies[0], &[], inner, (WHILE, 1));
    assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
    assert_eq!(driver.refusal(own, 0), (IV, 5, null_mut()));
    driver.conditional(own, &[], handle, (IF, 1));
    assert_eq!(driver.refusal(own, 0), (IV, 5, null_mut()));
    driver.conditional(own, &[], inner, (IF, 1));
    driver.end(driver.instantiate(own));
    driver.destroy(&[own]);
}

#[test]
fn an_unused_condition_forbids_the_executable() {
    let driver = session();
    needs!(Conditionals);
    for in_body in [false, true] {
        let own = driver.graph();
        let handle = driver.condition(own, 0);
        let (_, bodies) = driver.conditional(own, &[], handle, (IF, 1));
        driver.condition(if in_body { bodies[0] } else { own }, 0);
        assert_eq!(driver.refusal(own, 0), (IV, 5, null_mut()), "in a body: {in_body}");
        let mut exec = null_mut();
        assert_eq!(unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, own, 0) }, IV);
        let outer = driver.graph();
        assert_eq!(driver.child(outer, own).0, NS);
        driver.destroy(&[own, outer]);
    }
}

#[test]
fn arguments_of_conditions_are_checked() {
    let driver = session();
    needs!(Conditionals);
    let (own, mut handle) = (driver.graph(), 0);
    let (context, none) = (driver.context, CUresult::CUDA_ERROR_INVALID_CONTEXT);
    for (what, graph, ctx, flags, answer) in [
        ("no graph", null_mut(), context, 0, IV),
        ("no context", own, null_mut(), 0, none),
        ("unknown flags", own, context, 2, IV),
        ("no default", own, context, 0, OK),
        ("a default", own, context, 1, OK),
    ] {
        let made = unsafe { driver.cuGraphConditionalHandleCreate(&mut handle, graph, ctx, 1, flags) };
        assert_eq!(made.unwrap(), answer, "{what}");
    }
    assert_eq!(handle, 2);
    let made = unsafe { driver.cuGraphConditionalHandleCreate(null_mut(), own, context, 1, 0) };
    assert_eq!(made.unwrap(), IV);
    driver.destroy(&[own]);
}

#[test]
fn each_kind_has_its_number_of_bodies() {
    let driver = session();
    needs!(Branches);
    let own = driver.graph();
    let handle = driver.condition(own, 0);
    let unknown = CUgraphConditionalNodeType(3);
    for (kind, size) in [(IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0), (unknown, 1)] {
        assert_eq!(driver.try_conditional(own, handle, (kind, size)), IV, "{kind:?} of {size}");
    }
    for (kind, size) in [(IF, 1), (IF, 2), (WHILE, 1), (SWITCH, 1), (SWITCH, 2), (SWITCH, 1000)] {
        let (node, bodies) = driver.conditional(own, &[], handle, (kind, size));
        assert_eq!(bodies.len(), size as usize);
        for body in &bodies {
            assert_eq!(driver.count(*body), Ok(0));
        }
        assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
        assert_eq!(driver.count(bodies[0]), Err(IV));
    }
    driver.destroy(&[own]);
}

#[test]
fn the_bodies_come_in_an_array_of_the_driver() {
    let driver = session();
    needs!(Conditionals);
    let own = driver.graph();
    let handle = driver.condition(own, 0);
    let mut mine = [null_mut::<CUgraph_st>(); 2];
    let mut params = conditional_params(driver.context, handle, IF, 1);
    params.__bindgen_anon_1.conditional.phGraph_out = mine.as_mut_ptr();
    let (answer, node) = driver.add(own, &[], &mut params);
    assert_eq!(answer, OK);
    let array = unsafe { params.__bindgen_anon_1.conditional.phGraph_out };
    assert!(!array.is_null() && array != mine.as_mut_ptr());
    assert_eq!(mine, [null_mut(); 2]);
    // It lasts as long as the node.
    driver.kernel(unsafe { array.read() }, &[], "set", [handle, 0]);
    driver.empty(own, &[node]);
    let body = unsafe { array.read() };
    assert_eq!(driver.count(body), Ok(1));
    driver.destroy(&[own]);
}

#[test]
fn a_node_has_the_context_of_its_condition() {
    let driver = session();
    needs!(Conditionals);
    let (own, mut other) = (driver.graph(), null_mut());
    let handle = driver.condition(own, 0);
    unsafe {
        let answer = driver.cuCtxCreate(&mut other, null_mut(), 0, 0, 0);
        if answer != OK {
            skip!("no second context: {answer}");
        }
        assert_eq!(driver.cuCtxSetCurrent(driver.context), OK);
    }
    let mut params = conditional_params(other, handle, IF, 1);
    assert_eq!(driver.add(own, &[], &mut params).0, IV);
    driver.conditional(own, &[], handle, (IF, 1));
    driver.destroy(&[own]);
    assert_eq!(unsafe { driver.cuCtxDestroy(other) }, OK);
}

#[test]
fn much_is_refused_to_graphs_with_conditionals() {
    let driver = session();
    needs!(Conditionals);
    let (own, outer, mut out) = (driver.graph(), driver.graph(), null_mut());
    let handle = driver.condition(own, 1);
    let (node, bodies) = driver.conditional(own, &[], handle, (IF, 1));
    driver.kernel(bodies[0], &[], "set", [handle, 0]);
    assert_eq!(driver.refusal(own, 4).0, IV);
    assert_eq!(driver.refusal(own, 4).1, 3);
    let exec = driver.instantiate(own);
    unsafe {
        assert_eq!(driver.cuGraphClone(&mut out, own), NS);
        assert_eq!(driver.child(outer, own).0, NS);
        if driver.has(12, 9) {
            assert_eq!(driver.embed(outer, own, 1).0, NS);
        }
        assert_eq!(driver.refusal(own, 0).0, NS);
        let mut params = conditional_params(driver.context, handle, IF, 1);
        assert_eq!(driver.cuGraphNodeSetParams(node, &mut params), NS);
        assert_eq!(driver.cuGraphExecNodeSetParams(exec, node, &mut params), NS);
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, node, 0), IV);
        assert_eq!(driver.cuGraphNodeGetEnabled(exec, node, &mut 0), IV);
        // A launch that is captured invalidates the capture.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(driver.cuStreamBeginCapture(driver.stream, mode), OK);
        assert_eq!(driver.launch(exec), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        let ended = driver.cuStreamEndCapture(driver.stream, &mut out);
        assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    driver.run(exec);
    driver.end(exec);
    // Another one may live once the first is gone.
    driver.end(driver.instantiate(own));
    driver.destroy(&[own, outer]);
}

#[test]
fn a_kernel_that_sets_a_condition_in_no_graph_loses_the_device() {
    cuda_tests::alone!();
    let driver = session();
    needs!(Conditionals);
    let own = driver.graph();
    let handle = driver.condition(own, 0);
    driver.conditional(own, &[], handle, (IF, 1));
    assert_eq!(driver.launch_alone("set", [handle, 1]), OK);
    let lost = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    unsafe {
        assert_eq!(driver.cuStreamSynchronize(driver.stream), lost);
        // It stays.
        assert_eq!(driver.cuStreamQuery(driver.stream), lost);
        assert_eq!(driver.cuMemAlloc(&mut 0, 4), lost);
        assert_eq!(driver.refusal(own, 0).0, lost);
        assert_eq!(driver.cuGraphDestroy(own), OK);
        assert_eq!(driver.cuGraphCreate(&mut null_mut(), 0), OK);
    }
}

#[test]
fn a_number_that_the_graph_lacks_has_no_effect_beside_others() {
    let driver = session();
    needs!(Conditionals);
    let address = driver.words(1);
    for far in [1, 1000, u64::MAX] {
        let own = driver.graph();
        let handle = driver.condition(own, 0);
        // The last one comes to 0.
        let first = driver.kernel(own, &[], "set", [handle.wrapping_add(far), 1]);
        let (_, bodies) = driver.conditional(own, &[first], handle, (IF, 1));
        driver.kernel(bodies[0], &[], "add", [address, 16]);
        let exec = driver.instantiate(own);
        driver.run(exec);
        driver.end(exec);
        assert_eq!(driver.read(address), 0, "{far}");
        driver.destroy(&[own]);
    }
    driver.free(address);
}

#[test]
fn a_kernel_that_sets_a_condition_in_a_graph_without_any_loses_the_device() {
    cuda_tests::alone!();
    let driver = session();
    let own = driver.graph();
    driver.kernel(own, &[], "set", [7, 1]);
    let exec = driver.instantiate(own);
    assert_eq!(driver.launch(exec), OK);
    let lost = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_eq!(unsafe { driver.cuStreamSynchronize(driver.stream) }, lost);
}

#[test]
fn older_drivers_know_fewer_kinds() {
    let driver = session();
    let own = driver.graph();
    if !driver.has(12, 3) {
        assert_eq!(driver.try_conditional(own, 1, (IF, 1)), IV);
    } else if !driver.has(12, 8) {
        let handle = driver.condition(own, 0);
        assert_eq!(driver.try_conditional(own, handle, (IF, 2)), IV);
        assert_eq!(driver.try_conditional(own, handle, (SWITCH, 1)), IV);
        driver.conditional(own, &[], handle, (WHILE, 1));
    }
    driver.destroy(&[own]);
}

#[test]
fn sizes_and_contexts_of_conditional_nodes() {
    let driver = session();
    if !driver.has(12, 8) {
        skip!("ELSE and SWITCH came with CUDA 12.8");
    }
    let (mut table, own) = (Table::default(), driver.graph());
    let handle = driver.condition(own, 1);
    let unknown = CUgraphConditionalNodeType(3);
    for (what, kind, sizes) in [
        ("IF", IF, &[0, 1, 2, 3, 1000][..]),
        ("WHILE", WHILE, &[0, 1, 2, 1000]),
        ("SWITCH", SWITCH, &[0, 1, 2, 1000, 1001, 1024, 1025, 4096, 10_000]),
        ("a fourth kind", unknown, &[0, 1, 2]),
    ] {
        for size in sizes {
            for (whose, ctx) in [("", driver.context), (", no context", null_mut())] {
                let mut params = conditional_params(ctx, handle, kind, *size);
                let (answer, node) = driver.add(own, &[], &mut params);
                table.row(format!("{what} of {size}{whose}"), said(answer));
                if answer == OK {
                    assert_eq!(unsafe { driver.cuGraphDestroyNode(node) }, OK);
                }
            }
        }
    }
    // One without a context runs, if it is taken.
    let mut params = conditional_params(null_mut(), handle, IF, 1);
    if driver.add(own, &[], &mut params).0 == OK {
        driver.empty(unsafe { params.__bindgen_anon_1.conditional.phGraph_out.read() }, &[]);
        let exec = driver.instantiate(own);
        driver.run(exec);
        driver.end(exec);
    }
    driver.destroy(&[own]);
    table.is(SIZES);
}

const SIZES: &str = "
IF of 0: INVALID_VALUE
IF of 0, no context: INVALID_VALUE
IF of 1: ok
IF of 1, no context: INVALID_CONTEXT
IF of 2: ok
IF of 2, no context: INVALID_CONTEXT
IF of 3: INVALID_VALUE
IF of 3, no context: INVALID_VALUE
IF of 1000: INVALID_VALUE
IF of 1000, no context: INVALID_VALUE
WHILE of 0: INVALID_VALUE
WHILE of 0, no context: INVALID_VALUE
WHILE of 1: ok
WHILE of 1, no context: INVALID_CONTEXT
WHILE of 2: INVALID_VALUE
WHILE of 2, no context: INVALID_VALUE
WHILE of 1000: INVALID_VALUE
WHILE of 1000, no context: INVALID_VALUE
SWITCH of 0: INVALID_VALUE
SWITCH of 0, no context: INVALID_VALUE
SWITCH of 1: ok
SWITCH of 1, no context: INVALID_CONTEXT
SWITCH of 2: ok
SWITCH of 2, no context: INVALID_CONTEXT
SWITCH of 1000: ok
SWITCH of 1000, no context: INVALID_CONTEXT
SWITCH of 1001: ok
SWITCH of 1001, no context: INVALID_CONTEXT
SWITCH of 1024: ok
SWITCH of 1024, no context: INVALID_CONTEXT
SWITCH of 1025: ok
SWITCH of 1025, no context: INVALID_CONTEXT
SWITCH of 4096: ok
SWITCH of 4096, no context: INVALID_CONTEXT
SWITCH of 10000: ok
SWITCH of 10000, no context: INVALID_CONTEXT
a fourth kind of 0: INVALID_VALUE
a fourth kind of 0, no context: INVALID_VALUE
a fourth kind of 1: INVALID_VALUE
a fourth kind of 1, no context: INVALID_VALUE
a fourth kind of 2: INVALID_VALUE
a fourth kind of 2, no context: INVALID_VALUE
";

#[test]
fn the_parameters_of_a_conditional_node_are_read_back() {
    // On a GPU the version is the driver's own.
    cuda_tests::alone!("CUDA_SOFT_VERSION" = "13.2");
    let driver = session();
    if !driver.has(13, 2) {
        skip!("parameters are read back since CUDA 13.2");
    }
    let own = driver.graph();
    driver.condition(own, 0);
    let handle = driver.condition(own, 0);
    let mut given = conditional_params(driver.context, handle, SWITCH, 3);
    let (answer, node) = driver.add(own, &[], &mut given);
    assert_eq!(answer, OK);
    let mut params = CUgraphNodeParams::default();
    assert_eq!(unsafe { driver.cuGraphNodeGetParams(node, &mut params) }, Ok(OK));
    let told = |params: &CUgraphNodeParams| {
        let it = unsafe { params.__bindgen_anon_1.conditional };
        (params.type_, it.handle, it.type_, it.size, it.ctx, it.phGraph_out)
    };
    assert_eq!(told(&params), told(&given));
    driver.destroy(&[own]);
}
