//! Tensor maps, by which kernels copy tiles of arrays to shared memory and back.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use cuda_handles::{Allocation, Element, Slice};
use cuda_sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle, Call,
};

use crate::arguments::params::{KernelArg, Params};
use crate::error::{Error, Result};

/// An element type of tensor maps.
///
/// # Safety
/// An element of [`DATA_TYPE`](Self::DATA_TYPE) has the size of this type. The check of a map
/// against its memory relies on it.
///
/// ```compile_fail,E0200
/// # use cuda_sys::CUtensorMapDataType;
/// #[repr(transparent)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// struct Byte(u8);
/// impl cuda_launch::TensorElement for Byte {
///     const DATA_TYPE: CUtensorMapDataType = CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
/// }
/// # fn main() {}
/// ```
pub unsafe trait TensorElement: Element {
    /// The driver's constant for the type.
    const DATA_TYPE: CUtensorMapDataType;
}

macro_rules! elements {
    ($($type:ty: $name:ident),*) => {$(
        // SAFETY: the constant names this type.
        unsafe impl TensorElement for $type {
            const DATA_TYPE: CUtensorMapDataType = CUtensorMapDataType::$name;
        }
    )*};
}

elements!(
    u8: CU_TENSOR_MAP_DATA_TYPE_UINT8,
    u16: CU_TENSOR_MAP_DATA_TYPE_UINT16,
    u32: CU_TENSOR_MAP_DATA_TYPE_UINT32,
    i32: CU_TENSOR_MAP_DATA_TYPE_INT32,
    u64: CU_TENSOR_MAP_DATA_TYPE_UINT64,
    i64: CU_TENSOR_MAP_DATA_TYPE_INT64,
    f32: CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    f64: CU_TENSOR_MAP_DATA_TYPE_FLOAT64
);

#[cfg(feature = "half")]
elements!(half::f16: CU_TENSOR_MAP_DATA_TYPE_FLOAT16, half::bf16: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);

/// The permutation of the chunks of a tile's rows in shared memory, with which kernels read columns
/// without bank conflicts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Swizzle {
    /// No permutation.
    #[default]
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl Swizzle {
    fn raw(self) -> CUtensorMapSwizzle {
        match self {
            Self::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            Self::Bytes32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            Self::Bytes64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            Self::Bytes128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        }
    }

    /// The largest size of a row of a tile, in bytes.
    fn row(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128 => Some(128),
        }
    }
}

/// The granularity of fetches into the L2 cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum L2Promotion {
    /// The requested bytes only.
    #[default]
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

impl L2Promotion {
    fn raw(self) -> CUtensorMapL2promotion {
        match self {
            Self::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            Self::Bytes64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            Self::Bytes128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            Self::Bytes256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        }
    }
}

/// The shape of a tiled array of `RANK` dimensions, from 1 to 5, the fastest-changing first.
///
/// ```no_run
/// # fn example(buffer: &cuda_handles::Buffer<f32>) -> cuda_launch::Result<()> {
/// use cuda_launch::{Swizzle, Tiled};
///
/// // 100 rows of 64 numbers, in tiles of 8 rows of 32.
/// let map = Tiled::new([64, 100], [32, 8]).swizzle(Swizzle::Bytes128).encode(buffer)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tiled<const RANK: usize> {
    dims: [u64; RANK],
    /// In bytes; the first is the element's size. `None` for an array without gaps.
    strides: Option<[u64; RANK]>,
    tile: [u32; RANK],
    steps: [u32; RANK],
    swizzle: Swizzle,
    promotion: L2Promotion,
    nan: bool,
}

impl<const RANK: usize> Tiled<RANK> {
    /// An array of extents `dims` without gaps, copied in tiles of extents `tile`.
    #[must_use]
    pub fn new(dims: [u64; RANK], tile: [u32; RANK]) -> Self {
        let (swizzle, promotion) = (Swizzle::None, L2Promotion::None);
        Self { dims, strides: None, tile, steps: [1; RANK], swizzle, promotion, nan: false }
    }

    /// Sets the distance in bytes between neighbours in each dimension. The first value is ignored:
    /// the elements of a row are adjacent.
    #[must_use]
    pub fn strides(mut self, bytes: [u64; RANK]) -> Self {
        self.strides = Some(bytes);
        self
    }

    /// Takes every n-th element in each dimension, with n from 1 to 8.
    #[must_use]
    pub fn steps(mut self, steps: [u32; RANK]) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the permutation in shared memory.
    #[must_use]
    pub fn swizzle(mut self, swizzle: Swizzle) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// Sets the granularity of fetches into the L2 cache.
    #[must_use]
    pub fn l2_promotion(mut self, promotion: L2Promotion) -> Self {
        self.promotion = promotion;
        self
    }

    /// Makes elements beyond the array read as NaN instead of zero, for floating-point types.
    #[must_use]
    pub fn nan_beyond(mut self) -> Self {
        self.nan = true;
        self
    }

    /// Makes a tensor map of `slice`, which must contain the whole array.
    ///
    /// Calls `cuTensorMapEncodeTiled` (CUDA 12.0). Needs compute capability 9.0.
    ///
    /// # Errors
    /// [`Error::TensorMap`] names the broken rule and the value. [`Error::Handles`] with the
    /// driver's error.
    #[doc(alias = "cuTensorMapEncodeTiled")]
    pub fn encode<'a, T: TensorElement>(&self, slice: impl Into<Slice<'a, T>>) -> Result<TensorMap<T>> {
        let slice = slice.into();
        let context = slice.allocation().context();
        context.ensure_usable()?;
        let (major, minor) = context.limits().compute_capability;
        if major < 9 {
            return refuse(format!(
                "it needs compute capability 9.0 or higher; the device has {major}.{minor}"
            ));
        }
        let strides = self.check(&slice)?;
        let mut raw = CUtensorMap::default();
        let encode = || {
            // SAFETY: the arrays have an element for each dimension, one less for the strides. The
            // address is of live memory that contains the array.
            unsafe {
                context.driver().cuTensorMapEncodeTiled(
                    &raw mut raw,
                    T::DATA_TYPE,
                    RANK as u32,
                    core::ptr::with_exposed_provenance_mut(slice.address() as usize),
                    self.dims.as_ptr(),
                    strides.as_ptr().wrapping_add(1),
                    self.tile.as_ptr(),
                    self.steps.as_ptr(),
                    CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                    self.swizzle.raw(),
                    self.promotion.raw(),
                    self.fill(),
                )
            }
        };
        let len = self.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
        // Dimensions with a stride of 0 take no memory, so `reach` does not bound the product.
        let Some(len) = len else { return refuse("it has more elements than 64 bits count".to_owned()) };
        let code = context.with_current(encode)?;
        context.check(Call::cuTensorMapEncodeTiled, code)?;
        Ok(TensorMap {
            raw,
            allocation: Arc::clone(slice.allocation()),
            start: slice.address(),
            bytes: self.reach(&strides, size_of::<T>()).unwrap_or(0),
            len,
            _elements: PhantomData,
        })
    }

    fn fill(&self) -> CUtensorMapFloatOOBfill {
        match self.nan {
            true => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            false => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        }
    }

    /// The bytes from the first element to the end of the last one.
    fn reach(&self, strides: &[u64; RANK], element: usize) -> Option<u64> {
        let last = self.dims.iter().zip(strides).try_fold(0_u64, |sum, (&dim, &stride)| {
            sum.checked_add(dim.checked_sub(1)?.checked_mul(stride)?)
        })?;
        last.checked_add(element as u64)
    }

    /// Checks the shape against the rules of the hardware. Returns the strides.
    fn check<T: TensorElement>(&self, slice: &Slice<'_, T>) -> Result<[u64; RANK]> {
        let element = size_of::<T>() as u64;
        if !(1..=5).contains(&RANK) {
            return refuse(format!("it has {RANK} dimensions; there can be 1 to 5"));
        }
        for (index, ((dim, tile), step)) in self.dims.iter().zip(self.tile).zip(self.steps).enumerate() {
            let range = |what: &str, value: u64, most: u64| match value {
                value if (1..=most).contains(&value) => Ok(()),
                value => refuse(format!(
                    "the {what} in dimension {index} is {value}; it must be between 1 and {most}"
                )),
            };
            range("extent", *dim, 1 << 32)?;
            range("extent of a tile", u64::from(tile), 256)?;
            range("step", u64::from(step), 8)?;
        }
        let row = u64::from(self.tile[0]) * element;
        if !row.is_multiple_of(16) {
            return refuse(format!("a row of a tile has {row} bytes; it must be a multiple of 16"));
        }
        if let Some(most) = self.swizzle.row().filter(|&most| row > most) {
            return refuse(format!("a row of a tile has {row} bytes; with this swizzle there can be {most}"));
        }
        let strides = self.all_strides(element)?;
        for (index, stride) in strides.iter().enumerate().skip(1) {
            if !stride.is_multiple_of(16) || *stride >= 1 << 40 {
                return refuse(format!(
                    "the stride of dimension {index} is {stride} bytes; it must be a multiple of 16 below 2^40"
                ));
            }
        }
        if !slice.address().is_multiple_of(16) {
            return refuse(format!(
                "the array starts at {:#x}; the address must be a multiple of 16",
                slice.address()
            ));
        }
        match self.reach(&strides, size_of::<T>()) {
            Some(reach) if reach <= slice.size_bytes() as u64 => Ok(strides),
            Some(reach) => {
                refuse(format!("the array has {reach} bytes; the slice has {}", slice.size_bytes()))
            }
            None => refuse("the array is larger than an address space".to_owned()),
        }
    }

    fn all_strides(&self, element: u64) -> Result<[u64; RANK]> {
        if let Some(mut strides) = self.strides {
            strides[..1].fill(element);
            return Ok(strides);
        }
        let mut strides = [element; RANK];
        for index in 1..RANK {
            strides[index] = strides[index - 1]
                .checked_mul(self.dims[index - 1])
                .ok_or_else(|| Error::TensorMap("the array is larger than an address space".into()))?;
        }
        Ok(strides)
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::TensorMap(reason.into()))
}

/// A tensor map of elements of type `T`, which keeps its memory alive.
///
/// Kernels take it by value, as a `const __grid_constant__ CUtensorMap`.
/// [`kernel!`](crate::kernel!) declares it as `In<Tensor<T>>`, `Out<Tensor<T>>` or
/// `InOut<Tensor<T>>`.
#[doc(alias = "CUtensorMap")]
pub struct TensorMap<T> {
    raw: CUtensorMap,
    allocation: Arc<Allocation>,
    start: u64,
    bytes: u64,
    len: u64,
    _elements: PhantomData<fn() -> T>,
}

impl<T> TensorMap<T> {
    /// The driver's descriptor.
    #[must_use]
    pub fn as_raw(&self) -> &CUtensorMap {
        &self.raw
    }

    /// The allocation that contains the array.
    #[must_use]
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// The address of the first element.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start
    }

    /// The bytes from the first element to the end of the last one.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of elements, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }
}

impl<T> Clone for TensorMap<T> {
    fn clone(&self) -> Self {
        Self { allocation: Arc::clone(&self.allocation), ..*self }
    }
}

impl<T> fmt::Debug for TensorMap<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = core::any::type_name::<T>();
        write!(formatter, "TensorMap<{element}>({:#x}, {} bytes)", self.start, self.bytes)
    }
}

// SAFETY: one value, whose address is in an allocation that the holder borrows.
unsafe impl<'a, T> KernelArg<'a> for &'a TensorMap<T> {
    fn add_to(self, params: &mut Params<'a>) {
        params.push_value(self.raw);
        params.borrow(&self.allocation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_without_gaps() {
        let shape = Tiled::new([64, 10, 3], [4, 1, 1]);
        assert_eq!(shape.all_strides(4).unwrap(), [4, 256, 2560]);
        assert_eq!(shape.reach(&[4, 256, 2560], 4), Some(64 * 10 * 3 * 4));
        assert_eq!(shape.reach(&[4, u64::MAX, 2560], 4), None);
        assert!(Tiled::new([u64::MAX, u64::MAX], [1, 1]).all_strides(8).is_err());
        assert_eq!(shape.strides([1, 272, 4096]).all_strides(4).unwrap(), [4, 272, 4096]);
    }
}
