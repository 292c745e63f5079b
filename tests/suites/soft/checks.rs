//! Checks of kernels that a GPU does not make.

use cuda_graph::ContextExt;
use cuda_handles::{Context, Image, Kernel, Library, Stream};
use cuda_launch::{Launch, LaunchConfig, params};
use cuda_soft::control::last_fault;
use cuda_sys::CUresult;
use cuda_tests::{alone, setup};

/// Kernels of 64 threads that turn `data` around in shared memory, with a barrier and without.
const KERNELS: &str = ".version 7.0
.target sm_70
.address_size 64
.visible .entry turn(.param .u64 data, .param .u32 barrier)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    .shared .align 4 .b32 tile[64];
    .loc 1 5 0
    mov.u32 %r1, %tid.x;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r2, [barrier];
    setp.ne.u32 %p1, %r2, 0;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], 0;
    bar.sync 0;
    .loc 1 7 0
    ld.global.u32 %r5, [%d1];
    st.shared.u32 [%r4], %r5;
    .loc 1 8 0
    @%p1 bar.sync 0;
    .loc 1 9 0
    xor.b32 %r6, %r1, 63;
    mad.lo.u32 %r6, %r6, 4, %r3;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%d1], %r7;
    ret;
}
// Each thread adds to the first word, atomically and not.
.visible .entry sum(.param .u64 data, .param .u32 atomic)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [atomic];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra ATOMIC;
    ld.global.u32 %r2, [%d1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%d1], %r2;
    ret;
ATOMIC:
    red.global.add.u32 [%d1], 1;
    ret;
}
// Adds what nothing has written.
.visible .entry unwritten(.param .u64 data, .param .u32 unused)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<2>;
    .shared .align 4 .b32 counter;
    ld.param.u64 %d1, [data];
    ld.shared.u32 %r1, [counter];
    red.global.add.u32 [%d1], %r1;
    ret;
}
.file 1 \"turn.cu\"
";

fn kernel_of(context: &Context, name: &str) -> Kernel {
    Library::load(context, Image::Ptx(KERNELS)).unwrap().kernel(name).unwrap()
}

/// Runs a kernel in blocks of 64 threads, by a launch or in a graph. Returns the data if it is
/// right, and else the driver's sentence.
fn outcome(name: &str, switch: u32, blocks: u32, in_graph: bool) -> Result<Vec<u32>, String> {
    let context = setup();
    let stream: Stream = context.stream().unwrap();
    let kernel = kernel_of(&context, name);
    let data = stream.upload(&(0..64).collect::<Vec<u32>>()).unwrap();
    let config = LaunchConfig::new(blocks, 64);
    if in_graph {
        let graph = context.graph().unwrap();
        // SAFETY: the parameters are the kernel's; it may race, which the driver finds.
        unsafe { graph.root().launch_untyped(&kernel, config, params![&data, switch]) }.unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
    } else {
        // SAFETY: as above.
        unsafe { kernel.launch(&stream, config, params![&data, switch]) }.unwrap();
    }
    match data.read_blocking(&stream) {
        Ok(data) => Ok(data),
        Err(cuda_handles::Error::ContextLost(cause)) => {
            assert_eq!(cause.code, CUresult::CUDA_ERROR_LAUNCH_FAILED);
            Err(last_fault().expect("a fault has a sentence"))
        }
        Err(other) => panic!("{other}"),
    }
}

/// Skips where another driver runs.
macro_rules! checked {
    ($checks:literal) => {
        alone!("CUDA_SOFT_CHECK" = $checks, "CUDA_TEST_DRIVER" = "soft");
    };
}

#[test]
fn right_kernels_pass_all_checks() {
    checked!("all");
    for in_graph in [true, false] {
        let turned: Vec<u32> = (0..64).rev().collect();
        assert_eq!(outcome("turn", 1, 1, in_graph).unwrap(), turned);
        assert_eq!(outcome("sum", 1, 4, in_graph).unwrap()[0], 256);
    }
}

#[test]
fn a_race_in_shared_memory_is_reported_with_both_accesses() {
    checked!("shared-races");
    let text = outcome("turn", 0, 1, false).unwrap_err();
    let expected = "data race in kernel `turn` at ptx line 23 (turn.cu:7), block (0, 0, 0), thread (32, 0, 0): write \
                    of 4 bytes at 0x80: thread (31, 0, 0) has read some of these bytes at ptx line 29 (turn.cu:9), \
                    and no barrier is between the two accesses, at byte 128 of `tile`";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_race_in_global_memory_is_reported_from_a_graph_too() {
    checked!("global-races");
    let text = outcome("sum", 0, 1, true).unwrap_err();
    for words in
        ["data race in kernel `sum`", "thread (1, 0, 0)", "thread (0, 0, 0) has written", "nothing orders"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_read_of_shared_memory_that_nothing_has_written_is_reported() {
    checked!("unwritten-shared");
    let text = outcome("unwritten", 0, 1, true).unwrap_err();
    assert!(
        text.contains("unwritten shared memory in kernel `unwritten`") && text.contains("`counter`"),
        "{text}"
    );
}

#[test]
fn nothing_is_checked_that_is_not_asked_for() {
    checked!("unwritten-shared");
    for name in ["turn", "sum"] {
        outcome(name, 0, 1, false).unwrap();
    }
}
