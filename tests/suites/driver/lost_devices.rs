//! A device is lost for the whole process, and nothing brings it back.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::{alone, skip};

use crate::calls;
use crate::common::*;

const DESTROYED: CUresult = CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;

/// Kernels that lose the device, with the code that each leaves.
const LOSSES: [(&str, CUresult); 3] = [
    ("fault", CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    ("misaligned", CUresult::CUDA_ERROR_MISALIGNED_ADDRESS),
    ("traps", CUresult::CUDA_ERROR_LAUNCH_FAILED),
];
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry fault(.param .u64 word)
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 64;
    st.global.u32 [%rd1], 1;
    ret;
}
.visible .entry misaligned(.param .u64 word)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [word];
    st.global.u32 [%rd1+2], 1;
    ret;
}
.visible .entry traps(.param .u64 word)
{
    trap;
}
";

/// A session whose device is lost by the kernel.
fn lost_session(loss: (&str, CUresult)) -> Session {
    let s = session();
    lose(&s, loss);
    s
}

/// Loses the device by the kernel; returns the code of the loss.
fn lose(s: &Session, (kernel, code): (&str, CUresult)) -> CUresult {
    let mut address = s.words(4);
    let function = calls::function(s, calls::load(s, PTX), kernel);
    let mut pointers: [*mut c_void; 1] = [(&raw mut address).cast()];
    unsafe {
        let params = pointers.as_mut_ptr();
        assert_eq!(s.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s.stream, params, null_mut()), OK);
        assert_eq!(s.cuStreamSynchronize(s.stream), code);
    }
    code
}

fn retain(s: &Session) -> (CUresult, CUcontext) {
    let mut context = null_mut();
    (unsafe { s.cuDevicePrimaryCtxRetain(&mut context, 0) }, context)
}

/// The answers to calls that allocate or create, which undo nothing where they succeed.
fn creations(s: &Session) -> [CUresult; 5] {
    let (mut address, mut host, mut stream, mut event) = (0, null_mut(), null_mut(), null_mut());
    unsafe {
        [
            s.cuMemAlloc(&mut address, 64),
            s.cuMemAllocHost(&mut host, 64),
            s.cuStreamCreate(&mut stream, 0),
            s.cuEventCreate(&mut event, 0),
            s.cuCtxSynchronize(),
        ]
    }
}

/// Graphs are host data, and the default pool is known.
fn assert_host_data_works(s: &Session) {
    s.destroy(&[s.graph()]);
    assert_eq!(unsafe { s.cuDeviceGetDefaultMemPool(&mut null_mut(), 0) }, OK);
}

/// While it is active, the context can be retained and made current, and calls in it say why the
/// device was lost. Once it has ended, it cannot be retained any more.
fn assert_stays_lost(loss: (&str, CUresult), end: impl Fn(&Session)) {
    let s = lost_session(loss);
    assert_eq!(retain(&s), (OK, s.context));
    assert_eq!(unsafe { s.cuCtxSetCurrent(s.context) }, OK);
    assert_eq!(creations(&s), [loss.1; 5]);
    assert_host_data_works(&s);
    assert_eq!(unsafe { s.cuDevicePrimaryCtxRelease(0) }, OK);
    end(&s);
    let (mut flags, mut active) = (9, 9);
    assert_eq!(unsafe { s.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active) }, OK);
    assert_eq!(active, 0);
    assert_eq!(unsafe { s.cuMemAlloc(&mut 0, 64) }, DESTROYED);
    assert_eq!(retain(&s), (loss.1, null_mut()));
    assert_eq!(unsafe { s.cuCtxSetCurrent(null_mut()) }, OK);
    assert_eq!(creations(&s), [CUresult::CUDA_ERROR_INVALID_CONTEXT; 5]);
    assert_host_data_works(&s);
    // Ending its objects might crash.
    std::mem::forget(s);
}

fn reset(s: &Session) {
    assert_eq!(unsafe { s.cuDevicePrimaryCtxReset(0) }, OK);
}

#[test]
fn the_primary_context_after_a_fault() {
    alone!();
    assert_stays_lost(LOSSES[0], reset);
}

#[test]
fn the_primary_context_after_a_misaligned_access() {
    alone!();
    assert_stays_lost(LOSSES[1], reset);
}

#[test]
fn the_primary_context_after_a_trap() {
    alone!();
    assert_stays_lost(LOSSES[2], reset);
}

#[test]
fn the_primary_context_after_its_last_release() {
    alone!();
    assert_stays_lost(LOSSES[2], |s| while unsafe { s.cuDevicePrimaryCtxRelease(0) } == OK {});
}

#[test]
fn a_primary_context_that_was_not_active_when_the_device_was_lost() {
    alone!();
    let s = session();
    if !s.has(12, 5) {
        skip!("the call that creates a context came with 12.5");
    }
    let mut created = null_mut();
    unsafe {
        while s.cuDevicePrimaryCtxRelease(0) == OK {}
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
        assert_eq!(s.cuCtxCreate_v12050(&mut created, null_mut(), 0, 0), Ok(OK));
        let function = calls::function(&s, calls::load(&s, PTX), "traps");
        let mut none: [*mut c_void; 1] = [(&raw mut created).cast()];
        let params = none.as_mut_ptr();
        assert_eq!(s.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, null_mut()), OK);
        assert_eq!(s.cuCtxSynchronize(), LOSSES[2].1);
        assert_eq!(retain(&s), (LOSSES[2].1, null_mut()));
        assert_eq!(s.cuDevicePrimaryCtxReset(0), OK);
        assert_eq!(retain(&s), (LOSSES[2].1, null_mut()));
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
    }
    assert_eq!(creations(&s), [CUresult::CUDA_ERROR_INVALID_CONTEXT; 5]);
    assert_host_data_works(&s);
    // Ending its objects might crash.
    std::mem::forget(s);
}

/// Objects of the primary context.
struct Objects {
    stream: CUstream,
    /// A recorded event, and one that never was.
    events: [CUevent; 2],
    module: CUmodule,
    function: CUfunction,
    memory: CUdeviceptr,
    host: *mut c_void,
}

impl Objects {
    fn new(s: &Session) -> Self {
        let (mut stream, mut events, memory) = (null_mut(), [null_mut(); 2], s.words(4));
        let (mut host, mut module, mut function) = (null_mut(), null_mut(), null_mut());
        let image = CString::new(PTX).unwrap();
        unsafe {
            assert_eq!(s.cuStreamCreate(&mut stream, 1), OK);
            for event in &mut events {
                assert_eq!(s.cuEventCreate(event, 2), OK);
            }
            assert_eq!(s.cuEventRecord(events[0], stream), OK);
            assert_eq!(s.cuMemAllocHost(&mut host, 64), OK);
            assert_eq!(s.cuModuleLoadData(&mut module, image.as_ptr().cast()), OK);
            assert_eq!(s.cuModuleGetFunction(&mut function, module, c"traps".as_ptr()), OK);
            assert_eq!(s.cuStreamSynchronize(stream), OK);
        }
        Self { stream, events, module, function, memory, host }
    }

    /// The answers to calls on the stream, the events and, last, the module.
    fn asked(&self, s: &Session) -> [CUresult; 10] {
        let (stream, [recorded, unused], mut word) = (self.stream, self.events, 0u64);
        let mut pointers: [*mut c_void; 1] = [(&raw mut word).cast()];
        let params = pointers.as_mut_ptr();
        unsafe {
            [
                s.cuStreamQuery(stream),
                s.cuStreamSynchronize(stream),
                s.cuEventQuery(recorded),
                s.cuEventSynchronize(recorded),
                s.cuEventRecord(unused, stream),
                s.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, params, null_mut()),
                s.cuStreamDestroy(stream),
                s.cuEventDestroy(recorded),
                s.cuEventDestroy(unused),
                s.cuModuleUnload(self.module),
            ]
        }
    }

    fn freed(&self, s: &Session) -> [CUresult; 2] {
        unsafe { [s.cuMemFree(self.memory), s.cuMemFreeHost(self.host)] }
    }
}

#[test]
fn objects_of_a_context_that_ended_while_none_is_current() {
    alone!();
    // Ending its objects might crash, also after an assertion failed.
    let s = std::mem::ManuallyDrop::new(session());
    if !cuda_tests::is_soft() {
        skip!("some of these calls crash the driver of a GPU");
    }
    let objects = Objects::new(&s);
    let code = lose(&s, LOSSES[2]);
    assert_eq!(unsafe { s.cuCtxSetCurrent(null_mut()) }, OK);
    assert_eq!((objects.asked(&s), objects.freed(&s)), ([code; 10], [code; 2]));
    reset(&s);
    let mut asked = [DESTROYED; 10];
    asked[9] = CUresult::CUDA_ERROR_INVALID_HANDLE;
    assert_eq!((objects.asked(&s), objects.freed(&s)), (asked, [IV; 2]));
}

/// Calls on its streams crash then.
#[test]
fn objects_of_a_context_that_ended_while_another_is_current() {
    alone!();
    let s = session();
    if !s.has(12, 5) {
        skip!("the call that creates a context came with 12.5");
    }
    let mut other = null_mut();
    unsafe {
        // First, since a lost device gives no context.
        assert_eq!(s.cuCtxSetCurrent(null_mut()), OK);
        assert_eq!(s.cuCtxCreate_v12050(&mut other, null_mut(), 0, 0), Ok(OK));
        assert_eq!(s.cuCtxSetCurrent(s.context), OK);
    }
    let objects = Objects::new(&s);
    let code = lose(&s, LOSSES[2]);
    reset(&s);
    let [recorded, unused] = objects.events;
    unsafe {
        assert_eq!(s.cuCtxSetCurrent(other), OK);
        assert_eq!([s.cuEventQuery(recorded), s.cuEventSynchronize(recorded)], [DESTROYED; 2]);
        assert_eq!([s.cuEventDestroy(recorded), s.cuEventDestroy(unused)], [DESTROYED; 2]);
        assert_eq!(objects.freed(&s), [code; 2]);
        assert_eq!(s.cuModuleUnload(objects.module), CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    // Ending its objects might crash.
    std::mem::forget(s);
}
