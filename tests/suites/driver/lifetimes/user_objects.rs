//! When and where the destructors of user objects run.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};

use cuda_sys::*;
use cuda_tests::SOON;

use crate::common::*;

const NOT_PERMITTED: CUresult = CUresult::CUDA_ERROR_NOT_PERMITTED;

/// What a destructor saw: its thread, and the answer for the stream of the current context.
type Seen = (ThreadId, CUresult);

/// An object of which the graph has the only reference.
fn object_of(s: &Session, graph: CUgraph) -> Receiver<Seen> {
    unsafe extern "C" fn end(news: *mut c_void) {
        let news = unsafe { Box::from_raw(news.cast::<Sender<Seen>>()) };
        let mut status = CUstreamCaptureStatus(9);
        // The legacy stream is that of the current context.
        let asked = unsafe { cuda_tests::raw::driver().cuStreamIsCapturing(null_mut(), &mut status) };
        let _ = news.send((thread::current().id(), asked));
    }
    let (news, ended) = channel();
    let (mut object, data) = (null_mut(), Box::into_raw(Box::new(news)));
    unsafe {
        assert_eq!(s.cuUserObjectCreate(&mut object, data.cast(), Some(end), 1, 1), OK);
        assert_eq!(s.cuGraphRetainUserObject(graph, object, 1, 1), OK);
    }
    ended
}

#[test]
fn the_stream_of_the_context_is_refused_in_a_destructor() {
    let s = session();
    let own = s.graph();
    let ended = object_of(&s, own);
    s.destroy(&[own]);
    assert_eq!(ended.try_recv(), Ok((thread::current().id(), NOT_PERMITTED)));
}

#[test]
fn a_whole_update_after_a_run_lets_go_on_another_thread() {
    let s = session();
    let graphs = [s.graph(), s.graph()];
    let ended = graphs.map(|graph| {
        s.empty(graph, &[]);
        object_of(&s, graph)
    });
    let exec = s.instantiate(graphs[0]);
    s.run(exec);
    s.destroy(&graphs[..1]);
    assert!(ended[0].try_recv().is_err(), "the executable has it");
    assert_eq!(s.update(exec, graphs[1]).0, OK);
    let (on, asked) = ended[0].recv_timeout(SOON).unwrap();
    assert_ne!(on, thread::current().id());
    assert_eq!(asked, NOT_PERMITTED);
    // The executable has the last reference. A GPU lets go on this thread or on another one.
    s.destroy(&graphs[1..]);
    assert!(ended[1].try_recv().is_err(), "the executable has it");
    s.end(exec);
    assert_eq!(ended[1].recv_timeout(SOON).unwrap().1, NOT_PERMITTED);
}
