//! Host nodes: call functions on the host.

use core::ffi::c_void;

use cuda_handles::internal::host_function::{self, Callable};
use cuda_handles::{Owner, Viewable};
use cuda_sys::{CUgraphNodeParams, CUgraphNodeType};

use crate::build::frontier::Frontier;
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::node::typed;
use crate::state::host_function::{Host, HostFunction};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that calls a function on the host, on a thread of the driver.
    ///
    /// The node and each executable made from it own the closure, or the data of the function.
    ///
    /// Add one with [`Frontier::host`], or with [`Frontier::host_with`] for a closure that reads
    /// and writes pinned memory. [`Frontier::host_function`] and [`Frontier::host_raw`] take C
    /// functions.
    #[doc(alias = "CUDA_HOST_NODE_PARAMS")]
    #[doc(alias = "cudaHostNodeParams")]
    #[doc(alias = "cudaGraphNodeTypeHost")]
    HostCallbackNode, HostCallback
}

/// A checked call with its owner.
pub(crate) struct Prepared {
    pub(crate) host: Host,
    pub(crate) owner: Owner,
    pub(crate) function: HostFunction,
    pub(crate) data: *mut c_void,
}

impl HostCallbackNode {
    /// The C function; `None` for a closure.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    #[doc(alias = "cudaGraphHostNodeGetParams")]
    pub fn function(&self) -> Result<Option<HostFunction>> {
        Ok(match self.host()? {
            Host::Closure(_) => None,
            Host::Function(function) | Host::Raw(function, _) => Some(function),
        })
    }

    /// The pointer given to [`Frontier::host_raw`] or [`set_raw`](Self::set_raw); `None` for a node
    /// made in another way.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    #[doc(alias = "cudaGraphHostNodeGetParams")]
    pub fn data(&self) -> Result<Option<*mut c_void>> {
        Ok(match self.host()? {
            Host::Raw(_, data) => Some(data.0),
            _ => None,
        })
    }

    /// Replaces the function with a closure; see [`Frontier::host`].
    ///
    /// The node drops what it called before. Existing executables keep the old function and own it.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if the node was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the driver reports an error.
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphHostNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<()> {
        self.replace_by(closure(self.graph(), call)?)
    }

    /// Replaces the function with a closure that gets views of memory; see [`Frontier::host_with`].
    ///
    /// Existing executables keep the old function. Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// The errors of [`set`](Self::set) and of [`Frontier::host_with`]. The node is then unchanged.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphHostNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub fn set_with<M, F>(&self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.replace_by(looking(self.graph(), memory, call)?)
    }

    /// Replaces the function with a C function and data that the node owns; see
    /// [`Frontier::host_function`].
    ///
    /// Existing executables keep the old function. Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Safety
    /// As for [`Frontier::host_function`].
    ///
    /// # Errors
    /// The errors of [`set`](Self::set). The node is then unchanged.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphHostNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_function<T: Send + Sync + 'static>(
        &self,
        function: HostFunction,
        data: T,
    ) -> Result<()> {
        // SAFETY: the caller promises this.
        self.replace_by(unsafe { with_data(self.graph(), function, data) }?)
    }

    /// Replaces the function with a C function and a pointer; see [`Frontier::host_raw`].
    ///
    /// Existing executables keep the old function. Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Safety
    /// As for [`Frontier::host_raw`].
    ///
    /// # Errors
    /// The errors of [`set`](Self::set). The node is then unchanged.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphHostNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_raw(
        &self,
        function: HostFunction,
        data: *mut c_void,
        owner: impl Into<Owner>,
    ) -> Result<()> {
        self.replace_by(raw(function, data, owner.into()))
    }

    fn host(&self) -> Result<Host> {
        match self.node_params()? {
            NodeParams::Host(host) => Ok(host),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    fn replace_by(&self, Prepared { host, owner, function, data }: Prepared) -> Result<()> {
        let mut params = params(function, data);
        self.replace(NodeParams::Host(host), Owners::from_iter([owner]), &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that calls a closure at every launch, on a thread of the driver. The nodes after
    /// it wait until the closure returns.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph, step: &cuda_graph::Node) -> cuda_graph::Result<()> {
    /// let (sender, done) = std::sync::mpsc::channel();
    /// let notify = step.then().host(move || drop(sender.send(())))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # The closure
    /// The node and each executable made from it own the closure. Two executables may call it at
    /// the same time.
    ///
    /// CUDA forbids driver calls in host functions. Most methods of this library return an error
    /// there. Methods on hot paths do not check, such as
    /// [`GraphExec::launch`](crate::GraphExec::launch) and those that add nodes: do not call them.
    /// Buffers, executables and all other handles may be dropped.
    ///
    /// A panic is caught and reported to the hook of [`set_panic_hook`](crate::set_panic_hook). The
    /// graph goes on.
    ///
    /// A closure that owns a handle of its own graph, or of a node of it, is a reference cycle: the
    /// graph is never destroyed.
    ///
    /// Since the driver may call the closure more than once and from several threads, it can change
    /// its captured values only through locks or atomics:
    ///
    /// ```compile_fail,E0594
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let mut count = 0;
    /// graph.root().host(move || count += 1)?;
    /// # Ok(())
    /// # }
    /// ```
    /// ```compile_fail,E0525
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let text = String::from("once");
    /// graph.root().host(move || drop(text))?;
    /// # Ok(())
    /// # }
    /// ```
    /// ```compile_fail,E0277
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let count = std::rc::Rc::new(0);
    /// graph.root().host(move || println!("{count}"))?;
    /// # Ok(())
    /// # }
    /// ```
    /// ```compile_fail,E0277
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let count = std::cell::Cell::new(0);
    /// graph.root().host(move || count.set(1))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It cannot borrow values that may end before the graph does:
    ///
    /// ```compile_fail,E0373
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let count = std::sync::atomic::AtomicU32::new(0);
    /// graph.root().host(|| drop(count.load(std::sync::atomic::Ordering::Relaxed)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the driver reports an error.
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddHostNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "callback")]
    pub fn host<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<HostCallbackNode> {
        self.add_call(closure(self.graph(), call)?)
    }

    /// Adds a node that calls a closure with views of pinned, registered or managed memory.
    ///
    /// `memory` is a shared host buffer, a slice of one, or a tuple of these. The closure gets a
    /// [`HostView`](crate::HostView) of each. The node and each executable made from it own the
    /// closure and keep the memory alive. The rules of [`host`](Self::host) apply.
    ///
    /// While the closure runs, the views are exclusive on the host. If another view of the memory
    /// exists when the closure is due, the closure is skipped, the hook of
    /// [`set_panic_hook`](crate::set_panic_hook) gets a report, and the graph goes on. Device work
    /// that is not ordered with the node may read and write the memory meanwhile.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, sums: &Buffer<f32>) -> Result<()> {
    /// let host = graph.context().pinned_zeros::<f32>(sums.len())?.share();
    /// let copy = graph.root().copy(sums, &host)?;
    /// copy.then().host_with(&host, |sums| println!("{:?}", sums.to_vec()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the memory belongs to another context or the
    ///   host cannot access it, or if the driver reports an error.
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddHostNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "callback")]
    pub fn host_with<M, F>(&self, memory: M, call: F) -> Result<HostCallbackNode>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.add_call(looking(self.graph(), memory, call)?)
    }

    /// Adds a node that calls a C function with a pointer to `data`.
    ///
    /// The node and each executable made from it own `data`. Its address never changes. If the type
    /// of the data is unknown at compile time, use [`host_raw`](Self::host_raw).
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Safety
    /// - `function` may be called with a pointer to a `T` on any thread, several times, and on
    ///   several threads at once.
    /// - It writes to the data only as a shared reference allows (interior mutability), and does
    ///   not use the pointer after it has returned.
    /// - It neither unwinds nor ends the thread.
    ///
    /// # Errors
    /// The errors of [`host`](Self::host).
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddHostNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "callback")]
    pub unsafe fn host_function<T: Send + Sync + 'static>(
        &self,
        function: HostFunction,
        data: T,
    ) -> Result<HostCallbackNode> {
        // SAFETY: the caller promises this.
        self.add_call(unsafe { with_data(self.graph(), function, data) }?)
    }

    /// Adds a node that calls a C function with a pointer. The node and each executable made from
    /// it own `owner`.
    ///
    /// The driver gets the function and the pointer unchanged.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Safety
    /// - `function` may be called with `data` on any thread, once for every launch of an executable
    ///   of the graph, and on several threads at once, as long as `owner` lives. If the context is
    ///   lost, `owner` may be dropped while a call is still running; that call has to be sound,
    ///   too.
    /// - It neither unwinds nor ends the thread.
    ///
    /// # Errors
    /// The errors of [`host`](Self::host).
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddHostNode")]
    #[doc(alias = "cudaGraphAddNode")]
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "callback")]
    pub unsafe fn host_raw(
        &self,
        function: HostFunction,
        data: *mut c_void,
        owner: impl Into<Owner>,
    ) -> Result<HostCallbackNode> {
        self.add_call(raw(function, data, owner.into()))
    }

    fn add_call(&self, Prepared { host, owner, function, data }: Prepared) -> Result<HostCallbackNode> {
        let mut params = params(function, data);
        self.add(NodeParams::Host(host), Owners::from_iter([owner]), &mut params).map(HostCallbackNode::wrap)
    }
}

pub(crate) fn closure<F: Fn() + Send + Sync + 'static>(graph: &Graph, call: F) -> Result<Prepared> {
    // Checked first: in a forked child, the lock of the table of closures may be held for ever.
    graph.context().ensure_usable()?;
    Ok(prepared(Callable::new(call)))
}

/// The call of a closure that gets views of memory.
pub(crate) fn looking<M, F>(graph: &Graph, memory: M, call: F) -> Result<Prepared>
where
    M: Viewable,
    F: Fn(&M::Views) + Send + Sync + 'static,
{
    graph.context().ensure_usable()?;
    Ok(prepared(Callable::with(memory.views(graph.context())?, call)))
}

fn prepared(Callable { data, name, owner }: Callable) -> Prepared {
    Prepared { host: Host::Closure(name), owner, function: host_function::call, data }
}

/// The call of a C function. Its data lies in a closure, so that it outlives a running call.
///
/// # Safety
/// As for [`Frontier::host_function`].
pub(crate) unsafe fn with_data<T: Send + Sync + 'static>(
    graph: &Graph,
    function: HostFunction,
    data: T,
) -> Result<Prepared> {
    let call = move || {
        let data: *const T = &raw const data;
        // SAFETY: the data lives as long as the closure. The caller promises the rest.
        unsafe { function(data.cast_mut().cast()) }
    };
    Ok(Prepared { host: Host::Function(function), ..closure(graph, call)? })
}

pub(crate) fn raw(function: HostFunction, data: *mut c_void, owner: Owner) -> Prepared {
    Prepared { host: Host::raw(function, data), owner, function, data }
}

/// The driver's parameters of a host node.
pub(crate) fn params(function: HostFunction, data: *mut c_void) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST);
    let fields = &mut params.__bindgen_anon_1;
    fields.host.fn_ = Some(function);
    fields.host.userData = data;
    params
}
