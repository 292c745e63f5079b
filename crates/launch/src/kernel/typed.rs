//! Typed kernels: their traits, loading, prepared arguments, and launches.

use core::any::TypeId;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, AsStream, Context, Image, Kernel, Library, Stream};
use smallvec::SmallVec;

use crate::arguments::access::{AccessRanges, Accesses, Declaration, Memory};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::holder::{Arguments, ensure_memory_of, sealed};
use crate::arguments::slot::ParameterSlot;
use crate::arguments::stored::{StoredArguments, StoredMemory};
use crate::arguments::{size_check, wrong_context};
use crate::config::launch_config::LaunchConfig;
use crate::config::stream_config::StreamConfig;
use crate::error::{BrokenCondition, Error, OverlappingArguments, Result};
use crate::kernel::signature::{ArgumentsOf, FixedArgumentsOf, Overlap, PlainArgumentsOf, Signature};
use crate::launch::enqueue;
use crate::observe::observed;

type ValuesOf<'a, K> = <<K as TypedKernel>::Signature as Signature>::Values<'a>;

/// A kernel with a signature and conditions, made by [`kernel!`](crate::kernel!).
///
/// # Safety
/// The [promise](crate::kernel!#safety) of a declaration: the image has a kernel of this name whose
/// parameters have the types of the signature, and every launch for which
/// [`broken`](Self::broken) returns `None` stays within its arguments.
pub unsafe trait TypedKernel: Sized + Send + Sync + 'static {
    /// The types of the parameters.
    type Signature: Signature;

    /// The kernel's name in the image.
    const NAME: &'static str;
    /// The names of the parameters.
    const PARAMETERS: &'static [&'static str];
    /// Whether memory that the kernel writes may overlap other arguments.
    const MAY_OVERLAP: bool;
    /// Whether each launch ends whatever other kernels do: the kernel was declared as `fn`.
    const ENDS_ALONE: bool;
    /// How the kernel accesses the memory of its arguments.
    const DECLARATION: &'static Declaration = &Declaration {
        names: Self::PARAMETERS,
        memory: <Self::Signature as Signature>::MEMORY,
        padded: <Self::Signature as Signature>::PADDED,
        signature: Some(TypeId::of::<Self::Signature>()),
        ends_alone: Self::ENDS_ALONE,
    };

    /// The image that contains the kernel.
    fn image() -> Image<'static>;

    /// The text of the first condition that does not hold, if any.
    fn broken(values: &ValuesOf<'_, Self>, config: &LaunchConfig) -> Option<&'static str>;

    /// The loaded kernel.
    fn loaded(&self) -> &Loaded<Self>;

    /// The untyped kernel.
    #[inline]
    fn kernel(&self) -> &Kernel {
        &self.loaded().kernel
    }

    /// Checks arguments and configuration against the declaration, and prepares the arguments for
    /// launches and graphs. Makes no driver call.
    ///
    /// The values are those of now, so a graph parameter of cuda-graph is no such argument.
    ///
    /// # Errors
    /// - [`Error::Condition`] if a condition does not hold.
    /// - [`Error::Overlap`] if written memory overlaps another argument.
    /// - [`Error::Handles`] if the kernel
    ///   [cannot use](cuda_handles::Allocation::is_reachable_from) memory of another context.
    #[inline]
    fn prepare<'a>(
        &'a self,
        config: &LaunchConfig,
        arguments: impl FixedArgumentsOf<'a, Self::Signature>,
    ) -> Result<Prepared<'a, Self>> {
        Prepared::with_parameters(self, config, arguments)
    }
}

/// A typed kernel that safe code can launch: one declared as `fn`, not `unsafe fn`.
///
/// # Safety
/// The promise of [`TypedKernel`] holds for all arguments that meet the conditions, whatever the
/// memory holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was declared as `unsafe fn`: safe code cannot launch it",
    label = "needs `unsafe`",
    note = "with the same arguments: `unsafe {{ frontier.launch_unchecked(&kernel, config, (..)) }}` for a node, `set_unchecked` for one that is there",
    note = "what the caller promises is in the kernel's own documentation"
)]
pub unsafe trait SafeKernel: TypedKernel {}

/// The error of a condition that does not hold. By value: references would force every launch to
/// write the values to memory.
#[cold]
fn broken<K: TypedKernel>(condition: &'static str, values: ValuesOf<'_, K>, config: LaunchConfig) -> Error {
    let mut text = String::new();
    // Writing to a string fails only if a value's own formatting fails; then the text ends there.
    let _ = K::Signature::show(K::PARAMETERS, &values, &mut text);
    Error::Condition(Box::new(BrokenCondition { kernel: K::NAME, condition, values: text, config }))
}

#[cold]
fn overlapping<K: TypedKernel>(overlap: Overlap) -> Error {
    let name = |position: usize| K::PARAMETERS.get(position).copied().unwrap_or("?");
    let (first, second) = (name(overlap.first), name(overlap.second));
    Error::Overlap(Box::new(OverlappingArguments { kernel: K::NAME, first, second, bytes: overlap.bytes }))
}

/// A loaded kernel whose parameters match the declaration `K`.
pub struct Loaded<K> {
    kernel: Kernel,
    _declaration: PhantomData<fn() -> K>,
}

impl<K: TypedKernel> Loaded<K> {
    /// Loads the declaration's image, or takes the copy already loaded in the context
    /// ([`Library::load_shared`]), and returns the kernel.
    ///
    /// # Errors
    /// The image does not load or has no such kernel, or the kernel has other parameters.
    pub fn load(context: &Context) -> Result<Self> {
        let kernel = Library::load_shared(context, K::image())?.kernel(K::NAME)?;
        Self::checked(kernel)
    }

    /// As [`load`](Self::load), but from the image with a wait at the entry of each kernel
    /// ([`Library::load_waiting_shared`]).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_waiting(context: &Context) -> Result<Self> {
        let kernel = Library::load_waiting_shared(context, K::image())?.kernel(K::NAME)?;
        Self::checked(kernel)
    }

    /// Takes the kernel from a loaded library.
    ///
    /// # Safety
    /// The library was loaded from the declaration's image, or from one that has the same kernel.
    ///
    /// # Errors
    /// The library has no such kernel, or the kernel has other parameters.
    pub unsafe fn of(library: &Library) -> Result<Self> {
        Self::checked(library.kernel(K::NAME)?)
    }

    fn checked(kernel: Kernel) -> Result<Self> {
        size_check::check_declared(&kernel, K::Signature::SLOTS, K::PARAMETERS)?;
        Ok(Self { kernel, _declaration: PhantomData })
    }
}

impl<K> Clone for Loaded<K> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone(), _declaration: PhantomData }
    }
}

impl<K> fmt::Debug for Loaded<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kernel.fmt(formatter)
    }
}

/// The checked arguments of one launch of a typed kernel, from [`TypedKernel::prepare`]. They
/// borrow the memory they use.
pub struct Prepared<'a, K: TypedKernel> {
    kernel: &'a Kernel,
    values: ValuesOf<'a, K>,
}

impl<'a, K: TypedKernel> Prepared<'a, K> {
    #[inline]
    fn new(kernel: &'a K, arguments: impl ArgumentsOf<'a, K::Signature>) -> Self {
        Self { kernel: kernel.kernel(), values: arguments.values() }
    }

    /// [`TypedKernel::prepare`] with graph parameters among the arguments, each as its first value:
    /// the caller has noted them.
    ///
    /// # Errors
    /// As [`TypedKernel::prepare`].
    #[doc(hidden)]
    #[inline]
    pub fn with_parameters(
        kernel: &'a K,
        config: &LaunchConfig,
        arguments: impl ArgumentsOf<'a, K::Signature>,
    ) -> Result<Self> {
        let prepared = Self::new(kernel, arguments);
        prepared.check_declared(config)?;
        Ok(prepared)
    }

    /// The checks of [`TypedKernel::prepare`]. Returns no arguments: a large result would be
    /// written to memory and copied from there.
    #[inline]
    fn check_declared(&self, config: &LaunchConfig) -> Result<()> {
        let context = self.kernel.context();
        let mut is_elsewhere = false;
        self.each_allocation(|allocation| is_elsewhere |= !context.is_same(allocation.context()));
        if is_elsewhere {
            ensure_memory_of(self.kernel, self)?;
        }
        if let Some(condition) = K::broken(&self.values, config) {
            return Err(broken::<K>(condition, self.values, *config));
        }
        // The device may choose either cluster.
        if config.has_attributes()
            && let Some(preferred) = config.attributes_set().preferred_cluster
            && let Some(condition) = K::broken(&self.values, &config.cluster(preferred))
        {
            return Err(broken::<K>(condition, self.values, *config));
        }
        if !K::MAY_OVERLAP
            && let Some(overlap) = K::Signature::overlap(&self.values)
        {
            return Err(overlapping::<K>(overlap));
        }
        Ok(())
    }
}

impl<K: TypedKernel> Prepared<'_, K> {
    /// The arguments, owned; `None` if one cannot be stored, as a tensor map.
    #[doc(hidden)]
    #[must_use]
    pub fn store(&self) -> Option<StoredArguments> {
        let mut stored = self.with_pointers(|pointers| {
            // SAFETY: there is a pointer to the value of each slot, in the declared type.
            unsafe {
                let slots = Cow::Borrowed(K::Signature::SLOTS);
                StoredArguments::copied(K::DECLARATION, check_stored::<K>, slots, pointers)
            }
        });
        let mut positions = K::DECLARATION.each().map(|(position, _)| position);
        let each = |memory: Memory<'_>| {
            stored.push_memory(positions.next().unwrap_or(usize::MAX), &memory);
            Ok::<_, core::convert::Infallible>(())
        };
        let Ok(()) = K::Signature::each_memory(&self.values, each);
        K::Signature::each_handle(&self.values, |position, handle| stored.push_handle(position, handle));
        K::Signature::read(&stored)?;
        Some(stored)
    }
}

/// The arguments of a launch of a kernel, from their packed values. `memory` finds the memory of a
/// parameter, given its position and its address; `handles` are the handles of conditions, in their
/// order. `None` if something is not found, or an argument cannot be stored, as a tensor map.
///
/// # Safety
/// `pointers` leads to a value of each parameter, in the declared type.
#[must_use]
pub unsafe fn read_back<K: TypedKernel>(
    pointers: *mut *mut c_void,
    mut memory: impl FnMut(usize, u64) -> Option<StoredMemory>,
    handles: impl IntoIterator<Item = ConditionalHandle>,
) -> Option<StoredArguments> {
    let slots = Cow::Borrowed(K::Signature::SLOTS);
    // SAFETY: the caller's promise.
    let mut stored = unsafe { StoredArguments::copied(K::DECLARATION, check_stored::<K>, slots, pointers) };
    for (position, _) in K::DECLARATION.each() {
        let address = stored.packed(position)?;
        stored.push_stored(position, memory(position, address)?);
    }
    let positions =
        (0..).zip(K::Signature::HANDLES).filter_map(|(position, is_handle)| is_handle.then_some(position));
    positions.zip(handles).for_each(|(position, handle)| stored.push_handle(position, handle));
    K::Signature::read(&stored)?;
    Some(stored)
}

/// Checks stored arguments of a kernel, as [`TypedKernel::prepare`] does for arguments.
fn check_stored<K: TypedKernel>(
    kernel: &Kernel,
    stored: &StoredArguments,
    config: &LaunchConfig,
) -> Result<()> {
    // Only arguments that can be read are stored.
    let Some(values) = K::Signature::read(stored) else { return Ok(()) };
    Prepared::<K> { kernel, values }.check_declared(config)
}

impl<K: TypedKernel> fmt::Debug for Prepared<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        K::Signature::show(K::PARAMETERS, &self.values, &mut text)?;
        write!(formatter, "Prepared({}: {text})", K::NAME)
    }
}

impl<K: TypedKernel> sealed::Sealed for Prepared<'_, K> {}

impl<K: TypedKernel> Arguments for Prepared<'_, K> {
    #[inline]
    fn slots(&self) -> &[ParameterSlot] {
        K::Signature::SLOTS
    }

    #[inline]
    fn check(&self, kernel: &Kernel) -> Result<()> {
        // The kernel that the arguments were prepared for was checked when it was loaded.
        if self.kernel == kernel { Ok(()) } else { size_check::check(kernel, self.slots()) }
    }

    #[inline]
    fn check_memory(&self, kernel: &Kernel) -> Result<()> {
        // `prepare` checked it for its own kernel.
        if self.kernel == kernel { Ok(()) } else { ensure_memory_of(kernel, self) }
    }

    #[inline]
    fn may_be_padded(&self, argument: usize) -> bool {
        K::Signature::PADDED.get(argument).is_none_or(|padded| *padded)
    }

    #[inline]
    fn ready_on(&self, stream: &Stream) -> Result<()> {
        Ok(K::Signature::each_memory(&self.values, |memory| memory.allocation.ready_for_kernel(stream))?)
    }

    #[inline]
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        K::Signature::with_pointers(&self.values, call)
    }

    #[inline]
    fn each_allocation<'s>(&'s self, mut each: impl FnMut(&'s Arc<Allocation>)) {
        let _: core::result::Result<(), core::convert::Infallible> =
            K::Signature::each_memory(&self.values, |memory| {
                each(memory.allocation);
                Ok(())
            });
    }

    fn name_of(&self, allocation: usize) -> Cow<'static, str> {
        let position = K::DECLARATION.each().nth(allocation).map(|(position, _)| position);
        let name = position.and_then(|position| K::PARAMETERS.get(position));
        name.map_or("an argument".into(), |name| format!("argument `{name}`").into())
    }

    #[inline]
    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        let mut handles = SmallVec::new();
        K::Signature::each_handle(&self.values, |_, handle| handles.push(handle));
        handles
    }

    #[inline]
    fn has_handles(&self) -> bool {
        K::Signature::HAS_HANDLES
    }

    #[inline]
    fn accesses(&self) -> Accesses {
        K::Signature::accesses(&self.values, K::DECLARATION)
    }

    fn access_ranges(&self) -> AccessRanges {
        K::Signature::ranges(&self.values)
    }
}

/// Blames the kernel, not the memory, if stream and kernel are of different contexts.
#[cold]
fn of_stream(kernel: &Kernel, stream: &Stream, error: Error) -> Error {
    match error {
        Error::Handles(cuda_handles::Error::WrongContext(_))
            if !kernel.context().is_same(stream.context()) =>
        {
            wrong_context::kernel_and_stream(kernel, stream)
        }
        other => other,
    }
}

/// Launches a typed kernel on a stream.
///
/// # Safety
/// For a kernel declared as `unsafe fn`, the conditions in its documentation hold.
///
/// # Errors
/// Those of [`TypedKernel::prepare`] and of [`Launch::launch`](crate::Launch::launch).
#[inline(always)]
pub unsafe fn launch<'a, K: TypedKernel>(
    kernel: &'a K,
    stream: &impl AsStream,
    config: impl Into<StreamConfig<'a>>,
    arguments: impl PlainArgumentsOf<'a, K::Signature>,
) -> Result<()> {
    let config = config.into();
    let prepared = Prepared::new(kernel, arguments);
    if let Err(error) = prepared.check_declared(config.config()) {
        return Err(of_stream(kernel.kernel(), stream.as_stream(), error));
    }
    // SAFETY: the declaration promises that the arguments fit and that the kernel stays within
    // their memory; the caller promises the rest. No Rust reference leads to device memory, so
    // unordered accesses change numbers and nothing else.
    observed(kernel.kernel(), &prepared, || unsafe {
        enqueue(kernel.kernel(), stream.as_stream(), config, &prepared)
    })
}
