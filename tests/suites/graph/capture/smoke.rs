//! A capture is a graph that does what the calls on the stream do.

use cuda_graph::{Error, StreamExt};
use cuda_handles::Context;
use cuda_handles::capture::CaptureMode;
use cuda_launch::{Launch, params, per};
use cuda_tests::{kernel, needs, no_leaks, setup};

#[test]
fn a_captured_step_runs_and_keeps_what_it_uses() -> Result<(), Error> {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream()?;
        let x = stream.upload(&[1_u32, 2, 3, 4])?;
        let y = stream.zeros::<u32>(4)?;
        stream.synchronize_blocking()?;
        let graph = stream.capture(CaptureMode::ThreadLocal, |capture| {
            let [fork] = capture.split()?;
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { increment.launch(capture, per(4, 4), &params![&x, 4_u32]) }?;
            // SAFETY: as above.
            unsafe { increment.launch(fork.stream(), per(4, 4), &params![&y, 4_u32]) }?;
            capture.join([fork])?;
            capture.copy(&x, &y)
        })?;
        assert_eq!(graph.len()?, 3);
        let mut exec = graph.instantiate()?;
        drop(graph);
        exec.launch(&stream)?;
        exec.launch(&stream)?;
        drop(exec);
        assert_eq!(x.read_blocking(&stream)?, [3, 4, 5, 6]);
        assert_eq!(y.read_blocking(&stream)?, [3, 4, 5, 6]);
        Ok(())
    })
}

#[test]
fn a_body_is_captured() {
    let context = setup();
    needs!(Conditionals);
    branches(&context).unwrap();
}

fn branches(context: &Context) -> Result<(), Error> {
    no_leaks(|| {
        let stream = context.stream()?;
        let flag = stream.upload(&[1_u32])?;
        let y = stream.zeros::<u32>(4)?;
        stream.synchronize_blocking()?;
        let graph = stream.capture(CaptureMode::ThreadLocal, |capture| {
            capture.fill(&y, 1)?;
            capture.if_then(cuda_graph::Test::nonzero(&flag), |body| body.fill(&y, 7))?;
            capture.fill(flag.slice(..)?, 0)
        })?;
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        assert_eq!(y.read_blocking(&stream)?, [7; 4]);
        exec.launch(&stream)?;
        assert_eq!(y.read_blocking(&stream)?, [1; 4]);
        Ok(())
    })
}
