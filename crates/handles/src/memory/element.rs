//! The types that device memory may hold.

/// A type whose every bit pattern is a value, so that memory may be read as it whatever the device
/// wrote: numbers, arrays of them, and structs that derive [`bytemuck::Pod`].
pub trait Element: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Element for T {}
