//! Holders that own their arguments.

use cuda_launch::{Launch, params, per};
use cuda_tests::{Gate, Kind, SOON, kernel, live, no_leaks, setup, until};

#[test]
fn an_owning_holder_keeps_its_buffers() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "offset_copy");
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(64).unwrap();
        let before = live().of(Kind::Allocation);
        let input = stream.upload(&(0..64).collect::<Vec<u32>>()).unwrap();
        let owned = params![&input, &out, 100_u32, 64_u32].into_owned();
        drop(input);
        // What a freed block would be given out for again.
        let others: Vec<_> = (0..16).map(|_| stream.upload(&[u32::MAX; 64]).unwrap()).collect();
        // SAFETY: the arguments are the kernel's, and both buffers have 64 elements.
        unsafe { increment.launch(&stream, per(64, 64), &owned) }.unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), (100..164).collect::<Vec<u32>>());
        drop(others);
        assert_eq!(live().of(Kind::Allocation), before + 1);
        drop(owned);
        assert!(until(SOON, || live().of(Kind::Allocation) == before));
    });
}

#[test]
fn a_buffer_dropped_right_after_its_launch_is_freed_after_the_kernel() {
    let context = setup();
    no_leaks(|| {
        let offset_copy = kernel(&context, "offset_copy");
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let out = other.zeros::<u32>(64).unwrap();
        for stream in [&home, &other] {
            let input = home.upload(&(0..64).collect::<Vec<u32>>()).unwrap();
            let gate = Gate::close(stream);
            // SAFETY: the arguments are the kernel's, and both buffers have 64 elements.
            unsafe { offset_copy.launch(stream, per(64, 64), params![&input, &out, 7_u32, 64_u32]) }.unwrap();
            drop(input);
            let free = context.stream().unwrap();
            let others: Vec<_> = (0..16).map(|_| free.upload(&[u32::MAX; 64]).unwrap()).collect();
            gate.open();
            assert_eq!(out.read_blocking(stream).unwrap(), (7..71).collect::<Vec<u32>>());
            drop(others);
        }
    });
}

#[test]
fn an_owning_holder_is_used_by_many_threads() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        let owned = params![&buffer, 64_u32].into_owned();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        // SAFETY: the arguments are the kernel's, and launches on one stream do not
                        // overlap.
                        unsafe { increment.launch(&stream, per(64, 64), &owned) }.unwrap();
                    }
                });
            }
        });
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [100; 64]);
    });
}
