//! Objects of another context: the error names the object and the node.

use core::fmt;

use cuda_graph::{ContextExt, Error, Fallback, InstantiateOptions, Test};
use cuda_handles::{Copy2d, Error as HandleError, ExternalSemaphore, SemaphoreKind, WrongContext};
use cuda_launch::{params, per};
use cuda_soft::control;
use cuda_tests::{alone, count, device, is_soft, kernel, needs, other_device, setup};

/// The context of the graphs, and that of the things from elsewhere.
fn contexts() -> [String; 2] {
    [device(), other_device()].map(|device| format!("the context of device {}", device.ordinal()))
}

/// The words of a refusal that the driver never sees.
#[track_caller]
fn refused<T: fmt::Debug>(act: impl FnOnce() -> Result<T, Error>) -> String {
    let (outcome, cost) = count(act);
    cost.assert_calls(&[]);
    match outcome {
        Err(error @ Error::Handles(HandleError::WrongContext(_))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A thing of the second device, for a graph of the first.
fn far(what: &str) -> String {
    let [near, far] = contexts();
    format!("{what} belongs to {far}, the graph to {near}")
}

#[test]
fn streams_are_told_with_what_was_to_run_there() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let stream = other_device().context().unwrap().stream().unwrap();
    let graph = context.graph().unwrap();
    graph.root().empty().unwrap();
    let mut exec = graph.instantiate().unwrap();
    let [near, distant] = contexts();
    let text = |what: &str| format!("{what} belongs to {distant}, the executable graph to {near}");
    assert_eq!(refused(|| exec.launch(&stream)), text("the stream of the launch"));
    assert_eq!(refused(|| exec.upload(&stream)), text("the stream of the upload"));
    let options = InstantiateOptions::new();
    let mut either = graph.instantiate_with_fallback(Fallback::HostLoop, options).unwrap();
    assert_eq!(refused(|| either.run_blocking(&stream)), text("the stream of the launch"));
    let options = InstantiateOptions::new().upload_on(&stream);
    assert_eq!(refused(|| graph.instantiate_with(options)), far("the stream of the upload"));
}

#[test]
fn memory_of_nodes_is_told_by_its_part() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let elsewhere = other_device().context().unwrap();
    let (stream, other) = (context.stream().unwrap(), elsewhere.stream().unwrap());
    let (here, there) = (stream.zeros::<u32>(8).unwrap(), other.zeros::<u32>(8).unwrap());
    let also = other.zeros::<u32>(8).unwrap();
    let graph = context.graph().unwrap();
    let root = graph.root();
    let fill = root.fill(&here, 1).unwrap().named("filled");
    let copy = root.copy(&here, &stream.zeros::<u32>(8).unwrap()).unwrap().named("copied");

    let memory = WrongContext::MEMORY;
    let peer = "a node of `Frontier::copy_peer` copies from one context to another";
    let one = "one of the two has to be of the graph's context";
    let neither = "the destination of a copy whose source is not of the graph's context either";
    let advised = |what: &str, advice: &str| format!("{}; {advice}", far(what));
    assert_eq!(refused(|| root.fill(&there, 1)), advised("the memory of a fill", memory));
    assert_eq!(refused(|| root.clear(&there)), advised("the memory of a fill", memory));
    assert_eq!(refused(|| root.copy(&there, &here)), advised("the source of a copy", peer));
    assert_eq!(refused(|| root.copy(&here, &there)), advised("the destination of a copy", peer));
    assert_eq!(refused(|| root.copy_peer(&there, &also)), advised(neither, one));
    assert_eq!(
        refused(|| root.while_loop(Test::equal(there.slice(..1).unwrap(), 1), |_| Ok::<_, Error>(()))),
        advised("the memory that a loop or branch tests", memory)
    );

    // A node that is there is named.
    let filled = advised("the memory of a fill for node `filled`", memory);
    assert_eq!(refused(|| fill.set(&there, 1)), filled);
    assert_eq!(refused(|| fill.set_clear(&there)), filled);
    assert_eq!(refused(|| fill.set_2d(&there, 2, [2, 2], 1)), filled);
    let copied = advised("the source of a copy for node `copied`", peer);
    assert_eq!(refused(|| copy.set(&there, &here)), copied);
    let rectangle = Copy2d {
        source: there.as_slice(),
        source_pitch: 2,
        destination: here.as_slice(),
        destination_pitch: 2,
        width: 2,
        height: 2,
    };
    assert_eq!(refused(|| copy.set_2d(rectangle)), copied);
    let both = format!("{neither} for node `copied`");
    assert_eq!(refused(|| copy.set_peer(&there, &also)), advised(&both, one));
}

#[test]
fn kernels_events_graphs_and_semaphores_are_told_with_the_node() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let elsewhere = other_device().context().unwrap();
    let graph = context.graph().unwrap();
    let root = graph.root();

    let (mine, theirs) = (kernel(&context, "empty"), kernel(&elsewhere, "empty"));
    let advice = "load it for that context, or make the graph for both (`Graph::spanning`)";
    // SAFETY: the kernel takes no arguments, and writes nothing.
    let node = unsafe { root.launch_untyped(&mine, per(1, 1), params![]) }.unwrap().named("launch");
    // SAFETY: it is refused.
    let text = refused(|| unsafe { root.launch_untyped(&theirs, per(1, 1), params![]) });
    assert_eq!(text, format!("{}; {advice}", far("the kernel `empty`")));
    // SAFETY: as before.
    let text = refused(|| unsafe { node.set_untyped(&theirs, per(1, 1), params![]) });
    assert_eq!(text, format!("{}; {advice}", far("the kernel `empty` for node `launch`")));

    let event = elsewhere.event().unwrap();
    let record = root.record(&context.event().unwrap()).unwrap().named("record");
    assert_eq!(refused(|| root.record(&event)), far("the event to record"));
    assert_eq!(refused(|| record.set_event(&event)), far("the event to record for node `record`"));

    let other = elsewhere.graph().unwrap();
    let child = root.child(&context.graph().unwrap()).unwrap().named("child");
    let [near, distant] = contexts();
    let text = |what: &str| format!("{what} belongs to {distant}, the graph that embeds it to {near}");
    assert_eq!(refused(|| root.child(&other)), text("the graph to embed"));
    assert_eq!(refused(|| root.child_moved(other.clone())), text("the graph to embed"));
    assert_eq!(refused(|| child.set_graph(&other)), text("the graph to embed for node `child`"));

    // Semaphores of other interfaces are not to be had everywhere.
    if !is_soft() {
        return;
    }
    let made = [control::ExternalSemaphore::new().unwrap(), control::ExternalSemaphore::new().unwrap()];
    let [near, far_one] = [(&*context, &made[0]), (&elsewhere, &made[1])].map(|(context, made)| {
        let descriptor = made.descriptor().unwrap();
        // SAFETY: it is a timeline of the software driver, on any device.
        unsafe { ExternalSemaphore::import(context, SemaphoreKind::Timeline, descriptor) }.unwrap()
    });
    let signal = root.signal([(&near, 1)]).unwrap().named("signal");
    let both = || [(&near, 1), (&far_one, 1)];
    assert_eq!(refused(|| root.signal(both())), far("semaphore 2 of a semaphore signal"));
    assert_eq!(refused(|| root.wait_semaphores(both())), far("semaphore 2 of a semaphore wait"));
    assert_eq!(refused(|| signal.set(both())), far("semaphore 2 of a semaphore signal for node `signal`"));
}
