//! Verified hits: constants that a stamp or key forgets.

use cuda_graph::{
    CacheError, CacheOptions, CachePath, ContextExt, Error, Graph, GraphCache, GraphParam, Result,
    StaleConstant, StreamExt, Test,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{kernel, params, per};
use cuda_tests::{kernel, needs, no_leaks, setup};

use super::{Cache, filling};
use crate::common::scale::SCALE;

kernel! {
    // SAFETY: the kernel has these parameters, and touches the elements below `n`.
    unsafe in cuda_handles::Image::Ptx(SCALE);

    fn scale(n: u32, factor: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= n;
}

type Plain = GraphCache<u32, ()>;

fn verifying<P>() -> GraphCache<u32, P> {
    let cache = GraphCache::new(CacheOptions::new());
    cache.verify(true);
    cache
}

fn get(cache: &Plain, stream: &Stream, build: impl FnOnce() -> Result<Graph>) -> Result<CachePath> {
    cache.get(stream, 1, 0, || build().map(|graph| (graph, ()))).map(|cached| cached.path())
}

/// The constants that a second build finds stale.
fn found(cache: &Plain, stream: &Stream, builds: [&dyn Fn() -> Result<Graph>; 2]) -> Vec<StaleConstant> {
    assert_eq!(get(cache, stream, builds[0]), Ok(CachePath::Built));
    assert_eq!(get(cache, stream, builds[0]), Ok(CachePath::Hit));
    match get(cache, stream, builds[1]) {
        Err(Error::Cache(CacheError::Stale { found })) => found,
        other => panic!("{other:?}"),
    }
}

fn places(found: &[StaleConstant]) -> Vec<(&str, &str)> {
    found.iter().map(|one| (&*one.node, one.what.as_str())).collect()
}

#[test]
fn parameters_and_the_builds_own_memory_are_no_constants() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let cache: Cache = verifying();
        for round in 0..3 {
            let target = stream.zeros::<u32>(16).unwrap();
            let cached = cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap();
            assert_eq!(cached.path() == CachePath::Hit, round > 0);
        }
        let statistics = cache.statistics();
        assert_eq!((statistics.builds, statistics.hits, statistics.verified), (1, 2, 2));
        // As they are in a new graph, with other values.
        cache.verify(false);
        let unreached = cache.get(&stream, 1, 0, || unreachable!()).unwrap();
        assert_eq!(unreached.path(), CachePath::Hit);
    });
}

#[test]
fn constants_of_kernels_are_named() {
    let context = setup();
    needs!(ParameterLayouts);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let [x, y, z] = [(); 3].map(|()| stream.zeros::<u32>(64).unwrap());
        let cache = verifying();
        let build = |factor: u32, from: &Buffer<u32>, length: u32| {
            let graph = context.graph()?;
            let to = graph.param(&z)?;
            let launch =
                graph.root().launch(&scale, per(length as usize, 32), (length, factor, from, &to))?;
            launch.named("step");
            Ok(graph)
        };
        let stale = found(&cache, &stream, [&|| build(2, &x, 64), &|| build(3, &y, 32)]);
        let expected = ["the grid", "argument `n`", "argument `factor`", "argument `from`"];
        assert_eq!(places(&stale), expected.map(|what| ("step", what)));
        assert_eq!((&*stale[2].cached, &*stale[2].now), ("2 (0x2)", "3 (0x3)"));
        let text = Error::from(CacheError::Stale { found: stale }).to_string();
        assert!(text.contains("argument `factor` of node `step` was 2 (0x2), and is 3 (0x3) now"), "{text}");
        // Nothing has changed in the cache.
        assert_eq!(get(&cache, &stream, || build(2, &x, 64)), Ok(CachePath::Hit));
    });
}

#[test]
fn constants_of_untyped_kernels_are_named_by_their_places() {
    let context = setup();
    needs!(ParameterLayouts);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let saxpy = kernel(&context, "saxpy");
        let (x, y) = (stream.zeros::<f32>(64).unwrap(), stream.zeros::<f32>(64).unwrap());
        let cache = verifying();
        let build = |a: f32, from: &Buffer<f32>| {
            let graph = context.graph()?;
            let own = stream.zeros::<f32>(64)?;
            // SAFETY: the arguments are the kernel's, and the buffers have 64 elements.
            unsafe { graph.root().launch_untyped(&saxpy, per(64, 32), params![64_u32, a, from, &own]) }?
                .named("saxpy");
            Ok(graph)
        };
        let stale = found(&cache, &stream, [&|| build(2.0, &x), &|| build(3.0, &y)]);
        assert_eq!(places(&stale), [("saxpy", "argument 1"), ("saxpy", "argument 2")]);
    });
}

#[test]
fn constants_of_fills_and_copies_are_named() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(64).unwrap(), stream.zeros::<u32>(64).unwrap());
        let cache = verifying();
        let build = |context: &Context, target: &Buffer<u32>, value: u32, length: usize| {
            let graph = context.graph()?;
            let own = stream.zeros::<u32>(64)?;
            let fill = graph.root().fill(&own, value)?.named("fill");
            fill.then().copy(own.slice(..length)?, target.slice(..length)?)?.named("copy");
            Ok(graph)
        };
        let stale = found(&cache, &stream, [&|| build(&context, &x, 1, 64), &|| build(&context, &y, 2, 32)]);
        assert_eq!(
            places(&stale),
            [("fill", "the value"), ("copy", "the destination"), ("copy", "the size")]
        );
    });
}

#[test]
fn another_structure_is_told() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(64).unwrap();
        let build = |nodes: usize, fills: bool| {
            let graph = context.graph()?;
            for _ in 0..nodes {
                graph.root().empty()?.named("empty");
            }
            if fills {
                graph.root().fill(&x, 1)?.named("fill");
            }
            Ok(graph)
        };
        let stale = found(&verifying(), &stream, [&|| build(2, true), &|| build(3, true)]);
        assert_eq!(places(&stale), [("fill", "the type")]);
        let stale = found(&verifying(), &stream, [&|| build(2, false), &|| build(2, true)]);
        assert_eq!(places(&stale), [("fill", "")]);
        let text = stale[0].to_string();
        assert_eq!(text, "node `fill` was missing in a graph of 2 nodes, and is one of 3 nodes now");
        let stale = found(&verifying(), &stream, [&|| build(3, false), &|| build(2, false)]);
        let text = stale[0].to_string();
        assert_eq!(text, "node `empty` was one of 3 nodes, and is missing in a graph of 2 nodes now");
    });
}

/// The memory that a test reads, and what the loop or branch fills.
type Tested = (GraphParam<[u32]>, GraphParam<[u32]>);

/// A branch and a loop, in this order, by hand.
fn by_hand(context: &Context, [x, y]: [&Buffer<u32>; 2], least: u32) -> Result<(Graph, Tested)> {
    let graph = context.graph()?;
    let (x, y) = (graph.param(x)?, graph.param(y)?);
    let branch = graph.root().if_then(Test::at_least(&x, least), |body| body.root().fill(&y, 1))?;
    branch.then().while_loop(Test::at_least(&x, least).limit(3), |body| body.root().fill(&x, 0))?;
    Ok((graph, (x, y)))
}

/// The same, captured.
fn captured(stream: &Stream, [x, y]: [&Buffer<u32>; 2], least: u32) -> Result<(Graph, Tested)> {
    stream.try_capture(CaptureMode::ThreadLocal, |capture| {
        let (x, y) = (capture.param(x)?, capture.param(y)?);
        capture.if_then(Test::at_least(&x, least), |body| body.fill(&y, 1))?;
        capture.while_loop(Test::at_least(&x, least).limit(3), |body| body.fill(&x, 0))?;
        Ok((x, y))
    })
}

#[test]
fn tested_parameters_are_no_constants_and_what_they_are_compared_with_is_one() {
    let context = setup();
    needs!(ParameterLayouts);
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let build = |kind: usize, memory: [&Buffer<u32>; 2], least| match kind {
            0 => by_hand(&context, memory, least),
            _ => captured(&stream, memory, least),
        };
        for kind in [0, 1] {
            let cache: GraphCache<u32, Tested> = verifying();
            let mut kept = Vec::new();
            for (round, value) in [2_u32, 9, 1, 8].into_iter().enumerate() {
                let memory = [stream.upload(&[value]).unwrap(), stream.zeros::<u32>(1).unwrap()];
                let [x, y] = &memory;
                let run = |exec: &mut cuda_graph::GraphExec, (px, py): &Tested| {
                    exec.launch_bound(&stream, ((px, x), (py, y)))
                };
                cache.launch(&stream, 1, 0, || build(kind, [x, y], 5), run).unwrap();
                let expected = if value >= 5 { [0, 1] } else { [value, 0] };
                let read = [x, y].map(|memory| memory.read_blocking(&stream).unwrap()[0]);
                assert_eq!(read, expected, "kind {kind}, round {round}");
                kept.push(memory);
            }
            assert_eq!(cache.statistics().verified, 3);
            let [x, y] = &kept[0];
            let changed = cache.get(&stream, 1, 0, || build(kind, [x, y], 6)).map(drop);
            let Err(Error::Cache(CacheError::Stale { found })) = changed else { panic!("{changed:?}") };
            assert!(found.iter().all(|one| one.what == "argument `value`"), "{found:?}");
        }
    });
}
