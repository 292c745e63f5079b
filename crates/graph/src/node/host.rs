//! Nodes that call a function on the host.

use core::ffi::c_void;

use cuda_handles::host_function::{self, Callable};
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
    /// A node that calls a function of the host, on a thread of the driver's.
    HostCallbackNode, HostCallback
}

/// A call, with what it keeps alive.
struct Prepared {
    host: Host,
    owner: Owner,
    function: HostFunction,
    data: *mut c_void,
}

impl HostCallbackNode {
    /// The C function; `None` for a closure.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    pub fn function(&self) -> Result<Option<HostFunction>> {
        Ok(match self.host()? {
            Host::Closure(_) => None,
            Host::Function(function) | Host::Raw(function, _) => Some(function),
        })
    }

    /// The pointer that goes to the function, where it was given as one ([`Frontier::host_raw`]).
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    pub fn data(&self) -> Result<Option<*mut c_void>> {
        Ok(match self.host()? {
            Host::Raw(_, data) => Some(data.0),
            _ => None,
        })
    }

    /// Calls another closure from now on. The node lets go of what it called before; executables
    /// made before go on with it.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// The node was removed, or what the driver answers; the node is as it was then.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<()> {
        self.replace_by(closure(self.graph(), call)?)
    }

    /// Calls another closure with memory from now on; see [`set`](Self::set) and
    /// [`Frontier::host_with`].
    ///
    /// # Errors
    /// As [`set`](Self::set) and [`Frontier::host_with`].
    #[doc(alias = "cuGraphHostNodeSetParams")]
    pub fn set_with<M, F>(&self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.replace_by(looking(self.graph(), memory, call)?)
    }

    /// Calls a C function with data that the node keeps from now on; see [`set`](Self::set).
    ///
    /// # Safety
    /// As [`Frontier::host_function`].
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub unsafe fn set_function<T: Send + Sync + 'static>(
        &self,
        function: HostFunction,
        data: T,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        self.replace_by(unsafe { with_data(self.graph(), function, data) }?)
    }

    /// Calls a C function with a pointer from now on; see [`set`](Self::set).
    ///
    /// # Safety
    /// As [`Frontier::host_raw`].
    ///
    /// # Errors
    /// As [`set`](Self::set).
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
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    fn replace_by(&self, Prepared { host, owner, function, data }: Prepared) -> Result<()> {
        let mut params = params(function, data);
        self.replace(NodeParams::Host(host), Owners::from_iter([owner]), &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that calls a closure at each launch, on a thread of the driver's. What comes
    /// after the node waits until it has returned.
    ///
    /// The node and each executable made of it own the closure. Two executables may call it at the
    /// same time.
    ///
    /// No driver call is permitted in there, not even a small one. Most of this library's give an
    /// error that says so; those on the way of a launch do not look, such as
    /// [`GraphExec::launch`](crate::GraphExec::launch) and the adds of nodes: keep them out.
    /// Buffers, executables and all else may be dropped. A panic is caught, reported to the hook of
    /// [`set_panic_hook`](crate::set_panic_hook), and the graph goes on.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph, step: &cuda_graph::Node) -> cuda_graph::Result<()> {
    /// let (ready, done) = std::sync::mpsc::channel();
    /// let tell = step.then().host(move || drop(ready.send(())))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A closure that keeps a handle of its own graph, or of one of its nodes, keeps the graph from
    /// ever ending.
    ///
    /// It may be called more than once, and by several threads, so it cannot change what it has
    /// without a lock or atomics:
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
    /// It cannot borrow what may end before the graph does:
    ///
    /// ```compile_fail,E0373
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let count = std::sync::atomic::AtomicU32::new(0);
    /// graph.root().host(|| drop(count.load(std::sync::atomic::Ordering::Relaxed)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A node of the frontier was removed, or what the driver answers.
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn host<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<HostCallbackNode> {
        self.add_call(closure(self.graph(), call)?)
    }

    /// Adds a node that calls a closure that looks at pinned, registered or managed memory:
    /// `memory` is a shared buffer, a slice of one, or a tuple of these, and the closure is given a
    /// [`HostView`](crate::HostView) of each. The node and each executable made of it own the
    /// closure and keep the memory; see [`host`](Self::host).
    ///
    /// While the closure runs, nobody else of the host has a view of that memory. If somebody has
    /// one when it is to be called, it is not called, the hook of
    /// [`set_panic_hook`](crate::set_panic_hook) is told, and the graph goes on. Work of the device
    /// that is not ordered with the node may read and write the memory meanwhile; see
    /// [`HostView`](crate::HostView).
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph, sums: &cuda_handles::Buffer<f32>) -> cuda_graph::Result<()> {
    /// let host = graph.context().pinned_zeros::<f32>(sums.len())?.share();
    /// let copy = graph.root().copy_to_host(sums, &host)?;
    /// copy.then().host_with(&host, |sums| println!("{:?}", sums.to_vec()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`host`](Self::host); memory of another context, or which the host does not reach.
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn host_with<M, F>(&self, memory: M, call: F) -> Result<HostCallbackNode>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.add_call(looking(self.graph(), memory, call)?)
    }

    /// Adds a node that calls a C function with a pointer to `data`, which the node and each
    /// executable made of it own. Its address stays the same.
    ///
    /// For data of a size that only running code knows, see [`host_raw`](Self::host_raw).
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Safety
    /// - The function can be called with a pointer to a `T` on any thread, several times, and by
    ///   several threads at once.
    /// - It writes to the data only where that can be done behind a shared reference, and does not
    ///   use the pointer after it has returned.
    /// - It neither unwinds nor ends the thread.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub unsafe fn host_function<T: Send + Sync + 'static>(
        &self,
        function: HostFunction,
        data: T,
    ) -> Result<HostCallbackNode> {
        // SAFETY: the caller's promise.
        self.add_call(unsafe { with_data(self.graph(), function, data) }?)
    }

    /// Adds a node that calls a C function with a pointer. The node and each executable made of it
    /// own `owner`.
    ///
    /// The driver gets function and pointer as they are.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Safety
    /// - The function can be called with this pointer on any thread, as often as executables of the
    ///   graph are launched, and by several threads at once, as long as `owner` lives. After a
    ///   context was lost, which lets the owners go, that includes a call that is running then.
    /// - It neither unwinds nor ends the thread.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cuGraphAddNode")]
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

fn closure<F: Fn() + Send + Sync + 'static>(graph: &Graph, call: F) -> Result<Prepared> {
    // Before the table of closures is touched, whose lock a forked child may find held.
    graph.context().ensure_usable()?;
    Ok(prepared(Callable::new(call)))
}

/// As [`closure`], with the memory that it looks at.
fn looking<M, F>(graph: &Graph, memory: M, call: F) -> Result<Prepared>
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

/// The data is part of a closure, so that it lives through a call as well.
///
/// # Safety
/// As [`Frontier::host_function`].
unsafe fn with_data<T: Send + Sync + 'static>(
    graph: &Graph,
    function: HostFunction,
    data: T,
) -> Result<Prepared> {
    let call = move || {
        let data: *const T = &raw const data;
        // SAFETY: the data lives as long as the closure does; the rest is the caller's promise.
        unsafe { function(data.cast_mut().cast()) }
    };
    Ok(Prepared { host: Host::Function(function), ..closure(graph, call)? })
}

fn raw(function: HostFunction, data: *mut c_void, owner: Owner) -> Prepared {
    Prepared { host: Host::raw(function, data), owner, function, data }
}

/// The driver's form of a host node.
fn params(function: HostFunction, data: *mut c_void) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST);
    let to = &mut params.__bindgen_anon_1;
    to.host.fn_ = Some(function);
    to.host.userData = data;
    params
}
