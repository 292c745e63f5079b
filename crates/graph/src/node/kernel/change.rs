//! Changes of one part of a kernel node's launch: its configuration, its kernel, or one argument.
//!
//! Nothing of the arguments is kept beside the driver's node. A change reads them back, replaces
//! one, checks all of them against the declaration, and sets the launch as a whole.

use core::any::TypeId;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_launch::internal::{
    AccessRanges, Accesses, AttributeList, Observed, StoredArguments, StoredMemory, read_back,
};
use cuda_launch::{ConditionalHandle, LaunchConfig, SafeKernel, Signature, TypedKernel};

use crate::error::{Error, NodeError, Result};
use crate::node::kernel::KernelNode;
use crate::node::kernel::argument::{Given, NodeArgument};
use crate::node::kernel::launch::ensure_of;
use crate::node::kernel::relaunch::Relaunch;
use crate::state::NodeRecord;
use crate::state::bindings::ParamValue;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::kernel_params;

/// The part of a launch that changes.
enum Change<'a> {
    Argument(&'a str, Given),
    Config(LaunchConfig),
    Kernel,
}

impl KernelNode {
    /// Replaces one argument, by the name of its parameter in the kernel's declaration. Everything
    /// else of the launch stays.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    /// #     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn main() {}
    /// # fn example(
    /// #     graph: &Graph, saxpy: &saxpy, x: &Buffer<f32>, y: &Buffer<f32>, z: &Buffer<f32>
    /// # ) -> Result<()> {
    /// let step = graph.root().launch(saxpy, per(1000, 256), (1000, 2.0, x, y))?;
    /// step.set_argument(saxpy, "a", 3.0_f32)?;
    /// step.set_argument(saxpy, "y", z)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The conditions of the declaration are checked with all arguments. To change several that
    /// depend on each other, [`set`](Self::set) the launch. The node drops the memory that was
    /// replaced. Existing executables keep the old launch and its owners.
    ///
    /// Numbers have the declared type; there is no conversion. [`NodeArgument`] lists the values.
    ///
    /// Calls `cuGraphKernelNodeGetParams` (CUDA 12.0) and `cuGraphNodeSetParams` (CUDA 12.2). If
    /// the launch has attributes, also the calls of [`set`](Self::set).
    ///
    /// # Errors
    /// - [`NodeError::NotInPart`]: the present launch is not known. The node was added by other
    ///   code, or without a declaration; it launches another kernel than `kernel`; the kernel takes
    ///   a tensor map; or other code has changed the node.
    /// - [`NodeError::NoParameter`]: the declaration has no parameter of that name.
    /// - [`NodeError::ArgumentType`]: the parameter has another type.
    /// - [`Error::Launch`], if a condition of the declaration does not hold, or memory that the
    ///   kernel writes overlaps another argument.
    /// - [`ParamError::Bound`](crate::ParamError::Bound): the node takes graph parameters.
    /// - Memory of another context ([`WrongContext`](cuda_handles::Error::WrongContext)), or of
    ///   another graph ([`MemoryError::ForeignMemory`](crate::MemoryError::ForeignMemory)).
    /// - [`NodeError::Removed`], or the driver's error.
    ///
    /// The node is then unchanged, with the exception at [`set`](Self::set).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    pub fn set_argument<K: SafeKernel>(
        &self,
        kernel: &K,
        name: &str,
        value: impl NodeArgument,
    ) -> Result<()> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked.
        unsafe { self.set_argument_unchecked(kernel, name, value) }
    }

    /// Replaces one argument of a kernel that was declared as `unsafe fn`; see
    /// [`set_argument`](Self::set_argument).
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`](crate::Frontier::launch_unchecked), with all arguments
    /// that the node has then.
    ///
    /// # Errors
    /// The errors of [`set_argument`](Self::set_argument).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub unsafe fn set_argument_unchecked<K: TypedKernel>(
        &self,
        kernel: &K,
        name: &str,
        value: impl NodeArgument,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.change(kernel, Change::Argument(name, value.given())) }
    }

    /// Replaces the launch configuration: grid, block, shared memory and attributes. The arguments
    /// stay.
    ///
    /// ```no_run
    /// # use cuda_launch::per;
    /// # cuda_launch::kernel! {
    /// #     unsafe in cuda_handles::Image::Ptx("");
    /// #     fn fill(n: u32, x: Out<f32>) where x.len() >= n, grid.x * block.x >= n;
    /// # }
    /// # use cuda_graph::{KernelNode, Result};
    /// # fn main() {}
    /// # fn example(node: &KernelNode, fill: &fill) -> Result<()> {
    /// node.set_config(fill, per(1000, 512))
    /// # }
    /// ```
    ///
    /// The conditions of the declaration are checked with the present arguments. The node gets the
    /// attributes of `config`, as by [`set`](Self::set).
    ///
    /// # Errors
    /// The errors of [`set_argument`](Self::set_argument), and [`Error::Launch`], if the kernel or
    /// the device does not take the configuration.
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    pub fn set_config<K: SafeKernel>(&self, kernel: &K, config: LaunchConfig) -> Result<()> {
        // SAFETY: as for `set_argument`.
        unsafe { self.set_config_unchecked(kernel, config) }
    }

    /// Replaces the configuration of a kernel that was declared as `unsafe fn`; see
    /// [`set_config`](Self::set_config).
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`](crate::Frontier::launch_unchecked).
    ///
    /// # Errors
    /// The errors of [`set_config`](Self::set_config).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub unsafe fn set_config_unchecked<K: TypedKernel>(
        &self,
        kernel: &K,
        config: LaunchConfig,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.change(kernel, Change::Config(config)) }
    }

    /// Replaces the kernel by another one with the same parameter types. Arguments and
    /// configuration stay; the conditions of the other kernel are checked with them.
    ///
    /// # Errors
    /// The errors of [`set_config`](Self::set_config). [`NodeError::NotInPart`] also means that the
    /// kernel is declared with other parameter types than the present one, and
    /// [`WrongContext`](cuda_handles::Error::WrongContext) that it is of another context.
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphKernelNodeSetParams")]
    pub fn set_kernel<K: SafeKernel>(&self, kernel: &K) -> Result<()> {
        // SAFETY: as for `set_argument`.
        unsafe { self.set_kernel_unchecked(kernel) }
    }

    /// Replaces the kernel by one that was declared as `unsafe fn`; see
    /// [`set_kernel`](Self::set_kernel).
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`](crate::Frontier::launch_unchecked), with the arguments
    /// and the configuration that the node has.
    ///
    /// # Errors
    /// The errors of [`set_kernel`](Self::set_kernel).
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub unsafe fn set_kernel_unchecked<K: TypedKernel>(&self, kernel: &K) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.change(kernel, Change::Kernel) }
    }

    /// Makes a change under one lock: another thread may set the node meanwhile.
    ///
    /// # Safety
    /// As for [`Frontier::launch_unchecked`](crate::Frontier::launch_unchecked).
    unsafe fn change<K: TypedKernel>(&self, typed: &K, change: Change<'_>) -> Result<()> {
        let kernel = typed.kernel();
        self.getting(ensure_of(self.graph(), kernel))?;
        // Declared before the guard, so that what is replaced is dropped after the lock.
        let (mut launch, mut arguments, _replaced);
        let mut before = None;
        let mut guard = self.graph().enter()?;
        guard.ensure_not_bound(self.id())?;
        let record = guard.record(self.id()).ok_or_else(|| self.removed())?;
        let NodeParams::Kernel { config, .. } = &record.node_params else { return Err(self.removed()) };
        let mut config = config.get();
        arguments = guard.present_arguments(self.id(), record, typed, matches!(change, Change::Kernel))?;
        match change {
            Change::Config(new) => config = new,
            Change::Argument(name, value) => {
                _replaced = replace_argument::<K>(&mut arguments, name, value)?;
            }
            Change::Kernel => {}
        }
        config.check(kernel)?;
        arguments.check(kernel, &config)?;
        let attributes = match config.has_attributes() {
            true => config.node_attributes(kernel)?,
            false => AttributeList::default(),
        };
        let accesses = arguments.accesses();
        launch = Relaunch {
            node_params: NodeParams::Kernel { kernel: kernel.clone(), config: config.into(), accesses },
            owners: owners_of(&arguments, accesses, guard.used_by(record)),
            attributes,
            handles: arguments.handles().collect(),
        };
        let _observed = Observed::stored(kernel, &arguments);
        arguments.with_pointers(|pointers| {
            let mut params = kernel_params(kernel, config, pointers);
            launch.apply_under(&mut before, &mut guard, self, &mut params)
        })
    }
}

impl GraphGuard<'_> {
    /// The arguments of a node, as the driver has them. An error if they are not known to be those
    /// of a launch of the declared kernel; or of any kernel with the same types, if that may be
    /// another one.
    fn present_arguments<K: TypedKernel>(
        &self,
        id: NodeId,
        record: &NodeRecord,
        kernel: &K,
        may_be_other: bool,
    ) -> Result<StoredArguments> {
        let unknown = |why: Cow<'static, str>| NodeError::NotInPart { node: self.name(id), why };
        let NodeParams::Kernel { kernel: present, accesses, .. } = &record.node_params else {
            return Err(unknown("it launches no kernel".into()).into());
        };
        let signature = accesses.declaration().and_then(|declaration| declaration.signature);
        let Some(signature) = signature else {
            return Err(
                unknown("it was added by other code, or without a declaration of its kernel".into()).into()
            );
        };
        if !may_be_other && present != kernel.kernel() {
            let why =
                format!("it launches kernel `{}`, and not `{}`", present.name(), kernel.kernel().name());
            return Err(unknown(why.into()).into());
        }
        if signature != TypeId::of::<K::Signature>() {
            let why = format!("its launch is declared with other parameter types than `{}`", K::NAME);
            return Err(unknown(why.into()).into());
        }
        let found = self.kernel_params(record.raw.0)?;
        let has_all = K::Signature::SLOTS.is_empty() || !found.kernelParams.is_null();
        if found.kern != present.as_raw() || !has_all {
            return Err(unknown("other code has changed it".into()).into());
        }
        let used = UsedMemory::of(self, record, *accesses);
        // SAFETY: the driver returns a pointer for each parameter, into the node, which nobody
        // changes while the lock is held. The launch was declared with these types.
        let arguments = unsafe {
            read_back::<K>(
                found.kernelParams,
                |position, address| used.find(position, address),
                self.handles_of(id),
            )
        };
        arguments.ok_or_else(|| {
            unknown("the kernel takes a tensor map, or other code has changed an argument".into()).into()
        })
    }

    /// The handles of conditions among a kernel's arguments, in their order.
    fn handles_of(&self, id: NodeId) -> impl Iterator<Item = ConditionalHandle> {
        self.conditions.of_kernel(id.index).iter().filter_map(|&number| {
            let raw = self.conditions.find(number)?.raw;
            // SAFETY: the handle is of a condition of this hierarchy, in use by the kernel.
            Some(unsafe { ConditionalHandle::new(raw, self.number(), number) })
        })
    }
}

/// The memory that a launch uses.
struct UsedMemory<'g> {
    /// In the order of the parameters, if no other code has added the node.
    allocations: Vec<&'g Arc<Allocation>>,
    ranges: Option<&'g AccessRanges>,
    accesses: Accesses,
}

impl<'g> UsedMemory<'g> {
    fn of(guard: &'g GraphGuard<'_>, record: &'g NodeRecord, accesses: Accesses) -> Self {
        let used = || guard.used_by(record);
        let allocations = used().filter_map(|owner| match owner {
            Owner::Allocation(allocation) => Some(allocation),
            _ => None,
        });
        Self { allocations: allocations.collect(), ranges: used().find_map(ranges_of), accesses }
    }

    /// The memory of a parameter, given its address.
    fn find(&self, position: usize, address: u64) -> Option<StoredMemory> {
        let declaration = self.accesses.declaration()?;
        let bytes = match self.accesses.are_apart() {
            true => {
                let (start, bytes) = self.ranges?.find(position)?;
                (start == address).then_some(Some(bytes))?
            }
            false => self.accesses.bytes(position),
        };
        let is_it = |allocation: &Arc<Allocation>| match bytes {
            None => allocation.address() == address,
            Some(bytes) => {
                let end = allocation.address().saturating_add(allocation.bytes() as u64);
                allocation.address() <= address && address.saturating_add(bytes) <= end
            }
        };
        // Two owners may have the same address: the one in the place of the parameter comes first.
        let place = declaration.each().position(|(known, _)| known == position)?;
        let own = self.allocations.get(place).into_iter();
        let allocation = own.chain(&self.allocations).find(|allocation| is_it(allocation))?;
        let bytes = bytes.unwrap_or(allocation.bytes() as u64);
        Some(StoredMemory { allocation: (*allocation).into(), start: address, bytes })
    }
}

fn ranges_of(owner: &Owner) -> Option<&AccessRanges> {
    match owner {
        Owner::Other(other) => other.downcast_ref(),
        _ => None,
    }
}

/// The owners of a launch: the memory of its arguments, and what the present launch keeps beside
/// memory.
fn owners_of<'o>(
    arguments: &StoredArguments,
    accesses: Accesses,
    present: impl Iterator<Item = &'o Owner>,
) -> Owners {
    let memory = arguments.memories().map(|memory| Owner::Allocation(Arc::clone(&memory.allocation)));
    let mut owners: Owners = memory.collect();
    if accesses.are_apart() {
        owners.push(Owner::other(arguments.ranges()));
    }
    let is_other = |owner: &&Owner| !matches!(owner, Owner::Allocation(_)) && ranges_of(owner).is_none();
    owners.extend(present.filter(is_other).cloned());
    owners
}

/// Replaces an argument; returns the memory before, for the caller to drop after the lock.
fn replace_argument<K: TypedKernel>(
    arguments: &mut StoredArguments,
    name: &str,
    Given { of, value, words }: Given,
) -> Result<Option<StoredMemory>> {
    let Some(position) = K::PARAMETERS.iter().position(|known| *known == name) else {
        let known = K::PARAMETERS.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
        let (kernel, name) = (K::NAME.into(), name.into());
        return Err(NodeError::NoParameter { kernel, name, known: known.into() }.into());
    };
    let wrong_type = || -> Error {
        let declared = K::Signature::type_name(position).unwrap_or_default().into();
        NodeError::ArgumentType { argument: name.into(), declared, found: words().into() }.into()
    };
    if K::Signature::value_type(position) != Some(of) {
        return Err(wrong_type());
    }
    match value {
        // SAFETY: the memory has elements of the declared type.
        ParamValue::Memory(memory) => match unsafe { arguments.set_memory(position, memory) } {
            None => Err(wrong_type()),
            replaced => Ok(replaced),
        },
        // SAFETY: the bytes are a value of the declared type.
        ParamValue::Bytes(value) => match unsafe { arguments.set_value(position, &value.bytes) } {
            true => Ok(None),
            false => Err(wrong_type()),
        },
        // Values of nodes, not of arguments.
        ParamValue::Event(_) | ParamValue::Config(_) | ParamValue::Enabled(_) => Err(wrong_type()),
    }
}
