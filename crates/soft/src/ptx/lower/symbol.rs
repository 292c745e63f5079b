//! What a name of module scope stands for.

use crate::ptx::code::Intrinsic;
use crate::ptx::syntax::Function;

/// The meaning of a name of module scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Global(u32),
    Shared(u32),
    /// A function with a body, by its index in the program.
    Function(u32),
    Intrinsic(Intrinsic),
    /// A reference to a texture, a sampler or a surface, which instructions cannot use here.
    Reference,
    /// Declared, but defined nowhere.
    Unresolved,
}

/// The signature of a function.
#[derive(Debug, Clone, Default)]
pub(super) struct Signature {
    pub(super) is_kernel: bool,
    /// Sizes in bytes.
    pub(super) params: Vec<u32>,
    pub(super) returns: Vec<u32>,
}

/// A function with a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defined {
    /// Index of the text.
    pub(super) module: usize,
    /// Index into that text's functions.
    pub(super) function: usize,
    /// A weak definition that another one replaces.
    pub(super) is_replaced: bool,
}

pub(super) fn signature_of(function: &Function<'_>) -> Signature {
    Signature {
        is_kernel: function.is_kernel,
        params: function.params.iter().map(|param| param.size).collect(),
        returns: function.returns.iter().map(|value| value.size).collect(),
    }
}
