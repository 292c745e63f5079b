//! The frontier: where the next nodes are added, and the one place that adds them.

use std::sync::Arc;

use cuda_handles::{Allocation, Element, Error as HandleError, Kernel, Owner, Slice};
use cuda_launch::{Arguments, ArgumentsOf, LaunchConfig, SafeKernel};
use cuda_sys::{CUgraphNode, CUgraphNodeParams, CUlaunchAttribute, Call};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::node::{EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node};
use crate::owners::{Detail, NodeId, Owners};

/// A point of a graph at which nodes are added: each starts when all nodes of the frontier have ended.
///
/// Any number of nodes can be added at one frontier; they do not wait for each other. Each add is one driver call.
#[derive(Clone, Debug)]
#[must_use = "a frontier does nothing by itself; add nodes at it"]
pub struct Frontier<'g> {
    graph: &'g Graph,
    after: SmallVec<[NodeId; 4]>,
}

impl Graph {
    /// The frontier of nodes that wait for nothing.
    pub fn root(&self) -> Frontier<'_> {
        Frontier { graph: self, after: SmallVec::new() }
    }

    /// The frontier of nodes that wait for all of `nodes`. One given twice counts once.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let (left, right) = (graph.root().empty()?, graph.root().empty()?);
    /// let join = graph.after([&left, &right])?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A node of another graph, or one that was removed.
    pub fn after<const N: usize>(&self, nodes: [&Node; N]) -> Result<Frontier<'_>> {
        self.after_all(nodes)
    }

    /// The same as [`after`](Self::after) for any number of nodes.
    ///
    /// # Errors
    /// A node of another graph, or one that was removed.
    pub fn after_all<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>) -> Result<Frontier<'_>> {
        let mut after = SmallVec::new();
        let mut seen = Seen::default();
        for node in nodes {
            if node.graph() != self {
                return Err(Error::Foreign { node: node.name().into() });
            }
            if node.is_removed() {
                return Err(node.removed());
            }
            if seen.is_new(&after, node.id()) {
                after.push(node.id());
            }
        }
        Ok(Frontier { graph: self, after })
    }
}

/// Finds nodes given twice without comparing all with all.
#[derive(Default)]
struct Seen(std::collections::HashSet<NodeId>);

impl Seen {
    const FEW: usize = 16;

    fn is_new(&mut self, before: &[NodeId], id: NodeId) -> bool {
        if before.len() < Self::FEW {
            return !before.contains(&id);
        }
        if self.0.is_empty() {
            self.0.extend(before);
        }
        self.0.insert(id)
    }
}

impl Node {
    /// The frontier of nodes that wait for this one.
    ///
    /// If the node has been removed, adding there is the error [`Error::Removed`].
    #[inline]
    pub fn then(&self) -> Frontier<'_> {
        Frontier { graph: self.graph(), after: SmallVec::from_slice(&[self.id()]) }
    }
}

impl<'g> Frontier<'g> {
    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Adds a node that does nothing.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A node of the frontier was removed, or what the driver answers.
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn empty(&self) -> Result<EmptyNode> {
        let mut params = crate::node::empty_params();
        self.add(Detail::Empty, Owners::new(), &mut params).map(EmptyNode::wrap)
    }

    /// Adds a launch of a typed kernel. Values are packed now; kernel and buffers are kept by the node.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, saxpy: &saxpy, x: &cuda_handles::Buffer<f32>, y: &cuda_handles::Buffer<f32>
    /// # ) -> cuda_graph::Result<()> {
    /// let step = graph.root().launch(saxpy, per(1000, 256), (1000, 2.0, x, y))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A condition of the kernel does not hold, memory that it writes overlaps other arguments; otherwise as
    /// [`launch_untyped`](Self::launch_untyped).
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn launch<'a, K: SafeKernel>(
        &self,
        kernel: &'a K,
        config: LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<KernelNode> {
        let prepared = kernel.prepare(&config, arguments)?;
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions, as these do. Memory of the device is no
        // Rust reference, so that unordered work of others changes numbers and nothing else.
        unsafe { self.launch_untyped(kernel.kernel(), config, prepared) }
    }

    /// Adds a launch of `kernel`. The values are packed now; kernel and buffers are kept by the node.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and, for each attribute of the configuration, `cuGraphKernelNodeSetAttribute`, CUDA 11.0.
    ///
    /// # Safety
    /// At every launch of an executable of the graph:
    /// - The kernel's parameters mean what the arguments are: a number where it takes a number of that kind, an address where it takes an
    ///   address. (Number and sizes are checked.)
    /// - With these arguments and this configuration, and whatever the buffers hold then, the kernel accesses no memory but that of the
    ///   buffers given, within their bounds.
    /// - No other work that may run at the same time, in this graph or elsewhere, accesses the same memory in a way that makes a data race.
    ///
    /// # Errors
    /// Configuration or arguments that the kernel does not take; a kernel of another context; a node of the frontier was removed; or what
    /// the driver answers.
    #[doc(alias = "cuGraphAddKernelNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub unsafe fn launch_untyped(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<KernelNode> {
        self.of_this_context("the kernel of a node", kernel.context())?;
        config.check(kernel)?;
        arguments.check(kernel)?;
        let list;
        let attributes: &[CUlaunchAttribute] = match config.has_attributes() {
            true => {
                list = config.node_attributes(kernel)?;
                &list
            }
            false => &[],
        };
        let mut owners = Owners::new();
        arguments.each_owner(|owner| owners.push(owner));
        let detail = Detail::Kernel { kernel: kernel.clone(), config };
        arguments.with_pointers(|pointers| {
            let mut params = crate::node::kernel_params(kernel, config, pointers);
            self.add_with(detail, owners, &mut params, attributes).map(KernelNode::wrap)
        })
    }

    /// Adds a node that sets each element of `target` to `value`, of a type of 1, 2 or 4 bytes.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A value of another size, no elements, memory of another context; a node of the frontier was removed; or what the driver answers.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn fill<'a, T: Element>(&self, target: impl Into<Slice<'a, T>>, value: T) -> Result<MemsetNode> {
        let target = target.into();
        self.usable("the memory of a memset node", "memset", &target)?;
        let fill = fill_of(&target, value)?;
        let mut params = crate::node::memset_params(self.graph.context().as_raw(), &fill);
        let detail =
            Detail::Memset { address: fill.address, value: fill.value, width: fill.width, count: fill.count };
        self.add(detail, owners_of([target.allocation()]), &mut params).map(MemsetNode::wrap)
    }

    /// Adds a node that copies `source` to `destination`, which has as many elements and does not overlap it.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// Different lengths, overlapping slices, no elements, memory of another context; a node of the frontier was removed; or what the
    /// driver answers.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<MemcpyNode> {
        let (from, to) = (source.into(), destination.into());
        let what = "the destination of a copy";
        if from.len() != to.len() {
            return Err(HandleError::Length { what, expected: from.len(), found: to.len() }.into());
        }
        self.usable("the source of a copy", "memcpy", &from)?;
        self.usable(what, "memcpy", &to)?;
        let (source, destination, bytes) = (from.address(), to.address(), from.size_bytes());
        if let Some(bytes) = overlap(source, destination, bytes) {
            return Err(HandleError::Overlap { bytes }.into());
        }
        let context = self.graph.context().as_raw();
        let mut params = crate::node::memcpy_params(context, source, destination, bytes);
        let detail = Detail::Memcpy { source, destination, bytes };
        self.add(detail, owners_of([from.allocation(), to.allocation()]), &mut params).map(MemcpyNode::wrap)
    }

    /// Whether a memset or memcpy node can be about this memory.
    fn usable<T: Element>(&self, role: &'static str, what: &'static str, slice: &Slice<'_, T>) -> Result<()> {
        if slice.size_bytes() == 0 {
            return Err(Error::NoElements { what });
        }
        self.of_this_context(role, slice.allocation().context())
    }

    fn of_this_context(&self, what: &'static str, context: &cuda_handles::Context) -> Result<()> {
        Ok(self.graph.context().ensure_same(context, what)?)
    }

    /// Adds a node. All that can fail comes before the driver call, and nothing after it.
    fn add(&self, detail: Detail, owners: Owners, params: &mut CUgraphNodeParams) -> Result<Node> {
        self.add_with(detail, owners, params, &[])
    }

    /// Adds a node with attributes. If the driver does not take one of them, the node is taken out again.
    fn add_with(
        &self,
        detail: Detail,
        owners: Owners,
        params: &mut CUgraphNodeParams,
        attributes: &[CUlaunchAttribute],
    ) -> Result<Node> {
        // As arguments, `detail` and `owners` are dropped after the lock on every way out.
        let kind = detail.kind();
        let mut locked = self.graph.enter()?;
        let mut after = SmallVec::<[CUgraphNode; 8]>::with_capacity(self.after.len());
        for &id in &self.after {
            match locked.row(id) {
                Some(row) => after.push(row.raw.0),
                None => return Err(Error::Removed { node: format!("node#{}", id.number).into() }),
            }
        }
        locked.reserve();
        let mut raw = core::ptr::null_mut();
        let dependencies = if after.is_empty() { core::ptr::null() } else { after.as_ptr() };
        // SAFETY: graph and dependencies are live, as the table says; the lock is held; the parameters are complete for their type, and
        // what they point to outlives the call.
        let result = unsafe {
            locked.driver().cuGraphAddNode(&raw mut raw, locked.raw(), dependencies, after.len(), params)
        };
        locked.answer(Call::cuGraphAddNode, result)?;
        for attribute in attributes {
            // SAFETY: the node is new and live; the value is of the attribute's kind.
            let result = unsafe {
                locked.driver().cuGraphKernelNodeSetAttribute(raw, attribute.id, &raw const attribute.value)
            };
            if let Err(error) = locked.answer(Call::cuGraphKernelNodeSetAttribute, result) {
                // SAFETY: the node is live, and nobody knows it.
                let gone = unsafe { locked.driver().cuGraphDestroyNode(raw) };
                if !gone.is_success() {
                    // It stays in the graph, so what it uses stays alive.
                    locked.insert(raw, detail, owners);
                }
                return Err(error);
            }
        }
        let id = locked.insert(raw, detail, owners);
        drop(locked);
        Ok(Node::new(self.graph.clone(), id, kind))
    }
}

fn owners_of<const N: usize>(allocations: [&Arc<Allocation>; N]) -> Owners {
    allocations.into_iter().map(|allocation| Owner::Allocation(Arc::clone(allocation))).collect()
}

fn fill_of<T: Element>(target: &Slice<'_, T>, value: T) -> Result<crate::node::Fill> {
    let bytes = bytemuck::bytes_of(&value);
    let value = match *bytes {
        [a] => u32::from(a),
        [a, b] => u32::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
        _ => return Err(HandleError::FillSize { bytes: bytes.len() }.into()),
    };
    let (address, size) = (target.address(), bytes.len());
    // A type whose alignment is less than its size may lie where the driver does not fill.
    if !address.is_multiple_of(size as u64) {
        return Err(HandleError::Cast { bytes: target.size_bytes(), address, size, align: size }.into());
    }
    Ok(crate::node::Fill { address, value, width: size as u8, count: target.len() })
}

/// By how many bytes two ranges of `bytes` bytes overlap.
fn overlap(one: u64, other: u64, bytes: usize) -> Option<usize> {
    let distance = one.abs_diff(other);
    (bytes as u64).checked_sub(distance).filter(|&common| common > 0).map(|common| common as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_counted() {
        assert_eq!(overlap(100, 100, 8), Some(8));
        assert_eq!(overlap(100, 104, 8), Some(4));
        assert_eq!(overlap(104, 100, 8), Some(4));
        assert_eq!(overlap(100, 108, 8), None);
        assert_eq!(overlap(0, u64::MAX, 8), None);
    }

    #[test]
    fn nodes_given_twice_are_seen() {
        let id = |index: u32| NodeId { index, number: u64::from(index) };
        let mut seen = Seen::default();
        let mut kept: Vec<NodeId> = Vec::new();
        for round in 0..2 {
            for index in 0..40 {
                let new = seen.is_new(&kept, id(index));
                assert_eq!(new, round == 0);
                if new {
                    kept.push(id(index));
                }
            }
        }
        assert_eq!(kept.len(), 40);
    }
}
