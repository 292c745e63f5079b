//! The error of a failed instantiation.

use core::fmt;

use cuda_sys::{CUgraphInstantiateResult, CUresult};

use crate::wording::{At, Found};

/// Why the driver could not instantiate a graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the graph cannot be instantiated{}: {}{}", At(node.as_deref()), Reason(*result, findings), Code(*code, *result))]
#[non_exhaustive]
pub struct InstantiateError {
    /// The code that `cuGraphInstantiateWithParams` returned.
    pub code: CUresult,
    /// The kind of failure that it reported.
    pub result: CUgraphInstantiateResult,
    /// The node that it reported, by name.
    pub node: Option<String>,
    /// Defects in the structure of the graph, in words; see [`Graph::check`](crate::Graph::check).
    pub findings: Vec<String>,
}

/// The findings, or else the driver's reason.
struct Reason<'a>(CUgraphInstantiateResult, &'a [String]);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            [] => formatter.write_str(reason(self.0)),
            findings => Found(findings).fmt(formatter),
        }
    }
}

fn reason(result: CUgraphInstantiateResult) -> &'static str {
    match result {
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
            "its structure is not valid, as with a cycle"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
            "the node does something that is not possible where it stands (host functions, events, allocations and frees in a body or in a \
             graph for launches from the device)"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
            "its nodes belong to several contexts, or a copy in a body uses pageable memory"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
            "a condition was made for which there is no conditional node"
        }
        _ => "the driver gives no closer reason",
    }
}

struct Code(CUresult, CUgraphInstantiateResult);

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            " (cuGraphInstantiateWithParams answered {} with instantiate result {})",
            self.0, self.1.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_instantiation_names_reason_node_and_code() {
        let error = InstantiateError {
            code: CUresult::CUDA_ERROR_INVALID_VALUE,
            result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
            node: Some("step".to_owned()),
            findings: Vec::new(),
        };
        assert_eq!(
            error.to_string(),
            "the graph cannot be instantiated because of node `step`: its structure is not valid, as with a cycle \
             (cuGraphInstantiateWithParams answered CUDA_ERROR_INVALID_VALUE (1) with instantiate result 2)"
        );
    }
}
