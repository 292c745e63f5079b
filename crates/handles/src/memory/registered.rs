//! Memory of the host that was there before, registered with the driver.

use core::any::{Any, type_name};
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use cuda_sys::{CUdevice_attribute as Attribute, Call};

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::host::HostBuffer;
use super::range::bytes_of;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result};
use crate::reclaim::host_cache;
use crate::reclaim::{HostBlock, HostKind, HostOwner};
use crate::registry::Raw;

/// How memory is registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegisterOptions {
    /// The device only reads it, so memory can be registered that the process may not write, such
    /// as a file mapped for reading. Default: no.
    #[doc(alias = "CU_MEMHOSTREGISTER_READ_ONLY")]
    pub read_only: bool,
}

/// An operation that took a value and failed: it returns the value.
///
/// As an [`Error`] it drops that, so `?` does.
pub struct Refused<V> {
    /// Why.
    pub error: Error,
    /// The value.
    pub value: V,
}

impl<V> Refused<V> {
    fn new(error: Error, value: V) -> Self {
        Self { error, value }
    }
}

impl<V> From<Refused<V>> for Error {
    fn from(refused: Refused<V>) -> Self {
        refused.error
    }
}

impl<V> fmt::Display for Refused<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

impl<V> fmt::Debug for Refused<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl<V> core::error::Error for Refused<V> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.source()
    }
}

/// A vector in its parts: while the memory is registered, only the buffer makes references to it.
struct RawVec<T> {
    start: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns its elements, which may go to other threads.
unsafe impl<T: Send> Send for RawVec<T> {}

impl<T> RawVec<T> {
    fn new(elements: Vec<T>) -> Self {
        let mut elements = ManuallyDrop::new(elements);
        Self { start: elements.as_mut_ptr(), len: elements.len(), capacity: elements.capacity() }
    }

    fn into_vec(self) -> Vec<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the parts are those of a vector, which is not used again.
        unsafe { Vec::from_raw_parts(this.start, this.len, this.capacity) }
    }
}

impl<T> Drop for RawVec<T> {
    fn drop(&mut self) {
        // SAFETY: as above.
        drop(unsafe { Vec::from_raw_parts(self.start, self.len, self.capacity) });
    }
}

impl Context {
    /// Registers the memory of a vector (or of a box, which becomes one) with the driver: from now
    /// on it is a [`HostBuffer`] and goes wherever pinned memory goes, without a copy. Its contents
    /// stay. [`HostBuffer::into_vec_blocking`] gives the vector back.
    ///
    /// A buffer that is dropped waits for [`reaper::drain`](crate::reaper::drain), which
    /// unregisters it and drops the vector, since the driver waits for all work of the device in
    /// that. Registering takes long (the driver pins every page), so do it once for memory that is
    /// used often.
    ///
    /// Every context of the process may use it, at the host's own address. Nothing is registered
    /// for no bytes.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// # let weights = vec![0.0_f32; 1024];
    /// let weights = context.register(weights)?.share();
    /// let buffer = stream.alloc::<f32>(weights.len())?;
    /// stream.copy(&weights, &buffer)?;
    /// stream.synchronize_blocking()?;
    /// let weights: Vec<f32> = weights.try_unique().expect("it is idle").into_vec_blocking()?;
    /// # Ok(()) }
    /// ```
    ///
    /// Calls `cuMemHostRegister` (CUDA 4.0), and `cuDeviceGetAttribute`.
    ///
    /// # Errors
    /// The memory, or a part of it, is registered already; the device does not reach registered
    /// memory at the host's address ([`Error::Unsupported`](crate::Error::Unsupported)); or the
    /// driver refuses the call. The vector comes back.
    #[doc(alias = "cuMemHostRegister")]
    #[doc(alias = "cudaHostRegister")]
    pub fn register<T: Element>(
        &self,
        elements: impl Into<Vec<T>>,
    ) -> Result<HostBuffer<T>, Refused<Vec<T>>> {
        let elements = RawVec::new(elements.into());
        let (start, len) = (elements.start, elements.len);
        // SAFETY: these are the vector's elements, which it keeps and nothing else uses.
        unsafe { self.register_raw(start, len, elements, RegisterOptions::default()) }
            .map_err(|Refused { error, value }| Refused::new(error, value.into_vec()))
    }

    /// Registers memory of another owner, which is dropped when the memory was unregistered; see
    /// [`register`](Self::register). [`HostBuffer::into_owner_blocking`] gives the owner back.
    ///
    /// Calls `cuMemHostRegister` (CUDA 4.0), and `cuDeviceGetAttribute`.
    ///
    /// # Safety
    /// - Until `owner` is dropped or given back, `start` points to `len` elements, initialised and
    ///   aligned, that the host and the device may read and write, and only the buffer accesses
    ///   them.
    /// - If they are registered as `read_only`, nothing writes them through the buffer either: no
    ///   copy, fill, kernel or host function, and no host code through [`HostBuffer`].
    ///
    /// # Errors
    /// As [`register`](Self::register); for `read_only`, that the device does not know of it
    /// ([`Error::Unsupported`](crate::Error::Unsupported)). The owner comes back.
    #[doc(alias = "cuMemHostRegister")]
    #[doc(alias = "cudaHostRegister")]
    pub unsafe fn register_raw<T: Element, O: Any + Send>(
        &self,
        start: *mut T,
        len: usize,
        owner: O,
        options: RegisterOptions,
    ) -> Result<HostBuffer<T>, Refused<O>> {
        let bytes = match self.register_memory(start.cast(), bytes_of::<T>(len), options) {
            Ok(bytes) => bytes,
            Err(error) => return Err(Refused::new(error, owner)),
        };
        let owner = Some(Arc::new(HostOwner::new(Box::new(owner))));
        let start = if bytes == 0 { NonNull::dangling().as_ptr() } else { start };
        let (context, start, kind) = (self.clone(), Raw::new(start.cast()), HostKind::Registered);
        let block = HostBlock { context, start, bytes, kind, owner };
        Ok(HostBuffer(Buffer::whole(Allocation::host(self, kind, Some(block), bytes), len)))
    }

    /// The driver's part of it. Nothing for no bytes.
    fn register_memory(
        &self,
        start: *mut c_void,
        bytes: Result<usize>,
        options: RegisterOptions,
    ) -> Result<usize> {
        let bytes = bytes?;
        self.ensure_usable()?;
        if bytes == 0 {
            return Ok(0);
        }
        self.ensure_can_register(options)?;
        let mut flags = cuda_sys::CU_MEMHOSTREGISTER_PORTABLE | cuda_sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        if options.read_only {
            flags |= cuda_sys::CU_MEMHOSTREGISTER_READ_ONLY;
        }
        let current = self.enter()?;
        let mode = capture_mode::relaxed(self.driver());
        // SAFETY: the context is current; there are so many bytes, which stay until they are
        // unregistered.
        let code = unsafe { self.driver().cuMemHostRegister(start, bytes, flags) };
        drop(mode);
        drop(current);
        self.check(Call::cuMemHostRegister, code)?;
        Ok(bytes)
    }

    fn ensure_can_register(&self, options: RegisterOptions) -> Result<()> {
        let has = |attribute| Ok::<_, Error>(self.device().attribute(attribute)? != 0);
        if !has(Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)? {
            return Err(Error::Unsupported { what: "registered host memory at the host's own address" });
        }
        if options.read_only && !has(Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)? {
            return Err(Error::Unsupported { what: "host memory registered for reading alone" });
        }
        Ok(())
    }
}

impl<T: Element> HostBuffer<T> {
    /// The vector that was [registered](Context::register), with the current contents. **Waits**
    /// for all work of the device, as the driver does when memory is unregistered; launches of
    /// other threads wait meanwhile. After the loss of the context it makes no driver call.
    ///
    /// Calls `cuMemHostUnregister` (CUDA 4.0).
    ///
    /// # Errors
    /// [`Error::OtherOwner`](crate::Error::OtherOwner) if the memory is not a vector of these
    /// elements, `NOT_PERMITTED` inside a host function, or the driver refuses the call. The buffer
    /// comes back.
    #[doc(alias = "cuMemHostUnregister")]
    #[doc(alias = "cudaHostUnregister")]
    pub fn into_vec_blocking(mut self) -> Result<Vec<T>, Refused<Self>> {
        match self.take_owner::<RawVec<T>>(type_name::<Vec<T>>()) {
            Ok(owner) => Ok(owner.into_vec()),
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// The owner that was given to [`Context::register_raw`]; see
    /// [`into_vec_blocking`](Self::into_vec_blocking).
    ///
    /// # Errors
    /// As [`into_vec_blocking`](Self::into_vec_blocking); the owner has another type.
    #[doc(alias = "cuMemHostUnregister")]
    #[doc(alias = "cudaHostUnregister")]
    pub fn into_owner_blocking<O: Any + Send>(mut self) -> Result<O, Refused<Self>> {
        match self.take_owner(type_name::<O>()) {
            Ok(owner) => Ok(owner),
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// The owner, which users call a value of the type `asked`.
    fn take_owner<O: Any + Send>(&mut self, asked: &'static str) -> Result<O> {
        let other = Error::OtherOwner { asked };
        let Some(allocation) = self.0.sole_allocation() else { return Err(other) };
        let block =
            allocation.host_block().filter(|block| block.owner.as_ref().is_some_and(|it| it.is::<O>()));
        let Some(block) = block else { return Err(other) };
        match block.context.ensure_usable() {
            Ok(()) if block.bytes > 0 => {
                // The call would wait for the work that waits for the host function.
                block.context.refuse_in_callback()?;
                match host_cache::unregister(block) {
                    Err(Error::ContextLost(_)) => {}
                    unregistered => unregistered?,
                }
            }
            // Nothing runs there any more.
            Ok(()) | Err(Error::ContextLost(_)) => {}
            Err(error) => return Err(error),
        }
        let owner = allocation.take_host_block().and_then(|block| block.owner);
        // No other owner exists: the buffer was the only one, and everything that named the block
        // is gone.
        owner.and_then(Arc::into_inner).and_then(HostOwner::into_inner).ok_or(other)
    }
}
