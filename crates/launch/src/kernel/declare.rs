//! The macro `kernel!`, which declares typed kernels.

/// Declares kernels of an image: their signatures, and the conditions that make a launch safe.
///
/// A kernel in PTX or a cubin has no types, so launching it by hand is `unsafe` each time. A
/// declaration moves that promise to one place. Every launch then checks its arguments against
/// the declaration, and safe code can launch the kernel.
///
/// ```
/// cuda_launch::kernel! {
///     // SAFETY: `saxpy` in the image has these parameters; each thread touches element
///     // blockIdx.x * blockDim.x + threadIdx.x of `x` and `y`, if that is less than `n`.
///     unsafe in cuda_handles::Image::Ptx(".version 7.8 // and so on");
///
///     /// Adds `a` times `x` to `y`.
///     pub fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
///     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
/// }
///
/// # fn main() {}
/// # use cuda_handles::{Context, Stream};
/// # fn example(context: &Context, stream: &Stream) -> cuda_launch::Result<()> {
/// use cuda_launch::per;
///
/// let saxpy = saxpy::load(context)?;
/// let (x, y) = (stream.zeros::<f32>(1000)?, stream.zeros::<f32>(1000)?);
/// saxpy.launch(stream, per(1000, 256), (1000, 2.0, &x, &y))?;
/// # Ok(())
/// # }
/// ```
///
/// `saxpy` is a type with these functions:
/// - `load(&Context)` loads the image, or takes the copy already loaded in that context
///   ([`Library::load_shared`](cuda_handles::Library::load_shared)), and checks number and sizes of
///   the parameters against the driver's (CUDA 12.4 and newer report them).
/// - `load_waiting(&Context)` does the same with kernels that wait at their entry for programmatic
///   predecessors ([`Library::load_waiting`](cuda_handles::Library::load_waiting)).
/// - `unsafe of(&Library)` takes the kernel from a library that you loaded yourself.
/// - `launch(&stream, config, arguments)` makes one driver call and no heap allocation. It is
///   `unsafe` for a kernel declared as `unsafe fn`.
///
/// It implements [`TypedKernel`](crate::TypedKernel), the trait through which graphs take kernels.
///
/// # Writing a declaration
/// 1. **Name the image.** `unsafe in "saxpy.ptx";` takes a PTX file, relative to the source file as
///    for [`include_str!`]. Any other expression has the type
///    [`Image<'static>`](cuda_handles::Image), such as
///    `unsafe in Image::Binary(include_bytes!("kernels.cubin"));`. If the image is made at run
///    time, declare `Image::Ptx("")` and take kernels by `of` from the library that you loaded;
///    `load` fails then.
/// 2. **Copy the signature.** Translate each C parameter by this table. The types need no import.
///
///    | CUDA C++ | declare | give |
///    |---|---|---|
///    | `unsigned n`, `float a`, … | `n: u32`, `a: f32`, … | a number of this type |
///    | `float4 v`, a struct of an array | `v: [f32; 4]` | an array |
///    | `Settings s` | `s: Struct<Settings>` | the struct, with the kernel's layout |
///    | `Settings s`, used in conditions | `s: Fields<Settings>` | the same; see [`fields!`] |
///    | `const float *x` | `x: In<f32>` | `&Buffer<f32>` or a slice of it |
///    | `float *x`, only written | `x: Out<f32>` | the same |
///    | `float *x` | `x: InOut<f32>` | the same |
///    | `const __grid_constant__ CUtensorMap m` | `m: In<Tensor<f32>>`, … | `&TensorMap<f32>` |
///    | `cudaGraphConditionalHandle h` | `h: ConditionalHandle` | a condition of a graph |
///
///    A kernel whose name in the image differs, as in C++ without `extern "C"`, gets
///    `named "_Z5saxpyjfPKfPf"` after the signature.
/// 3. **State the conditions** under which the kernel stays within its arguments, after `where`.
/// 4. **Decide who is responsible for the rest.** If the conditions are sufficient, declare `fn`.
///    If the kernel also trusts indices or addresses that it reads from memory, declare `unsafe fn`
///    and document them under `# Safety`; each launch is then `unsafe`.
/// 5. **Write the `SAFETY` comment**: why the kernel keeps the [promise](#safety).
///
/// # Accesses
/// `In`, `Out` and `InOut` say what the kernel does with the memory. A launch refuses memory that
/// the kernel writes and that overlaps another argument
/// ([`Error::Overlap`](crate::Error::Overlap)). A kernel made for overlapping arguments is declared
/// with `allow overlap` after its signature. The race check of graphs uses the same accesses.
///
/// # Conditions
/// Conditions are Rust expressions over the parameters and the launch configuration, separated by
/// commas. All must hold, or the launch is refused with
/// [`Error::Condition`](crate::Error::Condition), which shows the condition and all values.
///
/// | in a condition | value |
/// |---|---|
/// | `n` | an integer parameter as a 128-bit integer |
/// | `a` | a floating-point parameter as `f64` |
/// | `x.len()` | the number of elements of `x` |
/// | `shape[0]`, `settings.n` | an element of an array, a field of a [`Fields`](crate::Fields) |
/// | `grid`, `block`, `cluster` | extents: `.x`, `.y`, `.z`, `.product()` |
/// | `shared` | the bytes of dynamic shared memory |
/// | `cooperative` | whether all blocks run at the same time |
///
/// Products of integers do not wrap around: a result beyond 128 bits, like a division by zero,
/// makes the condition false. `n.to_f64()` compares an integer with a float. With a [preferred
/// cluster](crate::LaunchConfig::preferred_cluster) the conditions must hold for either cluster.
///
/// # Kernels and variables of an image together
/// A struct in front of the kernels has a field for each of them. `load(&Context)` and
/// `load_waiting(&Context)` load the image once. Variables of the image (`__device__`,
/// `__constant__`) follow the struct as `static` items and become fields of type
/// [`Buffer`](cuda_handles::Buffer), for copies to write and read:
/// - `static weights: [f32; 16];` declares an array, whose size is checked,
/// - `static table: [f32];` an array of any length,
/// - `static calls: u32;` a single value.
///
/// A variable is also a type of its own with `load(&Context)`. A name that differs in the image
/// follows an equals sign. The order is struct, variables, kernels; the first two are optional.
///
/// ```
/// cuda_launch::kernel! {
///     // SAFETY: `scale` multiplies each of the first `n` elements of `values` by one of the 16
///     // floats in the constant `weights`; `sum` adds up the first `n` into the first of `out`.
///     unsafe in cuda_handles::Image::Ptx(".version 7.8 // and so on");
///
///     /// Smoothing.
///     pub struct Smoothing;
///     /// One for each element of a group of 16.
///     pub static weights: [f32; 16];
///     static calls: u32 = "_ZN4mine5callsE";
///     /// Multiplies.
///     pub fn scale(n: u32, values: InOut<f32>) where values.len() >= n;
///     /// Adds up.
///     pub fn sum(n: u32, values: In<f32>, out: Out<f32>)
///     where values.len() >= n, out.len() >= 1;
/// }
///
/// # fn main() {}
/// # use cuda_handles::{Context, Stream};
/// # fn example(context: &Context, stream: &Stream) -> cuda_launch::Result<()> {
/// let smoothing = Smoothing::load(context)?;
/// smoothing.weights.write_blocking(stream, &[0.5; 16])?;
/// let values = stream.zeros::<f32>(1000)?;
/// smoothing.scale.launch(stream, cuda_launch::per(1000, 256), (1000, &values))?;
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// With `unsafe in` you promise for each declared kernel:
/// - The image has a kernel of this name, and its parameters have the types of the signature. `In`,
///   `Out` and `InOut` stand for an address, [`Struct`](crate::Struct) and
///   [`Fields`](crate::Fields) for a struct with the same fields at the same offsets.
/// - For every launch configuration and all arguments that meet the conditions, and whatever the
///   memory holds, the kernel ends without a fault, and waits for no other kernel. It accesses only
///   the memory of its arguments, within their lengths, and variables of the image. It only reads
///   `In` and only writes `Out`.
/// - Apart from its arguments the kernel keeps no state between launches, but in variables of the
///   image: two launches whose arguments have no memory in common, in any order or at the same
///   time, do the same. Graphs leave out order that no argument needs, if they are [asked
///   to](https://docs.rs/cuda-graph/latest/cuda_graph/enum.Order.html), where the image has no
///   variable that a kernel can write.
/// - This includes launches with
///   [`programmatic_serialization`](crate::StreamConfig::programmatic_serialization), which can
///   start before the previous kernel in the stream has ended. Unless the kernel waits for it, the
///   writes of that one may not have reached memory.
/// - The image has a variable of the name of each `static`, and it holds numbers of that type. All
///   kernels of the image keep this promise whatever numbers the declared variables hold.
///
/// For a kernel declared as `unsafe fn` the promise also depends on the conditions in the kernel's
/// own documentation.
///
/// # Declarations and launches that do not compile
/// An argument of another type, or a missing one:
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # fn example(saxpy: &saxpy, stream: &Stream, x: &Buffer<f32>, y: &Buffer<u32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x, y));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # fn example(saxpy: &saxpy, stream: &Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # fn example(saxpy: &saxpy, stream: &Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10_u64, 2.0, x, x));
/// # }
/// ```
/// Read-only memory for a parameter that the kernel writes:
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # fn example(saxpy: &saxpy, stream: &Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x, read_only(x)));
/// # }
/// ```
/// A type that is not a parameter type:
/// ```compile_fail,E0277
/// cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); fn wide(n: usize); }
/// ```
/// A declaration without `unsafe`:
/// ```compile_fail
/// cuda_launch::kernel! { in cuda_handles::Image::Ptx(""); fn empty(); }
/// ```
/// A launch of an `unsafe fn` outside of `unsafe`:
/// ```compile_fail,E0133
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # fn example(gather: &gather, stream: &Stream, x: &Buffer<f32>, index: &Buffer<u32>) {
/// let _ = gather.launch(stream, per(10, 32), (10, index, x, x));
/// # }
/// ```
/// A variable of a type for which not all bit patterns are valid:
/// ```compile_fail,E0277
/// cuda_launch::kernel! {
///     unsafe in cuda_handles::Image::Ptx("");
///     static flags: [bool; 4];
///     fn one();
/// }
/// ```
/// A private kernel of a struct, used in another module:
/// ```compile_fail,E0616
/// mod inner {
///     cuda_launch::kernel! {
///         unsafe in cuda_handles::Image::Ptx("");
///         pub struct Both;
///         pub fn one();
///         fn two();
///     }
/// }
/// # fn example(both: inner::Both) {
/// let _ = both.two;
/// # }
/// ```
/// A condition over an unknown name:
/// ```compile_fail,E0425
/// cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); fn one(n: u32) where m >= n; }
/// ```
/// The same kernels, launched as declared:
/// ```
#[doc = include_str!("../../docs/declared.rs")]
/// # use cuda_handles::Stream;
/// # use cuda_launch::Result;
/// # fn example(
/// #     saxpy: &saxpy, stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>,
/// # ) -> Result<()> {
/// saxpy.launch(stream, per(10, 32), (10, 2.0, read_only(x), y))?;
/// saxpy.launch(stream, per(10, 32), (10, 2.0, x.slice(5..)?, &y.slice(5..)?))
/// # }
/// ```
///
/// [`fields!`]: crate::fields!
#[doc(alias = "cudaLaunchKernel")]
#[doc(alias = "__global__")]
#[doc(alias = "cudaMemcpyToSymbol")]
#[doc(alias = "cudaMemcpyFromSymbol")]
#[doc(alias = "cudaGetSymbolAddress")]
#[macro_export]
macro_rules! kernel {
    (unsafe in $file:literal; $($declarations:tt)*) => {
        $crate::__block! {
            [[$crate::__private::Image::Ptx(::core::include_str!($file))] [concat!("`", $file, "`")]]
            [] [] $($declarations)*
        }
    };
    (unsafe in $image:expr; $($declarations:tt)*) => {
        $crate::__block! { [[$image] [concat!("`", stringify!($image), "`")]] [] [] $($declarations)* }
    };
    (in $($rest:tt)*) => {
        ::core::compile_error!("a declaration of kernels is a promise about an image: write `unsafe in ...`");
    };
}
