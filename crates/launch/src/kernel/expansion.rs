//! The expansion of `kernel!`: one type for each kernel, with its conditions.

/// Splits a declaration into the struct, the variables, and the kernels.
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

/// Expands the kernels one by one. `$all` repeats their tokens, in which conditions find their
/// names.
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
            /// Loads the image, or takes the copy already loaded in the context, and returns the
            /// kernel. Checks number and sizes of its parameters against the declaration.
            ///
            /// # Errors
            /// The image does not load or has no such kernel, or the kernel has other parameters.
            $visibility fn load(context: &$crate::__private::Context) -> $crate::Result<Self> {
                $crate::__private::Loaded::load(context).map(|loaded| Self { loaded })
            }

            /// As `load`, but each kernel of the image waits at its entry for its programmatic
            /// predecessors (`Library::load_waiting`). If the image has to be loaded as it is,
            /// `Kernel::waits_at_entry` is false and `Library::entry_wait` says why.
            ///
            /// # Errors
            /// As `load`.
            $visibility fn load_waiting(context: &$crate::__private::Context) -> $crate::Result<Self> {
                $crate::__private::Loaded::load_waiting(context).map(|loaded| Self { loaded })
            }

            /// Takes the kernel from a library that you loaded.
            ///
            /// # Safety
            /// The library was loaded from the declaration's image, or from one that has the same
            /// kernel.
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
            /// A condition does not hold, the configuration exceeds a limit, memory overlaps or is
            /// of another context, or the driver answers with an error.
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
                const ENDS_ALONE: bool = {
                    let words: &[&str] = &[$(stringify!($unsafe))?];
                    words.is_empty()
                };

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
                    $(let $parameter = <$type as $crate::Parameter>::view($parameter, &scope);)*
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

/// Binds `grid`, `block`, `cluster`, `shared` and `cooperative`, each only if the declaration uses
/// it. The binding takes the user's own token, so that conditions can see it (macro hygiene).
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
