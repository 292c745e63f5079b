//! Host functions on streams.

use core::any::type_name;
use core::ffi::c_void;

use cuda_sys::{CUresult, Call};

use super::closure;
use super::closure::{CallOnce, Callable, Offered, Outcome};
use super::viewable::{Shown, Viewable};
use crate::error::{Error, Result};
use crate::stream::{Stream, Work};

impl Stream {
    /// Calls a closure on a thread of the driver's, once the work enqueued so far is done. Work
    /// enqueued later waits until it has returned. Waits for nothing itself.
    ///
    /// On a capturing stream the call becomes a host node, and the captured graph owns the closure;
    /// so it may be called several times. [`host_once`](Self::host_once) takes closures that are
    /// called once and may move their captures out.
    ///
    /// Inside the function no driver call is permitted, not even a small one. Most functions of
    /// this library return an error that says so; launches do not check, so keep them out. Buffers
    /// and everything else may be dropped. A function that waits for work of the device or for host
    /// functions behind it waits forever.
    ///
    /// A panic is caught and reported to the hook of [`set_panic_hook`](crate::set_panic_hook), and
    /// the stream goes on. The closure is dropped after its call, on the same thread. If the
    /// context is lost before the call, the [reaper](crate::reaper) drops the closure. In a forked
    /// child nothing is called.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// let (done, wait) = std::sync::mpsc::channel();
    /// stream.host(move || drop(done.send(())))?;
    /// let _ = wait.recv();
    /// # Ok(()) }
    /// ```
    ///
    /// It may be called several times, so it cannot move its captures out:
    ///
    /// ```compile_fail,E0525
    /// # fn example(stream: &cuda_handles::Stream) -> cuda_handles::Result<()> {
    /// let text = String::from("once");
    /// stream.host(move || drop(text))
    /// # }
    /// ```
    ///
    /// It cannot borrow values that may end before it is called:
    ///
    /// ```compile_fail,E0373
    /// # fn example(stream: &cuda_handles::Stream) -> cuda_handles::Result<()> {
    /// let count = std::sync::atomic::AtomicU32::new(0);
    /// stream.host(|| drop(count.load(std::sync::atomic::Ordering::Relaxed)))
    /// # }
    /// ```
    ///
    /// Calls `cuLaunchHostFunc` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver refuses the call; the closure is dropped then.
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "cuStreamAddCallback")]
    #[doc(alias = "cudaStreamAddCallback")]
    pub fn host<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<()> {
        self.call(type_name::<F>(), move || {
            call();
            Ok(())
        })
    }

    /// As [`host`](Self::host), for a closure that is called once: it may move its captures out,
    /// and need not be `Sync`.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// let staging = vec![0_u8; 1 << 20];
    /// stream.host_once(move || drop(staging))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`host`](Self::host); the stream is capturing ([`Capturing`](crate::Error::Capturing)).
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub fn host_once<F: FnOnce() + Send + 'static>(&self, call: F) -> Result<()> {
        self.call_once(type_name::<F>(), move || {
            call();
            Ok(())
        })
    }

    /// As [`host`](Self::host), for a closure that views pinned, registered or managed memory:
    /// `memory` is a shared buffer, a slice of one, or a tuple of these, and the closure gets a
    /// [`HostView`](crate::HostView) of each. The memory is kept until the closure was called, or
    /// as long as the graph into which the call is captured.
    ///
    /// While the function runs, no other host code can view that memory. If other code views it
    /// when the function is due, the function is not called, and the hook of
    /// [`set_panic_hook`](crate::set_panic_hook) is called. Work of the device that is not ordered
    /// with the function may read and write the memory at the same time; see
    /// [`HostView`](crate::HostView).
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// # let sums = stream.zeros::<f32>(4)?;
    /// let host = context.pinned_zeros::<f32>(4)?.share();
    /// stream.copy(&sums, &host)?;
    /// stream.host_with(&host, |sums| println!("{:?}", sums.to_vec()))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`host`](Self::host); memory of another context, or which the host does not reach
    /// ([`Error::NotOnHost`](crate::Error::NotOnHost)).
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub fn host_with<M, F>(&self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        let views = Shown::new(memory.views(self.context())?);
        self.call(type_name::<F>(), move || views.exclusively(&call))
    }

    /// As [`host_with`](Self::host_with), for a closure that is called once: it may move its
    /// captures out, and need not be `Sync`.
    ///
    /// # Errors
    /// As [`host_with`](Self::host_with); the stream is capturing
    /// ([`Capturing`](crate::Error::Capturing)).
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub fn host_once_with<M, F>(&self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: FnOnce(&M::Views) + Send + 'static,
    {
        let views = Shown::new(memory.views(self.context())?);
        self.call_once(type_name::<F>(), move || views.exclusively(call))
    }

    fn call(&self, name: &'static str, call: impl Fn() -> Outcome + Send + Sync + 'static) -> Result<()> {
        // Before the table of closures is touched, whose lock a forked child may find held.
        self.context().ensure_usable()?;
        // Declared before the access, so that they are dropped after it: their destructors are
        // other code.
        let (callable, offered);
        let access = self.enqueue()?;
        if access.is_captured()? {
            callable = Callable::named(name, call);
            let function = (closure::call as unsafe extern "C" fn(*mut c_void)) as usize;
            return access.captured_call(
                Work::Host { function, data: callable.data.addr() },
                |record| record.owner(callable.owner.clone()),
                || self.launch_host(callable.data),
            );
        }
        offered = Offered::new(self.context(), name, CallOnce::Kept(Box::new(call)));
        let (call, code) = self.launch_host(offered.data());
        self.context().check(call, code)?;
        drop(access);
        offered.accept(self.context());
        Ok(())
    }

    fn call_once(&self, name: &'static str, call: impl FnOnce() -> Outcome + Send + 'static) -> Result<()> {
        self.context().ensure_usable()?;
        let offered;
        let access = self.enqueue()?;
        if access.is_captured()? {
            return Err(Error::Capturing {
                what: "a host function that is called once (`Stream::host_once`)",
            });
        }
        offered = Offered::new(self.context(), name, CallOnce::Given(Box::new(call)));
        let (call, code) = self.launch_host(offered.data());
        self.context().check(call, code)?;
        drop(access);
        offered.accept(self.context());
        Ok(())
    }

    /// With read access of the stream.
    fn launch_host(&self, data: *mut c_void) -> (Call, CUresult) {
        // SAFETY: the stream is alive; the function takes any number, at any time.
        let code =
            unsafe { self.context().driver().cuLaunchHostFunc(self.as_raw(), Some(closure::call), data) };
        (Call::cuLaunchHostFunc, code)
    }
}
