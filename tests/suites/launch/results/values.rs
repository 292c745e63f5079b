//! Arguments arrive in the kernel as they were given.

use cuda_launch::{Launch, LaunchConfig, ParamBytes, Params, params, per, per_2d};
use cuda_tests::{kernel, no_leaks, setup};
use proptest::prelude::*;

#[test]
fn saxpy_computes_what_it_should() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        let stream = context.stream().unwrap();
        let n = 100_003;
        let host: Vec<f32> = (0..n).map(|i| (i % 100) as f32).collect();
        let (x, y) = (stream.upload(&host).unwrap(), stream.upload(&vec![0.5; n]).unwrap());
        // SAFETY: the arguments are the kernel's, and both buffers have n elements.
        unsafe { saxpy.launch(&stream, per(n, 256), params![n as u32, 2.0_f32, &x, &y]) }.unwrap();
        let expected: Vec<f32> = host.iter().map(|x| 2.0 * x + 0.5).collect();
        assert_eq!(y.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn every_element_is_reached_and_none_beyond() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let stream = context.stream().unwrap();
    no_leaks(|| {
        proptest!(ProptestConfig::with_cases(40), |(n in 1_usize..3000, block in 1_u32..=1024, extra in 0_usize..40)| {
            let buffer = stream.zeros::<u32>(n + extra).unwrap();
            let config = per(n, block);
            prop_assert!(config.threads() >= n as u64);
            prop_assert!(config.threads() < n as u64 + u64::from(block));
            // SAFETY: the arguments are the kernel's, and the buffer has at least n elements.
            unsafe { increment.launch(&stream, config, params![&buffer, n as u32]) }.unwrap();
            let values = buffer.read_blocking(&stream).unwrap();
            prop_assert!(values[..n].iter().all(|value| *value == 1));
            prop_assert!(values[n..].iter().all(|value| *value == 0));
        });
    });
}

#[test]
fn a_grid_of_two_dimensions_is_rounded_up_in_both() {
    let config = per_2d((1000, 30), (32, 8));
    assert_eq!((config.grid().x, config.grid().y, config.grid().z), (32, 4, 1));
    assert_eq!((config.block().x, config.block().y, config.block().z), (32, 8, 1));
    let config = LaunchConfig::new((2, 3, 4), [5, 6, 7]).shared_bytes(11);
    assert_eq!((config.threads(), config.shared()), (2 * 3 * 4 * 5 * 6 * 7, 11));
}

#[test]
fn a_kernel_without_parameters_is_launched_with_no_arguments() {
    let context = setup();
    let stream = context.stream().unwrap();
    // SAFETY: the kernel does nothing.
    unsafe { kernel(&context, "empty").launch(&stream, LaunchConfig::new(3, 32), params![]) }.unwrap();
    stream.synchronize_blocking().unwrap();
}

/// Values whose bytes all differ, cut to the widths 1, 2, 4 and 8 in turn, as the kernels `many16`
/// and `many20` take them.
fn value(index: usize) -> u64 {
    0x0807_0605_0403_0201_u64.wrapping_mul(index as u64 + 1) | 0x80
}

fn expected(count: usize) -> Vec<u64> {
    (1..count).map(|index| value(index) & (u64::MAX >> (64 - (8 << ((index - 1) % 4))))).collect()
}

fn push_many(params: &mut Params<'_>, count: usize) {
    for index in 1..count {
        match (index - 1) % 4 {
            0 => params.push(value(index) as u8),
            1 => params.push(value(index) as u16),
            2 => params.push(value(index) as u32),
            _ => params.push(value(index)),
        }
    }
}

#[test]
fn sixteen_and_twenty_arguments_of_all_widths_arrive() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for (name, count) in [("many16", 16), ("many20", 20)] {
            let out = stream.zeros::<u64>(count).unwrap();
            let mut params = params![&out];
            push_many(&mut params, count);
            assert_eq!(params.len(), count);
            // SAFETY: the arguments are the kernel's, and there is a slot for each.
            unsafe { kernel(&context, name).launch(&stream, LaunchConfig::new(1, 1), &params) }.unwrap();
            assert_eq!(out.read_blocking(&stream).unwrap()[1..], expected(count), "{name}");
            out.write_blocking(&stream, &vec![0; count]).unwrap();
            let owned = params.into_owned();
            assert_eq!(owned.len(), count);
            // SAFETY: as above.
            unsafe { kernel(&context, name).launch(&stream, LaunchConfig::new(1, 1), &owned) }.unwrap();
            assert_eq!(out.read_blocking(&stream).unwrap()[1..], expected(count), "{name}, owned");
        }
    });
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Three(u64, u64, u64);

#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Two(u64, u64);

#[test]
fn structures_arrive_between_scalars() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u64>(8).unwrap();
        let (three, two) = (Three(11, 12, 13), Two(21, 22));
        // SAFETY: the kernel's structures have these fields, and no addresses are in them.
        let (b, d) = unsafe { (ParamBytes::of(&three), ParamBytes::of(&two)) };
        let params = params![0xFE_u8, b, 0xFEDC_u16, d, 0xFEDC_BA98_u32, &out];
        // SAFETY: the arguments are the kernel's, and the buffer has the eight elements it writes.
        unsafe { kernel(&context, "structures").launch(&stream, LaunchConfig::new(1, 1), params) }.unwrap();
        let expected = [0xFE, 11, 12, 13, 0xFEDC, 21, 22, 0xFEDC_BA98];
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn an_address_inside_a_structure_keeps_its_buffer_ready() {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Pointer(u64);
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.upload(&[41_u32]).unwrap();
        let pointer = Pointer(buffer.address());
        // SAFETY: the parameter is one address, of memory that is kept.
        let argument = unsafe { ParamBytes::of(&pointer) }.using(&buffer);
        let params = params![argument, 1_u32];
        assert_eq!(params.allocations().len(), 1);
        // SAFETY: the arguments are the kernel's.
        unsafe { kernel(&context, "increment").launch(&other, LaunchConfig::new(1, 1), params) }.unwrap();
        assert_eq!(buffer.read_blocking(&other).unwrap(), [42]);
    });
}

#[test]
fn arrays_of_scalars_are_one_argument() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u64>(8).unwrap();
        let params = params![1_u8, [2_u64, 3, 4], 5_u16, [6_u64, 7], 8_u32, &out];
        // SAFETY: the arguments are the kernel's, and the buffer has the eight elements it writes.
        unsafe { kernel(&context, "structures").launch(&stream, LaunchConfig::new(1, 1), params) }.unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    });
}

#[test]
fn slices_and_sub_buffers_are_arguments() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(10).unwrap();
        let part = buffer.sub_buffer(7..9).unwrap();
        for params in [params![buffer.slice(2..5).unwrap(), 3_u32], params![&part, 2_u32]] {
            // SAFETY: the arguments are the kernel's, and the count is the range's.
            unsafe { increment.launch(&&stream, per(3, 32), params) }.unwrap();
        }
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0, 0, 1, 1, 1, 0, 0, 1, 1, 0]);
    });
}

#[test]
fn dynamic_shared_memory_is_there() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(64).unwrap();
        let config = LaunchConfig::new(1, 64).shared_bytes(64 * 4);
        // SAFETY: the kernel writes one element for each thread, and uses four bytes of shared
        // memory for each.
        unsafe { kernel(&context, "neighbour").launch(&stream, config, params![&out]) }.unwrap();
        let expected: Vec<u32> = (0..64).map(|thread| (thread + 1) % 64).collect();
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn launches_on_one_stream_run_in_order() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(100).unwrap();
        for _ in 0..200 {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { increment.launch(&stream, per(100, 64), params![&buffer, 100_u32]) }.unwrap();
        }
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [200; 100]);
    });
}
