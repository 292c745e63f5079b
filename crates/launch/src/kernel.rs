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
#[doc = include_str!("../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>, y: &Buffer<u32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x, y));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10, 2.0, x));
/// # }
/// ```
/// ```compile_fail,E0277
#[doc = include_str!("../docs/declared.rs")]
/// # fn example(saxpy: &saxpy, stream: &cuda_handles::Stream, x: &Buffer<f32>) {
/// let _ = saxpy.launch(stream, per(10, 32), (10_u64, 2.0, x, x));
/// # }
/// ```
/// Memory that may only be read, where the kernel writes:
/// ```compile_fail,E0277
#[doc = include_str!("../docs/declared.rs")]
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
#[doc = include_str!("../docs/declared.rs")]
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
#[doc = include_str!("../docs/declared.rs")]
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

/// The struct and the variables, which come first, and then all kernels.
#[doc(hidden)]
#[macro_export]
macro_rules! __block {
    ($head:tt [] [] $(#[$attribute:meta])* $visibility:vis struct $name:ident; $($rest:tt)*) => {
        $crate::__block! { $head [[$(#[$attribute])*] [$visibility] $name] [] $($rest)* }
    };
    ($head:tt $set:tt $variables:tt
        $(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $len:expr] $(= $other:literal)?; $($rest:tt)*
    ) => {
        $crate::__block! {
            @variable $head $set $variables [$(#[$attribute])*] [$visibility] $name [$element] [Some($len)] [$($other)?] $($rest)*
        }
    };
    ($head:tt $set:tt $variables:tt
        $(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty] $(= $other:literal)?; $($rest:tt)*
    ) => {
        $crate::__block! {
            @variable $head $set $variables [$(#[$attribute])*] [$visibility] $name [$element] [None] [$($other)?] $($rest)*
        }
    };
    ($head:tt $set:tt $variables:tt
        $(#[$attribute:meta])* $visibility:vis static $name:ident: $element:ty $(= $other:literal)?; $($rest:tt)*
    ) => {
        $crate::__block! {
            @variable $head $set $variables [$(#[$attribute])*] [$visibility] $name [$element] [Some(1)] [$($other)?] $($rest)*
        }
    };
    (@variable $head:tt $set:tt [$($variables:tt)*] $attributes:tt [$visibility:vis] $name:ident [$element:ty] $len:tt $other:tt $($rest:tt)*) => {
        $crate::__variable! { $head $attributes [$visibility] $name [$element] $len $other }
        $crate::__block! { $head $set [$($variables)* [[$visibility] $name [$element]]] $($rest)* }
    };
    ([$image:tt $from:tt] $set:tt $variables:tt $($kernels:tt)*) => {
        $crate::__kernels! { $image $from [$($kernels)*] $($kernels)* }
        $crate::__set! { $image $from $set $variables $($kernels)* }
    };
}

/// The declarations, one after the other. `$all` is their text once more, for the names in
/// conditions.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels {
    ($image:tt $from:tt $all:tt $(
        $(#[$attribute:meta])* $visibility:vis $($introducer:ident)+ ($($parameter:ident: $type:ty),* $(,)?)
        $(allow $overlap:ident)? $(named $name:literal)? $(where $($condition:expr),+ $(,)?)? ;
    )*) => {$(
        $crate::__kernel! {
            [$image $from $all] [$(#[$attribute])*] [$visibility] [$($introducer)+] [$($parameter: $type),*]
            [$($overlap)?] [$($name)?] [$($($condition),+)?]
        }
    )*};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __kernel {
    (@name $kernel:ident []) => { stringify!($kernel) };
    (@name $kernel:ident [$name:literal]) => { $name };
    (@overlap []) => { false };
    (@overlap [overlap]) => { true };
    (@overlap [$other:ident]) => { ::core::compile_error!("only `allow overlap` is known here") };
    (@overlap_text []) => { "" };
    (@overlap_text [$other:ident]) => { "\n- Memory that is written may overlap that of other arguments." };
    (@declare $kernel:ident [[$($image:tt)*] [$($from:tt)*] $all:tt] [$(#[$attribute:meta])*] [$visibility:vis] [$($unsafe:ident)?]
        [$($parameter:ident: $type:ty),*] $overlap:tt $name:tt [$($condition:expr),*]
    ) => {
        $(#[$attribute])*
        #[doc = "\n\n# Kernel\n```text"]
        #[doc = concat!($(stringify!($unsafe), " ",)? "fn ", stringify!($kernel), "(")]
        $(#[doc = concat!("    ", stringify!($parameter), ": ", stringify!($type), ",")])*
        #[doc = concat!(")\n```\n\nConditions of a launch:\n- Grid, block and shared memory are within the limits of device and kernel."
            $(, "\n- `", stringify!($condition), "`")*, $crate::__kernel!(@overlap_text $overlap))]
        #[doc = concat!("\n\nThe kernel is in ", $($from)*, ".")]
        #[derive(Clone, Debug)]
        #[allow(non_camel_case_types)]
        $visibility struct $kernel {
            loaded: $crate::__private::Loaded<Self>,
        }

        #[allow(dead_code)]
        impl $kernel {
            /// Loads the image and takes the kernel out of it. Its number and sizes of parameters
            /// are compared with the declaration.
            ///
            /// # Errors
            /// The image does not load, has no such kernel, or the kernel has other parameters.
            $visibility fn load(context: &$crate::__private::Context) -> $crate::Result<Self> {
                $crate::__private::Loaded::load(context).map(|loaded| Self { loaded })
            }

            /// The kernel of a library that is loaded already.
            ///
            /// # Safety
            /// The library was loaded from the image that the kernel was declared with, or from one
            /// that has the same kernel.
            ///
            /// # Errors
            /// The library has no such kernel, or the kernel has other parameters.
            $visibility unsafe fn of(library: &$crate::__private::Library) -> $crate::Result<Self> {
                // SAFETY: the caller's promise.
                unsafe { $crate::__private::Loaded::of(library) }.map(|loaded| Self { loaded })
            }

            /// Enqueues a launch on `stream`. One driver call.
            ///
            /// # Errors
            /// A condition does not hold, the configuration is beyond a limit, memory overlaps or
            /// is of another context, or what the driver answers.
            $(
                #[doc = concat!("\n# Safety\nThe kernel is declared as `", stringify!($unsafe), " fn`: see its own documentation.")]
            )?
            #[inline]
            $visibility $($unsafe)? fn launch<'a>(
                &'a self,
                stream: &impl $crate::__private::AsStream,
                config: impl ::core::convert::Into<$crate::StreamConfig<'a>>,
                arguments: impl $crate::PlainArgumentsOf<'a, <Self as $crate::TypedKernel>::Signature>,
            ) -> $crate::Result<()> {
                // SAFETY: the promise made with `unsafe in`, and the caller's for a kernel declared
                // as `unsafe fn`.
                unsafe { $crate::__private::launch(self, stream, config, arguments) }
            }
        }

        const _: () = {
            #[allow(unused_imports)]
            use $crate::{ConditionalHandle, Fields, In, InOut, Out, Struct, Tensor};

            // SAFETY: the promise made with `unsafe in`.
            unsafe impl $crate::TypedKernel for $kernel {
                type Signature = ($($type,)*);

                const NAME: &'static str = $crate::__kernel!(@name $kernel $name);
                const PARAMETERS: &'static [&'static str] = &[$(stringify!($parameter)),*];
                const MAY_OVERLAP: bool = $crate::__kernel!(@overlap $overlap);

                fn image() -> $crate::__private::Image<'static> {
                    $($image)*
                }

                #[allow(unused_variables, unused_parens, clippy::all)]
                #[inline]
                fn broken(
                    values: &<Self::Signature as $crate::Signature>::Values<'_>,
                    config: &$crate::LaunchConfig,
                ) -> Option<&'static str> {
                    let scope = $crate::condition::Scope::new();
                    $crate::__names!(config scope $all);
                    let ($($parameter,)*) = values;
                    $(let $parameter = <$type as $crate::Parameter>::known($parameter, &scope);)*
                    $(if !($condition) || scope.has_failed() {
                        return Some(stringify!($condition));
                    })*
                    None
                }

                #[inline]
                fn loaded(&self) -> &$crate::__private::Loaded<Self> {
                    &self.loaded
                }
            }
        };
    };
    ($from:tt $attributes:tt $visibility:tt [fn $kernel:ident] $($rest:tt)*) => {
        $crate::__kernel!(@declare $kernel $from $attributes $visibility [] $($rest)*);
        // SAFETY: the promise made with `unsafe in` holds for all arguments of a kernel declared
        // without `unsafe`.
        unsafe impl $crate::SafeKernel for $kernel {}
    };
    ($from:tt $attributes:tt $visibility:tt [unsafe fn $kernel:ident] $($rest:tt)*) => {
        $crate::__kernel!(@declare $kernel $from $attributes $visibility [unsafe] $($rest)*);
    };
    ($from:tt $attributes:tt $visibility:tt [$($other:tt)*] $($rest:tt)*) => {
        ::core::compile_error!(concat!("`fn name(..);` or `unsafe fn name(..);` expected, found `", stringify!($($other)*), "`"));
    };
}

/// Binds `grid`, `block`, `cluster`, `shared` and `cooperative` wherever they are named: as the
/// user's own names, which a condition can see. Names that are not there are not bound.
#[doc(hidden)]
#[macro_export]
macro_rules! __names {
    ($config:ident $scope:ident [$($token:tt)*]) => { $($crate::__name!($config $scope $token $token);)* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __name {
    ($config:ident $scope:ident grid $name:ident) => { let $name = $scope.grid($config); };
    ($config:ident $scope:ident block $name:ident) => { let $name = $scope.block($config); };
    ($config:ident $scope:ident cluster $name:ident) => {
        let $name = $scope.cluster($config);
    };
    ($config:ident $scope:ident shared $name:ident) => { let $name = $scope.shared($config); };
    ($config:ident $scope:ident cooperative $name:ident) => { let $name = $config.is_cooperative(); };
    ($config:ident $scope:ident ($($inner:tt)*) $group:tt) => { $($crate::__name!($config $scope $inner $inner);)* };
    ($config:ident $scope:ident $other:tt $same:tt) => {};
}
