//! Helpers of this suite.

pub(crate) mod chains;
pub(crate) mod driver_view;
pub(crate) mod events;
pub(crate) mod gone;
pub(crate) mod other;
pub(crate) mod same_as_stream;
pub(crate) mod scale;
pub(crate) mod sequences;
