//! The types of numbers that NCCL adds.

use core::ffi::c_int;

use cuda_handles::Element;

/// A type of numbers that NCCL adds and sends.
pub trait Number: Element + sealed::Sealed {
    /// Its `ncclDataType_t`.
    const TYPE: c_int;
}

mod sealed {
    pub trait Sealed {}
}

pub(crate) const INT32: c_int = 2;
pub(crate) const UINT32: c_int = 3;
pub(crate) const INT64: c_int = 4;
pub(crate) const UINT64: c_int = 5;
pub(crate) const FLOAT32: c_int = 7;
pub(crate) const FLOAT64: c_int = 8;

macro_rules! numbers {
    ($($number:ty => $of:ident),*) => { $(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            const TYPE: c_int = $of;
        }
    )* };
}

numbers!(i32 => INT32, u32 => UINT32, i64 => INT64, u64 => UINT64, f32 => FLOAT32, f64 => FLOAT64);
