//! Pools and caches of executables whose graphs span two devices: they take streams of the home.

use cuda_graph::{CacheOptions, Error, ExecPool, Graph, GraphCache, Result};
use cuda_handles::Error as HandleError;
use cuda_launch::per;
use cuda_tests::on_two_devices;

use super::{LEN, N, Two, leaves_nothing};

const ADVICE: &str = "take a stream of the graph's home, or an executable of your own (`Graph::instantiate`), which \
                      takes streams of all contexts that its graph spans";

/// A graph that increments the memory of both devices.
fn increments(two: &Two) -> Result<(Graph, ())> {
    let graph = two.graph();
    let root = graph.root();
    for (kernel, memory) in two.increments.iter().zip(&two.memory) {
        root.launch(kernel, per(LEN, 32), (memory, N))?;
    }
    Ok((graph, ()))
}

#[track_caller]
fn is_refused<T>(outcome: Result<T>, whose: &str) {
    match outcome.map(drop) {
        Err(error @ Error::Handles(HandleError::WrongContext(_))) => {
            assert_eq!(error.to_string(), format!("{whose}; {ADVICE}"));
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn have(two: &Two, expected: u32) {
    two.streams[0].synchronize_blocking().unwrap();
    assert_eq!([0, 1].map(|device| two.first(device, &two.memory[device])), [expected; 2]);
}

#[test]
fn a_pool_takes_streams_of_the_home() {
    on_two_devices!();
    let two = Two::new();
    leaves_nothing(|| {
        two.reset();
        let pool = ExecPool::new(1, |_| increments(&two)).unwrap();
        let [own, other] = two.numbers();
        let whose = format!(
            "the stream of the launch belongs to the context of device {other}, the pool to the context of \
             device {own}"
        );
        is_refused(pool.get(&two.streams[1]), &whose);
        pool.launch(&two.streams[0], |exec, ()| exec.launch(&two.streams[0])).unwrap();
        have(&two, 1);
        // An executable of one's own takes a stream of the other device.
        increments(&two).unwrap().0.instantiate().unwrap().launch(&two.streams[1]).unwrap();
        two.streams[1].synchronize_blocking().unwrap();
        have(&two, 2);
    });
}

#[test]
fn a_cache_takes_streams_of_the_home() {
    on_two_devices!();
    let two = Two::new();
    leaves_nothing(|| {
        two.reset();
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        let launch = |device: usize| {
            let stream = &two.streams[device];
            cache.launch(stream, 1, 0, || increments(&two), |exec, ()| exec.launch(stream))
        };
        let [own, other] = two.numbers();
        let whose = format!(
            "the graph of a cache's build belongs to the context of device {own}, the stream of the launch to \
             the context of device {other}"
        );
        is_refused(launch(1), &whose);
        assert_eq!((cache.statistics().live, cache.statistics().builds), (0, 0));
        launch(0).unwrap();
        launch(0).unwrap();
        have(&two, 2);
        // The key is one of the home: it helps no stream of another device.
        is_refused(launch(1), &whose);
        assert_eq!((cache.statistics().live, cache.statistics().builds), (1, 1));
        have(&two, 2);
    });
}
