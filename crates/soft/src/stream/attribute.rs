//! Attributes of launches, as streams and kernel nodes keep them.

use std::collections::BTreeMap;

use cuda_sys::CUlaunchAttributeValue;

/// Launch attributes by their numbers.
pub(crate) type Attributes = BTreeMap<u32, AttributeValue>;

/// The value of an attribute, whatever it means.
#[derive(Clone, Copy)]
pub(crate) struct AttributeValue(pub(crate) CUlaunchAttributeValue);

// SAFETY: the pointers that some attributes hold (an event, a window's base) are only passed on,
// never followed.
unsafe impl Send for AttributeValue {}
// SAFETY: as above.
unsafe impl Sync for AttributeValue {}

impl std::fmt::Debug for AttributeValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AttributeValue")
    }
}
