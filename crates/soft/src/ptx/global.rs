//! Variables of module scope.

/// An address of a variable, or a part of one, inside the initial contents of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// The byte offset of the address.
    pub(crate) offset: u32,
    /// Its bytes.
    pub(crate) width: u8,
    /// The number of low bits of the address that it leaves out.
    pub(crate) shift: u32,
    /// The variable pointed to, as an index into the image's variables.
    pub(crate) global: u32,
    /// Added to its address.
    pub(crate) addend: u64,
}

/// A variable of module scope in the global or constant space.
#[derive(Debug, Clone)]
pub(crate) struct Global {
    /// Name as in the text.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    /// Alignment in bytes.
    pub(crate) align: u64,
    /// The initialised bytes; everything after them is 0. Addresses of other variables are still 0,
    /// see `Image::initial_bytes`.
    pub(crate) initial: Vec<u8>,
    /// Addresses of other variables among the initial contents.
    pub(crate) pointers: Vec<Pointer>,
    /// In the constant space.
    pub(crate) is_const: bool,
    /// Declared `.attribute(.managed)`.
    pub(crate) is_managed: bool,
}
