//! Calls on graph memory before its free, while the free is queued, and after it.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use cuda_sys::*;

use crate::common::table::{Table, all_said, said};
use crate::common::*;
use crate::graph_memory::nodes::{alloc, free, try_free};

type P = CUpointer_attribute_enum;
const ATTRIBUTES: [(&str, P); 8] = [
    ("context", P::CU_POINTER_ATTRIBUTE_CONTEXT),
    ("memory type", P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
    ("device pointer", P::CU_POINTER_ATTRIBUTE_DEVICE_POINTER),
    ("is managed", P::CU_POINTER_ATTRIBUTE_IS_MANAGED),
    ("device", P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
    ("range start", P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR),
    ("range size", P::CU_POINTER_ATTRIBUTE_RANGE_SIZE),
    ("pool", P::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE),
];

/// A graph whose launch leaves memory of 64 bytes that holds a 3.
fn kept(driver: &Session) -> (CUgraph, CUdeviceptr) {
    let own = driver.graph();
    let (first, memory) = alloc(driver, own, &[], 64);
    driver.fill(own, &[first], memory, 3);
    (own, memory)
}

fn attributes(driver: &Session, memory: CUdeviceptr) -> String {
    let values = ATTRIBUTES.map(|(_, attribute)| {
        let mut value = 0u64;
        let answer = unsafe { driver.cuPointerGetAttribute((&raw mut value).cast(), attribute, memory) };
        (answer, value)
    });
    let codes = values.map(|(answer, _)| answer);
    if codes.iter().all(|answer| *answer != OK) {
        return all_said(&codes);
    }
    let one = |((name, attribute), (answer, value)): ((&str, P), (CUresult, u64))| {
        let seen = match attribute {
            _ if answer != OK => said(answer),
            P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR | P::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
                if value == memory { "itself" } else { "another" }.to_owned()
            }
            P::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE | P::CU_POINTER_ATTRIBUTE_CONTEXT => {
                if value == 0 { "none" } else { "one" }.to_owned()
            }
            _ => value.to_string(),
        };
        format!("{name} {seen}")
    };
    ATTRIBUTES.into_iter().zip(values).map(one).collect::<Vec<_>>().join(", ")
}

/// Two attributes by the call that takes several.
fn several(driver: &Session, memory: CUdeviceptr) -> String {
    let (mut kind, mut size) = (99u32, 99usize);
    let mut asked = [P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, P::CU_POINTER_ATTRIBUTE_RANGE_SIZE];
    let mut values: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut size).cast()];
    let answer = unsafe { driver.cuPointerGetAttributes(2, asked.as_mut_ptr(), values.as_mut_ptr(), memory) };
    format!("{}, type {kind}, size {size}", said(answer))
}

/// Further objects that the calls need, made before anything is held up, since an allocation may
/// wait.
struct Scratch {
    words: CUdeviceptr,
    pinned: *mut c_void,
    other: CUstream,
}

fn scratch(driver: &Session) -> Scratch {
    let (mut pinned, mut other) = (null_mut(), null_mut());
    unsafe {
        assert_eq!(driver.cuMemHostAlloc(&mut pinned, 4, 0), OK);
        assert_eq!(driver.cuStreamCreate(&mut other, 1), OK);
    }
    Scratch { words: driver.words(2), pinned, other }
}

impl Scratch {
    fn end(self, driver: &Session) {
        unsafe {
            assert_eq!(driver.cuStreamDestroy(self.other), OK);
            assert_eq!(driver.cuMemFreeHost(self.pinned), OK);
        }
        driver.free(self.words);
    }

    /// Opens the gate and waits for both streams.
    fn wait(&self, driver: &Session, table: &mut Table, gate: Gate) {
        table.row("its stream is busy", said(unsafe { driver.cuStreamQuery(driver.stream) }));
        gate.open();
        let waits = [driver.stream, self.other].map(|stream| unsafe { driver.cuStreamSynchronize(stream) });
        table.row("waits", all_said(&waits));
    }
}

/// What takes an address and no stream, tried on memory whose free is queued on the stream of the
/// session, or will be, or was.
fn ask(driver: &Session, table: &mut Table, when: &str, memory: CUdeviceptr) {
    let (mut start, mut size, mut word) = (0, 0, 5u32);
    let host: *mut c_void = (&raw mut word).cast();
    table.row(format!("{when}, attributes"), attributes(driver, memory));
    table.row(format!("{when}, several attributes"), several(driver, memory));
    unsafe {
        let range = driver.cuMemGetAddressRange(&mut start, &mut size, memory);
        table.row(format!("{when}, range"), format!("{}, size {size}", said(range)));
        let calls = [
            driver.cuMemcpyDtoH(host, memory, 4),
            driver.cuMemcpyHtoD(memory, host, 4),
            driver.cuMemsetD32(memory, 5, 1),
        ];
        table.row(format!("{when}, copies from and to it and a fill"), all_said(&calls));
        let (mut node, mut exec, graph) = (null_mut(), null_mut(), driver.graph());
        let params = fill_params(memory, 7);
        let added = driver.cuGraphAddMemsetNode(&mut node, graph, null(), 0, &params, driver.context);
        let instantiated = driver.cuGraphInstantiateWithFlags(&mut exec, graph, 0);
        table.row(format!("{when}, a fill node and its executable"), all_said(&[added, instantiated]));
        if instantiated == OK {
            driver.end(exec);
        }
        driver.destroy(&[graph]);
    }
}

/// What streams do with memory that lives. For memory that does not, one of these calls crashes a
/// real driver, probably the first: none of them is tried there.
fn ask_streams(driver: &Session, table: &mut Table, memory: CUdeviceptr, scratch: &Scratch) {
    let Scratch { words, pinned, other } = *scratch;
    unsafe {
        for (what, stream) in [("another stream", other), ("its stream", driver.stream)] {
            let calls = [
                driver.cuMemcpyDtoHAsync(pinned, memory, 4, stream),
                driver.cuMemcpyHtoDAsync(memory, pinned, 4, stream),
                driver.cuMemcpyDtoDAsync(words, memory, 4, stream),
                driver.cuMemcpyDtoDAsync(memory, words, 4, stream),
                driver.cuMemcpyAsync(memory, words, 4, stream),
                driver.cuMemsetD32Async(memory, 6, 1, stream),
                driver.cuMemsetD8Async(memory, 6, 4, stream),
            ];
            table.row(format!("alive, five copies and two fills on {what}"), all_said(&calls));
        }
        assert_eq!(driver.cuStreamSynchronize(other), OK);
    }
    driver.wait();
}

#[test]
fn while_it_is_freed_on_a_stream() {
    let driver = session();
    let (mut table, (own, memory)) = (Table::default(), kept(&driver));
    let scratch = scratch(&driver);
    ask(&driver, &mut table, "before the launch", memory);
    let exec = driver.instantiate(own);
    driver.run(exec);
    ask(&driver, &mut table, "alive", memory);
    ask_streams(&driver, &mut table, memory, &scratch);
    let gate = Gate::close(&driver, driver.stream);
    assert_eq!(unsafe { driver.cuMemFreeAsync(memory, driver.stream) }, OK);
    ask(&driver, &mut table, "free queued", memory);
    scratch.wait(&driver, &mut table, gate);
    ask(&driver, &mut table, "freed", memory);
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    ask(&driver, &mut table, "trimmed", memory);
    driver.end(exec);
    driver.destroy(&[own]);
    scratch.end(&driver);
    table.is(STREAM);
}

const STREAM: &str = "
before the launch, attributes: all 8 INVALID_VALUE
before the launch, several attributes: ok, type 0, size 99
before the launch, range: NOT_FOUND, size 0
before the launch, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
before the launch, a fill node and its executable: ok, ok
alive, attributes: context none, memory type 2, device pointer itself, is managed 0, device 0, range start itself, range size 64, pool none
alive, several attributes: ok, type 2, size 64
alive, range: ok, size 64
alive, copies from and to it and a fill: ok, ok, ok
alive, a fill node and its executable: ok, ok
alive, five copies and two fills on another stream: all 7 ok
alive, five copies and two fills on its stream: all 7 ok
free queued, attributes: all 8 INVALID_VALUE
free queued, several attributes: ok, type 0, size 99
free queued, range: NOT_FOUND, size 0
free queued, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
free queued, a fill node and its executable: ok, ok
its stream is busy: NOT_READY
waits: ok, ok
freed, attributes: all 8 INVALID_VALUE
freed, several attributes: ok, type 0, size 99
freed, range: NOT_FOUND, size 0
freed, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
freed, a fill node and its executable: ok, ok
trimmed, attributes: all 8 INVALID_VALUE
trimmed, several attributes: ok, type 0, size 99
trimmed, range: NOT_FOUND, size 0
trimmed, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
trimmed, a fill node and its executable: ok, ok
";

#[test]
fn while_a_free_node_is_queued() {
    let driver = session();
    let (mut table, (own, memory)) = (Table::default(), kept(&driver));
    let (scratch, frees) = (scratch(&driver), driver.graph());
    free(&driver, frees, &[], memory);
    let (exec, freeing) = (driver.instantiate(own), driver.instantiate(frees));
    driver.run(exec);
    let gate = Gate::close(&driver, driver.stream);
    assert_eq!(driver.launch(freeing), OK);
    ask(&driver, &mut table, "free node queued", memory);
    scratch.wait(&driver, &mut table, gate);
    ask(&driver, &mut table, "freed by the node", memory);
    driver.end(exec);
    driver.end(freeing);
    driver.destroy(&[own, frees]);
    scratch.end(&driver);
    table.is(NODE);
}

const NODE: &str = "
free node queued, attributes: all 8 INVALID_VALUE
free node queued, several attributes: ok, type 0, size 99
free node queued, range: NOT_FOUND, size 0
free node queued, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
free node queued, a fill node and its executable: ok, ok
its stream is busy: NOT_READY
waits: ok, ok
freed by the node, attributes: all 8 INVALID_VALUE
freed by the node, several attributes: ok, type 0, size 99
freed by the node, range: NOT_FOUND, size 0
freed by the node, copies from and to it and a fill: INVALID_VALUE, INVALID_VALUE, INVALID_VALUE
freed by the node, a fill node and its executable: ok, ok
";

/// The nodes of a captured graph, and the result of its executable.
fn freed_by(driver: &Session, table: &mut Table, what: &str, captured: CUgraph) {
    let (mut exec, mut kinds) = (null_mut(), Vec::new());
    for node in driver.nodes(captured) {
        let mut kind = CUgraphNodeType(99);
        assert_eq!(unsafe { driver.cuGraphNodeGetType(node, &mut kind) }, OK);
        kinds.push(kind.0);
    }
    table.row(format!("{what}, types of nodes"), format!("{kinds:?}"));
    let instantiated = unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, captured, 0) };
    let mut codes = vec![instantiated];
    if instantiated == OK {
        codes.extend([(); 2].map(|()| driver.launch(exec)));
        codes.push(unsafe { driver.cuStreamSynchronize(driver.stream) });
        driver.end(exec);
    }
    table.row(format!("{what}, executable, two launches, wait"), all_said(&codes));
}

#[test]
fn on_a_stream_that_captures() {
    let driver = session();
    let mut table = Table::default();
    type M = CUstreamCaptureMode;
    for (what, mode) in [
        ("global", M::CU_STREAM_CAPTURE_MODE_GLOBAL),
        ("of the thread", M::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        ("relaxed", M::CU_STREAM_CAPTURE_MODE_RELAXED),
    ] {
        let (own, memory) = kept(&driver);
        let exec = driver.instantiate(own);
        driver.run(exec);
        let mut captured = null_mut();
        let codes = unsafe {
            [
                driver.cuStreamBeginCapture(driver.stream, mode),
                driver.cuMemFreeAsync(memory, driver.stream),
                driver.cuMemFreeAsync(memory, driver.stream),
                driver.cuStreamEndCapture(driver.stream, &mut captured),
                driver.try_read(memory, &mut 0),
            ]
        };
        table.row(format!("{what}, begin, two frees, end, a read"), all_said(&codes));
        if codes[3] == OK {
            freed_by(&driver, &mut table, what, captured);
            driver.destroy(&[captured]);
        }
        table.row(format!("{what}, a free"), said(unsafe { driver.cuMemFree(memory) }));
        driver.end(exec);
        driver.destroy(&[own]);
    }
    table.is(CAPTURED);
}

const CAPTURED: &str = "
global, begin, two frees, end, a read: ok, ok, INVALID_VALUE, ok, ok
global, types of nodes: [11]
global, executable, two launches, wait: ok, ok, INVALID_VALUE, ok
global, a free: INVALID_VALUE
of the thread, begin, two frees, end, a read: ok, ok, INVALID_VALUE, ok, ok
of the thread, types of nodes: [11]
of the thread, executable, two launches, wait: ok, ok, INVALID_VALUE, ok
of the thread, a free: INVALID_VALUE
relaxed, begin, two frees, end, a read: ok, ok, INVALID_VALUE, ok, ok
relaxed, types of nodes: [11]
relaxed, executable, two launches, wait: ok, ok, INVALID_VALUE, ok
relaxed, a free: INVALID_VALUE
";

/// What a launch answers, what the driver says of the address before it runs, and what is there
/// then.
fn launched(driver: &Session, exec: CUgraphExec, memory: CUdeviceptr) -> String {
    let (mut start, mut size, mut word) = (0, 0, 0);
    let gate = Gate::close(driver, driver.stream);
    let answer = driver.launch(exec);
    let before = unsafe { driver.cuMemGetAddressRange(&mut start, &mut size, memory) };
    gate.open();
    driver.wait();
    let after = driver.try_read(memory, &mut word);
    format!("{}; before it ran {}; then {} {word}", said(answer), said(before), said(after))
}

#[test]
fn by_a_launch_that_frees_what_an_older_executable_left() {
    let driver = session();
    let (mut table, (own, memory)) = (Table::default(), kept(&driver));
    let run_once = |flags| {
        let exec = driver.instantiate_with(own, flags);
        driver.run(exec);
        driver.end(exec);
    };
    // Left by one of the same graph that does not free by itself.
    run_once(0);
    driver.write(memory, 9);
    let exec = driver.instantiate_with(own, 1);
    table.row("one that frees by itself", launched(&driver, exec, memory));
    driver.write(memory, 9);
    table.row("again", launched(&driver, exec, memory));
    driver.end(exec);
    // Left by one that frees by itself.
    driver.write(memory, 9);
    let exec = driver.instantiate(own);
    table.row("one that does not, after that", launched(&driver, exec, memory));
    driver.end(exec);
    driver.write(memory, 9);
    let exec = driver.instantiate_with(own, 1);
    table.row("another that does", launched(&driver, exec, memory));
    // Its free queued first.
    assert_eq!(unsafe { driver.cuMemFreeAsync(memory, driver.stream) }, OK);
    table.row("once it is freed", launched(&driver, exec, memory));
    driver.end(exec);
    // The graph frees it by now.
    let freed = try_free(&driver, own, &driver.nodes(own)[1..], memory).0;
    table.row("a free node for it, late", said(freed));
    let exec = driver.instantiate(own);
    table.row("one that does not free by itself, but by a node", launched(&driver, exec, memory));
    driver.end(exec);
    let exec = driver.instantiate_with(own, 1);
    table.row("one that frees by itself, and by a node", launched(&driver, exec, memory));
    table.row("again", launched(&driver, exec, memory));
    driver.end(exec);
    table.row("a free at last", said(unsafe { driver.cuMemFree(memory) }));
    driver.destroy(&[own]);
    table.is(OLDER);
}

const OLDER: &str = "
one that frees by itself: ok; before it ran ok; then ok 3
again: ok; before it ran ok; then ok 3
one that does not, after that: INVALID_VALUE; before it ran ok; then ok 9
another that does: ok; before it ran ok; then ok 3
once it is freed: ok; before it ran ok; then ok 3
a free node for it, late: INVALID_VALUE
one that does not free by itself, but by a node: INVALID_VALUE; before it ran ok; then ok 3
one that frees by itself, and by a node: ok; before it ran ok; then ok 3
again: ok; before it ran ok; then ok 3
a free at last: ok
";
