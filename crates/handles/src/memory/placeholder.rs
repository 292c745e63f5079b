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
    /// If the length of the parameter's memory is meant, the longest that the argument can express.
    pub longest: Option<u64>,
    /// The size of an element of the parameter's memory in bytes; 0 if it is no memory.
    pub element: usize,
}
