//! A variable of a library that does not fit the requested type.

use core::fmt;

/// A variable of a library, and the elements that were requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongVariable {
    /// The variable's name.
    pub name: Box<str>,
    /// Its size in bytes.
    pub bytes: usize,
    /// The start address.
    pub address: u64,
    /// The type of the elements asked for.
    pub element: &'static str,
    /// The size of an element in bytes.
    pub size: usize,
    /// The alignment of an element in bytes.
    pub align: usize,
    /// The number of elements, where one was asked for.
    pub len: Option<usize>,
}

impl WrongVariable {
    /// The variable that was taken for elements of type `T`.
    #[doc(hidden)]
    #[must_use]
    pub fn new<T>(name: &str, address: u64, bytes: usize, len: Option<usize>) -> Self {
        let (element, size, align) = (core::any::type_name::<T>(), size_of::<T>(), align_of::<T>());
        Self { name: name.into(), bytes, address, element, size, align, len }
    }
}

impl fmt::Display for WrongVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, address, element, size, align, len } = self;
        write!(formatter, "the variable `{name}` of the library has {bytes} bytes at {address:#x}, but ")?;
        if let Some(len) = len {
            write!(formatter, "{len} ")?;
        }
        write!(
            formatter,
            "elements of `{element}` were asked for, which have {size} bytes each and are aligned to {align}"
        )
    }
}
