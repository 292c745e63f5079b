//! Node parameters in the driver's form.

use cuda_handles::{Context, Kernel};
use cuda_launch::LaunchConfig;
use cuda_sys::{CUgraph, CUgraphConditionalNodeType as RawKind, CUgraphNodeParams, CUgraphNodeType};
use smallvec::SmallVec;

use crate::state::params::ConditionalKind;

/// Zeroed parameters of a node type, to be set field by field. The driver refuses parameters in
/// which an unused byte is not zero, and assigning a whole union member would leave the rest
/// undefined.
#[inline]
pub(crate) fn blank(kind: CUgraphNodeType) -> CUgraphNodeParams {
    CUgraphNodeParams { type_: kind, ..CUgraphNodeParams::default() }
}

/// The driver's form of a kernel node. The kernel is given by its `CUkernel` and its context: given
/// a `CUfunction`, the driver crashes if no context is current.
#[inline]
pub(crate) fn kernel_params(
    kernel: &Kernel,
    config: LaunchConfig,
    arguments: *mut *mut core::ffi::c_void,
) -> CUgraphNodeParams {
    let (grid, block) = (config.grid(), config.block());
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL);
    // Field by field, so that padding stays zero.
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = grid.x;
    to.kernel.gridDimY = grid.y;
    to.kernel.gridDimZ = grid.z;
    to.kernel.blockDimX = block.x;
    to.kernel.blockDimY = block.y;
    to.kernel.blockDimZ = block.z;
    to.kernel.sharedMemBytes = config.shared();
    to.kernel.kernelParams = arguments;
    to.kernel.kern = kernel.as_raw();
    to.kernel.ctx = kernel.context().as_raw();
    params
}

/// The driver's form of a conditional node with so many bodies, at most
/// [`MOST_BRANCHES`](crate::error::ConditionError::MOST_BRANCHES).
pub(crate) fn conditional_params(
    context: &Context,
    kind: ConditionalKind,
    handle: u64,
    bodies: usize,
) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
    let fields = &mut params.__bindgen_anon_1;
    fields.conditional.handle = handle;
    fields.conditional.type_ = match kind {
        ConditionalKind::If | ConditionalKind::IfElse => RawKind::CU_GRAPH_COND_TYPE_IF,
        ConditionalKind::While => RawKind::CU_GRAPH_COND_TYPE_WHILE,
        ConditionalKind::Switch => RawKind::CU_GRAPH_COND_TYPE_SWITCH,
    };
    fields.conditional.size = bodies as u32;
    fields.conditional.ctx = context.as_raw();
    params
}

/// The kind, the condition handle and the bodies of a conditional node. `None` for an unknown kind.
pub(crate) fn conditional_of(
    params: &CUgraphNodeParams,
) -> Option<(ConditionalKind, u64, SmallVec<[CUgraph; 2]>)> {
    // SAFETY: these are the parameters of a conditional node that was added or read: the driver has
    // put its own array there, of the size that it reports and that was requested.
    let conditional = unsafe { params.__bindgen_anon_1.conditional };
    let kind = match (conditional.type_, conditional.size) {
        (RawKind::CU_GRAPH_COND_TYPE_IF, 1) => ConditionalKind::If,
        (RawKind::CU_GRAPH_COND_TYPE_IF, 2) => ConditionalKind::IfElse,
        (RawKind::CU_GRAPH_COND_TYPE_WHILE, 1) => ConditionalKind::While,
        (RawKind::CU_GRAPH_COND_TYPE_SWITCH, 1..) => ConditionalKind::Switch,
        _ => return None,
    };
    if conditional.phGraph_out.is_null() {
        None
    } else {
        Some((kind, conditional.handle, raw_bodies(params)))
    }
}

/// The bodies that the driver has reported with the node.
pub(crate) fn raw_bodies(params: &CUgraphNodeParams) -> SmallVec<[CUgraph; 2]> {
    // SAFETY: these are the parameters of a conditional node that was added or read: the driver has
    // put its own array there, as long as it says, and as was asked for.
    unsafe {
        let conditional = params.__bindgen_anon_1.conditional;
        core::slice::from_raw_parts(conditional.phGraph_out, conditional.size as usize)
            .iter()
            .copied()
            .collect()
    }
}
