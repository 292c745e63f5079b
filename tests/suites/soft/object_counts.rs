//! The driver's count of live objects agrees with the harness's.

use cuda_graph::ContextExt;
use cuda_handles::UserObject;
use cuda_soft::control::live_objects;
use cuda_tests::{Kind, SOON, kernel, live, settle, setup, skip, until};

const KINDS: [(Kind, &str); 8] = [
    (Kind::Stream, "streams"),
    (Kind::Event, "events"),
    (Kind::Allocation, "device allocations"),
    (Kind::Pinned, "pinned allocations"),
    (Kind::Library, "libraries"),
    (Kind::Graph, "graphs"),
    (Kind::Exec, "executables"),
    (Kind::UserObject, "user objects"),
];

fn differences() -> Vec<String> {
    let (own, counted) = (live_objects(), live());
    KINDS
        .iter()
        .filter_map(|(kind, name)| {
            let own =
                own.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no kind {name}")).1;
            let counted = counted.of(*kind);
            (counted != own as i64).then(|| format!("{name}: the driver has {own}, the harness {counted}"))
        })
        .collect()
}

#[test]
fn both_counts_agree_while_objects_come_and_go() {
    let context = setup();
    if !cuda_tests::is_soft() {
        skip!("about the software driver");
    }
    let agree = |when: &str| {
        context.synchronize_blocking().unwrap();
        assert!(until(SOON, || differences().is_empty()), "{when}: {:?}", differences());
    };
    settle();
    agree("at first");
    let stream = context.stream().unwrap();
    let (buffer, event, saxpy) =
        (stream.zeros::<u32>(8).unwrap(), context.event().unwrap(), kernel(&context, "saxpy"));
    let graph = context.graph().unwrap();
    graph.root().fill(&buffer, 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let object = UserObject::new(&context, Box::new(())).unwrap();
    agree("with one of each");
    drop((buffer, event, saxpy, graph, exec, object, stream));
    settle();
    agree("at last");
}
