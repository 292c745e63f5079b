//! Event nodes: records and waits.

use core::time::Duration;

use cuda_graph::{
    ContextExt, Error, EventRecordNode, EventWaitNode, Graph, HostCallbackNode, NodeError, NodeKind,
};
use cuda_handles::{Error as HandleError, EventOptions, NoTime, Which};
use cuda_sys::{CUDA_HOST_NODE_PARAMS_v1, CUevent, CUgraphNode, CUresult, Call};
use cuda_tests::{
    Gate, Kind, SOON, alone, count, fail, live, needs, no_leaks, other_device, raw, settle, setup, until,
};

use crate::common::driver_view::Drawn;
use crate::common::events::{ensure_held_up, is_captured, record_in_capture};

fn raw_event(node: CUgraphNode, records: bool) -> CUevent {
    let mut event = core::ptr::null_mut();
    // SAFETY: the node lives, and the out pointer is valid.
    raw::ok(unsafe {
        match records {
            true => raw::driver().cuGraphEventRecordNodeGetEvent(node, &raw mut event),
            false => raw::driver().cuGraphEventWaitNodeGetEvent(node, &raw mut event),
        }
    });
    event
}

#[test]
fn a_recorded_event_is_reached_when_what_is_before_it_is_done() {
    let context = setup();
    no_leaks(|| {
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        let words = stream.zeros::<u32>(64).unwrap();
        let fill = graph.root().fill(&words, 3).unwrap();
        let record = fill.then().record(&event).unwrap();
        record.then().empty().unwrap();
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..2 {
            let gate = Gate::close(&stream);
            exec.launch(&stream).unwrap();
            // Recording is part of the launch; on a device that is busy it may not have begun.
            gate.open();
            stream.synchronize_blocking().unwrap();
            event.synchronize_blocking().unwrap();
            assert!(event.query().unwrap());
        }
        // Another stream waits for the point inside of the graph.
        let other = context.stream().unwrap();
        exec.launch(&stream).unwrap();
        other.wait(&event).unwrap();
        assert_eq!(words.read_blocking(&other).unwrap(), [3; 64]);
    });
}

#[test]
fn a_wait_node_holds_up_what_comes_after_it() {
    let context = setup();
    no_leaks(|| {
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        let words = stream.zeros::<u32>(64).unwrap();
        let graph = context.graph().unwrap();
        let wait = graph.root().wait(&event).unwrap();
        wait.then().fill(&words, 5).unwrap();
        let mut exec = graph.instantiate().unwrap();
        // Never recorded: it does not wait.
        exec.launch(&stream).unwrap();
        assert_eq!(words.read_blocking(&stream).unwrap(), [5; 64]);
        stream.fill(&words, 0).unwrap();
        stream.synchronize_blocking().unwrap();
        ensure_held_up(&event, &stream, || exec.launch(&stream).unwrap());
        assert_eq!(words.read_blocking(&stream).unwrap(), [5; 64]);
    });
}

#[test]
fn events_measure_across_nodes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (start, end) = (context.event().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        let first = graph.root().record(&start).unwrap();
        let nap = first.then().host(|| std::thread::sleep(Duration::from_millis(5))).unwrap();
        nap.then().record(&end).unwrap();
        let mut exec = graph.instantiate().unwrap();
        assert_eq!(end.elapsed_since(&start), Err(HandleError::NoTime(NoTime::NeverRecorded(Which::Start))));
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let elapsed = end.elapsed_since(&start).unwrap();
        assert!(elapsed >= Duration::from_millis(4) && elapsed < SOON, "{elapsed:?}");
        let silent = context.event_with(EventOptions { timing: false, ..EventOptions::default() }).unwrap();
        nap.then().record(&silent).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(silent.elapsed_since(&start), Err(HandleError::NoTime(NoTime::WithoutTiming(Which::End))));
    });
}

#[test]
fn an_event_of_a_capture_is_not_taken_for_one_after_a_graph_recorded_it() {
    let context = setup();
    no_leaks(|| {
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        let graph = context.graph().unwrap();
        graph.root().record(&event).unwrap();
        let mut exec = graph.instantiate().unwrap();
        record_in_capture(&event, &stream);
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        // The driver tells the event that it means now.
        assert!(!is_captured(&event));
        assert_ne!(context.stream().unwrap().wait(&event), Err(HandleError::CapturedEvent));
    });
}

#[test]
fn events_are_readable_and_replaced_and_go_when_nothing_has_them() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let before = live().of(Kind::Event);
        let (first, second) = (context.event().unwrap(), context.event().unwrap());
        let record = graph.root().record(&first).unwrap();
        let wait = graph.root().wait(&first).unwrap();
        let nodes = raw::nodes(graph.raw);
        assert_eq!((record.event().unwrap(), wait.event().unwrap()), (first.clone(), first.clone()));
        assert_eq!(raw_event(nodes[0], true), first.as_raw());
        assert_eq!(raw_event(nodes[1], false), first.as_raw());
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        record.set_event(&second).unwrap_err();
        drop(injected);
        assert_eq!(record.event().unwrap(), first);
        let (set, cost) = count(|| (record.set_event(&second), wait.set_event(&second)));
        set.0.unwrap();
        set.1.unwrap();
        cost.assert_calls(&[("cuGraphNodeSetParams", 2)]);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
        assert_eq!((record.event().unwrap(), wait.event().unwrap()), (second.clone(), second.clone()));
        assert_eq!(raw_event(nodes[0], true), second.as_raw());
        assert_eq!(raw_event(nodes[1], false), second.as_raw());
        drop((first, second));
        assert_eq!(live().of(Kind::Event), before + 1);
        let exec = graph.instantiate().unwrap();
        record.remove().unwrap();
        wait.remove().unwrap();
        assert!(matches!(record.event(), Err(Error::Node(NodeError::Removed { .. }))));
        settle();
        assert_eq!(live().of(Kind::Event), before + 1, "the executable keeps it");
        drop(exec);
        assert!(until(SOON, || {
            settle();
            live().of(Kind::Event) == before
        }));
    });
}

#[test]
fn adds_are_one_call_and_no_allocation_of_their_own() {
    let context = setup();
    no_leaks(|| {
        let event = context.event().unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        let adds: [(&str, &dyn Fn()); 2] = [
            ("record", &|| drop(first.then().record(&event).unwrap())),
            ("wait", &|| drop(first.then().wait(&event).unwrap())),
        ];
        for (name, add) in adds {
            let costs: Vec<_> = (0..8).map(|_| count(add).1).collect();
            costs.iter().for_each(|cost| cost.assert_calls(&[("cuGraphAddNode", 1)]));
            assert_eq!(costs.iter().map(|cost| cost.heap_allocations()).min(), Some(0), "{name}");
        }
    });
}

#[test]
fn an_event_of_another_context_can_be_waited_for_but_not_recorded() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap();
    no_leaks(|| {
        let event = other.event().unwrap();
        let own = context.event().unwrap();
        let graph = context.graph().unwrap();
        let wrong = |error: Error| matches!(error, Error::Handles(HandleError::WrongContext { .. }));
        let (refused, cost) = count(|| graph.root().record(&event).unwrap_err());
        assert!(wrong(refused));
        cost.assert_calls(&[]);
        let record = graph.root().record(&own).unwrap();
        assert!(wrong(record.set_event(&event).unwrap_err()));
        assert_eq!(record.event().unwrap(), own);
        let words = context.stream().unwrap().zeros::<u32>(8).unwrap();
        graph.root().wait(&event).unwrap().then().fill(&words, 4).unwrap();
        let (stream, elsewhere) = (context.stream().unwrap(), other.stream().unwrap());
        elsewhere.record(&event).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(words.read_blocking(&stream).unwrap(), [4; 8]);
    });
}

#[test]
fn nodes_come_back_with_type_name_and_text() {
    let context = setup();
    no_leaks(|| {
        let event = context.event().unwrap();
        let graph = context.graph().unwrap();
        let record = graph.root().record(&event).unwrap();
        let wait = record.then().wait(&event).unwrap();
        let nodes = graph.nodes().unwrap();
        assert_eq!(EventRecordNode::try_from(nodes[0].clone()).unwrap(), record);
        assert_eq!(EventWaitNode::try_from(nodes[1].clone()).unwrap(), wait);
        assert!(EventWaitNode::try_from(nodes[0].clone()).is_err());
        assert_eq!((record.kind(), wait.kind()), (NodeKind::EventRecord, NodeKind::EventWait));
        assert_eq!(record.describe().unwrap(), format!("record {:?}", event.as_raw()));
        assert_eq!(wait.describe().unwrap(), format!("wait for {:?}", event.as_raw()));
        assert!(wait.name().starts_with("event wait#"));
        assert_eq!(wait.named("gate").to_string(), "gate");
    });
}

#[test]
fn calls_and_events_of_an_adopted_graph_are_known() {
    let context = setup();
    no_leaks(|| {
        unsafe extern "C" fn nothing(_data: *mut core::ffi::c_void) {}
        let (event, driver) = (context.event().unwrap(), raw::driver());
        let (mut foreign, mut node) = (core::ptr::null_mut(), core::ptr::null_mut());
        let data = core::ptr::without_provenance_mut(48);
        let host = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: data };
        let none = core::ptr::null();
        // SAFETY: the graph and the event live, and the out pointers are valid.
        unsafe {
            raw::ok(driver.cuGraphCreate(&raw mut foreign, 0));
            raw::ok(driver.cuGraphAddHostNode(&raw mut node, foreign, none, 0, &raw const host));
            raw::ok(driver.cuGraphAddEventRecordNode(&raw mut node, foreign, none, 0, event.as_raw()));
            raw::ok(driver.cuGraphAddEventWaitNode(&raw mut node, foreign, none, 0, event.as_raw()));
        }
        {
            // SAFETY: the graph lives longer than its handles, and so does what its nodes use.
            let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
            let [host, record, wait] = <[_; 3]>::try_from(graph.nodes().unwrap()).unwrap();
            let host = HostCallbackNode::try_from(host).unwrap();
            assert!(host.function().unwrap().is_some());
            assert_eq!(host.data().unwrap(), Some(data));
            assert_eq!(EventRecordNode::try_from(record).unwrap().event().unwrap(), event);
            assert_eq!(EventWaitNode::try_from(wait).unwrap().event().unwrap(), event);
            host.set(|| ()).unwrap();
            let stream = context.stream().unwrap();
            graph.instantiate().unwrap().launch(&stream).unwrap();
            stream.synchronize_blocking().unwrap();
            assert!(event.query().unwrap());
        }
        // SAFETY: nobody uses it any more.
        raw::ok(unsafe { driver.cuGraphDestroy(foreign) });
    });
}
