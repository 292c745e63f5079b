//! Node parameters: C structures to tasks and back.

pub(crate) mod generic;
pub(crate) mod parse;
pub(crate) mod read_back;
