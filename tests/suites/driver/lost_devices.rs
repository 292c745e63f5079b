//! A device is lost for the whole process: its primary context can be retained, and nothing else
//! brings it back.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_sys::*;
use cuda_tests::alone;

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
fn lost_session((kernel, code): (&str, CUresult)) -> Session {
    let s = session();
    let mut address = s.words(4);
    let function = calls::function(&s, calls::load(&s, PTX), kernel);
    let mut pointers: [*mut c_void; 1] = [(&raw mut address).cast()];
    unsafe {
        let params = pointers.as_mut_ptr();
        assert_eq!(s.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s.stream, params, null_mut()), OK);
        assert_eq!(s.cuStreamSynchronize(s.stream), code);
    }
    s
}

fn retain(s: &Session) -> (CUresult, CUcontext) {
    let mut context = null_mut();
    (unsafe { s.cuDevicePrimaryCtxRetain(&mut context, 0) }, context)
}

/// The answers to calls that allocate or create, which undo nothing where they succeed.
fn creations(s: &Session) -> [CUresult; 6] {
    let (mut address, mut host, mut stream, mut event, mut pool) =
        (0, null_mut(), null_mut(), null_mut(), null_mut());
    unsafe {
        [
            s.cuMemAlloc(&mut address, 64),
            s.cuMemAllocHost(&mut host, 64),
            s.cuStreamCreate(&mut stream, 0),
            s.cuEventCreate(&mut event, 0),
            s.cuCtxSynchronize(),
            s.cuDeviceGetDefaultMemPool(&mut pool, 0),
        ]
    }
}

/// The context can be retained and made current, and calls in it say why the device was lost. After
/// a reset it has the same handle and stays destroyed.
fn assert_stays_lost(loss: (&str, CUresult)) {
    let s = lost_session(loss);
    for after_reset in [false, true, true] {
        if after_reset {
            assert_eq!(unsafe { s.cuDevicePrimaryCtxReset(0) }, OK);
        }
        assert_eq!(retain(&s), (OK, s.context));
        assert_eq!(unsafe { s.cuCtxSetCurrent(s.context) }, OK);
        assert_eq!(creations(&s), [if after_reset { DESTROYED } else { loss.1 }; 6]);
        // A graph is host data.
        s.destroy(&[s.graph()]);
    }
}

#[test]
fn the_primary_context_after_a_fault() {
    alone!();
    assert_stays_lost(LOSSES[0]);
}

#[test]
fn the_primary_context_after_a_misaligned_access() {
    alone!();
    assert_stays_lost(LOSSES[1]);
}

#[test]
fn the_primary_context_after_a_trap() {
    alone!();
    assert_stays_lost(LOSSES[2]);
}
