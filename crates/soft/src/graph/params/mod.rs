//! Node parameters as the C interface describes them.

pub(crate) mod generic;
pub(crate) mod parse;
pub(crate) mod read_back;
