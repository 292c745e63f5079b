//! Contexts, to which every other object belongs.

use core::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use cuda_sys::{CUcontext, CUctx_st, CUresult, Call, Driver};

use super::device::{Device, checked};
use super::in_host_function;
use super::limits::Limits;
use super::peers::Peers;
use crate::error::{Cause, Error, Result};
use crate::registry::{Raw, Registry, Sharded, identity};
use crate::sync::process;

pub(crate) static CONTEXTS: LazyLock<Registry<Sharded<ContextBox>>> =
    LazyLock::new(|| Registry::with_map(Sharded::new()));

/// The reaction of the host functions' table to the loss of a context, once there is a table.
static ON_LOSS: OnceLock<fn(&Context)> = OnceLock::new();

/// Calls `react` with each context that is lost from now on. There is one place for this.
pub(crate) fn on_loss(react: fn(&Context)) {
    let _ = ON_LOSS.set(react);
}

pub(crate) struct ContextBox {
    raw: Raw<CUctx_st>,
    device: Device,
    limits: Limits,
    lost: OnceLock<Cause>,
    peers: Peers<Self>,
}

/// A device's context. The primary one ([`Device::context`]) is retained once in a process and not
/// released before its end.
///
/// A fault on the device ends a context permanently: every later use of it and of what belongs to
/// it returns [`Error::ContextLost`](crate::Error::ContextLost) with the first cause, and drops
/// make no driver calls. The process cannot get the device back.
#[derive(Clone)]
pub struct Context(Arc<ContextBox>);

identity!(Context);

impl Context {
    /// A context that the registry does not know yet.
    pub(crate) fn wrap(raw: CUcontext, device: Device, limits: Limits) -> Self {
        Self(Arc::new(ContextBox {
            raw: Raw::new(raw),
            device,
            limits,
            lost: OnceLock::new(),
            peers: Peers::new(),
        }))
    }

    pub(crate) fn make_known(&self) {
        CONTEXTS.register(self.0.raw.key(), Arc::downgrade(&self.0));
    }

    /// As [`make_known`](Self::make_known), unless another thread was faster: then returns that
    /// thread's handle.
    pub(crate) fn register_unless_known(self) -> Self {
        let known = CONTEXTS.register_unless_known(self.0.raw.key(), Arc::downgrade(&self.0));
        known.map_or(self, Self)
    }

    pub(crate) fn find(raw: CUcontext) -> Option<Self> {
        CONTEXTS.find(&raw.addr()).map(Self)
    }

    /// Whether there is no other handle of the driver's context.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Self::find(self.as_raw()).is_none_or(|found| found == *self)
    }

    pub(super) fn as_box(&self) -> &Arc<ContextBox> {
        &self.0
    }

    pub(super) fn peers(&self) -> &Peers<ContextBox> {
        &self.0.peers
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The driver of the process.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &'static Driver {
        self.0.device.driver()
    }

    /// The device's limits; no driver call.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The driver's own handle.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUcontext {
        self.0.raw.get()
    }

    /// Why the context was lost, if it was.
    #[must_use]
    #[inline]
    pub fn lost(&self) -> Option<Cause> {
        self.0.lost.get().copied()
    }

    /// Whether the context can be used; for the start of an operation, before its first driver
    /// call. Two loads.
    ///
    /// # Errors
    /// The context is lost ([`ContextLost`](crate::Error::ContextLost)), or the process is a forked
    /// child ([`Forked`](crate::Error::Forked)).
    #[inline]
    pub fn ensure_usable(&self) -> Result<()> {
        match self.0.lost.get() {
            None if process::is_running() => Ok(()),
            lost => self.unusable(lost.copied()),
        }
    }

    #[cold]
    fn unusable(&self, lost: Option<Cause>) -> Result<()> {
        match lost {
            _ if process::is_forked() => Err(Error::Forked),
            Some(cause) => Err(Error::ContextLost(cause)),
            // The process exits; the driver has its own answer to that.
            None => Ok(()),
        }
    }

    /// Turns the answer of a call into a result. The first code that says that the context is lost
    /// is remembered.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver), or
    /// [`Error::ContextLost`](crate::Error::ContextLost) with the first cause.
    #[inline]
    pub fn check(&self, call: Call, code: CUresult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.failure(call, code)) }
    }

    /// The error of a call that failed; see [`check`](Self::check).
    #[cold]
    pub(crate) fn failure(&self, call: Call, code: CUresult) -> Error {
        if is_sticky(code) {
            let cause = *self.0.lost.get_or_init(|| Cause { call, code });
            if let Some(react) = ON_LOSS.get() {
                react(self);
            }
            return Error::ContextLost(cause);
        }
        match self.lost() {
            Some(cause) => Error::ContextLost(cause),
            None => Error::Driver { call, code },
        }
    }

    /// Runs `work` with this context current on the calling thread, and then makes the previous
    /// context current again.
    ///
    /// Calls `cuCtxPushCurrent` and `cuCtxPopCurrent` (CUDA 4.0). This crate enters contexts by
    /// itself where a call needs it. Of the calls that enqueue work on a stream, only copies may
    /// need it: captured ones, and those of pooled memory where there are several devices.
    ///
    /// # Errors
    /// The context cannot be made current; `work` did not run.
    #[doc(alias = "cuCtxPushCurrent")]
    #[doc(alias = "cuCtxPopCurrent")]
    pub fn with_current<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _current = self.enter()?;
        Ok(work())
    }

    /// Makes this context current until the guard is dropped.
    pub(crate) fn enter(&self) -> Result<Current> {
        self.ensure_usable()?;
        // SAFETY: the context is alive as long as its box.
        let code = unsafe { self.driver().cuCtxPushCurrent(self.as_raw()) };
        self.check(Call::cuCtxPushCurrent, code)?;
        Ok(Current { driver: self.driver(), _thread: core::marker::PhantomData })
    }

    /// Whether there is a context that is not lost.
    pub(crate) fn any_is_usable() -> bool {
        CONTEXTS.all().iter().any(|context| context.lost.get().is_none())
    }

    /// Refuses calls inside a host function. The driver lets a thread wait there for a stream or an
    /// event, even for those that wait for the function itself, and then never returns.
    ///
    /// Also for the crates above this one, before work that involves waits.
    ///
    /// # Errors
    /// This is a host function, or the driver refuses the call ([`Driver`](crate::Error::Driver))
    /// to something small.
    #[doc(hidden)]
    pub fn refuse_in_callback(&self) -> Result<()> {
        self.check(Call::cuCtxGetCurrent, in_host_function::ask(self.driver()))
    }
}

impl Drop for ContextBox {
    fn drop(&mut self) {
        CONTEXTS.forget(self.raw.key(), self);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("Context");
        text.field("raw", &self.0.raw).field("device", &self.0.device);
        if let Some(cause) = self.lost() {
            text.field("lost", &cause);
        }
        text.finish()
    }
}

/// A context is current on this thread until this is dropped.
#[derive(Debug)]
pub(crate) struct Current {
    driver: &'static Driver,
    _thread: core::marker::PhantomData<*mut ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut popped = core::ptr::null_mut();
        // SAFETY: the out pointer is valid; the guard pushed what is popped here.
        let _ = checked(Call::cuCtxPopCurrent, unsafe { self.driver.cuCtxPopCurrent(&raw mut popped) });
    }
}

/// Codes after which every call in the context fails.
pub(crate) fn is_sticky(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    )
}
