//! Kernels that wait at their entry, behind programmatic edges.

use cuda_graph::ContextExt;
use cuda_graph::EdgeKind::{self, Full, Programmatic, ProgrammaticLaunchOrder};
use cuda_handles::Image;
use cuda_launch::{kernel, per};
use cuda_tests::{SMALL, needs, no_leaks, setup};

const LEN: usize = 4096;
const N: u32 = LEN as u32;

kernel! {
    // SAFETY: each thread touches the element of its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    struct Small;
    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
    fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32)
    where from.len() >= n, to.len() >= n;
}

#[test]
fn each_kernel_of_a_chain_sees_those_in_front_of_it() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let (small, stream) = (Small::load_waiting(&context).unwrap(), context.stream().unwrap());
        for kind in [Programmatic, ProgrammaticLaunchOrder] {
            let (a, b) = (stream.zeros::<u32>(LEN).unwrap(), stream.zeros::<u32>(LEN).unwrap());
            let graph = context.graph().unwrap();
            let mut last = graph.root().launch(&small.increment, per(LEN, 128), (&a, N)).unwrap();
            for round in 0..10 {
                let (from, to) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
                let at = last.then_with(kind);
                last = at.launch(&small.offset_copy, per(LEN, 128), (from, to, 1, N)).unwrap();
            }
            let mut exec = graph.instantiate().unwrap();
            for launch in 1..=3 {
                exec.launch(&stream).unwrap();
                let expected = 11 * launch;
                assert_eq!(a.read_blocking(&stream).unwrap(), vec![expected; LEN], "{kind}");
            }
        }
    });
}

/// Two writers, a reader of both, and two readers of that one, joined by a full edge.
fn diamond(join: EdgeKind) {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let (small, stream) = (Small::load_waiting(&context).unwrap(), context.stream().unwrap());
        let buffers: Vec<_> = (0..6).map(|_| stream.zeros::<u32>(LEN).unwrap()).collect();
        let [zero, a, b, c, d, e] = &buffers[..] else { panic!() };
        let graph = context.graph().unwrap();
        let copy = &small.offset_copy;
        let first = graph.root().launch(copy, per(LEN, 128), (zero, a, 5, N)).unwrap();
        let second = graph.root().launch(copy, per(LEN, 128), (zero, b, 7, N)).unwrap();
        let both = graph.after_all([(&*first, join), (&*second, Programmatic)]).unwrap();
        let third = both.launch(copy, per(LEN, 128), (a, c, 1, N)).unwrap();
        let at = || third.then_with(Programmatic);
        let left = at().launch(copy, per(LEN, 128), (b, d, 10, N)).unwrap();
        let right = at().launch(copy, per(LEN, 128), (c, e, 100, N)).unwrap();
        let last = graph.after_all([(&*left, Programmatic), (&*right, Full)]).unwrap();
        last.launch(copy, per(LEN, 128), (e, zero, 1000, N)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let first = |buffer: &cuda_handles::Buffer<u32>| {
            let all = buffer.read_blocking(&stream).unwrap();
            assert!(all.iter().all(|value| *value == all[0]));
            all[0]
        };
        assert_eq!([a, b, c, d, e, zero].map(first), [5, 7, 6, 17, 106, 1106]);
    });
}

#[test]
fn a_kernel_sees_all_writers_in_front_of_it() {
    diamond(Programmatic);
}

#[test]
fn full_and_programmatic_edges_meet_at_one_kernel() {
    diamond(Full);
}
