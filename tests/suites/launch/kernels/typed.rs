//! Kernels with a signature.

use core::fmt;

use cuda_graph::ContextExt;
use cuda_handles::{Context, Image, Library};
use cuda_launch::{Error, LaunchConfig, TypedKernel, fields, kernel, params, per};
use cuda_sys::Version;
use cuda_tests::{SMALL, count, no_leaks, other_device, raw, setup};
use proptest::prelude::*;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in "../../../kernels/saxpy.ptx";

    /// Adds `a` times `x` to `y`.
    pub(crate) fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

/// As in the image.
#[repr(C)]
#[derive(Clone, Copy)]
struct Long([u64; 3]);

/// As in the image.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Wide([u64; 2]);

/// As in the image, with names for its parts.
#[repr(C)]
#[derive(Clone, Copy)]
struct Triple {
    numbers: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    first: u64,
    second: u64,
}

#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Pair {
    part: Part,
}

fields! { Triple { numbers: [u64; 3] } }
fields! { Part { first: u64, second: u64 } }
fields! { Pair { part: Part } }

kernel! {
    // SAFETY: the kernels in the image have these parameters; what each touches is described there,
    // and the conditions say it.
    unsafe in Image::Ptx(SMALL);

    fn empty();
    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
    fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32)
    where from.len() >= n, to.len() >= n,;
    fn in_place(from: In<u32>, to: Out<u32>, add: u32, n: u32) allow overlap named "offset_copy"
    where from.len() >= n, to.len() >= n;
    fn structures(a: u8, b: Struct<Long>, c: u16, d: Struct<Wide>, e: u32, out: Out<u64>)
    where out.len() >= 8, grid.product() == 1, (block.product()) == 1;
    fn fielded(a: u8, b: Fields<Triple>, c: u16, d: Fields<Pair>, e: u32, out: Out<u64>) named "structures"
    where d.part.first * d.part.second >= out.len(), b.numbers[0] * b.numbers[1] * b.numbers[2] <= 24 * out.len(), grid.product() == 1,
        block.product() == 1, out.len() >= 8;
    unsafe fn poke(address: u64, value: u32);
    fn many20(
        out: Out<u64>, a1: u8, a2: u16, a3: u32, a4: u64, a5: u8, a6: u16, a7: u32, a8: u64, a9: u8, a10: u16, a11: u32,
        a12: u64, a13: u8, a14: u16, a15: u32, a16: u64, a17: u8, a18: u16, a19: u32
    ) where out.len() >= 20, grid.product() == 1, block.product() == 1;

    // Kernels whose declaration differs from the image.
    fn wrong_size(values: InOut<u32>, n: u64) named "increment";
    fn wrong_number(values: InOut<u32>) named "increment";
    fn not_there();

    // Conditions of every kind, on a kernel that does nothing with its arguments.
    fn scaled(values: In<u32>, n: u32) named "increment"
    where 2 * n <= 20, n.to_f64() * 0.5 < 100.0, shared % 4 == 0, !(n < 1) || values.len() == 0;
    fn squared(values: In<u32>, n: u32) named "increment" where !(grid.product() * grid.product() * grid.product() < n);
    fn positive(n: u32, a: f32, x: In<f32>, y: Out<f32>) named "saxpy" where a > 0.0;
}

fn text<T: fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().to_string()
}

/// Launches nothing, with an error and no driver call.
fn refused<T: fmt::Debug>(launch: impl FnOnce() -> Result<T, Error>) -> Error {
    let (outcome, cost) = count(launch);
    cost.assert_calls(&[]);
    outcome.unwrap_err()
}

#[test]
fn a_typed_launch_computes() {
    let context = setup();
    no_leaks(|| {
        let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
        let host: Vec<f32> = (0..1000_u16).map(f32::from).collect();
        let (x, y) = (stream.upload(&host).unwrap(), stream.zeros::<f32>(1000).unwrap());
        saxpy.launch(&stream, per(1000, 256), (1000, 2.0, &x, &y)).unwrap();
        saxpy
            .launch(&stream, per(10, 32), (10, 1.0, y.slice(..10).unwrap(), &x.slice(990..).unwrap()))
            .unwrap();
        let expected: Vec<f32> = host.iter().map(|value| 2.0 * value).collect();
        assert_eq!(y.read_blocking(&stream).unwrap(), expected);
        assert_eq!(x.read_blocking(&stream).unwrap()[999], 999.0 + 18.0);
    });
}

#[test]
fn a_typed_launch_is_one_call_and_no_allocation() {
    let context = setup();
    no_leaks(|| {
        let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
        let (x, y) = (stream.zeros::<f32>(256).unwrap(), stream.zeros::<f32>(256).unwrap());
        for _ in 0..3 {
            let (launched, cost) = count(|| saxpy.launch(&stream, per(256, 128), (256, 2.0, &x, &y)));
            launched.unwrap();
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
    });
}

#[test]
fn a_typed_node_computes_and_keeps_its_arguments() {
    let context = setup();
    no_leaks(|| {
        let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
        let y = stream.zeros::<f32>(100).unwrap();
        let graph = context.graph().unwrap();
        let x = stream.upload(&[3.0_f32; 100]).unwrap();
        let (node, cost) = count(|| graph.root().launch(&saxpy, per(100, 64), (100, 2.0, &x, &y)));
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        node.unwrap().then().launch(&saxpy, per(100, 64), (100, 1.0, &x, &y)).unwrap();
        drop((x, saxpy));
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap(), [9.0; 100]);
    });
}

#[test]
fn a_node_with_a_broken_condition_is_not_added() {
    let context = setup();
    let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
    let x = stream.zeros::<f32>(10).unwrap();
    let graph = context.graph().unwrap();
    let (added, cost) = count(|| graph.root().launch(&saxpy, per(11, 32), (11, 1.0, &x, &x)));
    cost.assert_calls(&[]);
    let error = added.unwrap_err();
    assert!(matches!(&error, cuda_graph::Error::Launch(Error::Condition(_))), "{error:?}");
}

#[test]
fn a_broken_condition_is_named_with_all_values() {
    let context = setup();
    let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
    let (x, y) = (stream.zeros::<f32>(1000).unwrap(), stream.zeros::<f32>(500).unwrap());
    let error = refused(|| saxpy.launch(&stream, per(1000, 256), (1000, 2.5, &x, &y)));
    assert_eq!(
        error.to_string(),
        "kernel `saxpy` cannot be launched: `y.len() >= n` does not hold with n = 1000, a = 2.5, x.len() = 1000, y.len() = 500; \
         grid (4, 1, 1), block (256, 1, 1)"
    );
    let Error::Condition(broken) = error else { panic!("{error:?}") };
    assert_eq!((broken.kernel, broken.condition), ("saxpy", "y.len() >= n"));
    let error = refused(|| saxpy.launch(&stream, per(499, 128), (513, 2.5, &x, &x.slice(..513).unwrap())));
    assert!(error.to_string().contains("`grid.x * block.x >= n`"), "{error}");
    // Another kernel of the same parameters is refused for its own reasons.
    let error = refused(|| saxpy.launch(&stream, per(0, 256), (0, 1.0, &x, &y)));
    assert!(matches!(error, Error::Limit(_)), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn conditions_decide_as_wide_numbers_do(n in 0..40_u32, x in 0..40_usize, y in 0..40_usize, grid in 1..3_u32, block in 1..20_u32) {
        let context = setup();
        let (saxpy, stream) = (saxpy::load(&context).unwrap(), context.stream().unwrap());
        let (left, right) = (stream.zeros::<f32>(x).unwrap(), stream.zeros::<f32>(y).unwrap());
        let holds = x as u32 >= n && y as u32 >= n && grid * block >= n;
        let launched = saxpy.launch(&stream, LaunchConfig::new(grid, block), (n, 1.0, &left, &right));
        prop_assert_eq!(launched.is_ok(), holds, "{:?}", launched);
        stream.synchronize_blocking().unwrap();
    }
}

#[test]
fn conditions_of_every_kind() {
    let context = setup();
    let stream = context.stream().unwrap();
    let (values, none) = (stream.zeros::<u32>(10).unwrap(), stream.zeros::<u32>(0).unwrap());
    let scaled = scaled::load(&context).unwrap();
    let one = LaunchConfig::new(1, 32);
    let condition = |n, values: &cuda_handles::Buffer<u32>, config: LaunchConfig| match scaled
        .prepare(&config, (n, values).swap())
    {
        Ok(_) => "",
        Err(Error::Condition(broken)) => broken.condition,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(condition(10, &values, one), "");
    assert_eq!(condition(11, &values, one), "2 * n <= 20");
    assert_eq!(condition(10, &values, one.shared_bytes(6)), "shared % 4 == 0");
    assert_eq!(condition(0, &values, one), "!(n < 1) || values.len() == 0");
    assert_eq!(condition(0, &none, one), "");
    let (squared, positive) = (squared::load(&context).unwrap(), positive::load(&context).unwrap());
    // The product is beyond 128 bits; the negation does not make that true.
    let error = text(squared.prepare(&LaunchConfig::new([u32::MAX; 3], 1), (&values, 5)));
    assert!(error.contains("grid.product()"), "{error}");
    assert!(squared.prepare(&LaunchConfig::new([2, 2, 2], 1), (&values, 5)).is_ok());
    let (x, y) = (stream.zeros::<f32>(1).unwrap(), stream.zeros::<f32>(1).unwrap());
    for (a, holds) in [(1.0, true), (0.0, false), (f32::NAN, false), (-1.0, false), (f32::INFINITY, true)] {
        assert_eq!(positive.prepare(&one, (1, a, &x, &y)).is_ok(), holds, "{a}");
    }
}

trait Swap {
    type Swapped;
    fn swap(self) -> Self::Swapped;
}

impl<A, B> Swap for (A, B) {
    type Swapped = (B, A);

    fn swap(self) -> (B, A) {
        (self.1, self.0)
    }
}

#[test]
fn memory_that_is_written_may_not_overlap() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (copy, in_place) = (offset_copy::load(&context).unwrap(), in_place::load(&context).unwrap());
        let buffer = stream.upload(&[5_u32; 20]).unwrap();
        let part = |range: core::ops::Range<usize>| buffer.slice(range).unwrap();
        let error = refused(|| copy.launch(&stream, per(10, 32), (part(0..10), part(9..19), 1, 10)));
        assert_eq!(
            error.to_string(),
            "kernel `offset_copy` cannot be launched: `from` and `to` overlap by 4 bytes, and one of them is written; if the kernel is made \
             for that, declare it with `allow overlap`"
        );
        assert!(matches!(
            refused(|| copy.launch(&stream, per(10, 32), (&buffer, &buffer, 1, 10))),
            Error::Overlap(_)
        ));
        copy.launch(&stream, per(10, 32), (part(0..10), part(10..20), 1, 10)).unwrap();
        copy.launch(&stream, per(10, 32), (part(0..0), part(0..0), 1, 0)).unwrap();
        in_place.launch(&stream, per(10, 32), (part(0..10), part(0..10), 2, 10)).unwrap();
        let expected = [[7_u32; 10], [6; 10]].concat();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn no_arguments_many_arguments_and_structures() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let one = LaunchConfig::new(1, 1);
        empty::load(&context).unwrap().launch(&stream, LaunchConfig::new(3, 32), ()).unwrap();
        let out = stream.zeros::<u64>(20).unwrap();
        let many = many20::load(&context).unwrap();
        let (launched, cost) = count(|| {
            let arguments = (&out, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
            many.launch(&stream, one, arguments)
        });
        launched.unwrap();
        cost.assert_calls(&[("cuLaunchKernel", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!(out.read_blocking(&stream).unwrap()[1..], (1..20).collect::<Vec<u64>>());
        let (typed, untyped) = (stream.zeros::<u64>(20).unwrap(), stream.zeros::<u64>(20).unwrap());
        let structures = structures::load(&context).unwrap();
        let (long, wide) = (Long([2, 3, 4]), Wide([6, 7]));
        structures.launch(&stream, one, (1, long, 5, wide, 8, &typed)).unwrap();
        let params = params![1_u8, [2_u64, 3, 4], 5_u16, [6_u64, 7], 8_u32, &untyped];
        // SAFETY: the arguments are the kernel's, and it has the eight words that it writes.
        unsafe { cuda_launch::Launch::launch(structures.kernel(), &stream, one, params) }.unwrap();
        assert_eq!(typed.read_blocking(&stream).unwrap(), untyped.read_blocking(&stream).unwrap());
    });
}

#[test]
fn conditions_see_the_fields_of_structs() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let one = LaunchConfig::new(1, 1);
        let fielded = fielded::load(&context).unwrap();
        let (plain, out) = (stream.zeros::<u64>(8).unwrap(), stream.zeros::<u64>(8).unwrap());
        let pair = |first, second| Pair { part: Part { first, second } };
        let (launched, cost) = count(|| {
            fielded.launch(&stream, one, (1, Triple { numbers: [2, 3, 4] }, 5, pair(6, 7), 8, &out))
        });
        launched.unwrap();
        cost.assert_calls(&[("cuLaunchKernel", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
        let structures = structures::load(&context).unwrap();
        structures.launch(&stream, one, (1, Long([2, 3, 4]), 5, Wide([6, 7]), 8, &plain)).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), plain.read_blocking(&stream).unwrap());

        let triple = Triple { numbers: [2, 3, 4] };
        let error = text(fielded.launch(&stream, one, (1, triple, 5, pair(1, 7), 8, &out)));
        assert!(error.contains("`d.part.first * d.part.second >= out.len()` does not hold"), "{error}");
        assert!(error.contains("b.numbers[0] = 2, b.numbers[1] = 3, b.numbers[2] = 4"), "{error}");
        assert!(error.contains("d.part.first = 1, d.part.second = 7, e = 8, out.len() = 8"), "{error}");
        // 2^32 times 2^32 is 0 in 64 bits.
        let wraps = Triple { numbers: [1 << 32, 1 << 32, 1] };
        let error = text(fielded.launch(&stream, one, (1, wraps, 5, pair(6, 7), 8, &out)));
        assert!(
            error.contains("`b.numbers[0] * b.numbers[1] * b.numbers[2] <= 24 * out.len()` does not hold"),
            "{error}"
        );
    });
}

#[test]
fn an_unsafe_kernel_is_launched_by_a_promise() {
    let context = setup();
    no_leaks(|| {
        let (poke, stream) = (poke::load(&context).unwrap(), context.stream().unwrap());
        let buffer = stream.zeros::<u32>(2).unwrap();
        // SAFETY: the address is that of the buffer's second element.
        unsafe { poke.launch(&stream, LaunchConfig::new(1, 1), (buffer.address() + 4, 7)) }.unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0, 7]);
    });
}

#[test]
fn loading_compares_the_declaration_with_the_image() {
    let context = setup();
    no_leaks(|| {
        let missing = text(not_there::load(&context));
        assert!(missing.contains("`not_there`"), "{missing}");
        if raw::driver().version() < Version::new(12, 4) {
            return;
        }
        let number = text(wrong_number::load(&context));
        assert!(number.contains("`increment`") && number.contains("2 parameters"), "{number}");
        assert!(number.contains("in its image, but its declaration has"), "{number}");
        let size = text(wrong_size::load(&context));
        assert!(size.contains("parameter 2 (`n`) is declared with 8 bytes instead of 4"), "{size}");
    });
}

#[test]
fn kernels_of_one_image_can_share_a_library() {
    let context = setup();
    no_leaks(|| {
        let library = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        // SAFETY: the library was loaded from the image of the declaration.
        let (first, second) =
            unsafe { (increment::of(&library).unwrap(), offset_copy::of(&library).unwrap()) };
        assert_eq!(first.kernel().library(), second.kernel().library());
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        first.clone().launch(&stream, per(8, 8), (&buffer, 8)).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
    });
}

fn context_of_other_device(context: &Context) -> Context {
    let other = other_device().context().unwrap();
    assert_ne!(context, &other);
    other
}

#[test]
fn memory_of_another_context_is_refused() {
    cuda_tests::alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let other = context_of_other_device(&context);
    let (increment, stream) = (increment::load(&context).unwrap(), context.stream().unwrap());
    let buffer = other.stream().unwrap().zeros::<u32>(8).unwrap();
    let error = refused(|| increment.launch(&stream, per(8, 8), (&buffer, 8)));
    assert!(matches!(error, Error::Handles(cuda_handles::Error::WrongContext { .. })), "{error:?}");
}

const LARGE: &str = r"
.version 8.1
.target sm_70
.address_size 64

.visible .entry last(.param .align 4 .b8 values[32000], .param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u32 %r1, [values+31996];
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
";

kernel! {
    // SAFETY: the kernel takes 8000 numbers by value and writes the last of them to the first
    // element of `out`.
    unsafe in Image::Ptx(LARGE);
    fn last(values: [u32; 8000], out: Out<u32>) where out.len() >= 1;
}

#[test]
fn thirty_two_kibibytes_of_parameters() {
    let context = setup();
    no_leaks(|| {
        let (last, stream) = (last::load(&context).unwrap(), context.stream().unwrap());
        let out = stream.zeros::<u32>(1).unwrap();
        let mut values = [0; 8000];
        values[7999] = 77;
        last.launch(&stream, LaunchConfig::new(1, 1), (values, &out)).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [77]);
        values[7999] = 78;
        // SAFETY: the arguments are the kernel's.
        unsafe {
            let params = params![values, &out];
            cuda_launch::Launch::launch(last.kernel(), &stream, LaunchConfig::new(1, 1), params).unwrap();
        }
        assert_eq!(out.read_blocking(&stream).unwrap(), [78]);
    });
}

#[test]
fn pinned_memory_is_an_argument_too() {
    let context = setup();
    no_leaks(|| {
        let (increment, stream) = (increment::load(&context).unwrap(), context.stream().unwrap());
        let shared = context.pinned_zeros::<u32>(8).unwrap().share();
        increment.launch(&stream, per(8, 8), (&shared, 8)).unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe {
            let params = params![&shared, 8_u32];
            cuda_launch::Launch::launch(increment.kernel(), &stream, per(8, 8), params).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        let unique = shared.try_unique().unwrap();
        assert_eq!(unique[..], [2; 8]);
    });
}
