//! Stray accesses that a GPU may let pass, and the driver's messages about them.

use std::sync::OnceLock;

use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{Launch, LaunchConfig, params, per};
use cuda_soft::control::{last_fault, live_objects, lose_context};
use cuda_sys::CUresult;
use cuda_tests::{Gate, alone, kernel, raw, settle, setup, skip};

/// Skips where another driver runs.
macro_rules! soft_alone {
    () => {{
        alone!();
        let context = setup();
        if !cuda_tests::is_soft() {
            skip!("about the software driver");
        }
        context
    }};
}

fn poke(context: &Context, stream: &Stream, address: u64) {
    // SAFETY: not at all: the kernel writes where it should not, which the driver catches.
    unsafe { kernel(context, "poke").launch(stream, LaunchConfig::new(1, 1), params![address, 7_u32]) }
        .unwrap();
}

/// The code that the stream's work ended with, and the driver's sentence.
fn fault(stream: &Stream) -> (CUresult, String) {
    let cuda_handles::Error::ContextLost(cause) = stream.synchronize_blocking().unwrap_err() else {
        panic!()
    };
    (cause.code, last_fault().expect("a fault has a sentence"))
}

#[test]
fn a_healthy_driver_has_no_fault() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(4).unwrap();
    poke(&context, &stream, buffer.address() + 12);
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [0, 0, 0, 7]);
    assert_eq!(last_fault(), None);
}

#[test]
fn a_write_past_the_end_names_kernel_thread_address_and_allocation() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(100).unwrap();
    // One element too many: the last thread writes past the end.
    // SAFETY: not at all, see above.
    unsafe { kernel(&context, "increment").launch(&stream, per(101, 32), params![&buffer, 101_u32]) }
        .unwrap();
    let (code, text) = fault(&stream);
    assert_eq!(code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(text.contains("increment"), "the kernel: {text}");
    assert!(text.contains("(3, 0, 0)") && text.contains("(4, 0, 0)"), "block 3, thread 4: {text}");
    let address = format!("{:#x}", buffer.address() + 400);
    assert!(text.contains(&address), "the address {address}: {text}");
    let allocation = format!("{:#x}", buffer.address());
    assert!(
        text.contains(&allocation) && text.contains("400"),
        "the nearest allocation, {allocation}: {text}"
    );
}

#[test]
fn an_access_next_to_nothing_is_caught() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    poke(&context, &stream, 0x40);
    let (code, text) = fault(&stream);
    assert_eq!(code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(text.contains("poke") && text.contains("0x40"), "{text}");
}

#[test]
fn a_misaligned_access_is_its_own_code() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(4).unwrap();
    poke(&context, &stream, buffer.address() + 2);
    let (code, text) = fault(&stream);
    assert_eq!(code, CUresult::CUDA_ERROR_MISALIGNED_ADDRESS);
    assert!(text.contains("poke"), "{text}");
}

#[test]
fn a_use_of_freed_memory_is_caught() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(4).unwrap();
    let address = buffer.address();
    drop(buffer);
    settle();
    stream.synchronize_blocking().unwrap();
    // The same size again: the address is not given out anew.
    let other = stream.zeros::<u32>(4).unwrap();
    assert_ne!(other.address(), address);
    poke(&context, &stream, address);
    let (code, text) = fault(&stream);
    assert_eq!(code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(text.contains("free"), "it was freed: {text}");
}

#[test]
fn a_use_before_the_allocation_is_reached_is_caught() {
    let context = soft_alone!();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    // The first use of a library would wait for the gate.
    let poke = kernel(&context, "poke");
    let gate = Gate::close(&home);
    let buffer: Buffer<u32> = home.zeros(4).unwrap();
    // Without `cuda-handles`, which would let the other stream wait.
    raw::launch(&other, &poke, 1, &[buffer.address(), 7]);
    let (code, text) = fault(&other);
    gate.open();
    assert_eq!(code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(text.contains("poke"), "{text}");
}

#[test]
fn a_copy_out_of_freed_memory_is_caught() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let (from, to) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u32>(4).unwrap());
    let (source, destination) = (from.address(), to.address());
    let gate = Gate::close(&stream);
    drop(from);
    settle();
    // SAFETY: not at all: the source is freed before the copy, which the driver catches.
    let result = unsafe { raw::driver().cuMemcpyDtoDAsync(destination, source, 16, stream.as_raw()) };
    gate.open();
    if result.is_success() {
        let (_, text) = fault(&stream);
        assert!(text.contains("free"), "{text}");
    } else {
        assert_eq!(result, CUresult::CUDA_ERROR_INVALID_VALUE);
    }
}

#[test]
fn a_context_lost_on_demand_is_lost_everywhere() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    lose_context(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE);
    let (code, text) = fault(&stream);
    assert_eq!(code, CUresult::CUDA_ERROR_ECC_UNCORRECTABLE);
    assert!(text.contains("CUDA_ERROR_ECC_UNCORRECTABLE"), "{text}");
    assert!(context.stream().is_err());
    assert!(!live_objects().is_empty());
}

#[test]
fn a_kernel_that_never_ends_does_not_keep_the_process() {
    let context = soft_alone!();
    let stream = context.stream().unwrap();
    let (flag, seen) = (stream.zeros::<u32>(1).unwrap(), stream.zeros::<u32>(1).unwrap());
    stream.synchronize_blocking().unwrap();
    raw::launch(&stream, &kernel(&context, "spin"), 1, &[flag.address(), seen.address(), u64::MAX]);
    assert!(!stream.query().unwrap());
    // The end of the process ends it; the parent bounds the time.
    static LEFT: OnceLock<(Stream, [Buffer<u32>; 2])> = OnceLock::new();
    let _ = LEFT.set((stream, [flag, seen]));
}
