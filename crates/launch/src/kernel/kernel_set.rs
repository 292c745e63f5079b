//! The expansion of `kernel!` for the struct and the variables in front of the kernels.

/// A variable of the image, as a type of its name.
#[doc(hidden)]
#[macro_export]
macro_rules! __variable {
    ([[$($image:tt)*] [$($from:tt)*]] [$(#[$attribute:meta])*] [$visibility:vis] $name:ident [$element:ty] [$($len:tt)*] $other:tt) => {
        $(#[$attribute])*
        #[doc = concat!("\n\n# Variable\nA variable of elements of type `", stringify!($element), "` in ", $($from)*, ".")]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        $visibility enum $name {}

        #[allow(dead_code)]
        impl $name {
            /// Loads the image, or takes the copy already loaded in the context, and returns the
            /// variable. Checks its size against the declaration.
            ///
            /// # Errors
            /// The image does not load or has no such variable, or the variable has another size.
            $visibility fn load(context: &$crate::__private::Context) -> $crate::Result<$crate::__private::Buffer<$element>> {
                let library = $crate::__private::Library::load_shared(context, $($image)*)?;
                // SAFETY: the promise made with `unsafe in`.
                unsafe { Self::of(&library) }
            }

            /// Takes the variable from a library that you loaded.
            ///
            /// # Safety
            /// The library was loaded from the declaration's image, or from one that has the same
            /// variable and keeps the same promise.
            ///
            /// # Errors
            /// The library has no such variable, or the variable has another size.
            $visibility unsafe fn of(library: &$crate::__private::Library) -> $crate::Result<$crate::__private::Buffer<$element>> {
                let name = $crate::__kernel!(@name $name $other);
                // SAFETY: the caller's promise.
                unsafe { $crate::__private::variable(library, name, $($len)*) }
            }
        }
    };
}

/// The declared struct, with all kernels and variables. `__kernels` reports malformed declarations.
#[doc(hidden)]
#[macro_export]
macro_rules! __set {
    ($image:tt $from:tt [] $($rest:tt)*) => {};
    ([$($image:tt)*] [$($from:tt)*] [[$(#[$attribute:meta])*] [$visibility:vis] $set:ident]
        [$([[$variable_visibility:vis] $variable:ident [$element:ty]])*] $(
            $(#[$ignored:meta])* $kernel_visibility:vis $(unsafe)? fn $kernel:ident ($($parameters:tt)*)
            $(allow $overlap:ident)? $(named $other:literal)? $(where $($condition:expr),+ $(,)?)? ;
        )*
    ) => {
        $(#[$attribute])*
        #[doc = concat!("\n\n# Image\nThe declared kernels and variables of ", $($from)*, ", loaded once.")]
        #[derive(Clone, Debug)]
        #[allow(dead_code, non_snake_case)]
        $visibility struct $set {
            $(
                #[doc = concat!("The kernel [`", stringify!($kernel), "`].")]
                $kernel_visibility $kernel: $kernel,
            )*
            $(
                #[doc = concat!("The variable [`", stringify!($variable), "`].")]
                $variable_visibility $variable: $crate::__private::Buffer<$element>,
            )*
            __library: $crate::__private::Library,
        }

        #[allow(dead_code)]
        impl $set {
            /// Loads the image, or takes the copy already loaded in the context, and checks every
            /// kernel and variable against its declaration.
            ///
            /// # Errors
            /// The image does not load or lacks a kernel or a variable, or one of them differs from
            /// its declaration.
            $visibility fn load(context: &$crate::__private::Context) -> $crate::Result<Self> {
                let library = $crate::__private::Library::load_shared(context, $($image)*)?;
                // SAFETY: the promise made with `unsafe in`.
                unsafe { Self::of(&library) }
            }

            /// As `load`, but each kernel of the image waits at its entry for its programmatic
            /// predecessors (`Library::load_waiting`). The variables are other ones than those of
            /// `load`.
            ///
            /// # Errors
            /// As `load`.
            $visibility fn load_waiting(context: &$crate::__private::Context) -> $crate::Result<Self> {
                let library = $crate::__private::Library::load_waiting_shared(context, $($image)*)?;
                // SAFETY: the promise made with `unsafe in`; the waits change no access.
                unsafe { Self::of(&library) }
            }

            /// Takes the kernels and variables from a library that you loaded.
            ///
            /// # Safety
            /// The library was loaded from the declaration's image, or from one that has the same
            /// kernels and variables.
            ///
            /// # Errors
            /// The library lacks a kernel or a variable, or one of them differs from its
            /// declaration.
            $visibility unsafe fn of(library: &$crate::__private::Library) -> $crate::Result<Self> {
                Ok(Self {
                    // SAFETY: the caller's promise.
                    $($kernel: unsafe { $kernel::of(library) }?,)*
                    // SAFETY: the caller's promise.
                    $($variable: unsafe { $variable::of(library) }?,)*
                    __library: library.clone(),
                })
            }

            /// The loaded image.
            $visibility fn library(&self) -> &$crate::__private::Library {
                &self.__library
            }
        }
    };
    ($($not_a_kernel:tt)*) => {};
}
