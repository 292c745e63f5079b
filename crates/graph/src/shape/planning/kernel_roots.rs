//! Which nodes are behind kernels, so that the device starts them and not the host.

use super::sketch::Sketch;

/// For each node, whether it is no root, and all roots that lead to it are kernels.
///
/// A node behind empty nodes alone is a root.
pub(super) fn behind_kernels(sketch: &Sketch<'_>) -> Vec<bool> {
    let nodes = sketch.nodes.len();
    let is_root = sketch.roots();
    let mut has_predecessor = vec![false; nodes];
    let mut all_kernels = vec![true; nodes];
    // The edges are sorted, so all edges to a node come before those from it.
    for (from, to) in sketch.all_edges() {
        let (before, node) = (from as usize, to as usize);
        all_kernels[node] &= match (sketch.is_empty(from), is_root[before]) {
            (true, _) => has_predecessor[before] && all_kernels[before],
            (false, true) => sketch.is_kernel(from),
            (false, false) => all_kernels[before],
        };
        has_predecessor[node] = true;
    }
    is_root.into_iter().zip(all_kernels).map(|(is_root, all_kernels)| !is_root && all_kernels).collect()
}
