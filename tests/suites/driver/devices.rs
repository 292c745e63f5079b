//! Graphs whose nodes are of two devices.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::{needs, on_two_devices};

use crate::calls::{self, Gate};
use crate::common::table::{Table, all_said, said};
use crate::common::*;

const FAULT: CUresult = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;

/// A session of device 0, and a context, a stream and a word of each device.
struct Pair {
    s: Session,
    contexts: [CUcontext; 2],
    streams: [CUstream; 2],
    words: [CUdeviceptr; 2],
}

fn pair() -> Option<Pair> {
    let s = session();
    let mut count = 0;
    assert_eq!(unsafe { s.cuDeviceGetCount(&mut count) }, OK);
    if count < 2 {
        return None;
    }
    let mut there = null_mut();
    assert_eq!(unsafe { s.cuDevicePrimaryCtxRetain(&mut there, 1) }, OK);
    let contexts = [s.context, there];
    let mut pair = Pair { contexts, streams: [s.stream, null_mut()], words: [s.words(4), 0], s };
    pair.with(1, |pair| {
        pair.streams[1] = calls::stream(&pair.s);
        pair.words[1] = pair.s.words(4);
    });
    Some(pair)
}

impl Pair {
    /// Makes a device's context current for some calls.
    fn with<R>(&mut self, device: usize, calls: impl FnOnce(&mut Self) -> R) -> R {
        assert_eq!(unsafe { self.s.cuCtxSetCurrent(self.contexts[device]) }, OK);
        let made = calls(self);
        assert_eq!(unsafe { self.s.cuCtxSetCurrent(self.contexts[0]) }, OK);
        made
    }

    /// A node of a device's kernel that adds 1 to a word.
    fn adds(
        &mut self,
        graph: CUgraph,
        after: &[CUgraphNode],
        device: usize,
        word: CUdeviceptr,
    ) -> CUgraphNode {
        self.with(device, |pair| pair.s.kernel(graph, after, "add", [word, 1]))
    }

    fn fill(&self, graph: CUgraph, address: CUdeviceptr, context: usize) -> (CUresult, CUgraphNode) {
        let (mut node, params) = (null_mut(), fill_params(address, 7));
        let context = self.contexts[context];
        (unsafe { self.s.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, context) }, node)
    }

    fn copy(
        &self,
        graph: CUgraph,
        from: CUdeviceptr,
        to: CUdeviceptr,
        context: usize,
    ) -> (CUresult, CUgraphNode) {
        let mut params = copy_params(&self.s, from, to, 4);
        params.__bindgen_anon_1.memcpy.copyCtx = self.contexts[context];
        self.s.add(graph, &[], &mut params)
    }

    /// The answers to a launch on a device's stream and to the wait for it.
    fn launch(&self, exec: CUgraphExec, device: usize) -> [CUresult; 2] {
        let stream = self.streams[device];
        unsafe { [self.s.cuGraphLaunch(exec, stream), self.s.cuStreamSynchronize(stream)] }
    }

    /// The answers to launches on both streams.
    fn launch_on_both(&self, exec: CUgraphExec) -> String {
        all_said(&[0, 1].map(|device| self.launch(exec, device)).concat())
    }

    /// What instantiation answers.
    fn instantiated(&self, graph: CUgraph) -> String {
        let mut exec = null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
        let code = unsafe { self.s.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
        if code != OK {
            return format!("{} ({})", said(code), params.result_out.0);
        }
        let launched = self.launch_on_both(exec);
        self.s.end(exec);
        launched
    }

    /// Memory of a device's default pool.
    fn pooled(&mut self, device: usize) -> CUdeviceptr {
        self.with(device, |pair| {
            let mut address = 0;
            unsafe {
                assert_eq!(pair.s.cuMemAllocAsync(&mut address, 64, pair.streams[device]), OK);
                assert_eq!(pair.s.cuStreamSynchronize(pair.streams[device]), OK);
            }
            address
        })
    }

    /// Lets the other device use a device's default pool.
    fn grant(&self, device: usize) {
        let mut pool = null_mut();
        let mut access = CUmemAccessDesc { flags: CUmemAccess_flags(3), ..Default::default() };
        access.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.__bindgen_anon_1.id = 1 - device as i32;
        unsafe {
            assert_eq!(self.s.cuDeviceGetDefaultMemPool(&mut pool, device as i32), OK);
            assert_eq!(self.s.cuMemPoolSetAccess(pool, &access, 1), OK);
        }
    }

    /// Lets a device's kernels use the other's plain memory.
    fn enable(&mut self, device: usize) -> CUresult {
        self.with(device, |pair| unsafe { pair.s.cuCtxEnablePeerAccess(pair.contexts[1 - device], 0) })
    }

    fn event(&mut self, device: usize) -> CUevent {
        self.with(device, |pair| {
            let mut event = null_mut();
            assert_eq!(unsafe { pair.s.cuEventCreate(&mut event, 0) }, OK);
            event
        })
    }

    /// Captures calls on the stream of device 0, with the other stream drawn in and joined again.
    fn captured(&mut self, calls: impl FnOnce(&mut Self) -> CUresult) -> (CUresult, CUresult, CUgraph) {
        let [first, second] = [0, 1].map(|device| self.event(device));
        let (mode, mut graph) = (CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED, null_mut());
        let [here, there] = self.streams;
        unsafe {
            assert_eq!(self.s.cuStreamBeginCapture(here, mode), OK);
            assert_eq!(self.s.cuEventRecord(first, here), OK);
            assert_eq!(self.s.cuStreamWaitEvent(there, first, 0), OK);
            let answer = calls(self);
            let _ = self.s.cuEventRecord(second, there);
            let _ = self.s.cuStreamWaitEvent(here, second, 0);
            let ended = self.s.cuStreamEndCapture(here, &mut graph);
            for event in [first, second] {
                assert_eq!(self.s.cuEventDestroy(event), OK);
            }
            (answer, ended, graph)
        }
    }
}

#[test]
fn kernels_of_two_devices_run_on_a_stream_of_either() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let [here, there] = pair.words;
    let graph = pair.s.graph();
    let first = pair.adds(graph, &[], 0, here);
    let second = pair.adds(graph, &[first], 1, there);
    let exec = pair.s.instantiate(graph);
    let mut table = Table::default();
    table.row("launches", pair.launch_on_both(exec));
    table.row("words", format!("{:?}", [here, there].map(|word| pair.s.read(word))));
    let set = pair.s.set_kernel(exec, second, "add", [here, 1]);
    table.row("a kernel of device 0 for the node of device 1", said(set));
    let set = pair.with(1, |pair| pair.s.set_kernel(exec, second, "add", [there, 5]));
    table.row("another launch of device 1", said(set));
    table.row("launches", pair.launch_on_both(exec));
    table.row("words", format!("{:?}", [here, there].map(|word| pair.s.read(word))));
    // The same move in the graph.
    let other = pair.s.graph();
    let first = pair.adds(other, &[], 0, here);
    pair.adds(other, &[first], 0, here);
    let (code, result, _) = pair.s.update(exec, other);
    table.row("a whole update with that move", format!("{} ({result})", said(code)));
    pair.with(1, |pair| pair.s.end(exec));
    let exec = pair.with(1, |pair| pair.s.instantiate(other));
    table.row("device 0 alone, made with the other context current", pair.launch_on_both(exec));
    pair.s.end(exec);
    table.is("
        launches: ok, ok, ok, ok
        words: [2, 2]
        a kernel of device 0 for the node of device 1: INVALID_VALUE
        another launch of device 1: ok
        launches: ok, ok, ok, ok
        words: [4, 12]
        a whole update with that move: GRAPH_EXEC_UPDATE_FAILURE (7)
        device 0 alone, made with the other context current: ok, ok, ok, ok
    ");
    pair.s.destroy(&[graph, other]);
}

#[test]
fn launches_of_one_executable_on_streams_of_two_devices_do_not_overlap() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let [here, there] = pair.words;
    let graph = pair.s.graph();
    pair.adds(graph, &[], 0, here);
    let exec = pair.s.instantiate(graph);
    let gate = Gate::close(&pair.s, pair.streams[0]);
    let second = pair.s.graph();
    pair.adds(second, &[], 1, there);
    let other = pair.s.instantiate(second);
    unsafe {
        assert_eq!(pair.s.cuGraphLaunch(exec, pair.streams[0]), OK);
        // Another executable is not held up.
        assert_eq!(pair.launch(other, 1), [OK; 2]);
        assert_eq!(pair.s.cuGraphLaunch(exec, pair.streams[1]), OK);
        assert_eq!(pair.s.cuStreamQuery(pair.streams[1]), CUresult::CUDA_ERROR_NOT_READY);
    }
    gate.open();
    for stream in pair.streams {
        assert_eq!(unsafe { pair.s.cuStreamSynchronize(stream) }, OK);
    }
    assert_eq!([here, there].map(|word| pair.s.read(word)), [2, 1]);
    pair.s.end(exec);
    pair.s.end(other);
    pair.s.destroy(&[graph, second]);
}

#[test]
fn fills_and_copies_name_the_context_of_their_memory() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let ([here, there], pools) = (pair.words, [0, 1].map(|device| pair.pooled(device)));
    let graph = pair.s.graph();
    let mut table = Table::default();
    let (code, _) = pair.fill(graph, there, 0);
    table.row("fill of device 1's memory, context 0", said(code));
    let (code, fill) = pair.fill(graph, there, 1);
    table.row("fill of device 1's memory, context 1", said(code));
    let (code, copy) = pair.copy(graph, there, here, 0);
    table.row("copy from 1 to 0, context 0", said(code));
    table.row("copy from 1 to 0, context 1", said(pair.copy(graph, there, here, 1).0));
    let exec = pair.s.instantiate(graph);
    table.row("launches", pair.launch_on_both(exec));
    for context in [0, 1] {
        let (params, context_of) = (fill_params(here, 7), pair.contexts[context]);
        let set = unsafe { pair.s.cuGraphExecMemsetNodeSetParams(exec, fill, &params, context_of) };
        table.row(format!("executable: fill of device 0's memory, context {context}"), said(set));
    }
    let set = |from, to, context: usize| {
        let params = copy_params(&pair.s, from, to, 4);
        let copied = unsafe { params.__bindgen_anon_1.memcpy.copyParams };
        said(unsafe { pair.s.cuGraphExecMemcpyNodeSetParams(exec, copy, &copied, pair.contexts[context]) })
    };
    table.row("executable: copy from 0 to 1", set(here, there, 0));
    table.row("executable: copy from 0 to 0", set(here + 4, here, 0));
    table.row("executable: copy from 1 to 0, other addresses", set(there + 4, here + 4, 0));
    table.row("executable: copy from 1 to 0, context 1", set(there + 4, here + 4, 1));
    table.row("launches", pair.launch_on_both(exec));
    pair.s.end(exec);
    table.row("fill of device 1's pool, context 0", said(pair.fill(graph, pools[1], 0).0));
    table.row("copy from device 1's pool, context 0", said(pair.copy(graph, pools[1], here, 0).0));
    table.row("copy from device 1's pool, context 1", said(pair.copy(graph, pools[1], here, 1).0));
    table.row("copy between pools, context 0", said(pair.copy(graph, pools[1], pools[0], 0).0));
    table.row("copy between pools, context 1", said(pair.copy(graph, pools[1], pools[0], 1).0));
    pair.grant(0);
    pair.grant(1);
    table.row("with access: copy between pools, context 0", said(pair.copy(graph, pools[1], pools[0], 0).0));
    table.row("with access: copy between pools, context 1", said(pair.copy(graph, pools[1], pools[0], 1).0));
    table.row("launches", pair.instantiated(graph));
    table.is("
        fill of device 1's memory, context 0: ok
        fill of device 1's memory, context 1: ok
        copy from 1 to 0, context 0: ok
        copy from 1 to 0, context 1: ok
        launches: ok, ok, ok, ok
        executable: fill of device 0's memory, context 0: INVALID_VALUE
        executable: fill of device 0's memory, context 1: INVALID_VALUE
        executable: copy from 0 to 1: INVALID_VALUE
        executable: copy from 0 to 0: INVALID_VALUE
        executable: copy from 1 to 0, other addresses: ok
        executable: copy from 1 to 0, context 1: ok
        launches: ok, ok, ok, ok
        fill of device 1's pool, context 0: INVALID_VALUE
        copy from device 1's pool, context 0: INVALID_VALUE
        copy from device 1's pool, context 1: ok
        copy between pools, context 0: INVALID_VALUE
        copy between pools, context 1: INVALID_VALUE
        with access: copy between pools, context 0: ok
        with access: copy between pools, context 1: ok
        launches: ok, ok, ok, ok
    ");
    pair.s.destroy(&[graph]);
}

#[test]
fn events_of_both_devices_are_recorded_and_stay_on_theirs() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let events = [0, 1].map(|device| pair.event(device));
    let graph = pair.s.graph();
    let (mut record, mut wait) = (null_mut(), null_mut());
    let mut table = Table::default();
    unsafe {
        let after = pair.adds(graph, &[], 0, pair.words[0]);
        let added = pair.s.cuGraphAddEventRecordNode(&mut record, graph, &after, 1, events[1]);
        table.row("record of device 1's event", said(added));
        let added = pair.s.cuGraphAddEventWaitNode(&mut wait, graph, &after, 1, events[1]);
        table.row("wait for device 1's event", said(added));
        let exec = pair.s.instantiate(graph);
        table.row("launches", pair.launch_on_both(exec));
        table.row("query", said(pair.s.cuEventQuery(events[1])));
        let set = pair.s.cuGraphExecEventRecordNodeSetEvent(exec, record, events[0]);
        table.row("executable: record of device 0's event", said(set));
        let set = pair.s.cuGraphExecEventWaitNodeSetEvent(exec, wait, events[0]);
        table.row("executable: wait for device 0's event", said(set));
        pair.s.end(exec);
        for event in events {
            assert_eq!(pair.s.cuEventDestroy(event), OK);
        }
    }
    table.is("
        record of device 1's event: ok
        wait for device 1's event: ok
        launches: ok, ok, ok, ok
        query: ok
        executable: record of device 0's event: INVALID_VALUE
        executable: wait for device 0's event: INVALID_VALUE
    ");
    // A graph goes with its destroyed events.
    pair.s.destroy(&[graph]);
}

#[test]
fn captures_span_streams_of_two_devices() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let ([here, there], pools) = (pair.words, [0, 1].map(|device| pair.pooled(device)));
    let mut table = Table::default();
    let [on_here, on_there] = pair.streams;
    type Call<'c> = &'c dyn Fn(&mut Pair) -> CUresult;
    let foreign = pair.event(0);
    let calls: [(&str, Call<'_>); 8] = [
        ("kernel", &|pair| {
            let (function, mut arguments) = (pair.with(1, |pair| pair.s.function("add")), [there, 1]);
            let mut pointers = arguments.each_mut().map(|one| (&raw mut *one).cast());
            let params = pointers.as_mut_ptr();
            unsafe { pair.s.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on_there, params, null_mut()) }
        }),
        ("fill of device 1's memory there", &|pair| unsafe {
            pair.s.cuMemsetD32Async(there, 1, 1, on_there)
        }),
        ("fill of device 1's memory here", &|pair| unsafe { pair.s.cuMemsetD32Async(there, 1, 1, on_here) }),
        ("fill of device 0's memory there", &|pair| unsafe { pair.s.cuMemsetD32Async(here, 1, 1, on_there) }),
        ("copy from 1 to 0 there", &|pair| unsafe { pair.s.cuMemcpyAsync(here, there, 4, on_there) }),
        ("copy from 1 to 0 here", &|pair| unsafe { pair.s.cuMemcpyAsync(here, there, 4, on_here) }),
        // A copy takes pools that the current context reaches, whatever the stream.
        ("copy from pool 1 to 0 there", &|pair| {
            pair.with(1, |pair| unsafe { pair.s.cuMemcpyAsync(here, pools[1], 4, on_there) })
        }),
        ("copy between pools there", &|pair| unsafe {
            pair.s.cuMemcpyAsync(pools[0], pools[1], 4, on_there)
        }),
    ];
    for (what, call) in calls {
        let (answer, ended, graph) = pair.captured(call);
        let made = pair.instantiated(graph);
        table.row(what, format!("{}; {}; {made}", said(answer), said(ended)));
        pair.s.destroy(&[graph]);
    }
    let (answer, ended, graph) = pair.captured(|pair| unsafe { pair.s.cuEventRecord(foreign, on_there) });
    table.row("record of device 0's event there", format!("{}; {}", said(answer), said(ended)));
    pair.s.destroy(&[graph]);
    let (answer, ended, _) = pair.captured(|pair| unsafe {
        pair.s.cuMemcpyPeerAsync(here, pair.contexts[0], there, pair.contexts[1], 4, on_there)
    });
    table.row("copy between contexts", format!("{}; {}", said(answer), said(ended)));
    assert_eq!(unsafe { pair.s.cuEventDestroy(foreign) }, OK);
    table.is("
        kernel: ok; ok; ok, ok, ok, ok
        fill of device 1's memory there: ok; ok; ok, ok, ok, ok
        fill of device 1's memory here: ok; ok; INVALID_VALUE (1)
        fill of device 0's memory there: ok; ok; INVALID_VALUE (1)
        copy from 1 to 0 there: ok; ok; ok, ok, ok, ok
        copy from 1 to 0 here: ok; ok; ok, ok, ok, ok
        copy from pool 1 to 0 there: ok; ok; ok, ok, ok, ok
        copy between pools there: INVALID_VALUE; ok; ok, ok, ok, ok
        record of device 0's event there: INVALID_HANDLE; ok
        copy between contexts: STREAM_CAPTURE_UNSUPPORTED; STREAM_CAPTURE_INVALIDATED
    ");
}

/// Memory of both devices, for calls that copy and fill that of device 1's pool.
struct Reached {
    plain: [CUdeviceptr; 2],
    pooled: [CUdeviceptr; 2],
    pinned: *mut c_void,
}

impl Reached {
    /// Calls in the order of a stream.
    const ORDERED: [&str; 9] = [
        "fill",
        "from pinned",
        "to pinned",
        "to plain 1",
        "to plain 0",
        "from plain 0",
        "to pool 0",
        "to plain 0 as any",
        "plain 1 to plain 0",
    ];

    fn new(pair: &mut Pair) -> Self {
        let pooled = [0, 1].map(|device| pair.pooled(device));
        let mut pinned = null_mut();
        assert_eq!(unsafe { pair.s.cuMemHostAlloc(&mut pinned, 64, 0) }, OK);
        Self { plain: pair.words, pooled, pinned }
    }

    fn call(&self, s: &Session, what: &str, stream: CUstream) -> CUresult {
        let Self { plain: [here, there], pooled: [near, far], pinned } = *self;
        unsafe {
            match what {
                "fill" => s.cuMemsetD32Async(far, 7, 1, stream),
                "from pinned" => s.cuMemcpyHtoDAsync(far, pinned, 4, stream),
                "to pinned" => s.cuMemcpyDtoHAsync(pinned, far, 4, stream),
                "to plain 1" => s.cuMemcpyDtoDAsync(there, far, 4, stream),
                "to plain 0" => s.cuMemcpyDtoDAsync(here, far, 4, stream),
                "from plain 0" => s.cuMemcpyDtoDAsync(far, here, 4, stream),
                "to pool 0" => s.cuMemcpyDtoDAsync(near, far, 4, stream),
                "to plain 0 as any" => s.cuMemcpyAsync(here, far, 4, stream),
                _ => s.cuMemcpyDtoDAsync(here, there, 4, stream),
            }
        }
    }

    /// The calls that are refused while a device's context is current.
    fn refused_in_order(&self, pair: &mut Pair, current: usize, stream: usize) -> String {
        refused(Self::ORDERED.map(|what| {
            let call = |pair: &mut Pair| self.call(&pair.s, what, pair.streams[stream]);
            let answer = pair.with(current, call);
            assert_eq!(unsafe { pair.s.cuStreamSynchronize(pair.streams[stream]) }, OK);
            (what, answer)
        }))
    }

    /// The captured calls that are refused, and those whose graph is.
    fn refused_in_captures(&self, pair: &mut Pair, current: usize, stream: usize) -> String {
        let answers = Self::ORDERED.map(|what| {
            let call = |pair: &mut Pair| self.call(&pair.s, what, pair.streams[stream]);
            let (answer, ended, graph) = pair.captured(|pair| pair.with(current, call));
            assert_eq!(ended, OK);
            let (mut exec, mut params) = (null_mut(), CUDA_GRAPH_INSTANTIATE_PARAMS::default());
            let made = unsafe { pair.s.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
            if made == OK {
                pair.s.end(exec);
            }
            pair.s.destroy(&[graph]);
            ((what, answer), (what, made))
        });
        let (calls, graphs) = (answers.map(|(call, _)| call), answers.map(|(_, graph)| graph));
        format!("{}; graphs: {}", refused(calls), refused(graphs))
    }

    /// The calls that wait and are refused.
    fn refused_with_a_wait(&self, pair: &mut Pair, current: usize) -> String {
        let Self { plain: [here, _], pooled: [_, far], .. } = *self;
        let word = [7_u32];
        pair.with(current, |pair| unsafe {
            refused([
                ("fill", pair.s.cuMemsetD32(far, 7, 1)),
                ("from host", pair.s.cuMemcpyHtoD(far, word.as_ptr().cast(), 4)),
                ("to plain 0", pair.s.cuMemcpyDtoD(here, far, 4)),
            ])
        })
    }
}

/// The names of calls that were answered by `INVALID_VALUE`.
fn refused<const N: usize>(answers: [(&str, CUresult); N]) -> String {
    let is_refused = |(what, answer): &(_, CUresult)| {
        assert!([OK, CUresult::CUDA_ERROR_INVALID_VALUE].contains(answer), "{what}: {answer:?}");
        *answer != OK
    };
    let names: Vec<_> = answers.iter().filter(|one| is_refused(one)).map(|(what, _)| *what).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[test]
fn the_current_context_is_what_reaches_pools_in_copies() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let reached = Reached::new(&mut pair);
    let mut table = Table::default();
    for access in ["no access", "access"] {
        for (current, stream) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let place = format!("{access}, current {current}, stream of {stream}");
            table.row(&place, reached.refused_in_order(&mut pair, current, stream));
            table.row(format!("{place}, captured"), reached.refused_in_captures(&mut pair, current, stream));
        }
        for current in [0, 1] {
            let refused = reached.refused_with_a_wait(&mut pair, current);
            table.row(format!("{access}, current {current}, with a wait"), refused);
        }
        pair.grant(0);
        pair.grant(1);
    }
    assert_eq!(unsafe { pair.s.cuMemFreeHost(reached.pinned) }, OK);
    table.is("
        no access, current 0, stream of 0: fill, from pinned, to pinned, to plain 1, to plain 0, from plain 0, to pool 0, to plain 0 as any
        no access, current 0, stream of 0, captured: from pinned, to pinned, to plain 1, to plain 0, from plain 0, to pool 0, to plain 0 as any; graphs: fill
        no access, current 0, stream of 1: from pinned, to pinned, to plain 1, to plain 0, from plain 0, to pool 0, to plain 0 as any
        no access, current 0, stream of 1, captured: from pinned, to pinned, to plain 1, to plain 0, from plain 0, to pool 0, to plain 0 as any; graphs: none
        no access, current 1, stream of 0: fill, to pool 0
        no access, current 1, stream of 0, captured: to pool 0; graphs: fill
        no access, current 1, stream of 1: to pool 0
        no access, current 1, stream of 1, captured: to pool 0; graphs: none
        no access, current 0, with a wait: fill, from host, to plain 0
        no access, current 1, with a wait: none
        access, current 0, stream of 0: none
        access, current 0, stream of 0, captured: none; graphs: none
        access, current 0, stream of 1: none
        access, current 0, stream of 1, captured: none; graphs: none
        access, current 1, stream of 0: none
        access, current 1, stream of 0, captured: none; graphs: none
        access, current 1, stream of 1: none
        access, current 1, stream of 1, captured: none; graphs: none
        access, current 0, with a wait: none
        access, current 1, with a wait: none
    ");
}

#[test]
fn the_bodies_of_a_conditional_node_are_of_its_device() {
    on_two_devices!();
    needs!(Conditionals);
    let mut pair = pair().unwrap();
    let [here, there] = pair.words;
    let mut table = Table::default();
    let graph = pair.s.graph();
    let handle = pair.s.condition(graph, 1);
    let before = pair.adds(graph, &[], 1, there);
    let (_, bodies) = pair.s.conditional(graph, &[before], handle, (IF, 1));
    pair.adds(bodies[0], &[], 0, here);
    table.row("a kernel of device 1 beside it", pair.instantiated(graph));
    let copied = pair.copy(bodies[0], there, here, 0);
    table
        .row("a copy from device 1 in its body", format!("{}; {}", said(copied.0), pair.instantiated(graph)));
    assert_eq!(unsafe { pair.s.cuGraphDestroyNode(copied.1) }, OK);
    pair.adds(bodies[0], &[], 1, there);
    table.row("a kernel of device 1 in its body", pair.instantiated(graph));
    let both = pair.s.graph();
    for device in [0, 1] {
        let (mut handle, context) = (0, pair.contexts[device]);
        let made = unsafe { pair.s.cuGraphConditionalHandleCreate(&mut handle, both, context, 1, 1) };
        assert_eq!(made.unwrap(), OK);
        let mut params = conditional_params(context, handle, IF, 1);
        assert_eq!(pair.s.add(both, &[], &mut params).0, OK);
    }
    table.row("conditional nodes of two devices", pair.instantiated(both));
    table.is("
        a kernel of device 1 beside it: ok, ok, ok, ok
        a copy from device 1 in its body: ok; INVALID_VALUE (4)
        a kernel of device 1 in its body: INVALID_VALUE (4)
        conditional nodes of two devices: ok, ok, ok, ok
    ");
    pair.s.destroy(&[graph, both]);
}

#[test]
fn peer_access_lets_kernels_use_memory_of_the_other_device() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let [_, there] = pair.words;
    let mut table = Table::default();
    table.row("enabled", said(pair.enable(0)));
    table.row("enabled again", said(pair.enable(0)));
    let graph = pair.s.graph();
    pair.adds(graph, &[], 0, there);
    let exec = pair.s.instantiate(graph);
    table.row("a kernel of device 0 on device 1's memory", pair.launch_on_both(exec));
    let pooled = pair.pooled(1);
    pair.with(1, |pair| pair.s.write(pooled, 0));
    pair.grant(1);
    let set = pair.s.set_kernel(exec, pair.s.nodes(graph)[0], "add", [pooled, 1]);
    table.row("set to memory of a pool with access", said(set));
    table.row("launched", pair.launch_on_both(exec));
    table.row("word", pair.s.read(pooled));
    table.is("
        enabled: ok
        enabled again: PEER_ACCESS_ALREADY_ENABLED
        a kernel of device 0 on device 1's memory: ok, ok, ok, ok
        set to memory of a pool with access: ok
        launched: ok, ok, ok, ok
        word: 2
    ");
    pair.s.end(exec);
    pair.s.destroy(&[graph]);
}

#[test]
fn a_touch_of_the_other_device_without_access_loses_both() {
    on_two_devices!();
    let mut pair = pair().unwrap();
    let graph = pair.s.graph();
    pair.adds(graph, &[], 0, pair.words[1]);
    let exec = pair.s.instantiate(graph);
    assert_eq!(pair.launch(exec, 0), [OK, FAULT]);
    assert_eq!(pair.with(1, |pair| unsafe { pair.s.cuCtxSynchronize() }), FAULT);
}
