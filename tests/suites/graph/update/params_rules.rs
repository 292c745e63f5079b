//! The rules of graph parameters, one by one.

use cuda_graph::{ByValue, ContextExt, Error, Graph, GraphParam, ParamError, WhileNode};
use cuda_handles::{Buffer, Context, Image, Stream};
use cuda_launch::{LaunchConfig, kernel, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Need, count, fail, needs, no_leaks, setup};

use super::params::scale;

const SET: &str = "cuGraphExecNodeSetParams";
const ENABLE: &str = "cuGraphNodeSetEnabled";

const PAIR: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry put_pair(.param .align 8 .b8 pair[16], .param .u64 to)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u8 %r1, [pair];
    ld.param.u64 %rd1, [pair+8];
    ld.param.u64 %rd2, [to];
    cvta.to.global.u64 %rd3, %rd2;
    cvt.u32.u64 %r2, %rd1;
    st.global.u32 [%rd3], %r1;
    st.global.u32 [%rd3+4], %r2;
    ret;
}";

/// Has padding behind the first field, and few of its bit patterns are values.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) first: Digit,
    pub(crate) second: u64,
}

#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Digit {
    One = 1,
    Two = 2,
}

kernel! {
    // SAFETY: the kernel has these parameters, and touches the first two elements.
    unsafe in Image::Ptx(PAIR);

    pub(crate) fn put_pair(pair: Struct<Pair>, to: Out<u32>) where to.len() >= 2;
}

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each touches the first element
    // alone.
    unsafe in "../../../kernels/conditions.ptx";

    fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

kernel! {
    // SAFETY: as above.
    unsafe in "../../../kernels/increment.ptx";

    fn increment_by(amount: u32, value: InOut<u32>)
    where value.len() >= 1;
}

fn read(buffer: &Buffer<u32>, stream: &Stream) -> Vec<u32> {
    buffer.read_blocking(stream).unwrap()
}

/// A graph that fills memory, with the memory and the value as parameters.
struct Filling {
    stream: Stream,
    x: Buffer<u32>,
    graph: Graph,
    target: GraphParam<[u32]>,
    value: GraphParam<u32>,
}

impl Filling {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(4).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let (target, value) = (graph.param(&x).unwrap(), graph.param(1_u32).unwrap());
        graph.root().fill(&target, &value).unwrap();
        Self { stream, x, graph, target, value }
    }
}

/// Memory for a kernel that multiplies.
struct Scaling {
    stream: Stream,
    scale: scale,
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Scaling {
    /// `x` holds threes, and `y` zeros.
    fn new(context: &Context, len: usize) -> Self {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.upload(&vec![3_u32; len]).unwrap(), stream.zeros::<u32>(len).unwrap());
        Self { stream, scale: scale::load(context).unwrap(), x, y }
    }
}

#[test]
fn nodes_of_children_take_parameters_of_the_graph_around() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u32>(4).unwrap());
        let (graph, inner) = (context.graph().unwrap(), context.graph().unwrap());
        inner.root().empty().unwrap();
        let child = graph.root().child(&inner).unwrap();
        let (target, value) = (graph.param(&x).unwrap(), graph.param(1_u32).unwrap());
        child.embedded().unwrap().root().fill(&target, &value).unwrap();
        // A parameter made of the embedded graph is one of the whole hierarchy.
        let late = child.embedded().unwrap().param(7_u32).unwrap();
        let other = stream.zeros::<u32>(4).unwrap();
        child.then().fill(&other, &late).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_bound(&stream, ((&target, &y), (&value, 3), (&late, 8))).unwrap();
        assert_eq!([read(&x, &stream)[0], read(&y, &stream)[0], read(&other, &stream)[0]], [0, 3, 8]);
        assert_eq!(inner.root().fill(&target, 1).map(drop), Err(Error::Param(ParamError::Foreign)));
        assert_eq!(inner.root().fill(&x, &value).map(drop), Err(Error::Param(ParamError::Foreign)));
    });
}

#[test]
fn copies_of_a_graph_keep_the_values_of_that_time() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u32>(4).unwrap());
        let (graph, outer) = (context.graph().unwrap(), context.graph().unwrap());
        let target = graph.param(&x).unwrap();
        let fill = graph.root().fill(&target, 5).unwrap();
        let copy = graph.clone_graph().unwrap();
        let child = outer.root().child(&graph).unwrap();
        for source in [&copy, &outer] {
            let mut exec = source.instantiate().unwrap();
            assert_eq!(exec.set(&target, &y), Err(Error::Param(ParamError::Foreign)));
            stream.fill(&x, 0).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!([read(&x, &stream)[0], read(&y, &stream)[0]], [5, 0]);
        }
        // Their nodes are set by hand.
        let mut exec = outer.instantiate().unwrap();
        let inner = child.embedded().unwrap().find_clone_of(&fill).unwrap();
        let inner = cuda_graph::MemsetNode::try_from(inner).unwrap();
        exec.node(&inner).set(&y, 6).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(&y, &stream), [6; 4]);
    });
}

#[test]
fn the_same_value_makes_no_call_and_another_owner_is_a_change() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let Filling { stream, x, graph, target, value } = Filling::new(&context);
        let mut exec = graph.instantiate().unwrap();
        let plain = [("cuGraphLaunch", 1)];
        let changed = [(SET, 1), ("cuGraphLaunch", 1)];
        exec.launch(&stream).unwrap();
        let (_, cost) = count(|| exec.launch_with(&stream, ((&target, &x), (&value, 1))).unwrap());
        cost.assert_calls(&plain);
        let (_, cost) = count(|| exec.launch_with(&stream, ((&target, x.as_slice()), (&value, 1))).unwrap());
        cost.assert_calls(&plain);
        // Two parameters of one node, and a value that is there again: one call.
        let y = stream.zeros::<u32>(4).unwrap();
        stream.synchronize_blocking().unwrap();
        let (_, cost) = count(|| {
            exec.set(&value, 2).unwrap();
            exec.set(&target, &y).unwrap();
            exec.set(&target, &x).unwrap();
            exec.launch(&stream).unwrap();
        });
        cost.assert_calls(&changed);
        assert_eq!(read(&x, &stream), [2; 4]);
        let (_, cost) = count(|| exec.launch_with(&stream, ((&target, y.slice(..3).unwrap()),)).unwrap());
        cost.assert_calls(&changed);
        assert_eq!(read(&y, &stream), [2, 2, 2, 0]);
        // Other owners of the same memory.
        for _ in 0..3 {
            // SAFETY: `y` is kept as the owner.
            let again = unsafe { Buffer::<u32>::from_foreign(&context, y.address(), 4, y.clone()) }.unwrap();
            let (_, cost) = count(|| exec.launch_with(&stream, ((&target, &again),)).unwrap());
            cost.assert_calls(&changed);
        }
        assert_eq!(read(&y, &stream), [2; 4]);
    });
}

#[test]
fn structs_are_passed_whole_and_always_count_as_changed() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let put = put_pair::load(&context).unwrap();
        let out = stream.zeros::<u32>(2).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let pair = graph.param(ByValue(Pair { first: Digit::One, second: 10 })).unwrap();
        graph.root().launch(&put, per(1, 1), (&pair, &out)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(&out, &stream), [1, 10]);
        for second in [20, 20] {
            let value = ByValue(Pair { first: Digit::Two, second });
            let (_, cost) = count(|| exec.launch_with(&stream, ((&pair, value),)).unwrap());
            cost.assert_calls(&[(SET, 1), ("cuGraphLaunch", 1)]);
            assert_eq!(read(&out, &stream), [2, second as u32]);
        }
    });
}

#[test]
fn all_changed_nodes_are_checked_before_the_first_call() {
    let context = setup();
    no_leaks(|| {
        let Scaling { stream, scale, x, y } = Scaling::new(&context, 8);
        let graph = context.graph().unwrap();
        let (to, factor) = (graph.param(&y).unwrap(), graph.param(1_u32).unwrap());
        let first = graph.root().launch(&scale, per(4, 4), (4, &factor, &x, &to)).unwrap();
        first.then().launch(&scale, per(8, 8), (8, &factor, &x, &to)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        // It has room for the first node alone.
        let short = stream.zeros::<u32>(6).unwrap();
        exec.set(&factor, 2).unwrap();
        let (refused, cost) = count(|| exec.launch_with(&stream, ((&to, &short),)));
        assert!(matches!(refused, Err(Error::Param(ParamError::Launch { .. }))), "{refused:?}");
        cost.assert_calls(&[]);
        assert_eq!(read(&short, &stream), [0; 6]);
        // The values stay, and another one mends them.
        let (again, cost) = count(|| exec.launch(&stream));
        assert!(matches!(again, Err(Error::Param(ParamError::Launch { .. }))), "{again:?}");
        cost.assert_calls(&[]);
        exec.launch_with(&stream, ((&to, &y),)).unwrap();
        assert_eq!(read(&y, &stream), [6; 8]);
    });
}

#[test]
fn a_failure_half_way_launches_nothing_and_the_next_launch_goes_on() {
    const NODES: usize = 4;
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers: Vec<_> = (0..NODES).map(|_| stream.zeros::<u32>(4).unwrap()).collect();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let value = graph.param(1_u32).unwrap();
        for buffer in &buffers {
            graph.root().fill(buffer, &value).unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let mut last = 1;
        for failing in 1..=NODES {
            for changes_again in [false, true] {
                let injection =
                    fail(Call::cuGraphExecNodeSetParams, failing as u64, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                let (failed, cost) = count(|| exec.launch_with(&stream, ((&value, last + 1),)));
                drop(injection);
                assert!(failed.is_err(), "{failing}");
                cost.assert_calls(&[(SET, failing as u64)]);
                for buffer in &buffers {
                    assert_eq!(read(buffer, &stream), [last; 4], "nothing was launched");
                }
                let rest = (NODES - failing + 1) as u64;
                let (_, cost) = count(|| match changes_again {
                    false => exec.launch(&stream).unwrap(),
                    true => exec.launch_with(&stream, ((&value, last + 2),)).unwrap(),
                });
                let calls = if changes_again { NODES as u64 } else { rest };
                cost.assert_calls(&[(SET, calls), ("cuGraphLaunch", 1)]);
                last += if changes_again { 2 } else { 1 };
                for buffer in &buffers {
                    assert_eq!(read(buffer, &stream), [last; 4], "failing {failing}, {changes_again}");
                }
            }
        }
    });
}

#[test]
fn bound_nodes_are_set_by_their_parameters_and_others_by_hand() {
    let context = setup();
    no_leaks(|| {
        let Scaling { stream, scale, x, y } = Scaling::new(&context, 8);
        let z = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let factor = graph.param(2_u32).unwrap();
        let bound = graph.root().launch(&scale, per(8, 8), (8, &factor, &x, &y)).unwrap().named("bound");
        let free = bound.then().copy(&y, &z).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let is_bound = |error: Error| {
            assert!(error.to_string().contains("`bound`"), "{error}");
            matches!(error, Error::Param(ParamError::Bound { .. }))
        };
        assert!(is_bound(exec.node(&bound).set(&scale, per(8, 8), (8, 5, &x, &y)).unwrap_err()));
        assert!(is_bound(exec.node(&bound).set_enabled(false).unwrap_err()));
        assert!(is_bound(bound.set(&scale, per(8, 8), (8, 5, &x, &y)).unwrap_err()));
        exec.launch_with(&stream, ((&factor, 3),)).unwrap();
        assert_eq!(read(&z, &stream), [9; 8]);
        exec.node(&free).set(&x, &z).unwrap();
        exec.launch_with(&stream, ((&factor, 4),)).unwrap();
        assert_eq!([read(&y, &stream)[0], read(&z, &stream)[0]], [12, 3]);
        exec.node(&free).set_enabled(false).unwrap();
        stream.fill(&z, 0).unwrap();
        exec.launch_with(&stream, ((&factor, 5),)).unwrap();
        assert_eq!([read(&y, &stream)[0], read(&z, &stream)[0]], [15, 0]);
    });
}

#[test]
fn one_loop_counts_down_any_counter() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (count_down, add) = (count_down::load(&context).unwrap(), increment_by::load(&context).unwrap());
        let (first, runs) = (stream.upload(&[1_u32]).unwrap(), stream.zeros::<u32>(1).unwrap());
        let graph = context.graph().unwrap();
        let (counter, amount) = (graph.param(&first).unwrap(), graph.param(1_u32).unwrap());
        let go_on = graph.condition_with_default(1).unwrap();
        let rounds: WhileNode = graph.root().while_node(&go_on).unwrap();
        let body = rounds.body().unwrap();
        let step = body.root().launch(&add, per(1, 1), (&amount, &runs)).unwrap();
        let decide = step.then().launch(&count_down, per(1, 1), (&counter, &go_on)).unwrap().named("decide");
        let may_decide = graph.param(true).unwrap();
        decide.enabled_by(&may_decide).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let mut expected = 1;
        let mut counters = Vec::new();
        for rounds in 1..=20_u32 {
            let array = stream.upload(&[rounds, 77]).unwrap();
            exec.launch_with(&stream, ((&counter, &array), (&amount, rounds))).unwrap();
            counters.push(array);
            expected += rounds * rounds;
        }
        assert_eq!(read(&runs, &stream), [expected]);
        for array in &counters {
            assert_eq!(read(array, &stream), [0, 77]);
        }
        // Without its decision the loop would never end, and an empty counter breaks a condition.
        let never = exec.launch_with(&stream, ((&may_decide, false),)).unwrap_err();
        assert!(matches!(never, Error::Param(ParamError::NotDisabled { .. })), "{never}");
        assert!(never.to_string().contains("`decide`"), "{never}");
        exec.set(&may_decide, true).unwrap();
        let empty = exec.launch_with(&stream, ((&counter, first.slice(..0).unwrap()),)).unwrap_err();
        assert!(matches!(empty, Error::Param(ParamError::Launch { .. })), "{empty}");
        let last = stream.upload(&[4_u32]).unwrap();
        exec.launch_with(&stream, ((&counter, &last), (&amount, 1))).unwrap();
        assert_eq!(read(&runs, &stream), [expected + 4]);
    });
}

#[test]
fn flags_enable_nodes_together_with_their_other_parameters() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let (from, x) = (stream.upload(&[1_u32; 4]).unwrap(), stream.zeros::<u32>(4).unwrap());
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let (value, one, other) =
            (graph.param(1_u32).unwrap(), graph.param(false).unwrap(), graph.param(true).unwrap());
        let node = graph.root().launch(&scale, per(4, 4), (4, &value, &from, &x)).unwrap();
        node.enabled_by(&one).unwrap();
        node.enabled_by(&other).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let (_, cost) = count(|| exec.launch(&stream).unwrap());
        cost.assert_calls(&[(ENABLE, 1), ("cuGraphLaunch", 1)]);
        assert_eq!(read(&x, &stream), [0; 4], "off at first");
        // A value for a node that is off costs nothing until it is on.
        let (_, cost) = count(|| exec.launch_with(&stream, ((&value, 2),)).unwrap());
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        let (_, cost) = count(|| exec.launch_with(&stream, ((&one, true),)).unwrap());
        cost.assert_calls(&[(SET, 1), (ENABLE, 1), ("cuGraphLaunch", 1)]);
        assert_eq!(read(&x, &stream), [2; 4]);
        let (_, cost) = count(|| exec.launch_with(&stream, ((&other, false), (&value, 3))).unwrap());
        cost.assert_calls(&[(ENABLE, 1), ("cuGraphLaunch", 1)]);
        assert_eq!(read(&x, &stream), [2; 4]);
        let (_, cost) = count(|| exec.launch_with(&stream, ((&other, true), (&value, 2))).unwrap());
        cost.assert_calls(&[(SET, 1), (ENABLE, 1), ("cuGraphLaunch", 1)]);
        // Off and on again, without another value.
        for on in [false, true] {
            let (_, cost) = count(|| exec.launch_with(&stream, ((&other, on),)).unwrap());
            cost.assert_calls(&[(ENABLE, 1), ("cuGraphLaunch", 1)]);
        }
        // A failure to disable it launches nothing, either.
        let injection = fail(Call::cuGraphNodeSetEnabled, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(exec.launch_with(&stream, ((&one, false), (&value, 9))).is_err());
        drop(injection);
        stream.fill(&x, 0).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [0; 4]);
        exec.launch_with(&stream, ((&one, true),)).unwrap();
        assert_eq!(read(&x, &stream), [9; 4]);
    });
}

#[test]
fn executables_of_one_graph_have_values_of_their_own() {
    let context = setup();
    no_leaks(|| {
        let Filling { stream, x, graph, target, value } = Filling::new(&context);
        let y = stream.zeros::<u32>(4).unwrap();
        let (mut one, mut other) = (graph.instantiate().unwrap(), graph.instantiate().unwrap());
        one.set(&value, 2).unwrap();
        other.set(&value, 3).unwrap();
        other.set(&target, &y).unwrap();
        one.launch(&stream).unwrap();
        other.launch(&stream).unwrap();
        assert_eq!([read(&x, &stream)[0], read(&y, &stream)[0]], [2, 3]);
        // New ones begin with the graph's values.
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!([read(&x, &stream)[0], read(&y, &stream)[0]], [1, 3]);
        // A parameter that was made later.
        let late = graph.param(5_u32).unwrap();
        assert_eq!(one.set(&late, 1), Err(Error::Param(ParamError::MadeLater)));
        let mut without = context.graph().unwrap().instantiate().unwrap();
        assert_eq!(without.set(&late, 1), Err(Error::Param(ParamError::Foreign)));
        one.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [2; 4]);
    });
}

#[test]
fn wrong_values_among_several_set_nothing() {
    let context = setup();
    no_leaks(|| {
        let Filling { stream, x, graph, target, value } = Filling::new(&context);
        let foreign = context.graph().unwrap().param(1_u32).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let (refused, cost) = count(|| exec.launch_with(&stream, ((&value, 9), (&foreign, 2))));
        assert_eq!(refused, Err(Error::Param(ParamError::Foreign)));
        cost.assert_calls(&[]);
        let refused = exec.launch_bound(&stream, ((&value, 9), (&foreign, 2)));
        assert_eq!(refused, Err(Error::Param(ParamError::Foreign)));
        let refused = exec.launch_bound(&stream, ((&value, 9), (&value, 8)));
        let first = "the memory of node `memset#0`".to_owned();
        assert_eq!(refused, Err(Error::Param(ParamError::NotAllNamed { first, missing: 1, all: 2 })));
        let (_, cost) = count(|| exec.launch(&stream).unwrap());
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(read(&x, &stream), [1; 4]);
        // The last of two values for one parameter counts.
        exec.launch_bound(&stream, ((&value, 8), (&target, &x), (&value, 7))).unwrap();
        assert_eq!(read(&x, &stream), [7; 4]);
    });
}

#[test]
fn a_configuration_is_a_parameter_of_grid_block_and_shared_memory() {
    let context = setup();
    no_leaks(|| {
        let Scaling { stream, scale, x, y } = Scaling::new(&context, 64);
        let graph = context.graph().unwrap();
        let config = graph.param(per(8, 8).priority(-1)).unwrap();
        let n = graph.param(8_u32).unwrap();
        let node = graph.root().launch(&scale, &config, (&n, 2, &x, &y)).unwrap().named("scaled");
        let mut exec = graph.instantiate().unwrap();
        exec.launch_bound(&stream, ((&config, per(64, 16).shared_bytes(64)), (&n, 40))).unwrap();
        assert_eq!(read(&y, &stream)[..41], [[6; 40].as_slice(), &[0]].concat());
        // The same attributes may be given, others are refused.
        exec.launch_with(&stream, ((&config, per(64, 32).priority(-1)), (&n, 41))).unwrap();
        assert_eq!(read(&y, &stream)[..42], [[6; 41].as_slice(), &[0]].concat());
        assert_eq!(exec.set(&config, per(8, 8).cooperative()), Err(Error::Param(ParamError::Attributes)));
        // Too few threads for the condition, and configurations beyond the limits of the device.
        let wrong = [
            per(8, 8),
            LaunchConfig::new([1, 65_536, 1], 64),
            LaunchConfig::new(1, 2_048),
            LaunchConfig::new(64, 1).shared_bytes(1 << 24),
            LaunchConfig::new([1, 0, 1], 64),
            LaunchConfig::new(64, 0),
        ];
        for config_of in wrong {
            let (refused, cost) = count(|| exec.launch_with(&stream, ((&config, config_of),)));
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::Param(ParamError::Launch { .. })), "{config_of:?}: {refused}");
            assert_eq!((cost.calls(SET), cost.calls("cuGraphLaunch")), (0, 0), "{cost}");
        }
        exec.launch_with(&stream, ((&config, per(64, 64)), (&n, 64))).unwrap();
        assert_eq!(read(&y, &stream), [6; 64]);
        assert_eq!(node.config().unwrap().grid(), per(8, 8).grid(), "the graph's node stays as it is");
        if Need::LaunchAttributes.is_met() {
            assert!(node.config().unwrap().has_attributes());
        }
    });
}
