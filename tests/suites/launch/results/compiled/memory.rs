//! Shared, local and constant memory, atomic operations, variables.

use std::time::Duration;

use cuda_launch::{Launch, LaunchConfig, params, per};
use cuda_tests::{no_leaks, setup};

use super::compiled;

#[test]
fn atomic_operations_on_words() {
    let context = setup();
    no_leaks(|| {
        let (atomics, stream) = (compiled!(&context, "atomics", "atomics_word"), context.stream().unwrap());
        for n in [1_u32, 33, 1000] {
            let start: [u32; 12] = [7, 5000, 900, 3, u32::MAX, 0, 0x55, 3, 3, 0, 0, 50];
            let words = stream.upload(&start).unwrap();
            // SAFETY: the arguments are the kernel's, and it has the twelve words it uses.
            unsafe { atomics.launch(&stream, per(n as usize, 128), params![n, &words]) }.unwrap();
            let found = words.read_blocking(&stream).unwrap();
            let all = || 0..n;
            let repeat = |start: u32, step: fn(u32) -> u32| all().fold(start, |value, _| step(value));
            let expected = [
                all().fold(7, u32::wrapping_add),
                5000 - n,
                5,
                3.max(n - 1),
                all().fold(u32::MAX, |value, i| value & !(1 << (i % 31))),
                all().fold(0, |value, i| value | 1 << (i % 32)),
                all().fold(0x55, |value, i| value ^ i),
                repeat(3, |old| if old >= 9 { 0 } else { old + 1 }),
                repeat(3, |old| if old == 0 || old > 9 { 9 } else { old - 1 }),
            ];
            assert_eq!(found[..9], expected, "{n} threads");
            assert!((1..=n).contains(&found[9]), "one of the threads: {}", found[9]);
            assert_eq!(found[10], 1, "and only one");
            assert_eq!(found[11] as i32, -(n as i32 - 1));
        }
    });
}

#[test]
fn atomic_operations_on_wide_words_and_floats() {
    let context = setup();
    no_leaks(|| {
        let (atomics, stream) = (compiled!(&context, "atomics", "atomics_wide"), context.stream().unwrap());
        let n = 500_u32;
        let wide = stream.upload(&[1_u64, 5, 6, 0]).unwrap();
        let (single, twice) = (stream.upload(&[1.0_f32]).unwrap(), stream.upload(&[2.0_f64]).unwrap());
        // SAFETY: the arguments are the kernel's, and it has the words it uses.
        unsafe { atomics.launch(&stream, per(500, 64), params![n, &wide, &single, &twice]) }.unwrap();
        let expected = [1 + 500 * 0x1_0000_0001, 499 << 33, 7, 11];
        assert_eq!(wide.read_blocking(&stream).unwrap(), expected);
        assert_eq!(single.read_blocking(&stream).unwrap(), [251.0]);
        assert_eq!(twice.read_blocking(&stream).unwrap(), [127.0]);
    });
}

#[test]
fn blocks_sum_in_shared_memory_of_fixed_and_of_launch_time_size() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let input: Vec<u32> = (0..1000_u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let numbers = stream.upload(&input).unwrap();
        for block in [1_u32, 2, 64, 256] {
            let config = per(1000, block);
            let blocks = config.grid().x as usize;
            let expected: Vec<u32> = input
                .chunks(block as usize)
                .map(|chunk| chunk.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value)))
                .collect();
            for (kernel, config) in [
                (compiled!(&context, "reduce", "sum_static"), config),
                (compiled!(&context, "reduce", "sum_dynamic"), config.shared_bytes(4 * block)),
            ] {
                let out = stream.zeros::<u32>(blocks).unwrap();
                // SAFETY: the arguments are the kernel's, there is a slot for each block and a word
                // of shared memory for each thread.
                unsafe { kernel.launch(&stream, config, params![1000_u32, &numbers, &out]) }.unwrap();
                assert_eq!(
                    out.read_blocking(&stream).unwrap(),
                    expected,
                    "{} with {block} threads",
                    kernel.name()
                );
            }
        }
    });
}

#[test]
fn constants_and_local_arrays_are_read() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let input: Vec<u32> = (0..500_u32).map(|i| i.wrapping_mul(48_271) ^ 0x77).collect();
        let (numbers, out) = (stream.upload(&input).unwrap(), stream.zeros::<u32>(500).unwrap());
        // SAFETY: the arguments are the kernel's, and both buffers have 500 elements; so below.
        unsafe {
            compiled!(&context, "spaces", "constant_table").launch(
                &stream,
                per(500, 64),
                params![500_u32, &numbers, &out],
            )
        }
        .unwrap();
        let expected: Vec<u32> = input.iter().map(|index| (index & 7) * (index & 7)).collect();
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);
        // SAFETY: as above.
        unsafe {
            compiled!(&context, "spaces", "local_array").launch(
                &stream,
                per(500, 64),
                params![500_u32, &numbers, &out],
            )
        }
        .unwrap();
        let commonest = |mut rest: u32| {
            let mut digits = [0; 10];
            while rest != 0 {
                digits[(rest % 10) as usize] += 1;
                rest /= 10;
            }
            (1..10).fold(0, |most, digit| if digits[digit] > digits[most] { digit } else { most }) as u32
        };
        assert_eq!(
            out.read_blocking(&stream).unwrap(),
            input.iter().map(|value| commonest(*value)).collect::<Vec<_>>()
        );
    });
}

#[test]
fn a_variable_of_an_image_keeps_its_value_and_belongs_to_the_library() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(1).unwrap();
        let (first, second) = (
            compiled!(&context, "spaces", "device_variable"),
            compiled!(&context, "spaces", "device_variable"),
        );
        let add = |kernel: &cuda_handles::Kernel, amount: u32| {
            // SAFETY: the arguments are the kernel's, and it writes one word.
            unsafe { kernel.launch(&stream, LaunchConfig::new(2, 32), params![amount, &out]) }.unwrap();
            out.read_blocking(&stream).unwrap()[0]
        };
        assert_eq!([add(&first, 2), add(&first, 3), add(&second, 1), add(&first, 5)], [42, 45, 41, 50]);
    });
}

#[test]
fn every_thread_has_its_place() {
    let context = setup();
    no_leaks(|| {
        let (positions, stream) = (compiled!(&context, "spaces", "positions"), context.stream().unwrap());
        let (grid, block) = ([3_u32, 2, 2], [4_u32, 3, 2]);
        let threads = (grid.iter().product::<u32>() * block.iter().product::<u32>()) as usize;
        let out = stream.zeros::<[u32; 6]>(threads).unwrap();
        // SAFETY: the kernel writes six words for each thread.
        unsafe { positions.launch(&stream, LaunchConfig::new(grid, block), params![&out]) }.unwrap();
        let mut expected = Vec::new();
        for z in 0..grid[2] {
            for y in 0..grid[1] {
                for x in 0..grid[0] {
                    for c in 0..block[2] {
                        for b in 0..block[1] {
                            expected.extend((0..block[0]).map(|a| [x, y, z, a, b, c]));
                        }
                    }
                }
            }
        }
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn a_buffer_dropped_under_a_kernel_that_reads_it_late_is_freed_after_it() {
    let context = setup();
    no_leaks(|| {
        let (late, home) = (compiled!(&context, "spin", "spin_copy"), context.stream().unwrap());
        for other in [home.clone(), context.stream().unwrap()] {
            let input = home.upload(&(0..500).collect::<Vec<u32>>()).unwrap();
            let out = home.zeros::<u32>(500).unwrap();
            let wait = Duration::from_millis(60).as_nanos() as u64;
            // SAFETY: the arguments are the kernel's, and both buffers have 500 elements.
            unsafe { late.launch(&other, per(500, 64), params![wait, 500_u32, &input, &out]) }.unwrap();
            drop(input);
            let third = context.stream().unwrap();
            let others: Vec<_> = (0..16).map(|_| third.upload(&[u32::MAX; 500]).unwrap()).collect();
            assert_eq!(out.read_blocking(&other).unwrap(), (0..500).collect::<Vec<u32>>());
            drop(others);
        }
    });
}
