//! The result of a graph, compared with the same calls on a stream.

use core::fmt::Debug;

use cuda_graph::{Error, Graph, NodeError};
use cuda_handles::{Buffer, Element, Error as HandleError, Slice, Stream};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};

/// Runs the graph once: what the memory holds then.
pub(crate) fn launched<'a, T: Element>(
    graph: &Graph,
    stream: &Stream,
    memory: impl Into<Slice<'a, T>>,
) -> Result<Vec<T>, Error> {
    graph.instantiate()?.launch(stream)?;
    Ok(memory.into().read_blocking(stream)?)
}

/// Two memories that began alike, one for a node and one for the stream's call of the same
/// description.
pub(crate) struct Pair<'m, T> {
    pub(crate) by_node: &'m Buffer<T>,
    pub(crate) by_stream: &'m Buffer<T>,
    /// Whether the description is of no elements: the stream has nothing to do then, and there is
    /// no node for that.
    pub(crate) is_empty: bool,
}

impl<T: Element + PartialEq + Debug> Pair<'_, T> {
    /// A node does what the stream's call does, and is refused for the same reason where that is.
    /// Gives the node, if there is one.
    pub(crate) fn agrees<N: Debug>(
        &self,
        graph: &Graph,
        stream: &Stream,
        added: Result<N, Error>,
        called: Result<(), HandleError>,
    ) -> Result<Option<N>, TestCaseError> {
        let mut node = None;
        match (added, called) {
            (Ok(added), Ok(())) => {
                node = Some(added);
                graph.instantiate().unwrap().launch(stream).unwrap();
            }
            (Err(Error::Node(NodeError::NoElements { .. })), Ok(())) => prop_assert!(self.is_empty),
            (Err(Error::Handles(node)), Err(stream)) => prop_assert_eq!(node, stream),
            other => prop_assert!(false, "{:?}", other),
        }
        let [by_node, by_stream] =
            [self.by_node, self.by_stream].map(|memory| memory.read_blocking(stream).unwrap());
        prop_assert_eq!(by_node, by_stream);
        Ok(node)
    }
}
