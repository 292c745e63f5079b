//! The cost of a launch: driver calls and allocations.

use cuda_launch::{Launch, LaunchConfig, params, per};
use cuda_tests::{count, kernel, no_leaks, setup};

#[test]
fn a_launch_built_per_call_is_one_call_and_no_allocation() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<f32>(256).unwrap(), stream.zeros::<f32>(256).unwrap());
        for _ in 0..3 {
            let (launched, cost) = count(|| {
                // SAFETY: the arguments are the kernel's, and both buffers have 256 elements.
                unsafe { saxpy.launch(&stream, per(256, 128), params![256_u32, 2.0_f32, &x, &y]) }
            });
            launched.unwrap();
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
    });
}

#[test]
fn sixteen_arguments_need_no_heap() {
    let context = setup();
    no_leaks(|| {
        let many = kernel(&context, "many16");
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u64>(16).unwrap();
        let (launched, cost) = count(|| {
            let params = params![
                &out, 1_u8, 2_u16, 3_u32, 4_u64, 5_u8, 6_u16, 7_u32, 8_u64, 9_u8, 10_u16, 11_u32, 12_u64,
                13_u8, 14_u16, 15_u32
            ];
            // SAFETY: the arguments are the kernel's, and there is a slot for each.
            unsafe { many.launch(&stream, LaunchConfig::new(1, 1), params) }
        });
        launched.unwrap();
        cost.assert_calls(&[("cuLaunchKernel", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!(out.read_blocking(&stream).unwrap()[1..], (1..16).collect::<Vec<u64>>());
    });
}

#[test]
fn a_reused_holder_is_one_call_and_no_allocation() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        let borrowed = params![&buffer, 64_u32];
        let owned = params![&buffer, 64_u32].into_owned();
        for _ in 0..3 {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            let (launched, cost) = count(|| unsafe { increment.launch(&stream, per(64, 64), &borrowed) });
            launched.unwrap();
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
            // SAFETY: as above.
            let (launched, cost) = count(|| unsafe { increment.launch(&stream, per(64, 64), &owned) });
            launched.unwrap();
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [6; 64]);
    });
}

#[test]
fn a_launch_elsewhere_waits_at_first_and_is_one_call_afterwards() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(64).unwrap();
        let launch = || {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { increment.launch(&other, per(64, 64), params![&buffer, 64_u32]) }.unwrap();
        };
        let ((), cost) = count(launch);
        assert_eq!((cost.calls("cuLaunchKernel"), cost.calls("cuStreamWaitEvent")), (1, 1), "{cost}");
        for _ in 0..3 {
            let ((), cost) = count(launch);
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        assert_eq!(buffer.read_blocking(&other).unwrap(), [4; 64]);
    });
}

#[test]
fn a_holder_is_made_without_a_call_and_checks_without_one() {
    let context = setup();
    let saxpy = kernel(&context, "saxpy");
    let stream = context.stream().unwrap();
    let x = stream.zeros::<f32>(8).unwrap();
    let (checked, cost) = count(|| {
        let params = params![8_u32, 1.0_f32, &x, &x];
        let config = per(8, 32);
        config.check(&saxpy).and_then(|()| cuda_launch::Arguments::check(&params, &saxpy))
    });
    checked.unwrap();
    cost.assert_calls(&[]);
    assert_eq!(cost.heap_allocations(), 0);
    let (owned, cost) = count(|| params![8_u32, 1.0_f32, &x, &x].into_owned());
    cost.assert_calls(&[]);
    assert_eq!(owned.allocations().len(), 2);
}
