//! Groups that NCCL refuses, and streams that are not all in the capture.

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use cuda_graph::{Error as GraphError, StreamExt};
use cuda_handles::Error as HandleError;
use cuda_sys::CUstream;
use cuda_tests::in_callback;
use cuda_tests_nccl::{Api, Communicator, Error, Group, Nccl, RawCommunicator};

use super::{MODE, Ranks, on_ranks};
use crate::devices::leaves_nothing;

/// `ncclDataType_t` has no such type.
const NO_TYPE: c_int = 99;

static REAL: OnceLock<Api> = OnceLock::new();
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The second call asks for a type that NCCL refuses.
unsafe extern "C" fn second_is_wrong(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    type_: c_int,
    operation: c_int,
    communicator: RawCommunicator,
    stream: CUstream,
) -> c_int {
    let Some(real) = REAL.get() else { return 3 };
    let type_ = if CALLS.fetch_add(1, Ordering::SeqCst) == 1 { NO_TYPE } else { type_ };
    // SAFETY: the arguments are the caller's, and NCCL checks the type.
    unsafe { (real.all_reduce)(from, to, count, type_, operation, communicator, stream) }
}

/// An NCCL that refuses the second all-reduce from now on, and works after that.
fn failing(nccl: &Nccl) -> Nccl {
    CALLS.store(0, Ordering::SeqCst);
    REAL.get_or_init(|| *nccl.api());
    // SAFETY: the function does what NCCL's does.
    unsafe { nccl.with_api(|api| api.all_reduce = second_is_wrong) }
}

#[track_caller]
fn assert_refused(outcome: Result<(), Error>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Refused { call: "ncclAllReduce", .. }), "{error:?}");
    assert!(error.to_string().starts_with("ncclAllReduce answered 4 (invalid argument"), "{error}");
}

#[track_caller]
fn assert_broken(ranks: &Ranks) {
    let error = ranks.sums().enqueue().unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error:?}");
    assert!(error.to_string().contains("has failed (ncclAllReduce answered 4"), "{error}");
}

#[test]
fn a_group_that_breaks_half_way_ends_the_capture_with_an_error() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&failing(&nccl));
        let outcome = ranks.streams[0].capture(MODE, |capture| {
            let first = capture.stream();
            ranks.streams[1..].iter().try_for_each(|stream| stream.wait_for(first))?;
            assert_refused(ranks.sums().enqueue());
            // Whoever goes on gets no graph either.
            for stream in &ranks.streams[1..] {
                let _refused = first.wait_for(stream);
            }
            Ok(())
        });
        let error = outcome.unwrap_err();
        assert!(matches!(error, GraphError::Handles(HandleError::CaptureInvalidated { .. })), "{error:?}");
        println!("{error}");
        assert_broken(&ranks);
        // The streams work as before.
        ranks.load(4);
        let others = Ranks { communicators: Communicator::all(&nccl, &ranks.contexts()).unwrap(), ..ranks };
        others.sums().enqueue().unwrap();
        others.assert_sums(4);
    });
}

#[test]
fn a_group_that_breaks_on_ordinary_streams_enqueues_nothing() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&failing(&nccl));
        ranks.load(1);
        assert_refused(ranks.sums().enqueue());
        ranks.wait();
        assert!(ranks.read(&ranks.to[0], 0).iter().all(|number| *number == -1.0));
        assert_broken(&ranks);
    });
}

#[test]
fn host_functions_enqueue_no_group() {
    let nccl = on_ranks!();
    let Ranks { here, streams, communicators, from, to } = Ranks::new(&nccl);
    let (stream, (send, outcome)) = (streams[0].clone(), channel());
    in_callback(&stream, move || {
        let mut group = Group::new();
        for (rank, communicator) in communicators.iter().enumerate() {
            group.all_reduce_sum(communicator, &streams[rank], &from[rank], &to[rank]);
        }
        let _is_awaited = send.send(group.enqueue());
    });
    let outcome = outcome.recv().unwrap();
    assert!(matches!(outcome, Err(Error::Handles(HandleError::Driver { .. }))), "{outcome:?}");
    stream.synchronize_blocking().unwrap();
    drop(here);
}

#[test]
fn all_streams_of_a_group_are_in_the_capture_or_none() {
    let nccl = on_ranks!();
    leaves_nothing(|| {
        let ranks = Ranks::new(&nccl);
        let graph = ranks.streams[0].capture(MODE, |capture| {
            capture.fill(&ranks.from[0], 1.0)?;
            let error = ranks.sums().enqueue().unwrap_err();
            assert!(matches!(&error, Error::Group { why } if why.contains("Stream::wait_for")), "{error:?}");
            Ok(())
        });
        assert_eq!(graph.unwrap().len().unwrap(), 1);
        ranks.load(0);
        ranks.sums().enqueue().unwrap();
        ranks.assert_sums(0);
    });
}
