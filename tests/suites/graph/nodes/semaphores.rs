//! Semaphore nodes: signals and waits. On a GPU the tests are skipped without Vulkan, which makes
//! the semaphores.

use cuda_graph::{
    ContextExt, Error, Fallback, InstantiateOptions, NodeError, NodeKind, SemaphoreSignalNode,
    SemaphoreWaitNode,
};
use cuda_handles::{Context, Error as HandleError, ExternalSemaphore, SemaphoreKind, reaper};
use cuda_soft::control;
use cuda_sys::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS, CUexternalSemaphore, CUresult, Call,
};
use cuda_tests::{
    Kind, SOON, VulkanSemaphore, count, fail, in_callback, is_soft, live, no_leaks, raw, setup, skip, until,
};

use crate::common::driver_view::Drawn;

/// The other side of a semaphore.
enum Outside {
    Soft(control::ExternalSemaphore),
    Vulkan(Box<VulkanSemaphore>),
}

impl Outside {
    fn new(context: &Context, kind: SemaphoreKind) -> Result<Self, String> {
        if is_soft() {
            return Ok(Self::Soft(control::ExternalSemaphore::new().unwrap()));
        }
        let uuid = context.device().uuid().unwrap();
        VulkanSemaphore::new(uuid, kind == SemaphoreKind::Timeline).map(|made| Self::Vulkan(Box::new(made)))
    }

    fn import(&self, context: &Context, kind: SemaphoreKind) -> ExternalSemaphore {
        let descriptor = match self {
            Self::Soft(semaphore) => semaphore.descriptor().unwrap(),
            Self::Vulkan(semaphore) => semaphore.descriptor(),
        };
        // SAFETY: it is of a semaphore of that kind on the device, and the tests follow its rules.
        unsafe { ExternalSemaphore::import(context, kind, descriptor) }.unwrap()
    }

    fn value(&self) -> u64 {
        match self {
            Self::Soft(semaphore) => semaphore.value(),
            Self::Vulkan(semaphore) => semaphore.value(),
        }
    }

    fn set_value(&self, value: u64) {
        match self {
            Self::Soft(semaphore) => semaphore.set_value(value),
            Self::Vulkan(semaphore) => semaphore.set_value(value),
        }
    }
}

/// Semaphores of one kind with their other sides, or a skipped test.
macro_rules! semaphores {
    ($context:expr, $kind:ident, $count:literal) => {{
        let outside: Result<Vec<Outside>, String> =
            (0..$count).map(|_| Outside::new(&$context, SemaphoreKind::$kind)).collect();
        match outside {
            Ok(outside) => {
                let inside: Vec<ExternalSemaphore> =
                    outside.iter().map(|outside| outside.import(&$context, SemaphoreKind::$kind)).collect();
                (outside, inside)
            }
            Err(reason) => skip!("{reason}"),
        }
    }};
}

/// The driver's parameters of a node of either type.
fn seen(raw_node: cuda_sys::CUgraphNode, kind: NodeKind) -> Vec<(CUexternalSemaphore, u64)> {
    if kind == NodeKind::SemaphoreSignal {
        let mut params = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::default();
        // SAFETY: a live node of that type.
        raw::ok(unsafe {
            raw::driver().cuGraphExternalSemaphoresSignalNodeGetParams(raw_node, &raw mut params)
        });
        let count = params.numExtSems as usize;
        // SAFETY: the node's own arrays of that length.
        let (semaphores, params) = unsafe {
            (
                core::slice::from_raw_parts(params.extSemArray, count),
                core::slice::from_raw_parts(params.paramsArray, count),
            )
        };
        return semaphores
            .iter()
            .zip(params)
            .map(|(raw, params)| (*raw, params.params.fence.value))
            .collect();
    }
    let mut params = CUDA_EXT_SEM_WAIT_NODE_PARAMS::default();
    // SAFETY: as above.
    raw::ok(unsafe { raw::driver().cuGraphExternalSemaphoresWaitNodeGetParams(raw_node, &raw mut params) });
    let count = params.numExtSems as usize;
    // SAFETY: as above.
    let (semaphores, params) = unsafe {
        (
            core::slice::from_raw_parts(params.extSemArray, count),
            core::slice::from_raw_parts(params.paramsArray, count),
        )
    };
    semaphores.iter().zip(params).map(|(raw, params)| (*raw, params.params.fence.value)).collect()
}

#[test]
fn where_the_host_decides_semaphores_are_waited_for_and_raised() {
    let context = setup();
    no_leaks(|| {
        let (outside, inside) = semaphores!(context, Timeline, 2);
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(4).unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait_semaphores([(&inside[0], 3)]).unwrap();
        let branch =
            wait.then().if_then(cuda_graph::Test::nonzero(&out), |body| body.root().empty()).unwrap();
        branch.then().fill(&out, 7).unwrap().then().signal([(&inside[1], 5)]).unwrap();
        let options = InstantiateOptions::new();
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        outside[0].set_value(3);
        exec.run_blocking(&stream).unwrap();
        assert_eq!((outside[1].value(), out.read_blocking(&stream).unwrap()), (5, vec![7; 4]));
    });
}

#[test]
fn a_graph_waits_for_timelines_and_raises_them() {
    let context = setup();
    no_leaks(|| {
        let (outside, inside) = semaphores!(context, Timeline, 3);
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(4).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = Drawn::new(&context);
        let (wait, cost) =
            count(|| graph.root().wait_semaphores([(&inside[0], 3), (&inside[1], 1)]).unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        let fill = wait.then().fill(&out, 7).unwrap();
        let (signal, cost) = count(|| fill.then().signal([(&inside[1], 5), (&inside[2], 6)]).unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        // They read back.
        assert_eq!((wait.kind(), signal.kind()), (NodeKind::SemaphoreWait, NodeKind::SemaphoreSignal));
        assert_eq!(wait.semaphores().unwrap()[..], [(inside[0].clone(), 3), (inside[1].clone(), 1)]);
        assert_eq!(signal.semaphores().unwrap()[..], [(inside[1].clone(), 5), (inside[2].clone(), 6)]);
        assert_eq!(wait.describe().unwrap(), "wait for 2 semaphores");
        let nodes = graph.nodes().unwrap();
        assert_eq!(SemaphoreWaitNode::try_from(nodes[0].clone()).unwrap(), wait);
        assert_eq!(SemaphoreSignalNode::try_from(nodes[2].clone()).unwrap(), signal);
        let raws = raw::nodes(graph.raw);
        assert_eq!(seen(raws[0], wait.kind()), [(inside[0].as_raw(), 3), (inside[1].as_raw(), 1)]);
        assert_eq!(seen(raws[2], signal.kind()), [(inside[1].as_raw(), 5), (inside[2].as_raw(), 6)]);
        // They run.
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let done = context.event().unwrap();
        stream.record(&done).unwrap();
        outside[0].set_value(2);
        outside[1].set_value(1);
        for _ in 0..20 {
            assert!(!done.query().unwrap() && outside[2].value() == 0);
            std::thread::yield_now();
        }
        outside[0].set_value(3);
        assert!(until(SOON, || done.query().unwrap()));
        assert_eq!([outside[0].value(), outside[1].value(), outside[2].value()], [3, 5, 6]);
        assert_eq!(out.read_blocking(&stream).unwrap(), [7; 4]);
    });
}

#[test]
fn a_wait_takes_the_signal_of_a_binary_semaphore_away() {
    let context = setup();
    no_leaks(|| {
        let (outside, inside) = semaphores!(context, Binary, 1);
        assert_eq!(inside[0].kind(), SemaphoreKind::Binary);
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let out = stream.zeros::<u32>(1).unwrap();
        stream.synchronize_blocking().unwrap();
        let (signals, waits) = (context.graph().unwrap(), context.graph().unwrap());
        signals.root().signal([(&inside[0], 0)]).unwrap();
        waits.root().wait_semaphores([(&inside[0], 0)]).unwrap().then().fill(&out, 3).unwrap();
        let (mut signals, mut waits) = (signals.instantiate().unwrap(), waits.instantiate().unwrap());
        for _ in 0..3 {
            stream.fill(&out, 0).unwrap();
            signals.launch(&other).unwrap();
            waits.launch(&stream).unwrap();
            assert_eq!(out.read_blocking(&stream).unwrap(), [3]);
            if let Outside::Soft(semaphore) = &outside[0] {
                assert_eq!(semaphore.value(), 0, "the wait took it");
            }
        }
    });
}

#[test]
fn a_semaphore_lives_as_long_as_a_node_or_a_launch_can_use_it() {
    let context = setup();
    no_leaks(|| {
        let (outside, mut inside) = semaphores!(context, Timeline, 2);
        let semaphores = || live().of(Kind::Semaphore);
        let before = semaphores();
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait_semaphores([(&inside[0], 1)]).unwrap();
        let signal = wait.then().signal([(&inside[1], 1)]).unwrap();
        inside.clear();
        assert_eq!(semaphores(), before, "the nodes have them");
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        drop((wait, signal, graph, exec));
        reaper::drain();
        assert!(reaper::pending() > 0, "the driver has yet to give them back");
        assert_eq!(semaphores(), before, "the launch has them");
        outside[0].set_value(1);
        assert!(until(SOON, || semaphores() == before - 2));
        assert_eq!(outside[1].value(), 1);
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn nodes_can_be_set_to_other_semaphores_and_let_go_of_those_before() {
    let context = setup();
    no_leaks(|| {
        let (outside, mut inside) = semaphores!(context, Timeline, 4);
        let semaphores = || live().of(Kind::Semaphore);
        let before = semaphores();
        let stream = context.stream().unwrap();
        let graph = Drawn::new(&context);
        let wait = graph.root().wait_semaphores([(&inside[0], 9)]).unwrap();
        let signal = wait.then().signal([(&inside[1], 9)]).unwrap();
        let rest = inside.split_off(2);
        drop(inside);
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        wait.set([(&rest[0], 1)]).unwrap_err();
        drop(injected);
        assert_eq!((wait.semaphores().unwrap()[0].1, semaphores()), (9, before));
        let (set, cost) = count(|| wait.set([(&rest[0], 1)]));
        set.unwrap();
        assert_eq!(cost.calls("cuGraphNodeSetParams"), 1, "{cost}");
        assert_eq!(semaphores(), before - 1);
        signal.set([(&rest[1], 2), (&rest[0], 3)]).unwrap();
        assert_eq!(semaphores(), before - 2);
        let raws = raw::nodes(graph.raw);
        assert_eq!(seen(raws[0], wait.kind()), [(rest[0].as_raw(), 1)]);
        assert_eq!(seen(raws[1], signal.kind()), [(rest[1].as_raw(), 2), (rest[0].as_raw(), 3)]);
        outside[2].set_value(1);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!([outside[2].value(), outside[3].value()], [3, 2]);
        wait.remove().unwrap();
        assert!(matches!(wait.set([(&rest[0], 1)]), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(wait.semaphores(), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn one_semaphore_or_value_changes_and_the_others_stay() {
    let context = setup();
    no_leaks(|| {
        let (outside, mut inside) = semaphores!(context, Timeline, 3);
        let semaphores = || live().of(Kind::Semaphore);
        let before = semaphores();
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait_semaphores([(&inside[0], 9)]).unwrap().named("waits");
        let signal = wait.then().signal([(&inside[1], 2), (&inside[1], 9)]).unwrap();
        let mut earlier = graph.instantiate().unwrap();
        let (set, cost) = count(|| wait.set_value(0, 1));
        set.unwrap();
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        signal.set_semaphore(1, &inside[2]).unwrap();
        signal.set_value(1, 7).unwrap();
        assert_eq!(wait.semaphores().unwrap()[..], [(inside[0].clone(), 1)]);
        assert_eq!(signal.semaphores().unwrap()[..], [(inside[1].clone(), 2), (inside[2].clone(), 7)]);
        let none = wait.set_value(1, 1).unwrap_err();
        assert_eq!(none.to_string(), "node `waits` has 1 semaphore, and none with the index 1");
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        signal.set_value(0, 8).unwrap_err();
        drop(injected);
        assert_eq!(signal.semaphores().unwrap()[0].1, 2);
        outside[0].set_value(1);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!([outside[1].value(), outside[2].value()], [2, 7]);
        outside[0].set_value(9);
        earlier.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(outside[1].value(), 9);
        // What is replaced goes.
        signal.set_semaphore(0, &inside[2]).unwrap();
        inside.remove(1);
        drop(earlier);
        assert!(until(SOON, || {
            reaper::drain();
            semaphores() == before - 1
        }));
    });
}

#[test]
fn nodes_without_semaphores_are_refused_in_words() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let ((signal, wait), cost) = count(|| (graph.root().signal([]), graph.root().wait_semaphores([])));
        cost.assert_calls(&[]);
        assert!(matches!(signal, Err(Error::Node(NodeError::NoElements { what: "semaphore signal" }))));
        assert!(matches!(wait, Err(Error::Node(NodeError::NoElements { what: "semaphore wait" }))));
        assert_eq!(graph.len().unwrap(), 0);
    });
}

#[test]
fn what_is_no_semaphore_is_not_imported() {
    let context = setup();
    no_leaks(|| {
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: the driver refuses it.
        let imported = unsafe { ExternalSemaphore::import(&context, SemaphoreKind::Timeline, file.into()) };
        let error = imported.unwrap_err();
        assert!(
            matches!(error, HandleError::Driver { call: Call::cuImportExternalSemaphore, .. }),
            "{error:?}"
        );
    });
}

#[test]
fn the_last_handle_may_go_where_the_driver_permits_no_call() {
    let context = setup();
    no_leaks(|| {
        let (_outside, mut inside) = semaphores!(context, Timeline, 1);
        let before = live().of(Kind::Semaphore);
        let stream = context.stream().unwrap();
        let semaphore = inside.remove(0);
        in_callback(&stream, move || drop(semaphore));
        stream.synchronize_blocking().unwrap();
        assert!(until(SOON, || live().of(Kind::Semaphore) == before - 1));
    });
}

#[test]
fn each_node_is_one_call_and_three_allocations() {
    let context = setup();
    no_leaks(|| {
        let (_outside, inside) = semaphores!(context, Timeline, 1);
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        let signal = || {
            let (node, cost) = count(|| first.then().signal([(&inside[0], 1)]).unwrap());
            assert_eq!((node.kind(), cost.total()), (NodeKind::SemaphoreSignal, 1), "{cost}");
            cost.heap_allocations()
        };
        let wait = || {
            let (node, cost) = count(|| first.then().wait_semaphores([(&inside[0], 1)]).unwrap());
            assert_eq!((node.kind(), cost.total()), (NodeKind::SemaphoreWait, 1), "{cost}");
            cost.heap_allocations()
        };
        // The node's own list, and the two of the driver's form.
        assert_eq!((0..8).map(|_| signal()).min(), Some(3));
        assert_eq!((0..8).map(|_| wait()).min(), Some(3));
    });
}

#[test]
fn nodes_of_an_executable_get_other_semaphores_and_values() {
    let context = setup();
    no_leaks(|| {
        let (outside, inside) = semaphores!(context, Timeline, 3);
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait_semaphores([(&inside[0], 3)]).unwrap();
        let signal = wait.then().signal([(&inside[1], 5)]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let (set, cost) = count(|| {
            exec.node(&wait).set([(&inside[2], 7)])?;
            exec.node(&signal).set([(&inside[1], 9)])
        });
        set.unwrap();
        cost.assert_calls(&[("cuGraphExecNodeSetParams", 2)]);
        exec.node(&signal).set([]).unwrap_err();
        let injected = fail(Call::cuGraphExecNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        exec.node(&signal).set([(&inside[1], 11)]).unwrap_err();
        drop(injected);
        outside[2].set_value(7);
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(outside[1].value(), 9);
    });
}
