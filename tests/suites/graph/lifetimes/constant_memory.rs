//! Replays without end leave nothing: the memory of the process stays flat.

use cuda_graph::ContextExt;
use cuda_launch::{params, per};
use cuda_tests::{Kind, SOON, kernel, live, no_leaks, setup, until};

#[test]
fn ten_thousand_replays_with_a_new_buffer_each_are_flat_in_memory() {
    cuda_tests::as_drawn!("kernels in place of fills take long in software");
    let context = setup();
    no_leaks(|| {
        let offset_copy = kernel(&context, "offset_copy");
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let out = home.zeros::<u32>(16).unwrap();
        home.synchronize_blocking().unwrap();
        let before = live();
        for round in 0..10_000_u32 {
            let graph = context.graph().unwrap();
            let buffer = home.zeros::<u32>(16).unwrap();
            let fill = graph.root().fill(&buffer, round).unwrap();
            // SAFETY: the arguments are the kernel's, both buffers have 16 elements, and the edge
            // orders the two nodes.
            unsafe {
                fill.then().launch_untyped(&offset_copy, per(16, 16), params![&buffer, &out, 1_u32, 16_u32])
            }
            .unwrap();
            drop(buffer);
            let mut exec = graph.instantiate().unwrap();
            exec.launch(if round % 2 == 0 { &home } else { &other }).unwrap();
            drop((graph, fill, exec));
            if round % 250 == 249 {
                let stream = if round % 2 == 0 { &home } else { &other };
                assert_eq!(out.read_blocking(stream).unwrap(), [round + 1; 16]);
                context.synchronize_blocking().unwrap();
                let flat = until(SOON, || {
                    let more = live().since(&before);
                    more.of(Kind::Allocation) == 0
                        && more.of(Kind::Exec) == 0
                        && more.of(Kind::UserObject) == 0
                });
                assert!(flat, "after {round}: {}", live().since(&before));
            }
        }
    });
}

#[test]
fn replays_of_one_executable_leave_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(16).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&buffer, 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let before = live();
        for _ in 0..10_000 {
            exec.launch(&stream).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        assert!(live().since(&before).is_nothing(), "{}", live().since(&before));
    });
}
