//! The macro `fields!`, which names the fields of a struct for conditions.

use core::fmt;

use crate::kernel::condition::{Int, Scope};

/// A value that conditions can use: a number, an array, or a struct with
/// [`fields!`](crate::fields!).
///
/// # Safety
/// The view shows the value that the kernel receives.
#[diagnostic::on_unimplemented(
    message = "conditions cannot see into `{Self}`",
    note = "`cuda_launch::fields! {{ {Self} {{ field: u32, .. }} }}` names the fields that they see; `Struct<{Self}>` takes it without"
)]
pub unsafe trait ConditionValue {
    /// The value in the form that conditions use.
    type View<'s>;

    /// Converts the value for conditions.
    fn view<'s>(&self, scope: &'s Scope) -> Self::View<'s>;

    /// Writes the value for an error message.
    ///
    /// # Errors
    /// The formatter's.
    fn show(&self, name: &str, text: &mut dyn fmt::Write) -> fmt::Result;
}

macro_rules! numbers {
    ($view:ty, $number:expr => $($type:ty),*) => {$(
        // SAFETY: the view is the number itself.
        unsafe impl ConditionValue for $type {
            type View<'s> = $view;

            #[inline]
            fn view<'s>(&self, scope: &'s Scope) -> $view {
                let number: fn(Self, &'s Scope) -> $view = $number;
                number(*self, scope)
            }

            fn show(&self, name: &str, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name} = {self}")
            }
        }
    )*};
}

numbers!(Int<'s>, |value, scope| scope.int(value) => u8, u16, u32, u64, i8, i16, i32, i64);
numbers!(f64, |value, _| f64::from(value) => f32);
numbers!(f64, |value, _| value => f64);
#[cfg(feature = "half")]
numbers!(f64, |value, _| f64::from(value) => half::f16, half::bf16);

// SAFETY: the view has the elements of the array.
unsafe impl<T: ConditionValue, const N: usize> ConditionValue for [T; N] {
    type View<'s> = [T::View<'s>; N];

    #[inline]
    fn view<'s>(&self, scope: &'s Scope) -> Self::View<'s> {
        self.each_ref().map(|element| element.view(scope))
    }

    fn show(&self, name: &str, text: &mut dyn fmt::Write) -> fmt::Result {
        const SHOWN: usize = 8;
        for (index, element) in self.iter().take(SHOWN).enumerate() {
            if index > 0 {
                text.write_str(", ")?;
            }
            element.show(&format!("{name}[{index}]"), text)?;
        }
        if N > SHOWN { write!(text, ", .. ({N} elements)") } else { Ok(()) }
    }
}

/// Names the fields of a struct that conditions of [`kernel!`](crate::kernel!) can use, for a
/// parameter declared as [`Fields`](crate::Fields).
///
/// A field is a number of exact width, an array, or another struct with `fields!`. In conditions it
/// is an integer that does not wrap around, or an `f64`. The kernel receives all fields, named or
/// not.
///
/// ```
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Part {
///     first: u32,
///     count: u32,
/// }
///
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Settings {
///     part: Part,
///     shape: [u32; 2],
///     scale: f32,
/// }
///
/// cuda_launch::fields! { Part { first: u32, count: u32 } }
/// cuda_launch::fields! { Settings { part: Part, shape: [u32; 2] } }
///
/// cuda_launch::kernel! {
///     // SAFETY: the kernel has these parameters, and stays within the part and the shape.
///     unsafe in cuda_handles::Image::Ptx(".version 7.8 // and so on");
///     fn scale(settings: Fields<Settings>, x: InOut<f32>)
///     where settings.part.first + settings.part.count <= x.len(),
///         settings.shape[0] * settings.shape[1] <= x.len();
/// }
/// # fn main() {}
/// ```
///
/// A field with another type than in the struct does not compile:
/// ```compile_fail,E0308
/// #[derive(Clone, Copy)]
/// struct Settings { n: u64 }
/// cuda_launch::fields! { Settings { n: u32 } }
/// # fn main() {}
/// ```
/// Nor does a field of another struct, to which this one dereferences. The kernel does not receive
/// that struct:
/// ```compile_fail,E0026
/// #[derive(Clone, Copy)]
/// struct Settings { n: u32 }
/// #[derive(Clone, Copy)]
/// struct Other { m: u32 }
/// impl core::ops::Deref for Other {
///     type Target = Settings;
///     fn deref(&self) -> &Settings { &Settings { n: 0 } }
/// }
/// cuda_launch::fields! { Other { n: u32 } }
/// # fn main() {}
/// ```
/// ```compile_fail,E0308
/// #[derive(Clone, Copy)]
/// struct Number(u32);
/// impl core::ops::Deref for Number {
///     type Target = u32;
///     fn deref(&self) -> &u32 { &0 }
/// }
/// #[derive(Clone, Copy)]
/// struct Settings { n: Number }
/// cuda_launch::fields! { Settings { n: u32 } }
/// # fn main() {}
/// ```
/// Nor does a condition over a field that was not named:
/// ```compile_fail,E0609
/// #[derive(Clone, Copy)]
/// struct Settings { n: u32, m: u32 }
/// cuda_launch::fields! { Settings { n: u32 } }
/// cuda_launch::kernel! {
///     unsafe in cuda_handles::Image::Ptx("");
///     fn scale(settings: Fields<Settings>, x: InOut<f32>) where settings.m <= x.len();
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! fields {
    ($name:ident { $($field:ident: $type:ty),+ $(,)? }) => {
        const _: () = {
            #[allow(missing_docs, missing_debug_implementations, dead_code, unreachable_pub)]
            pub struct View<'s> {
                $(pub $field: <$type as $crate::ConditionValue>::View<'s>,)+
                _scope: ::core::marker::PhantomData<&'s ()>,
            }

            // SAFETY: the view has the fields of the value.
            unsafe impl $crate::ConditionValue for $name {
                type View<'s> = View<'s>;

                #[inline]
                fn view<'s>(&self, scope: &'s $crate::condition::Scope) -> View<'s> {
                    // By pattern, since `self.field` may auto-dereference to another struct. By
                    // value, since a reference to a field may coerce to its `Deref` target.
                    let $name { $($field,)+ .. } = *self;
                    $(let $field: $type = $field;)+
                    View {
                        $($field: <$type as $crate::ConditionValue>::view(&$field, scope),)+
                        _scope: ::core::marker::PhantomData,
                    }
                }

                fn show(&self, name: &str, text: &mut dyn ::core::fmt::Write) -> ::core::fmt::Result {
                    let mut separator = "";
                    $(
                        text.write_str(separator)?;
                        let path = ::std::format!("{name}.{}", ::core::stringify!($field));
                        let $name { $field, .. } = *self;
                        let $field: $type = $field;
                        <$type as $crate::ConditionValue>::show(&$field, &path, text)?;
                        separator = ", ";
                    )+
                    let _ = separator;
                    Ok(())
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C, packed)]
    struct Part {
        first: u8,
        count: u64,
    }

    #[derive(Clone, Copy)]
    struct Whole {
        part: Part,
        shape: [u32; 2],
        scale: f32,
        _unseen: u8,
    }

    crate::fields! { Part { first: u8, count: u64 } }
    crate::fields! { Whole { part: Part, shape: [u32; 2], scale: f32 } }

    const WHOLE: Whole = Whole {
        part: Part { first: 255, count: u64::MAX },
        shape: [u32::MAX, u32::MAX],
        scale: 0.5,
        _unseen: 0,
    };

    #[test]
    fn fields_of_fields_and_elements_do_not_wrap_around() {
        let scope = Scope::new();
        let view = WHOLE.view(&scope);
        assert!(view.part.first + view.part.count == i128::from(u64::MAX) + 255);
        assert!(view.shape[0] * view.shape[1] * 4 > view.part.count && view.scale < 1.0);
        assert!(!scope.has_failed());
    }

    #[test]
    fn all_fields_are_told() {
        let mut text = String::new();
        WHOLE.show("settings", &mut text).unwrap();
        assert_eq!(
            text,
            "settings.part.first = 255, settings.part.count = 18446744073709551615, settings.shape[0] = 4294967295, \
             settings.shape[1] = 4294967295, settings.scale = 0.5"
        );
        let mut text = String::new();
        [0_u8; 100].show("x", &mut text).unwrap();
        assert!(text.ends_with("x[7] = 0, .. (100 elements)"), "{text}");
    }
}
