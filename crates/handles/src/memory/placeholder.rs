//! Graph parameters as they appear among arguments.

/// A parameter of a graph that stands in the place of an argument. cuda-graph makes these; here
/// they only pass through.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placeholder {
    /// The number of the graph's hierarchy.
    pub graph: u64,
    /// The number of the parameter in the hierarchy.
    pub number: u32,
    /// Whether the length of the parameter's memory is meant.
    pub is_length: bool,
}
