//! The examples of cuda-graph, which are whole programs: each is compared with plain Rust, in
//! repeated runs.

mod bisection;
mod call_sites;
mod capture;
mod data_parallel;
mod decode;
mod dispatch;
mod heat_loop;
mod host_reads;
#[path = "../../../../crates/graph/examples/common/kinds.rs"]
mod kinds;
mod staging;
mod two_devices;

use std::collections::BTreeSet;

use cuda_graph::Graph;
use cuda_tests::{Need, Setup, setup};

/// The context, if its driver has IF with two bodies and SWITCH; else the test is skipped.
fn branching() -> Option<Setup> {
    let context = setup();
    let lacking = Need::Branches.lacking();
    if let Some(lacking) = &lacking {
        println!("skipped: {lacking}");
    }
    lacking.is_none().then_some(context)
}

/// The texts that the picture of each program contains.
fn assert_drawn(graph: &Graph, words: &[&str]) {
    let (dot, svg) = (graph.to_dot().unwrap(), graph.to_svg().unwrap());
    for word in words {
        assert!(dot.contains(word), "{word} is not in {dot}");
        assert!(svg.contains(word), "{word} is not in {svg}");
    }
}

#[test]
fn together_they_use_every_kind_of_node() {
    let Some(context) = branching() else { return };
    let heat = heat_loop::program(&context);
    let bisection = bisection::program(&context);
    let dispatch = dispatch::program(&context);
    let all: BTreeSet<String> = [heat.graph(), bisection.graph(), dispatch.graph()]
        .into_iter()
        .flat_map(|graph| kinds::kinds(graph).unwrap().into_keys())
        .collect();
    let expected = [
        "alloc",
        "child graph",
        "empty",
        "event record",
        "event wait",
        "free",
        "host callback",
        "if",
        "if-else",
        "kernel",
        "memcpy",
        "memset",
        "switch",
        "while",
    ];
    assert_eq!(all, expected.map(str::to_owned).into());
}

/// A product and a sum in one operation are rounded once, plain Rust rounds twice.
#[test]
fn their_kernels_round_each_operation() {
    let images = [
        include_str!("../../../../crates/graph/examples/kernels/heat_loop.ptx"),
        include_str!("../../../../crates/graph/examples/kernels/bisection.ptx"),
        include_str!("../../../../crates/graph/examples/kernels/dispatch.ptx"),
        include_str!("../../../../crates/graph/examples/kernels/capture.ptx"),
        include_str!("../../../../crates/graph/examples/kernels/data_parallel.ptx"),
        include_str!("../../../../crates/graph/examples/kernels/decode.ptx"),
    ];
    let operations = images.iter().flat_map(|image| image.split_whitespace());
    let floats = operations.filter(|word| word.ends_with(".f32") || word.ends_with(".f64"));
    let arithmetic = floats.filter(|word| {
        ["add.", "sub.", "mul.", "div.", "fma.", "mad."].iter().any(|name| word.starts_with(name))
    });
    let mut rounded = 0;
    for operation in arithmetic {
        // The compiler that makes machine code of it may join those without `.rn`.
        assert!(operation.contains(".rn.") && !operation.starts_with("fma."), "{operation}");
        rounded += 1;
    }
    assert!(rounded > 30, "{rounded}");
}

#[test]
fn checks_find_nothing_in_them() {
    let Some(context) = branching() else { return };
    let heat = heat_loop::program(&context);
    let bisection = bisection::program(&context);
    let (dispatch, thermostat) = (dispatch::program(&context), host_reads::program(&context));
    let all = [(heat.graph(), 1), (bisection.graph(), 0), (dispatch.graph(), 0), (thermostat.graph(), 1)];
    for (graph, opaque) in all {
        let report = graph.check().unwrap();
        let found = (report.findings().len(), report.stopped(), report.opaque().len());
        assert_eq!(found, (0, None, opaque), "{report}");
    }
}
