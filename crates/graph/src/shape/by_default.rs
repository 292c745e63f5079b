//! The shape of executables whose options name none: as drawn, unless tests say otherwise.

use core::num::NonZeroU16;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::shape::options::Shape;

const AS_BUILT: u32 = 0;
const REDUCED: u32 = 1;
const AUTO: u32 = 2;
/// The number of lanes is above this bit.
const LANES: u32 = 1 << 16;

static BY_DEFAULT: AtomicU32 = AtomicU32::new(AS_BUILT);

/// Sets the shape of executables whose options name none, for the whole process. So the tests of
/// executables run once more on shaped ones.
pub fn set_shape_by_default(shape: Shape) {
    let number = match shape {
        Shape::AsBuilt => AS_BUILT,
        Shape::Reduced => REDUCED,
        Shape::Auto => AUTO,
        Shape::Lanes(lanes) => LANES | u32::from(lanes.get()),
    };
    BY_DEFAULT.store(number, Ordering::Relaxed);
}

/// The shape that options begin with.
pub(crate) fn shape_by_default() -> Shape {
    match BY_DEFAULT.load(Ordering::Relaxed) {
        AS_BUILT => Shape::AsBuilt,
        REDUCED => Shape::Reduced,
        AUTO => Shape::Auto,
        lanes => NonZeroU16::new(lanes as u16).map_or(Shape::AsBuilt, Shape::Lanes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_comes_back() {
        for shape in [Shape::Reduced, Shape::Auto, Shape::Lanes(NonZeroU16::MAX), Shape::AsBuilt] {
            set_shape_by_default(shape);
            assert_eq!(shape_by_default(), shape);
        }
    }
}
