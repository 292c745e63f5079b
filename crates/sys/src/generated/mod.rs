//! The half of the crate that `cargo xtask bindgen` writes from CUDA's headers.

#[macro_use]
#[rustfmt::skip]
pub(crate) mod calls;

#[macro_use]
#[rustfmt::skip]
mod exports;

#[rustfmt::skip]
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    unsafe_op_in_unsafe_fn,
    unpredictable_function_pointer_comparisons,
    missing_debug_implementations,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    rustdoc::all,
    unreachable_pub
)]
pub(crate) mod bindings;
