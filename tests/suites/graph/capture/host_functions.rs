//! Bodies hold no host functions, and their builders say so at the call.

use core::ffi::c_void;
use core::ptr::null_mut;

use cuda_graph::capture::{Body, Capturing, GraphBuilder, Kind};
use cuda_graph::{ConditionError, ContextExt, Error, NodeKind, Result};
use cuda_handles::SharedHostBuffer;
use cuda_handles::capture::CaptureMode;
use cuda_tests::{count, needs, no_leaks, setup};

use super::Bench;
use crate::common::gone::flag;

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// The name of the conditional node in whose body a host function was to be.
#[track_caller]
fn refused_in<R: core::fmt::Debug>(refusal: Result<R>) -> String {
    match refusal {
        Err(Error::Condition(ConditionError::NotInBody { kind: NodeKind::HostCallback, conditional })) => {
            conditional.into_string()
        }
        other => panic!("{other:?}"),
    }
}

/// Each call is refused before the driver sees it, and keeps nothing. The capture goes on.
#[track_caller]
fn refuses<K: Kind>(
    bench: &Bench,
    memory: &SharedHostBuffer<u32>,
    builder: &GraphBuilder<K, Capturing>,
    conditional: &str,
) -> Result<()> {
    let [(owner, is_gone), (kept, kept_is_gone)] = [flag(), flag()];
    let (refusals, cost) = count(|| {
        // SAFETY: the function does nothing.
        let raw = unsafe { builder.callback_raw(nothing, null_mut(), owner) };
        [builder.callback(move || drop(kept.clone())), builder.callback_with(memory, |_| ()), raw]
    });
    for refusal in refusals {
        assert_eq!(refused_in(refusal), conditional);
    }
    assert_eq!(cost.total(), 0, "{cost}");
    assert!(is_gone() && kept_is_gone());
    bench.add(builder, 1)
}

#[test]
fn builders_of_bodies_and_their_forks_refuse_them() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let memory = context.pinned_zeros::<u32>(1).unwrap().share();
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        let inside = |body: &GraphBuilder<Body, Capturing>| {
            let name = refused_in(body.callback(|| ()));
            refuses(&bench, &memory, body, &name)?;
            let [fork] = body.split()?;
            let [deep] = fork.split()?;
            refuses(&bench, &memory, &fork, &name)?;
            refuses(&bench, &memory, &deep, &name)?;
            fork.join([deep])?;
            body.join([fork])?;
            let always = body.condition_with_default(1)?;
            let inner = body.if_node(&always, |inner| {
                let name = refused_in(inner.callback(|| ()));
                refuses(&bench, &memory, inner, &name)?;
                Ok::<_, Error>(name)
            })?;
            // The nodes around are no body.
            assert_eq!(inner.body()?.len()?, 1);
            Ok::<_, Error>(())
        };
        capture.if_node(&always, inside).unwrap();
        capture.callback(|| ()).unwrap();
        let [fork] = capture.split().unwrap();
        fork.callback_with(&memory, |_| ()).unwrap();
        capture.join([fork]).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 4);
        bench.works_again();
    });
}

#[test]
fn a_capture_into_a_body_that_exists_names_its_node() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let memory = context.pinned_zeros::<u32>(1).unwrap().share();
        let graph = context.graph().unwrap();
        let always = graph.condition_with_default(1).unwrap();
        let node = graph.root().if_node(&always).unwrap().named("choice");
        let body = node.body().unwrap();
        body.root()
            .capture(&bench.stream, LOCAL, |capture| {
                let [fork] = capture.split()?;
                refuses(&bench, &memory, &fork, "choice")?;
                capture.join([fork])?;
                refuses(&bench, &memory, capture, "choice")
            })
            .unwrap();
        assert_eq!((body.len().unwrap(), bench.run(&graph)), (2, 2));
        // A graph beside it may have them.
        graph.root().capture(&bench.stream, LOCAL, |capture| capture.callback(|| ())).unwrap();
        // Calls on the stream itself are captured. The end refuses their nodes.
        let refused = body.root().capture(&bench.stream, LOCAL, |capture| {
            capture.stream().host(|| ())?;
            Ok::<_, Error>(())
        });
        assert_eq!(refused_in(refused), "choice");
        assert_eq!((body.len().unwrap(), graph.len().unwrap()), (2, 2));
        bench.works_again();
    });
}
