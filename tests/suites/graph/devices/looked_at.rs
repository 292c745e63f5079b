//! Checks, pictures and shapes of graphs of two devices.

use cuda_graph::{InstantiateOptions, Shape};
use cuda_launch::per;
use cuda_tests::on_two_devices;

use super::{LEN, N, Two, offset_copy};

#[test]
fn races_across_devices_are_found() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let adds = offset_copy::load(&two.here).unwrap();
    two.reach();
    let graph = two.graph();
    let writes = graph.root().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap().named("writes");
    let reads = graph.root().launch(&adds, per(LEN, 32), (far, near, 1, N)).unwrap().named("reads");
    let report = graph.check().unwrap();
    assert!(!report.is_clean(), "{report}");
    let text = report.to_string();
    assert!(text.contains("writes") && text.contains("reads"), "{text}");
    graph.add_edge(&writes, &reads).unwrap();
    let report = graph.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn pictures_name_the_device_of_each_node() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let graph = two.graph();
    let fill = graph.root().fill(far, 1).unwrap();
    fill.then().launch(&two.increments[0], per(LEN, 32), (near, N)).unwrap();
    let dot = graph.to_dot().unwrap();
    assert!(dot.contains("on device 0") && dot.contains("on device 1"), "{dot}");
    let alone = cuda_graph::Graph::new(&two.here).unwrap();
    alone.root().fill(near, 1).unwrap();
    assert!(!alone.to_dot().unwrap().contains("on device"));
}

#[test]
fn shaping_leaves_them_as_drawn() {
    on_two_devices!();
    let two = Two::new();
    let graph = two.graph();
    graph.root().fill(&two.memory[0], 1).unwrap();
    graph.root().fill(&two.memory[1], 1).unwrap();
    let exec = graph.instantiate_with(InstantiateOptions::new().shape(Shape::Reduced)).unwrap();
    let report = exec.shape_report().unwrap().to_string();
    assert!(report.contains("of several contexts"), "{report}");
}
