//! Blocks of kernels with a struct, and the variables of their image.

use cuda_handles::{Error as Cause, Image, Library};
use cuda_launch::{Error, TypedKernel, kernel, per};
use cuda_tests::{Kind, SMALL, count, no_leaks, setup};

kernel! {
    // SAFETY: `weigh` touches the first `n` elements of its argument and the variable `weights`,
    // and `count` the variable `calls`; what is in these matters to no access.
    unsafe in "../../../kernels/variables.ptx";

    /// The variables of the image.
    #[derive(PartialEq)]
    pub(crate) struct Weighing;

    /// The constant.
    pub(crate) static weights: [f32; 16];
    static calls: u32;
    /// Of any length.
    static odd: [u8];
    static total: u64 = "_ZN4mine5totalE";

    pub(crate) fn weigh(n: u32, values: InOut<f32>) where values.len() >= n, grid.x * block.x >= n;
    fn count_threads() named "count";
    fn add_up(out: Out<u64>) where out.len() >= 1;
}

impl PartialEq for weigh {
    fn eq(&self, other: &Self) -> bool {
        self.kernel() == other.kernel()
    }
}

impl PartialEq for count_threads {
    fn eq(&self, other: &Self) -> bool {
        self.kernel() == other.kernel()
    }
}

impl PartialEq for add_up {
    fn eq(&self, other: &Self) -> bool {
        self.kernel() == other.kernel()
    }
}

#[test]
fn a_block_loads_its_image_once() {
    let context = setup();
    no_leaks(|| {
        let (kernels, cost) = count(|| Weighing::load(&context).unwrap());
        assert_eq!((cost.calls("cuLibraryLoadData"), cost.live(Kind::Library)), (1, 1), "{cost}");
        assert_eq!(cost.calls("cuLibraryGetGlobal"), 4);
        let (again, cost) = count(|| Weighing::load(&context).unwrap());
        // What is known is not asked for: the driver gives the kernels' handles, and that is all.
        cost.assert_calls(&[("cuCtxPushCurrent", 3), ("cuLibraryGetKernel", 3), ("cuCtxPopCurrent", 3)]);
        assert!(kernels == again);
        // One by one they come out of the same library.
        let (one, cost) = count(|| weigh::load(&context).unwrap());
        cost.assert_calls(&[("cuCtxPushCurrent", 1), ("cuLibraryGetKernel", 1), ("cuCtxPopCurrent", 1)]);
        assert_eq!(one.kernel().library(), kernels.library());
        assert_eq!(weights::load(&context).unwrap(), kernels.weights);
    });
}

#[test]
fn kernels_and_variables_work_together() {
    let context = setup();
    no_leaks(|| {
        let (kernels, stream) = (Weighing::load(&context).unwrap(), context.stream().unwrap());
        let values = stream.upload(&[1.0_f32; 32]).unwrap();
        kernels.weights.write_blocking(&stream, &[4.0; 16]).unwrap();
        kernels.weigh.launch(&stream, per(32, 32), (32, &values)).unwrap();
        assert_eq!(values.read_blocking(&stream).unwrap(), [4.0; 32]);
        kernels.count_threads.launch(&stream, per(10, 10), ()).unwrap();
        assert_eq!(kernels.calls.read_blocking(&stream).unwrap(), [15]);
        assert_eq!(kernels.odd.len(), 3);
        kernels.total.write_blocking(&stream, &[1000]).unwrap();
        let out = stream.zeros::<u64>(1).unwrap();
        kernels.add_up.launch(&stream, per(1, 1), (&out,)).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [1000 + 9 + 7 + 8 + 9]);
        // A variable is an argument like any memory.
        kernels.weigh.launch(&stream, per(16, 16), (16, &kernels.weights)).unwrap();
        assert_eq!(kernels.weights.read_blocking(&stream).unwrap(), [16.0; 16]);
    });
}

#[test]
fn a_variable_outlives_the_struct() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let Weighing { weights, .. } = Weighing::load(&context).unwrap();
        cuda_tests::settle();
        assert_eq!(weights.read_blocking(&stream).unwrap()[..3], [1.0, 2.0, 3.0]);
    });
}

#[test]
fn a_block_goes_with_a_library_that_is_there() {
    let context = setup();
    no_leaks(|| {
        let library =
            Library::load(&context, Image::Ptx(include_str!("../../../kernels/variables.ptx"))).unwrap();
        // SAFETY: it is the image of the declaration.
        let kernels = unsafe { Weighing::of(&library) }.unwrap();
        assert_eq!(kernels.library(), &library);
        assert_eq!(kernels.weigh.kernel().library(), &library);
        // SAFETY: as above.
        assert_eq!(unsafe { calls::of(&library) }.unwrap(), kernels.calls);
    });
}

mod wrong {
    use super::*;

    kernel! {
        // SAFETY: nothing is launched.
        unsafe in "../../../kernels/variables.ptx";

        pub(crate) static weights: [f32; 15];
        pub(crate) static calls: u64;
        pub(crate) static odd: [u16];
        pub(crate) static total: u64;
    }

    kernel! {
        // SAFETY: nothing is launched.
        unsafe in "../../../kernels/variables.ptx";
        pub(crate) struct Missing;
        pub(crate) fn weigh(n: u32, values: InOut<f32>);
        pub(crate) fn not_there();
    }

    kernel! {
        // SAFETY: the image has the kernel, which touches nothing.
        unsafe in Image::Ptx(SMALL);
        pub(crate) struct Alone;
        pub(crate) unsafe fn empty();
    }
}

#[test]
fn declarations_are_compared_with_the_image() {
    let context = setup();
    no_leaks(|| {
        let text = |error: Error| {
            assert!(matches!(error, Error::Handles(_)), "{error:?}");
            error.to_string()
        };
        let found = text(wrong::weights::load(&context).unwrap_err());
        assert!(
            found.contains("`weights`")
                && found.contains("64 bytes")
                && found.contains("15 elements of `f32`"),
            "{found}"
        );
        let found = text(wrong::calls::load(&context).unwrap_err());
        assert!(found.contains("4 bytes") && found.contains("`u64`"), "{found}");
        let found = text(wrong::odd::load(&context).unwrap_err());
        assert!(found.contains("3 bytes") && found.contains("`u16`"), "{found}");
        let found = wrong::total::load(&context).unwrap_err();
        assert!(matches!(found, Error::Handles(Cause::NoGlobal { .. })), "{found:?}");
        let found = wrong::Missing::load(&context).unwrap_err();
        assert!(matches!(found, Error::Handles(Cause::NoKernel { .. })), "{found:?}");
    });
}

#[test]
fn a_kernel_declared_unsafe_is_a_field_too() {
    let context = setup();
    no_leaks(|| {
        let (alone, stream) = (wrong::Alone::load(&context).unwrap(), context.stream().unwrap());
        // SAFETY: it touches nothing.
        unsafe { alone.empty.launch(&stream, per(1, 1), ()) }.unwrap();
        stream.synchronize_blocking().unwrap();
    });
}
