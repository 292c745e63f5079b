//! The calls that are permitted in host functions, as observed on an H200. The driver refuses
//! nearly everything else.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_sys::*;

use crate::common::*;

const DENIED: CUresult = CUresult::CUDA_ERROR_NOT_PERMITTED;

/// Calls that touch no device and no object.
const ALWAYS: [Call; 5] = [
    Call::cuInit,
    Call::cuDriverGetVersion,
    Call::cuGetErrorName,
    Call::cuGetErrorString,
    Call::cuGetProcAddress,
];

/// Calls that work: events, captures and waits of streams, host functions, launches of executables,
/// fills, user objects, empty and conditional nodes, some destruction.
const PERMITTED: [Call; 37] = [
    Call::cuEventDestroy,
    Call::cuEventElapsedTime,
    Call::cuEventElapsedTime_v12080,
    Call::cuEventQuery,
    Call::cuEventRecord,
    Call::cuEventRecordWithFlags,
    Call::cuEventSynchronize,
    Call::cuGraphAddEmptyNode,
    Call::cuGraphAddNode,
    Call::cuGraphAddNode_v12030,
    Call::cuGraphConditionalHandleCreate,
    Call::cuGraphDebugDotPrint,
    Call::cuGraphDestroy,
    Call::cuGraphLaunch,
    Call::cuGraphReleaseUserObject,
    Call::cuGraphRetainUserObject,
    Call::cuGraphUpload,
    Call::cuLaunchHostFunc,
    Call::cuLibraryUnload,
    Call::cuLinkDestroy,
    Call::cuMemsetD16Async,
    Call::cuMemsetD2D16Async,
    Call::cuMemsetD2D32Async,
    Call::cuMemsetD2D8Async,
    Call::cuMemsetD32Async,
    Call::cuMemsetD8Async,
    Call::cuStreamBeginCapture,
    Call::cuStreamEndCapture,
    Call::cuStreamGetCaptureInfo,
    Call::cuStreamIsCapturing,
    Call::cuStreamQuery,
    Call::cuStreamSynchronize,
    Call::cuStreamWaitEvent,
    Call::cuThreadExchangeStreamCaptureMode,
    Call::cuUserObjectCreate,
    Call::cuUserObjectRelease,
    Call::cuUserObjectRetain,
];

/// Other layouts of these, calls that need more than one driver, and two that are refused as
/// invalid values: not refused by the gate either.
const LIKEWISE: [Call; 12] = [
    Call::cuGraphAddDependencies,
    Call::cuGraphAddDependencies_v12030,
    Call::cuGraphAddNode_v13040,
    Call::cuGraphExecNodeSetParams,
    Call::cuGraphNodeSetEnabled,
    Call::cuGraphNodeSetParams,
    Call::cuGraphRemoveDependencies,
    Call::cuGraphRemoveDependencies_v12030,
    Call::cuLaunchHostFunc_v13010,
    Call::cuStreamBatchMemOp,
    Call::cuStreamBeginCaptureToGraph,
    Call::cuStreamGetCaptureInfo_v12030,
];

/// Calls that first check their arguments, or wait for ever.
const APART: [Call; 2] = [Call::cuStreamDestroy, Call::cuMemFreeHost];

/// Handles on their way to the driver's thread.
struct Carried<T>(T);

unsafe impl<T> Send for Carried<T> {}

type Work = Box<dyn FnOnce() + Send>;

/// The result of `work` inside a host function of the stream.
fn inside<R: 'static>(driver: &Driver, stream: CUstream, work: impl FnOnce() -> R + 'static) -> R {
    unsafe extern "C" fn run(work: *mut c_void) {
        let work = unsafe { Box::from_raw(work.cast::<Work>()) };
        (*work)();
    }
    let (sender, receiver) = channel();
    let carried = Carried(move || drop(sender.send(Carried(work()))));
    let work: Work = Box::new(move || {
        let whole = carried;
        (whole.0)();
    });
    let data = Box::into_raw(Box::new(work)).cast();
    assert_eq!(unsafe { driver.cuLaunchHostFunc(stream, Some(run), data) }, OK);
    receiver.recv_timeout(Duration::from_secs(20)).unwrap().0
}

/// The result of a call, if the driver has it.
trait Answered {
    fn code(self) -> Option<CUresult>;
}

impl Answered for CUresult {
    fn code(self) -> Option<CUresult> {
        Some(self)
    }
}

impl Answered for Result<CUresult, Missing> {
    fn code(self) -> Option<CUresult> {
        self.ok()
    }
}

macro_rules! with_nothing {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// Makes the call with nulls and zeros.
        fn with_nothing(driver: &Driver, call: Call) -> Option<CUresult> {
            match call {
                $(Call::$name => {
                    $(let $arg: $ty = unsafe { core::mem::zeroed() };)*
                    unsafe { driver.$name($($arg),*) }.code()
                })*
            }
        }
    };
}

cuda_sys::for_each_call!(with_nothing);

#[test]
fn all_calls_but_those_of_the_table_are_refused_at_the_door() {
    let driver = session().driver;
    let stream = stream(driver);
    let answers = inside(driver, stream, move || {
        let behind = |call: &&Call| {
            ![&ALWAYS[..], &PERMITTED, &LIKEWISE, &APART].iter().any(|list| list.contains(call))
        };
        let answer = |call: &Call| Some((*call, with_nothing(driver, *call)?));
        Call::ALL.iter().filter(behind).filter_map(answer).collect::<Vec<_>>()
    });
    let other: Vec<_> = answers.iter().filter(|(_, code)| *code != DENIED).collect();
    assert!(other.is_empty(), "{other:?}");
    assert!(answers.len() > 350, "only {} calls were tried", answers.len());
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// The arguments of the calls.
struct Things {
    driver: &'static Driver,
    /// Runs the host function.
    own: CUstream,
    other: CUstream,
    /// Recorded and reached, in this order.
    events: [CUevent; 2],
    address: CUdeviceptr,
    graph: CUgraph,
    exec: CUgraphExec,
    library: CUlibrary,
    link: CUlinkState,
    context: CUcontext,
}

impl Things {
    fn new(driver: &'static Driver) -> Self {
        let (own, other) = (stream(driver), stream(driver));
        let events = [(); 2].map(|()| {
            let mut event = null_mut();
            unsafe {
                assert_eq!(driver.cuEventCreate(&mut event, 0), OK);
                assert_eq!(driver.cuEventRecord(event, other), OK);
                assert_eq!(driver.cuEventSynchronize(event), OK);
            }
            event
        });
        let graph = graph(driver);
        empty(driver, graph, &[]);
        let exec = instantiate(driver, graph);
        let (mut link, mut context) = (null_mut(), null_mut());
        unsafe {
            assert_eq!(driver.cuLinkCreate(0, null_mut(), null_mut(), &mut link), OK);
            assert_eq!(driver.cuCtxGetCurrent(&mut context), OK);
        }
        let (address, library) = (words(driver, 8), library(driver));
        Self { driver, own, other, events, address, graph, exec, library, link, context }
    }

    fn all(&self) -> Vec<(Call, Option<CUresult>)> {
        [self.events(), self.fills(), self.waits(), self.capture(), self.graphs(), self.objects()].concat()
    }

    fn events(&self) -> Vec<(Call, Option<CUresult>)> {
        let (driver, [start, end]) = (self.driver, self.events);
        let mut passed = 0.0;
        unsafe {
            vec![
                (Call::cuEventRecord, driver.cuEventRecord(start, self.other).code()),
                (Call::cuEventSynchronize, driver.cuEventSynchronize(start).code()),
                (Call::cuEventRecordWithFlags, driver.cuEventRecordWithFlags(end, self.other, 0).code()),
                (Call::cuStreamSynchronize, driver.cuStreamSynchronize(self.other).code()),
                (Call::cuEventQuery, driver.cuEventQuery(end).code()),
                (Call::cuEventElapsedTime, driver.cuEventElapsedTime(&mut passed, start, end).code()),
                (
                    Call::cuEventElapsedTime_v12080,
                    driver.cuEventElapsedTime_v12080(&mut passed, start, end).code(),
                ),
                (Call::cuStreamWaitEvent, driver.cuStreamWaitEvent(self.other, start, 0).code()),
                (Call::cuEventDestroy, driver.cuEventDestroy(start).code()),
            ]
        }
    }

    fn fills(&self) -> Vec<(Call, Option<CUresult>)> {
        let (driver, address, stream) = (self.driver, self.address, self.other);
        unsafe {
            vec![
                (Call::cuMemsetD8Async, driver.cuMemsetD8Async(address, 1, 4, stream).code()),
                (Call::cuMemsetD16Async, driver.cuMemsetD16Async(address, 1, 2, stream).code()),
                (Call::cuMemsetD32Async, driver.cuMemsetD32Async(address, 1, 1, stream).code()),
                (Call::cuMemsetD2D8Async, driver.cuMemsetD2D8Async(address, 8, 1, 4, 2, stream).code()),
                (Call::cuMemsetD2D16Async, driver.cuMemsetD2D16Async(address, 8, 1, 2, 2, stream).code()),
                (Call::cuMemsetD2D32Async, driver.cuMemsetD2D32Async(address, 8, 1, 1, 2, stream).code()),
            ]
        }
    }

    fn waits(&self) -> Vec<(Call, Option<CUresult>)> {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        unsafe {
            let own = self.driver.cuStreamQuery(self.own);
            assert_eq!(own, CUresult::CUDA_ERROR_NOT_READY, "it runs this function");
            let exchanged = self.driver.cuThreadExchangeStreamCaptureMode(&mut mode);
            assert_eq!(self.driver.cuThreadExchangeStreamCaptureMode(&mut mode), OK);
            assert_eq!(self.driver.cuStreamSynchronize(self.other), OK);
            vec![
                (Call::cuThreadExchangeStreamCaptureMode, exchanged.code()),
                (Call::cuStreamQuery, self.driver.cuStreamQuery(self.other).code()),
                // After this function.
                (
                    Call::cuLaunchHostFunc,
                    self.driver.cuLaunchHostFunc(self.own, Some(nothing), null_mut()).code(),
                ),
            ]
        }
    }

    fn capture(&self) -> Vec<(Call, Option<CUresult>)> {
        let (driver, stream) = (self.driver, self.other);
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut graph, mut id) = (null_mut(), 0);
        unsafe {
            vec![
                (Call::cuStreamBeginCapture, driver.cuStreamBeginCapture(stream, mode).code()),
                (Call::cuStreamIsCapturing, driver.cuStreamIsCapturing(stream, &mut status).code()),
                (
                    Call::cuStreamGetCaptureInfo,
                    driver
                        .cuStreamGetCaptureInfo(
                            stream,
                            &mut status,
                            &mut id,
                            &mut graph,
                            null_mut(),
                            null_mut(),
                        )
                        .code(),
                ),
                (Call::cuStreamEndCapture, driver.cuStreamEndCapture(stream, &mut graph).code()),
                (Call::cuGraphDestroy, driver.cuGraphDestroy(graph).code()),
            ]
        }
    }

    fn graphs(&self) -> Vec<(Call, Option<CUresult>)> {
        let (driver, graph) = (self.driver, self.graph);
        let mut node = null_mut();
        let mut plain =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY, ..Default::default() };
        let mut fill =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET, ..Default::default() };
        unsafe {
            let refused = driver.cuGraphAddNode(&mut node, graph, null_mut(), 0, &mut fill);
            assert_eq!(refused, DENIED, "no fills");
            vec![
                (
                    Call::cuGraphAddEmptyNode,
                    driver.cuGraphAddEmptyNode(&mut node, graph, null_mut(), 0).code(),
                ),
                (
                    Call::cuGraphAddNode,
                    driver.cuGraphAddNode(&mut node, graph, null_mut(), 0, &mut plain).code(),
                ),
                (
                    Call::cuGraphAddNode_v12030,
                    driver
                        .cuGraphAddNode_v12030(&mut node, graph, null_mut(), null_mut(), 0, &mut plain)
                        .code(),
                ),
                (Call::cuGraphConditionalHandleCreate, self.condition()),
                (
                    Call::cuGraphDebugDotPrint,
                    driver.cuGraphDebugDotPrint(graph, c"/dev/null".as_ptr(), 0).code(),
                ),
                (Call::cuGraphUpload, driver.cuGraphUpload(self.exec, self.other).code()),
                (Call::cuGraphLaunch, driver.cuGraphLaunch(self.exec, self.other).code()),
            ]
        }
    }

    /// A condition, which a node uses at once.
    fn condition(&self) -> Option<CUresult> {
        let (driver, graph, context, mut handle) = (self.driver, self.graph, self.context, 0);
        let made = unsafe { driver.cuGraphConditionalHandleCreate(&mut handle, graph, context, 0, 0) };
        let mut params = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        params.__bindgen_anon_1.conditional =
            CUDA_CONDITIONAL_NODE_PARAMS { handle, size: 1, ctx: context, ..Default::default() };
        assert_eq!(add(driver, graph, &[], &mut params).0, OK);
        made.code()
    }

    fn objects(&self) -> Vec<(Call, Option<CUresult>)> {
        let (driver, graph) = (self.driver, self.graph);
        let mut object = null_mut();
        unsafe {
            vec![
                (
                    Call::cuUserObjectCreate,
                    driver.cuUserObjectCreate(&mut object, null_mut(), Some(nothing), 1, 1).code(),
                ),
                (Call::cuUserObjectRetain, driver.cuUserObjectRetain(object, 1).code()),
                (Call::cuGraphRetainUserObject, driver.cuGraphRetainUserObject(graph, object, 1, 0).code()),
                (Call::cuGraphReleaseUserObject, driver.cuGraphReleaseUserObject(graph, object, 1).code()),
                // Not the last one: a destructor here changes what is permitted.
                (Call::cuUserObjectRelease, driver.cuUserObjectRelease(object, 1).code()),
                // One that is in no context; others are waited for.
                (Call::cuLibraryUnload, driver.cuLibraryUnload(self.library).code()),
                (Call::cuLinkDestroy, driver.cuLinkDestroy(self.link).code()),
            ]
        }
    }
}

#[test]
fn the_calls_of_the_table_work() {
    let driver = session().driver;
    let things = Things::new(driver);
    let (own, other, address) = (things.own, things.other, things.address);
    let answers = inside(driver, own, move || things.all());
    for (call, code) in &answers {
        assert_eq!(*code, Some(OK), "{call:?}");
    }
    let mut tried: Vec<_> = answers.iter().map(|(call, _)| *call).collect();
    tried.sort_unstable_by_key(|call| call.name());
    assert_eq!(tried, PERMITTED);
    unsafe { assert_eq!(driver.cuStreamSynchronize(other), OK) };
    assert_eq!(read(driver, address, 4), [1, 0, 1, 0], "the fills were done");
}

#[test]
fn a_stream_is_not_destroyed_but_looked_at() {
    let driver = session().driver;
    let stream = stream(driver);
    let answers = inside(driver, stream, move || unsafe {
        [driver.cuStreamDestroy(null_mut()), driver.cuStreamDestroy(stream)]
    });
    assert_eq!(answers, [CUresult::CUDA_ERROR_INVALID_HANDLE, DENIED]);
}

#[test]
fn waiting_for_the_own_stream_is_waiting_for_ever() {
    let name = "callbacks::waiting_for_the_own_stream_is_waiting_for_ever";
    aborts(name, "a host function waits for the stream that runs it", || {
        let driver = session().driver;
        let stream = stream(driver);
        inside(driver, stream, move || unsafe { driver.cuStreamSynchronize(stream) });
    });
}

#[test]
fn so_it_is_in_a_host_node() {
    aborts("callbacks::so_it_is_in_a_host_node", "a host function waits for the stream that runs it", || {
        unsafe extern "C" fn wait(stream: *mut c_void) {
            let driver = cuda_sys::driver().unwrap();
            unsafe { driver.cuStreamSynchronize(stream.cast()) };
        }
        let driver = session().driver;
        let (stream, graph) = (stream(driver), graph(driver));
        let mut node = null_mut();
        let host = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(wait), userData: stream.cast() };
        unsafe {
            assert_eq!(driver.cuGraphAddHostNode(&mut node, graph, null_mut(), 0, &host), OK);
            assert_eq!(driver.cuGraphLaunch(instantiate(driver, graph), stream), OK);
            driver.cuStreamSynchronize(stream);
        }
    });
}

#[test]
fn freeing_pinned_memory_is_waiting_for_ever() {
    let name = "callbacks::freeing_pinned_memory_is_waiting_for_ever";
    aborts(name, "a host function waits for all work", || {
        let driver = session().driver;
        let mut pinned = null_mut();
        unsafe { assert_eq!(driver.cuMemHostAlloc(&mut pinned, 64, 0), OK) };
        let stream = stream(driver);
        inside(driver, stream, move || unsafe { driver.cuMemFreeHost(pinned) });
    });
}
