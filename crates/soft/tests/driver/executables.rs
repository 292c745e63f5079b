//! Executables: launches in flight, updates, user objects.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_sys::*;

struct Adder {
    graph: CUgraph,
    node: CUgraphNode,
    function: CUfunction,
    address: CUdeviceptr,
}

/// A graph of one kernel that adds `value` to a word.
fn adder(driver: &Driver, value: u32) -> Adder {
    let (function, address, graph) =
        (function(driver, library(driver), "add"), words(driver, 1), graph(driver));
    let node = word_node(driver, graph, &[], function, address, value);
    Adder { graph, node, function, address }
}

fn set_value(driver: &Driver, exec: CUgraphExec, adder: &Adder, mut value: u32) -> CUresult {
    let mut address = adder.address;
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
    let params = params(adder.function, &mut arguments);
    unsafe { driver.cuGraphExecKernelNodeSetParams(exec, adder.node, &params) }
}

#[test]
fn queued_launches_keep_their_values() {
    let driver = &session();
    let adder = adder(driver, 1);
    let (exec, stream) = (instantiate(driver, adder.graph), stream(driver));
    let gate = Gate::close(driver, stream);
    unsafe {
        for value in 1..=20 {
            assert_eq!(set_value(driver, exec, &adder, value), OK);
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        }
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphDestroy(adder.graph), OK);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
    assert_eq!(read(driver, adder.address, 1), [210]);
}

#[test]
fn an_executable_never_overlaps_itself() {
    let driver = &session();
    let adder = adder(driver, 1);
    let (exec, first, second) = (instantiate(driver, adder.graph), stream(driver), stream(driver));
    let gate = Gate::close(driver, first);
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, first), OK);
        assert_eq!(driver.cuGraphLaunch(exec, second), OK);
        assert_eq!(driver.cuStreamQuery(second), CUresult::CUDA_ERROR_NOT_READY);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(second), OK);
    }
    assert_eq!(read(driver, adder.address, 1), [2]);
}

#[test]
fn set_params_takes_nodes_of_the_source_alone() {
    let driver = &session();
    let (own, other) = (adder(driver, 1), adder(driver, 1));
    let exec = instantiate(driver, own.graph);
    unsafe {
        assert_eq!(set_value(driver, exec, &other, 1), IV);
        let late = word_node(driver, own.graph, &[], own.function, own.address, 1);
        assert_eq!(set_value(driver, exec, &Adder { node: late, ..own }, 1), IV);
        let mut clone = null_mut();
        assert_eq!(driver.cuGraphClone(&mut clone, own.graph), OK);
        let mut twin = null_mut();
        assert_eq!(driver.cuGraphNodeFindInClone(&mut twin, own.node, clone), OK);
        assert_eq!(set_value(driver, exec, &Adder { node: twin, ..own }, 1), IV);
        let params = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: own.address,
            value: 0,
            elementSize: 4,
            width: 1,
            height: 1,
            pitch: 0,
        };
        assert_eq!(driver.cuGraphExecMemsetNodeSetParams(exec, own.node, &params, null_mut()), IV);
        assert_eq!(set_value(driver, exec, &own, 1), OK);
        let mut enabled = 9;
        assert_eq!(driver.cuGraphNodeGetEnabled(exec, own.node, &mut enabled), OK);
        assert_eq!(enabled, 1);
        assert_eq!(driver.cuGraphDestroyNode(own.node), OK);
        assert_eq!(set_value(driver, exec, &own, 1), IV);
    }
}

#[test]
fn a_disabled_node_is_skipped_and_keeps_new_values() {
    let driver = &session();
    let adder = adder(driver, 1);
    let (exec, stream) = (instantiate(driver, adder.graph), stream(driver));
    unsafe {
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, adder.node, 0), OK);
        assert_eq!(set_value(driver, exec, &adder, 10), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, adder.address, 1), [0]);
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, adder.node, 1), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, adder.address, 1), [10]);
    }
}

fn update(driver: &Driver, exec: CUgraphExec, graph: CUgraph) -> (CUresult, u32, CUgraphNode) {
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(99),
        errorNode: null_mut(),
        errorFromNode: null_mut(),
    };
    let answer = unsafe { driver.cuGraphExecUpdate(exec, graph, &mut info) };
    (answer, info.result.0, info.errorNode)
}

const FAILED: CUresult = CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;

#[test]
fn whole_updates_pair_from_the_sinks() {
    let driver = &session();
    let library = library(driver);
    let (add, multiply) = (function(driver, library, "add"), function(driver, library, "multiply"));
    let (address, stream) = (words(driver, 1), stream(driver));
    let old = graph(driver);
    let first = word_node(driver, old, &[], add, address, 1);
    let second = word_node(driver, old, &[first], multiply, address, 2);
    let exec = instantiate(driver, old);
    // The same chain made in the other order, with other functions and values: (0 * 2 + 5) would be
    // wrong.
    let new = graph(driver);
    let last = word_node(driver, new, &[], multiply, address, 7);
    let start = word_node(driver, new, &[], add, address, 5);
    unsafe {
        assert_eq!(driver.cuGraphAddDependencies(new, &start, &last, 1), OK);
        assert_eq!(update(driver, exec, new), (OK, 0, null_mut()));
        assert_eq!(driver.cuGraphDestroy(new), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 1), [35]);
        // The first graph's nodes stay the keys, each for its partner.
        assert_eq!(driver.cuGraphNodeSetEnabled(exec, second, 0), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, address, 1), [40]);
    }
}

#[test]
fn refused_updates_name_reason_and_node_and_change_nothing() {
    let driver = &session();
    let adder = adder(driver, 1);
    let (exec, stream) = (instantiate(driver, adder.graph), stream(driver));
    let more = graph(driver);
    empty(driver, more, &[]);
    empty(driver, more, &[]);
    assert_eq!(update(driver, exec, more), (FAILED, 2, null_mut()));
    let kind = graph(driver);
    let node = empty(driver, kind, &[]);
    assert_eq!(update(driver, exec, kind), (FAILED, 3, node));
    let cooperative = graph(driver);
    let node = word_node(driver, cooperative, &[], adder.function, adder.address, 9);
    unsafe {
        let value = CUlaunchAttributeValue { cooperative: 1 };
        let attribute = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        assert_eq!(driver.cuGraphKernelNodeSetAttribute(node, attribute, &value), OK);
        assert_eq!(update(driver, exec, cooperative), (FAILED, 8, node));
        assert_eq!(driver.cuGraphExecUpdate(exec, adder.graph, null_mut()), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
    assert_eq!(read(driver, adder.address, 1), [1]);
}

#[test]
fn user_objects_end_with_their_last_holder() {
    let driver = &session();
    let adder = adder(driver, 1);
    let stream = stream(driver);
    let here = std::thread::current().id();
    unsafe {
        // The design's way: retained for the instantiate alone, so that only the executable keeps
        // it.
        let (object, ended) = user_object(driver, 1);
        assert_eq!(driver.cuGraphRetainUserObject(adder.graph, object, 1, 1), OK);
        let exec = instantiate(driver, adder.graph);
        assert_eq!(driver.cuGraphReleaseUserObject(adder.graph, object, 1), OK);
        assert!(ended.try_recv().is_err());
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        // Never launched: immediately, on this thread.
        assert_eq!(ended.try_recv(), Ok(here));

        let (object, ended) = user_object(driver, 1);
        assert_eq!(driver.cuGraphRetainUserObject(adder.graph, object, 1, 1), OK);
        let exec = instantiate(driver, adder.graph);
        assert_eq!(driver.cuGraphReleaseUserObject(adder.graph, object, 1), OK);
        let gate = Gate::close(driver, stream);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert!(ended.try_recv().is_err());
        gate.open();
        // After its work, on a thread of the driver.
        let there = ended.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        assert_ne!(there, here);

        // A clone holds as many; the graph's end is the end on this thread.
        let (object, ended) = user_object(driver, 1);
        assert_eq!(driver.cuGraphRetainUserObject(adder.graph, object, 1, 1), OK);
        let mut clone = null_mut();
        assert_eq!(driver.cuGraphClone(&mut clone, adder.graph), OK);
        assert_eq!(driver.cuGraphDestroy(adder.graph), OK);
        assert!(ended.try_recv().is_err());
        assert_eq!(driver.cuGraphDestroy(clone), OK);
        assert_eq!(ended.try_recv(), Ok(here));
    }
}

/// Alone: while a destructor runs no host function does, and other tests may wait for theirs.
#[test]
fn an_executable_that_ran_gives_its_references_back_on_the_drivers_thread() {
    alone(
        "executables::an_executable_that_ran_gives_its_references_back_on_the_drivers_thread",
        references_go_back_behind_a_destructor,
    );
}

fn references_go_back_behind_a_destructor() {
    unsafe extern "C" fn wait(end: *mut c_void) {
        let end = unsafe { Box::from_raw(end.cast::<std::sync::mpsc::Receiver<()>>()) };
        let _ = end.recv();
    }
    let driver = &session();
    let adder = adder(driver, 1);
    let stream = stream(driver);
    let run_and_destroy = |object| unsafe {
        assert_eq!(driver.cuGraphRetainUserObject(adder.graph, object, 1, 0), OK);
        let exec = instantiate(driver, adder.graph);
        assert_eq!(driver.cuGraphReleaseUserObject(adder.graph, object, 1), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuUserObjectRelease(object, 1), OK);
    };
    // The thread is in a destructor.
    let (end, waits) = std::sync::mpsc::channel::<()>();
    let mut holding = null_mut();
    let data = Box::into_raw(Box::new(waits));
    assert_eq!(unsafe { driver.cuUserObjectCreate(&mut holding, data.cast(), Some(wait), 1, 1) }, OK);
    run_and_destroy(holding);
    let (object, ended) = user_object(driver, 1);
    run_and_destroy(object);
    assert!(ended.try_recv().is_err(), "the executable's reference comes later than ours");
    drop(end);
    let there = ended.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_ne!(there, std::thread::current().id());
}

#[test]
fn an_update_exchanges_the_user_objects() {
    let driver = &session();
    let (old, new) = (adder(driver, 1), adder(driver, 2));
    unsafe {
        let (first, first_ended) = user_object(driver, 1);
        let (second, second_ended) = user_object(driver, 1);
        assert_eq!(driver.cuGraphRetainUserObject(old.graph, first, 1, 1), OK);
        assert_eq!(driver.cuGraphRetainUserObject(new.graph, second, 1, 1), OK);
        let exec = instantiate(driver, old.graph);
        assert_eq!(driver.cuGraphReleaseUserObject(old.graph, first, 1), OK);
        assert_eq!(update(driver, exec, new.graph), (OK, 0, null_mut()));
        assert!(first_ended.try_recv().is_ok());
        assert_eq!(driver.cuGraphDestroy(new.graph), OK);
        assert!(second_ended.try_recv().is_err());
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert!(second_ended.try_recv().is_ok());
    }
}

#[test]
fn user_objects_end_in_the_order_of_retaining() {
    let driver = &session();
    let own = graph(driver);
    let (said, news) = std::sync::mpsc::channel::<usize>();
    unsafe extern "C" fn say(data: *mut c_void) {
        let (said, number) =
            *unsafe { Box::from_raw(data.cast::<(std::sync::mpsc::Sender<usize>, usize)>()) };
        said.send(number).unwrap();
    }
    let mut objects = [null_mut(); 40];
    unsafe {
        for (number, object) in objects.iter_mut().enumerate() {
            let data = Box::into_raw(Box::new((said.clone(), number)));
            assert_eq!(driver.cuUserObjectCreate(object, data.cast(), Some(say), 2, 1), OK);
            assert_eq!(driver.cuGraphRetainUserObject(own, *object, 1, 1), OK);
        }
        // Once more does not change its place; once less, and once more again does.
        assert_eq!(driver.cuGraphRetainUserObject(own, objects[3], 1, 1), OK);
        assert_eq!(driver.cuGraphReleaseUserObject(own, objects[0], 1), OK);
        assert_eq!(driver.cuGraphRetainUserObject(own, objects[0], 1, 1), OK);
        for object in objects.iter().skip(4).chain([&objects[1], &objects[2]]) {
            assert_eq!(driver.cuUserObjectRelease(*object, 1), OK);
        }
        assert!(news.try_recv().is_err());
        assert_eq!(driver.cuGraphDestroy(own), OK);
    }
    let expected: Vec<usize> = (1..40).chain([0]).collect();
    assert_eq!(news.try_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn user_object_calls_check_their_arguments() {
    let driver = &session();
    let (object, ended) = user_object(driver, 2);
    let own = graph(driver);
    unsafe {
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let mut out = null_mut();
        assert_eq!(driver.cuUserObjectCreate(&mut out, null_mut(), Some(nothing), 1, 0), IV);
        assert_eq!(driver.cuUserObjectCreate(&mut out, null_mut(), Some(nothing), 0, 1), IV);
        assert_eq!(driver.cuUserObjectCreate(&mut out, null_mut(), None, 1, 1), IV);
        assert_eq!(driver.cuUserObjectCreate(null_mut(), null_mut(), Some(nothing), 1, 1), IV);
        assert_eq!(driver.cuUserObjectRetain(object, 0), IV);
        assert_eq!(driver.cuUserObjectRelease(null_mut(), 1), IV);
        assert_eq!(driver.cuGraphRetainUserObject(own, object, 0, 0), IV);
        assert_eq!(driver.cuGraphRetainUserObject(own, object, 1 << 31, 0), IV);
        assert_eq!(driver.cuGraphRetainUserObject(own, object, 1, 2), IV);
        assert_eq!(driver.cuUserObjectRelease(object, 1), OK);
        assert!(ended.try_recv().is_err());
        assert_eq!(driver.cuUserObjectRelease(object, 1), OK);
        assert!(ended.try_recv().is_ok());
    }
}

#[test]
fn event_nodes_record_and_wait() {
    let driver = &session();
    let own = adder(driver, 4);
    let (mut event, mut record) = (null_mut(), null_mut());
    let (first, second) = (stream(driver), stream(driver));
    // The first use of a library would wait for the gate.
    let multiply = function(driver, library(driver), "multiply");
    unsafe {
        assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
        assert_eq!(driver.cuGraphAddEventRecordNode(&mut record, own.graph, &own.node, 1, event), OK);
        let exec = instantiate(driver, own.graph);
        assert_eq!(driver.cuEventQuery(event), OK);
        let gate = Gate::close(driver, first);
        assert_eq!(driver.cuGraphLaunch(exec, first), OK);
        assert_eq!(driver.cuEventQuery(event), CUresult::CUDA_ERROR_NOT_READY);
        let waiting = graph(driver);
        let mut wait = null_mut();
        assert_eq!(driver.cuGraphAddEventWaitNode(&mut wait, waiting, null(), 0, event), OK);
        word_node(driver, waiting, &[wait], multiply, own.address, 3);
        let waiter = instantiate(driver, waiting);
        assert_eq!(driver.cuGraphLaunch(waiter, second), OK);
        gate.open();
        assert_eq!(driver.cuStreamSynchronize(second), OK);
        assert_eq!(read(driver, own.address, 1), [12]);
    }
}

#[test]
fn memory_nodes_live_between_launches() {
    let driver = &session();
    let (own, stream) = (graph(driver), stream(driver));
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    unsafe {
        let (mut alloc, mut fill, mut clone) = (null_mut(), null_mut(), null_mut());
        assert_eq!(driver.cuGraphAddMemAllocNode(&mut alloc, own, null(), 0, &mut params), OK);
        let set = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: params.dptr,
            value: 6,
            elementSize: 4,
            width: 16,
            height: 1,
            pitch: 0,
        };
        assert_eq!(driver.cuGraphAddMemsetNode(&mut fill, own, &alloc, 1, &set, null_mut()), OK);
        assert_eq!(driver.cuGraphClone(&mut clone, own), NS);
        assert_eq!(driver.cuGraphDestroyNode(fill), NS);
        assert_eq!(driver.cuGraphRemoveDependencies(own, &alloc, &fill, 1), NS);
        let exec = instantiate(driver, own);
        assert_eq!(refusal(driver, own, 0).0, NS);
        let mut word = 0u32;
        assert_eq!(driver.cuMemcpyDtoH((&raw mut word).cast(), params.dptr, 4), IV);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), IV);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(read(driver, params.dptr, 16), [6; 16]);
        assert_eq!(driver.cuMemFreeAsync(params.dptr, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(params.dptr, stream), IV);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphDestroy(own), OK);
        // The memory outlives both.
        assert_eq!(read(driver, params.dptr, 1), [6]);
        assert_eq!(driver.cuMemFree(params.dptr), OK);
        assert_eq!(driver.cuMemFree(params.dptr), IV);
    }
}

#[test]
fn long_chains_and_many_threads_work() {
    let session = session();
    let driver = session.driver;
    let library = library(driver);
    let add = function(driver, library, "add");
    let (graph, address) = (graph(driver), words(driver, 1));
    let mut last = Vec::new();
    for _ in 0..20_000 {
        last = vec![empty(driver, graph, &last)];
    }
    word_node(driver, graph, &last, add, address, 1);
    let exec = instantiate(driver, graph);
    assert_eq!(unsafe { driver.cuGraphDestroy(graph) }, OK);
    let stream = stream(driver);
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
    }
    assert_eq!(read(driver, address, 1), [1]);
    let (context, function) = (context(driver).addr(), add.addr());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                assert_eq!(unsafe { driver.cuCtxSetCurrent(context as CUcontext) }, OK);
                for round in 0..20 {
                    one_round(driver, function as CUfunction, round);
                }
            });
        }
    });
}

/// Memory, a graph, an update, events and the end of it all.
fn one_round(driver: &Driver, function: CUfunction, round: u32) {
    unsafe {
        let (stream, graph, mut address, mut event) = (stream(driver), graph(driver), 0, null_mut());
        assert_eq!(driver.cuEventCreate(&mut event, 2), OK);
        assert_eq!(driver.cuMemAllocAsync(&mut address, 4, stream), OK);
        assert_eq!(driver.cuMemsetD32Async(address, round, 1, stream), OK);
        let node = word_node(driver, graph, &[], function, address, 1);
        let (object, ended) = user_object(driver, 1);
        assert_eq!(driver.cuGraphRetainUserObject(graph, object, 1, 1), OK);
        let exec = instantiate(driver, graph);
        assert_eq!(driver.cuGraphReleaseUserObject(graph, object, 1), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        let adder = Adder { graph, node, function, address };
        assert_eq!(set_value(driver, exec, &adder, 10), OK);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuEventRecord(event, stream), OK);
        let mut found = 0u32;
        assert_eq!(driver.cuMemcpyDtoHAsync((&raw mut found).cast(), address, 4, stream), OK);
        assert_eq!(driver.cuEventSynchronize(event), OK);
        assert_eq!(found, round + 11);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
        assert_eq!(driver.cuGraphDestroy(graph), OK);
        assert_eq!(driver.cuEventDestroy(event), OK);
        assert_eq!(driver.cuStreamDestroy(stream), OK);
        ended.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    }
}
