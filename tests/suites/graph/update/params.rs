//! Graph parameters: values set for each launch.

use cuda_graph::{ContextExt, Error, ParamError};
use cuda_handles::Image;
use cuda_launch::{kernel, per};
use cuda_tests::{Kind, SOON, live, no_leaks, setup, until};

use crate::common::scale::SCALE;

kernel! {
    // SAFETY: the kernel has these parameters, and touches the elements below `n`.
    unsafe in Image::Ptx(SCALE);

    pub(crate) fn scale(n: u32, factor: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= n;
}

#[test]
fn a_replay_takes_the_values_that_were_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let (x, y) = (stream.upload(&[1_u32; 16]).unwrap(), stream.zeros::<u32>(64).unwrap());
        let graph = context.graph().unwrap();
        let (input, output) = (graph.param(&x).unwrap(), graph.param(&y).unwrap());
        let factor = graph.param(2_u32).unwrap();
        let arguments = (input.len(), &factor, &input, &output);
        graph.root().launch(&scale, per(input.len(), 32), arguments).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..17], [[2; 16].as_slice(), &[0]].concat());
        let longer = stream.upload(&[5_u32; 40]).unwrap();
        exec.set(&input, &longer).unwrap();
        exec.set(&factor, 3).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..41], [[15; 40].as_slice(), &[0]].concat());
        // A condition that does not hold: nothing is launched.
        let short = stream.zeros::<u32>(8).unwrap();
        let refused = exec.launch_with(&stream, ((&output, &short),)).unwrap_err();
        assert!(matches!(refused, Error::Param(ParamError::Launch { .. })), "{refused}");
        exec.launch_with(&stream, ((&output, &y), (&input, &x), (&factor, 7))).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..16], [7; 16]);
        let missing = exec.launch_bound(&stream, ((&factor, 1),)).unwrap_err();
        let first = "argument `from` of node `kernel#0 scale`".to_owned();
        assert_eq!(missing, Error::Param(ParamError::NotAllNamed { first, missing: 2, all: 3 }));
        let other = context.graph().unwrap().param(1_u32).unwrap();
        assert_eq!(exec.set(&other, 2), Err(Error::Param(ParamError::Foreign)));
    });
}

#[test]
fn fills_and_copies_follow_the_length_of_a_parameter() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(64).unwrap());
        let graph = context.graph().unwrap();
        let (memory, value) = (graph.param(&x).unwrap(), graph.param(1_u32).unwrap());
        let fill = graph.root().fill(&memory, &value).unwrap();
        let copy = fill.then().copy(&memory, y.slice(..8).unwrap()).unwrap();
        let wanted = graph.param(true).unwrap();
        copy.enabled_by(&wanted).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [1, 1, 1, 1, 1, 1, 1, 1, 0]);
        let part = x.slice(..3).unwrap();
        exec.launch_with(&stream, ((&memory, part), (&value, 4))).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [4, 4, 4, 1, 1, 1, 1, 1, 0]);
        // Nothing to do: the nodes are disabled for this launch.
        exec.launch_with(&stream, ((&memory, x.slice(..0).unwrap()), (&value, 9))).unwrap();
        exec.launch_with(&stream, ((&memory, &x), (&wanted, false))).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [9; 8]);
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [4, 4, 4, 1, 1, 1, 1, 1, 0]);
        exec.launch_with(&stream, ((&wanted, true),)).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [9, 9, 9, 9, 9, 9, 9, 9, 0]);
        let long = stream.zeros::<u32>(32).unwrap();
        let refused = exec.launch_with(&stream, ((&memory, &long),)).unwrap_err();
        assert!(matches!(refused, Error::Param(ParamError::NoRoom { .. })), "{refused}");
        let by_hand = exec.node(&fill).set(&x, 1).unwrap_err();
        assert!(matches!(by_hand, Error::Param(ParamError::Bound { .. })), "{by_hand}");
        assert!(matches!(fill.set(&x, 1), Err(Error::Param(ParamError::Bound { .. }))));
    });
}

#[test]
fn a_thousand_replays_each_with_a_new_buffer_are_right_and_flat() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let from = stream.upload(&(0..16).collect::<Vec<u32>>()).unwrap();
        let first = stream.zeros::<u32>(16).unwrap();
        let graph = context.graph().unwrap();
        let (to, factor) = (graph.param(&first).unwrap(), graph.param(0_u32).unwrap());
        graph.root().launch(&scale, per(16, 32), (16, &factor, &from, &to)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let before = live();
        let mut kept = Vec::new();
        for round in 0..1_000_u32 {
            let buffer = stream.zeros::<u32>(16).unwrap();
            exec.launch_with(&stream, ((&to, &buffer), (&factor, round))).unwrap();
            if round % 100 == 0 {
                kept.push((round, buffer));
            }
        }
        for (round, buffer) in kept {
            let expected: Vec<u32> = (0..16).map(|at| at * round).collect();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), expected);
        }
        exec.release();
        let flat = until(SOON, || live().since(&before).of(Kind::Allocation) <= 1);
        assert!(flat, "{}", live().since(&before));
    });
}
