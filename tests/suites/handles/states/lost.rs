//! A lost context: its cause, later calls, drops.

use std::sync::OnceLock;

use cuda_handles::{Buffer, Context, Error, Stream};
use cuda_sys::CUresult;
use cuda_tests::{alone, count, kernel, raw, settle, setup};

/// Lets a kernel write where nothing is, and returns the first error.
fn lose(context: &Context) -> Error {
    let stream = context.stream().unwrap();
    let poke = kernel(context, "poke");
    raw::launch(&stream, &poke, 1, &[0x40, 7]);
    stream.synchronize_blocking().unwrap_err()
}

#[test]
fn a_fault_is_reported_with_its_cause_by_the_first_call_that_sees_it() {
    alone!();
    let context = setup();
    let error = lose(&context);
    let Error::ContextLost(cause) = error else { panic!("{error:?}") };
    assert_eq!(cause.code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(cause.call.name(), "cuStreamSynchronize");
    assert_eq!(context.lost(), Some(cause));
    let text = error.to_string();
    assert!(text.contains("lost") && text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");
}

#[test]
fn every_later_call_answers_with_the_first_cause() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let (buffer, event) = (home.upload(&[1_u32; 8]).unwrap(), context.event().unwrap());
    let saxpy = kernel(&context, "saxpy");
    let first = lose(&context);
    let later = [
        ("stream", context.stream().map(drop)),
        ("event", context.event().map(drop)),
        ("zeros", home.zeros::<u32>(8).map(drop)),
        ("upload", home.upload(&[1_u32]).map(drop)),
        ("fill", home.fill(&buffer, 3)),
        ("fill elsewhere", other.fill(&buffer, 3)),
        ("copy", home.copy(buffer.slice(..4).unwrap(), buffer.slice(4..).unwrap())),
        ("read", buffer.read_blocking(&home).map(drop)),
        ("write", buffer.write_blocking(&home, &[0; 8])),
        ("query", home.query().map(drop)),
        ("synchronize", home.synchronize_blocking()),
        ("record", home.record(&event)),
        ("wait", other.wait(&event)),
        ("event synchronize", event.synchronize_blocking()),
        ("context synchronize", context.synchronize_blocking()),
        ("kernel", saxpy.library().kernel("increment").map(drop)),
    ];
    for (what, outcome) in later {
        assert_eq!(outcome.unwrap_err(), first, "{what}");
    }
}

#[test]
fn drops_after_the_loss_are_silent_and_call_nothing() {
    alone!();
    let context = setup();
    cuda_handles::reaper::set_hook(|failure| panic!("{failure}"));
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let (buffer, shared, event) =
        (home.zeros::<u32>(8).unwrap(), home.zeros::<u32>(8).unwrap(), context.event().unwrap());
    other.fill(&shared, 1).unwrap();
    let saxpy = kernel(&context, "saxpy");
    settle();
    let Error::ContextLost(cause) = lose(&context) else { panic!("the context is lost") };
    let ((), cost) = count(|| {
        drop((buffer, shared, event, saxpy, home, other));
        settle();
    });
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
    assert_eq!(context.lost(), Some(cause));
}

#[test]
fn the_process_ends_well_after_a_loss() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    lose(&context);
    static LEFT: OnceLock<(Stream, Buffer<u32>)> = OnceLock::new();
    let _ = LEFT.set((stream, buffer));
}
