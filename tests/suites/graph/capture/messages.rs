//! What the errors of captures say, and that their advice works.

use cuda_graph::{CaptureError, ContextExt, Error, ExecError, StreamExt};
use cuda_handles::Error as HandleError;
use cuda_handles::capture::CaptureMode;
use cuda_launch::{Launch, TypedKernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, needs, no_leaks, setup};

use super::{Bench, invalidate, status};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

#[track_caller]
fn says(error: &impl core::fmt::Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "without \"{part}\": {text}");
    }
    assert!(text.lines().count() == 1 && !text.ends_with('.'), "{text}");
}

#[test]
fn errors_of_builders_name_kind_and_state_and_the_way_out() {
    let cases = [
        (CaptureError::Over { kind: "fork" }, &["this fork builder", "has ended", "before the primary"][..]),
        (CaptureError::Unjoined { kind: "body", forks: 1 }, &["the body builder", "1 fork not", "::join"]),
        (CaptureError::Unjoined { kind: "primary", forks: 3 }, &["primary builder", "3 forks not"]),
        (CaptureError::BodyOpen { kind: "primary", bodies: 2 }, &["2 body builders not ended", "::end"]),
        (CaptureError::OtherCapture { kind: "primary" }, &["another capture", "where it was split"]),
        (CaptureError::NotABody, &["no body of a conditional node", "this builder has added"]),
        (
            CaptureError::LaunchChanged { kernel: "step".into() },
            &["launch of `step` takes a condition's handle", "other code changed", "capture again"],
        ),
    ];
    for (error, parts) in cases {
        says(&error, parts);
        assert_eq!(format!("{error:?}"), error.to_string(), "shown by `main`, too");
    }
}

#[test]
fn a_launch_of_an_executable_is_refused_before_the_driver_sees_it_and_embedding_works() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let inner = bench.stream.capture(LOCAL, |capture| bench.add(capture, 7)).unwrap();
        let mut plain = inner.instantiate().unwrap();
        // One whose first launch waits for the home of its memory.
        let home = context.stream().unwrap();
        let unsettled = context.graph().unwrap();
        unsettled.root().fill(&home.zeros::<u32>(4).unwrap(), 1).unwrap();
        let mut waiting = unsettled.instantiate().unwrap();
        let capture = bench.begin();
        let [fork] = capture.split().unwrap();
        for exec in [&mut plain, &mut waiting] {
            for stream in [capture.stream(), fork.stream()] {
                let (refused, cost) = count(|| exec.launch(stream).unwrap_err());
                assert_eq!(refused, Error::Exec(ExecError::Captured));
                assert_eq!(cost.total(), 0, "{cost}");
                says(&refused, &["executable graph", "capturing", "GraphBuilder::embed"]);
                let refused = exec.launch_with_outputs(stream).unwrap_err();
                assert_eq!(refused, Error::Exec(ExecError::Captured));
                let refused = exec.upload(stream).unwrap_err();
                says(&refused, &["uploading an executable graph", "captur"]);
            }
        }
        // The advice.
        capture.embed(&inner).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 7);
        waiting.launch(&bench.stream).unwrap();
        bench.works_again();
    });
}

#[test]
fn a_capture_of_other_code_refuses_a_launch_as_well() {
    let context = setup();
    no_leaks(|| {
        let foreign = cuda_tests::states::Foreign::new(&context);
        // SAFETY: the stream outlives its handle.
        let stream = unsafe { cuda_handles::Stream::from_raw(&context, foreign.as_raw()) }.unwrap();
        let mut exec = context.graph().unwrap().instantiate().unwrap();
        foreign.begin(cuda_sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        assert_eq!(exec.launch(&stream), Err(Error::Exec(ExecError::Captured)));
        foreign.end().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        drop((exec, stream));
    });
}

#[test]
fn an_invalidated_capture_says_by_which_call_or_by_what_usually() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        invalidate(&bench.stream);
        let error = capture.end().unwrap_err();
        says(
            &error,
            &["the capture was invalidated", "other code", "an allocation", "a synchronisation", "RELAXED"],
        );
        let capture = bench.begin();
        let injection = fail(Call::cuMemcpyDtoDAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let refused = capture.copy(&bench.numbers, &bench.others).unwrap_err();
        assert!(injection.hit());
        drop(injection);
        says(&refused, &["cuMemcpyDtoDAsync"]);
        invalidate(&bench.stream);
        let error = capture.end().unwrap_err();
        says(&error, &["the capture was invalidated", "cuMemcpyDtoDAsync", "capture again"]);
        // In a scope, the reason and no later call.
        let error = bench
            .stream
            .capture(LOCAL, |capture| {
                let [fork] = capture.split()?;
                bench.add(&fork, 1)?;
                invalidate(fork.stream());
                Ok(())
            })
            .unwrap_err();
        assert!(matches!(error, Error::Handles(HandleError::CaptureInvalidated { by: None })), "{error}");
        bench.works_again();
    });
}

#[test]
fn closures_that_are_called_once_are_refused_and_the_others_captured() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let shared = context.pinned_zeros::<u32>(4).unwrap().share();
        let capture = bench.begin();
        let (once, cost) = count(|| capture.stream().host_once(|| panic!("never called")));
        assert!(matches!(once, Err(HandleError::Capturing { .. })), "{once:?}");
        assert_eq!(cost.calls("cuLaunchHostFunc"), 0, "{cost}");
        says(&once.unwrap_err(), &["captur"]);
        let once = capture.stream().host_once_with(&shared, |_| panic!("never called"));
        assert!(matches!(once, Err(HandleError::Capturing { .. })), "{once:?}");
        capture.callback(|| ()).unwrap();
        assert_eq!(capture.end().unwrap().graph().len().unwrap(), 1);
        bench.works_again();
    });
}

#[test]
fn what_waits_on_the_host_is_refused_and_the_capture_goes_on() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let stream = capture.stream();
        let (refusals, cost) = count(|| {
            [
                ("query", stream.query().map(drop)),
                ("synchronize", stream.synchronize_blocking()),
                ("read", bench.numbers.read_blocking(stream).map(drop)),
                ("write", bench.numbers.write_blocking(stream, &[1; super::N])),
                ("begin", stream.begin_capture(LOCAL).map(drop)),
            ]
        });
        for (what, refusal) in refusals {
            let error = refusal.expect_err(what);
            assert!(matches!(error, HandleError::Capturing { .. }), "{what}: {error}");
            says(&error, &["captur"]);
        }
        assert_eq!(cost.total(), 0, "{cost}");
        assert_eq!(status(stream), cuda_sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        bench.add(&capture, 1).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 1);
        bench.works_again();
    });
}

#[test]
fn kernels_that_take_a_condition_are_launched_on_builders_only() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let condition = capture.condition_with_default(1).unwrap();
        // Where the types do not tell.
        let arguments = params![1_u32, &condition];
        // SAFETY: the arguments are the kernel's.
        let refused = unsafe { bench.set_to.kernel().launch(capture.stream(), per(1, 1), &arguments) };
        let refused = refused.unwrap_err();
        says(&refused, &["set_to"]);
        bench.set(&capture, &condition, 1).unwrap();
        capture.if_node(&condition, |body| bench.add(body, 3)).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 3);
        bench.works_again();
    });
}
