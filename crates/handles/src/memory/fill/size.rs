//! The sizes of values that the device can repeat.

/// Ends the compilation where a fill has a value of another size than 1, 2 or 4 bytes: to be called
/// in a `const` block.
///
/// ```compile_fail,E0080
/// const { cuda_handles::assert_value::<f64>() };
/// ```
#[doc(hidden)]
pub const fn assert_value<T>() {
    assert!(
        matches!(size_of::<T>(), 1 | 2 | 4),
        "a fill repeats a value of 1, 2 or 4 bytes, and this one has another size: `cast` the memory to smaller elements and fill those, or \
         `clear` it to set all its bytes to zero"
    );
}
