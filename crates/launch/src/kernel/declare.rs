//! The macro that declares typed kernels.

/// Declares kernels: their signature, the image that has them, and what must hold for a launch.
/// Launching them is safe.
///
/// ```
/// cuda_launch::kernel! {
///     // SAFETY: `saxpy` in the image has these parameters; each thread touches element blockIdx.x * blockDim.x + threadIdx.x of `x` and
///     // `y`, if that is less than `n`.
///     unsafe in cuda_handles::Image::Ptx(".version 7.8 // and so on");
///
///     /// Adds `a` times `x` to `y`.
///     pub fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
///     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
///
///     /// Takes elements of `values` by the positions in `index`.
///     ///
///     /// # Safety
///     /// Every position is less than `values.len()`.
///     pub unsafe fn gather(n: u32, index: In<u32>, values: In<f32>, out: Out<f32>)
///     where index.len() >= n, out.len() >= n;
/// }
///
/// # fn main() {}
/// # fn example(context: &cuda_handles::Context, stream: &cuda_handles::Stream) -> cuda_launch::Result<()> {
/// use cuda_launch::per;
///
/// let saxpy = saxpy::load(context)?;
/// let (x, y) = (stream.zeros::<f32>(1000)?, stream.zeros::<f32>(1000)?);
/// saxpy.launch(stream, per(1000, 256), (1000, 2.0, &x, &y))?;
/// # Ok(())
/// # }
/// ```
///
/// Each kernel becomes a type of its name with
/// - `load(&Context)`: loads the image, or takes the one that is loaded in that context
///   ([`Library::load_shared`](cuda_handles::Library::load_shared)), and compares number and sizes
///   of the parameters with what the driver says of the kernel (since 12.4); `unsafe of(&Library)`
///   takes the kernel from another library;
/// - `launch(&stream, config, arguments)`: one driver call, no heap allocation; `unsafe` for a
///   kernel declared as `unsafe fn`;
/// - the trait [`TypedKernel`](crate::TypedKernel), by which graphs take it.
///
/// # The image
/// A string literal is the path of a PTX file, relative to the source file, as for
/// [`include_str!`]. Anything else is an expression of type
/// [`Image<'static>`](cuda_handles::Image), such as
/// `Image::Binary(include_bytes!("kernels.cubin"))`.
///
/// Where the image is made while the program runs, as by a compiler, declare an empty one and take
/// kernels by `of` from the library that was loaded; `load` fails then.
///
/// # Parameters
/// Numbers of exact width, arrays of them, [`Struct<T>`](crate::Struct) for structs by value,
/// [`Fields<T>`](crate::Fields) where conditions are about fields of it, and memory as
/// [`In<T>`](crate::In), [`Out<T>`](crate::Out) or [`InOut<T>`](crate::InOut), also of a
/// [`Tensor<T>`](crate::Tensor); [`ConditionalHandle`](crate::ConditionalHandle) for the handle of
/// a condition, which the kernel may only set. These names need not be imported. Memory that is
/// written must not overlap that of other arguments, unless the signature is followed by `allow
/// overlap`. A name that differs in the image, as in C++ without `extern "C"`, is given as `named
/// "_Z5saxpyjfPKfPf"` behind that.
///
/// # All kernels of an image
/// A struct in front of the kernels gets a field for each of them, and `load(&Context)`, which
/// loads the image once. Variables of the image (`__device__`, `__constant__`) follow it: `static
/// weights: [f32; 16];`, `[f32]` for any number of elements, or one value, such as `u32`. They are
/// fields too, of type [`Buffer`](cuda_handles::Buffer), which copies write and read; the size of
/// the variable is compared with the declaration. Each is also a type of its name with
/// `load(&Context)`. A name that differs in the image is given behind an equals sign. The order is:
/// the struct, variables, kernels; all but the kernels may be left out.
/// ```
/// cuda_launch::kernel! {
///     // SAFETY: `scale` multiplies each of the first `n` elements of `values` by one of the 16 floats in the constant `weights`.
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
///     pub fn sum(n: u32, values: In<f32>, out: Out<f32>) where values.len() >= n, out.len() >= 1;
/// }
///
/// # fn main() {}
/// # fn example(context: &cuda_handles::Context, stream: &cuda_handles::Stream) -> cuda_launch::Result<()> {
/// let smoothing = Smoothing::load(context)?;
/// smoothing.weights.write_blocking(stream, &[0.5; 16])?;
/// let values = stream.zeros::<f32>(1000)?;
/// smoothing.scale.launch(stream, cuda_launch::per(1000, 256), (1000, &values))?;
/// # Ok(())
/// # }
/// ```
///
/// # Conditions
/// They follow `where`, separated by commas: Rust expressions over the parameters and over `grid`,
/// `block`, `cluster` (with `x`, `y`, `z` and `product()`), `shared` (bytes of dynamic shared
/// memory) and `cooperative` (whether all blocks run at the same time). With a [preferred
/// cluster](crate::LaunchConfig::preferred_cluster) they must hold for that in the place of
/// `cluster`, too. Integers are wide enough for products of all these; a number too large even for
/// that breaks the condition. So are fields (`settings.n`) and elements (`shape[0]`). `x.len()` is
/// an integer, a floating-point parameter an `f64`, and `n.to_f64()` compares the two. The error
/// for a condition that does not hold has its text and all values.
///
/// # Safety
/// `unsafe in` is the promise, for each kernel declared:
/// - The image has a kernel of this name, whose parameters have the types of the signature:
///   `In<f32>` and the like stand for an address, a [`Struct`](crate::Struct) for one with the same
///   fields at the same offsets.
/// - For every launch configuration and all arguments that meet the conditions, and whatever is in
///   the memory, the kernel accesses no memory but that of the arguments, within their lengths,
///   reading `In`, writing `Out`, and both for `InOut`, and variables of the image; and it ends
///   without a fault.
/// - The image has a variable of the name of each `static`, which holds numbers of that type; and
///   all kernels of the image keep this promise whatever numbers are in the declared variables.
///   This includes launches with
///   [`programmatic_serialization`](crate::StreamConfig::programmatic_serialization), which can
///   start before the kernel in front of them in the stream has ended: what that one writes may not
///   be in memory yet, unless the kernel waits for it.
/// - For a kernel declared as `unsafe fn` this holds where the conditions in its documentation are
///   met, too. A kernel that trusts positions or addresses which it finds in memory or in numbers
///   is of this kind.
///
/// # Not everything compiles
/// An argument of another type, or one that is missing:
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>, y: &Buffer<u32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x, y));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10_u64, 2.0, x, x));
/// # }
/// ```
/// Memory that may only be read, where the kernel writes:
/// ```compile_fail,E0277
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x, read_only(x)));
/// # }
/// ```
/// A parameter whose type is none of a kernel's:
/// ```compile_fail,E0277
/// cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); fn wide(n: usize); }
/// ```
/// A declaration without the promise:
/// ```compile_fail
/// cuda_launch::kernel! { in cuda_handles::Image::Ptx(""); fn empty(); }
/// ```
/// A kernel declared as `unsafe fn` outside of `unsafe`:
/// ```compile_fail,E0133
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(gather: &gather, stream: &cuda_handles::Stream, x: &Buffer<f32>, index: &Buffer<u32>) {
/// let _ = gather.launch(stream, per(10, 32), (10, index, x, x));
/// # }
/// ```
/// A variable of a type that has other bit patterns than those of numbers:
/// ```compile_fail,E0277
/// cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); static flags: [bool; 4]; fn
/// one(); }
/// ```
/// A private kernel of a struct, elsewhere:
/// ```compile_fail,E0616
/// mod inner { cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); pub struct Both; pub
/// fn one(); fn two(); } }
/// # fn example(both: inner::Both) {
/// let _ = both.two;
/// # }
/// ```
/// A condition about something that is not there:
/// ```compile_fail,E0425
/// cuda_launch::kernel! { unsafe in cuda_handles::Image::Ptx(""); fn one(n: u32) where m >= n; }
/// ```
/// All that does:
/// ```
#[doc = include_str!("../../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> cuda_launch::Result<()> {
/// saxpy.launch(stream, per(10, 32), (10, 2.0, read_only(x), y))?;
/// saxpy.launch(stream, per(10, 32), (10, 2.0, x.slice(5..)?, &y.slice(5..)?))
/// # }
/// ```
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
