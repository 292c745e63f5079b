//! Helpers of this suite: the driver's view of a graph, and a graph beside the same calls on a
//! stream.

pub(crate) mod driver_view;
pub(crate) mod same_as_stream;
