//! Items for the tests of this workspace. No promise of stability.

pub use crate::condition::by_default::let_the_host_decide;
pub use crate::shape::by_default::set_shape_by_default;
