//! Copies and fills of memory of device 1's pool, in captures and nodes, whatever context is
//! current on the thread.

use cuda_graph::{ContextExt, Error, Graph, GraphExec, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Copy2d, Copy3d, Stream};
use cuda_tests::on_two_devices;

use super::{LEN, Two, leaves_nothing};

const MODE: CaptureMode = CaptureMode::ThreadLocal;

/// Runs `test` while no context is current, and each device's.
fn whatever_is_current(two: &Two, test: impl Fn()) {
    leaves_nothing(&test);
    for context in [&*two.here, &two.there] {
        leaves_nothing(|| context.with_current(&test).unwrap());
    }
}

fn numbers(from: u32) -> Vec<u32> {
    (from..from + LEN as u32).collect()
}

fn rows<'a>(source: &'a Buffer<u32>, destination: &'a Buffer<u32>) -> Copy2d<'a, u32> {
    let (source, destination) = (source.as_slice(), destination.as_slice());
    Copy2d { source, source_pitch: 8, destination, destination_pitch: 8, width: 8, height: 8 }
}

fn layers<'a>(source: &'a Buffer<u32>, destination: &'a Buffer<u32>) -> Copy3d<'a, u32> {
    let (source, destination) = (source.as_slice(), destination.as_slice());
    Copy3d {
        source,
        source_pitch: 4,
        source_rows: 4,
        destination,
        destination_pitch: 4,
        destination_rows: 4,
        width: 4,
        height: 4,
        depth: 4,
    }
}

/// Launches a graph and asserts the elements of a buffer of the stream's device.
#[track_caller]
fn leaves(graph: &Graph, stream: &Stream, memory: &Buffer<u32>, expected: &[u32]) {
    let mut exec = graph.instantiate().unwrap();
    exec.launch(stream).unwrap();
    assert_eq!(memory.read_blocking(stream).unwrap(), expected);
}

#[test]
fn captured_writes_of_the_host_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let stream = &two.streams[1];
    whatever_is_current(&two, || {
        let memory = stream.zeros::<u32>(LEN).unwrap();
        let graph = stream
            .capture(MODE, |capture| Ok::<_, Error>(capture.stream().write(&memory, &numbers(5))?))
            .unwrap();
        leaves(&graph, stream, &memory, &numbers(5));
        let graph = stream
            .capture(MODE, |capture| {
                let own = capture.stream().upload(&numbers(6))?;
                Ok::<_, Error>(capture.stream().copy(&own, &memory)?)
            })
            .unwrap();
        leaves(&graph, stream, &memory, &numbers(6));
    });
}

#[test]
fn captured_copies_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let stream = &two.streams[1];
    whatever_is_current(&two, || {
        let source = stream.upload_blocking(&numbers(7)).unwrap();
        let steps = [(); 4].map(|()| stream.zeros::<u32>(LEN).unwrap());
        let [pinned, managed] = [two.there.pinned_zeros::<u32>(LEN), two.there.managed_zeros::<u32>(LEN)]
            .map(|memory| memory.unwrap().share());
        let plain = two.more(1);
        let graph = stream
            .capture(MODE, |capture| {
                let stream = capture.stream();
                let [first, second, third, last] = &steps;
                stream.copy(&source, &pinned)?;
                stream.copy(&pinned, first)?;
                stream.copy(first, &managed)?;
                stream.copy(&managed, second)?;
                stream.copy(second, &plain)?;
                stream.copy(&plain, third)?;
                stream.copy_2d(rows(third, first))?;
                stream.copy_3d(layers(first, second))?;
                Ok::<_, Error>(stream.copy(second, last)?)
            })
            .unwrap();
        leaves(&graph, stream, &steps[3], &numbers(7));
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn captured_fills_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let stream = &two.streams[1];
    whatever_is_current(&two, || {
        let memory = stream.upload_blocking(&numbers(1)).unwrap();
        let graph = stream
            .capture(MODE, |capture| {
                let stream = capture.stream();
                stream.fill(&memory, 3_u32)?;
                stream.fill_2d(memory.slice(8..).unwrap(), 8, [8, 2], 4_u32)?;
                Ok::<_, Error>(stream.clear(memory.slice(60..).unwrap())?)
            })
            .unwrap();
        let expected = [vec![3; 8], vec![4; 16], vec![3; 36], vec![0; 4]].concat();
        leaves(&graph, stream, &memory, &expected);
    });
}

#[test]
fn captured_copies_between_devices_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let ([near, _], [here, there]) = (&two.memory, &two.streams);
    whatever_is_current(&two, || {
        let pooled = there.upload_blocking(&numbers(2)).unwrap();
        let graph = there
            .capture(MODE, |capture| {
                let there = capture.stream();
                there.copy_peer(&pooled, near)?;
                there.clear(&pooled)?;
                Ok::<_, Error>(there.copy_peer(near, &pooled)?)
            })
            .unwrap();
        leaves(&graph, there, &pooled, &numbers(2));
        assert_eq!(near.read_blocking(here).unwrap(), numbers(2));
    });
}

#[test]
fn nodes_reach_it_as_they_are_added_and_updated() {
    on_two_devices!();
    let two = Two::new();
    let stream = &two.streams[1];
    whatever_is_current(&two, || {
        let [source, other] = [1, 100].map(|from| stream.upload_blocking(&numbers(from)).unwrap());
        let steps = [(); 4].map(|()| stream.zeros::<u32>(LEN).unwrap());
        let [first, second, third, last] = &steps;
        let pinned = two.there.pinned_zeros::<u32>(LEN).unwrap().share();
        let graph = two.there.graph().unwrap();
        let copy = graph.root().copy(&source, first).unwrap();
        let flat = copy.then().copy_2d(rows(first, second)).unwrap();
        let deep = flat.then().copy_3d(layers(second, third)).unwrap();
        let fill = deep.then().fill(third.slice(..4).unwrap(), 9_u32).unwrap();
        let to_host = fill.then().copy(third, &pinned).unwrap();
        to_host.then().copy(&pinned, last).unwrap();
        let filled = |from: u32, value: u32, at: usize| {
            let mut expected = numbers(from);
            expected[at..at + 4].fill(value);
            expected
        };
        let mut exec = graph.instantiate().unwrap();
        let launched = |exec: &mut GraphExec, expected: Vec<u32>| {
            exec.launch(stream).unwrap();
            assert_eq!(last.read_blocking(stream).unwrap(), expected);
        };
        launched(&mut exec, filled(1, 9, 0));
        exec.node(&copy).set(&other, first).unwrap();
        exec.node(&fill).set(third.slice(8..12).unwrap(), 8_u32).unwrap();
        launched(&mut exec, filled(100, 8, 8));
        copy.set(&source, first).unwrap();
        flat.set_2d(rows(first, second)).unwrap();
        deep.set_3d(layers(second, third)).unwrap();
        fill.set(third.slice(4..8).unwrap(), 7_u32).unwrap();
        to_host.set(third, &pinned).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        launched(&mut exec, filled(1, 7, 4));
        let mut of_clone = graph.clone_graph().unwrap().instantiate().unwrap();
        launched(&mut of_clone, filled(1, 7, 4));
    });
}

#[test]
fn parameters_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let stream = &two.streams[1];
    whatever_is_current(&two, || {
        let [source, other] = [1, 100].map(|from| stream.upload_blocking(&numbers(from)).unwrap());
        let target = stream.zeros::<u32>(LEN).unwrap();
        let graph = two.there.graph().unwrap();
        let from = graph.param(&source).unwrap();
        graph.root().copy(&from, &target).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for (source, first) in [(&other, 100), (&source, 1)] {
            exec.launch_with(stream, ((&from, source),)).unwrap();
            assert_eq!(target.read_blocking(stream).unwrap(), numbers(first));
        }
    });
}

/// The graph spans both devices, and its home is device 0.
#[test]
fn nodes_of_a_graph_of_both_devices_reach_it() {
    on_two_devices!();
    let two = Two::new();
    let ([near, _], [here, there]) = (&two.memory, &two.streams);
    whatever_is_current(&two, || {
        let [pooled, other] = [1, 100].map(|from| there.upload_blocking(&numbers(from)).unwrap());
        let graph = two.graph();
        let copy = graph.root().copy_peer(&pooled, near).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for (from, first) in [(&pooled, 1), (&other, 100)] {
            exec.node(&copy).set(from, near).unwrap();
            exec.launch(here).unwrap();
            assert_eq!(near.read_blocking(here).unwrap(), numbers(first));
        }
        copy.set_peer(&pooled, near).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        exec.launch(there).unwrap();
        there.synchronize_blocking().unwrap();
        assert_eq!(near.read_blocking(here).unwrap(), numbers(1));
    });
}
