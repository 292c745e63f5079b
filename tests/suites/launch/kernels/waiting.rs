//! Typed kernels that wait at their entry.

use cuda_handles::Image;
use cuda_launch::{StreamConfig, TypedKernel, kernel, per};
use cuda_tests::{SMALL, count, needs, no_leaks, setup};

kernel! {
    // SAFETY: each thread touches the element of its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    struct Small;
    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
    fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32)
    where from.len() >= n, to.len() >= n;
}

#[test]
fn the_kernels_of_a_declaration_are_loaded_waiting() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (small, plain) = (Small::load_waiting(&context).unwrap(), Small::load(&context).unwrap());
        assert!(small.increment.kernel().waits_at_entry() && small.offset_copy.kernel().waits_at_entry());
        assert!(!plain.increment.kernel().waits_at_entry());
        assert_ne!(small.library(), plain.library());
        let (one, cost) = count(|| increment::load_waiting(&context).unwrap());
        assert_eq!(cost.calls("cuLibraryLoadData"), 0, "{cost}");
        assert_eq!(one.kernel(), small.increment.kernel());
    });
}

#[test]
fn waiting_kernels_that_may_start_early_see_what_came_before() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (small, stream) = (Small::load_waiting(&context).unwrap(), context.stream().unwrap());
        let (from, to) = (stream.zeros::<u32>(1000).unwrap(), stream.zeros::<u32>(1000).unwrap());
        let early = StreamConfig::from(per(1000, 128)).programmatic_serialization();
        for _ in 0..10 {
            small.increment.launch(&stream, early, (&from, 1000)).unwrap();
            small.offset_copy.launch(&stream, early, (&from, &to, 5, 1000)).unwrap();
        }
        assert_eq!(to.read_blocking(&stream).unwrap(), [15; 1000]);
    });
}
