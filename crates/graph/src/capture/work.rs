//! Work that a builder captures.

use core::ffi::c_void;

use cuda_handles::capture::CaptureInfo;
use cuda_handles::internal::Tag;
use cuda_handles::{
    AsStream, Buffer, Element, Error as HandleError, Kernel, Owner, SharedHostBuffer, Slice, Stream, Viewable,
};
use cuda_launch::internal::{Observed, launch_captured};
use cuda_launch::{Arguments, ArgumentsOf, Prepared, SafeKernel, StreamConfig, TypedKernel};
use cuda_sys::{CUstream, Call};

use crate::capture::builder::GraphBuilder;
use crate::capture::kind::{Capturing, Kind};
use crate::capture::params::{CaptureConfig, CaptureMemory};
use crate::error::{CaptureError, Error, Result};
use crate::param::bind::of_launch;
use crate::param::fill_value::FillValue;
use crate::state::host_function::HostFunction;

impl<K: Kind> AsStream for GraphBuilder<K, Capturing> {
    fn as_stream(&self) -> &Stream {
        &self.state.stream
    }
}

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// The stream that captures, for code that is written against a stream: everything enqueued on
    /// it is captured, and the graph keeps everything that it uses.
    ///
    /// The stream of a fork or a body is for captures only: once the capture is over, it refuses
    /// work ([`CaptureOver`](HandleError::CaptureOver)).
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.state.stream
    }

    /// The stream, if it is still in the capture.
    pub(super) fn open(&self) -> Result<&Stream> {
        self.state.session.ensure_open(&self.state.stream, K::NAME)?;
        Ok(&self.state.stream)
    }

    /// Makes a call on the stream, which is captured or refused.
    pub(super) fn capture<R>(&self, call: impl FnOnce(&Stream) -> cuda_handles::Result<R>) -> Result<R> {
        call(self.open()?).map_err(|error| match error {
            // Another thread has ended the capture just now.
            HandleError::CaptureOver => CaptureError::Over { kind: K::NAME }.into(),
            error => error.into(),
        })
    }

    /// Makes a call on the stream that captures a host function; see [`capture`](Self::capture).
    fn capture_host(&self, call: impl FnOnce(&Stream) -> cuda_handles::Result<()>) -> Result<()> {
        self.open()?;
        self.state.session.ensure_may_call_back()?;
        self.capture(call)
    }

    /// Captures a launch of a typed kernel. Unlike a launch on a stream, the kernel may take the
    /// handles of [conditions](Self::condition), and arguments and configuration may be
    /// [parameters](Self::param) of the graph.
    ///
    /// Calls `cuLaunchKernel` (CUDA 4.0), or with attributes `cuLaunchKernelEx` (CUDA 11.6).
    ///
    /// # Errors
    /// The errors of a launch; [`ForeignCondition`]: a condition of another graph;
    /// [`ParamError`](crate::ParamError): a parameter of another graph, or the kernel takes a
    /// tensor map beside a parameter; [`CaptureError::Over`]: the capture has ended.
    ///
    /// [`ForeignCondition`]: crate::ConditionError::ForeignCondition
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cudaLaunchKernel")]
    pub fn launch<'a, T: SafeKernel>(
        &self,
        kernel: &'a T,
        config: impl CaptureConfig<'a>,
        arguments: impl ArgumentsOf<'a, T::Signature>,
    ) -> Result<()> {
        // SAFETY: the kernel's declaration promises this for arguments that meet its conditions,
        // which are checked.
        unsafe { self.launch_unchecked(kernel, config, arguments) }
    }

    /// Captures a launch of a kernel that was declared as `unsafe fn`; see
    /// [`launch`](Self::launch).
    ///
    /// # Safety
    /// At every launch of the graph, the conditions in the documentation of the kernel's
    /// declaration hold, for every value that its graph parameters can be set to.
    ///
    /// # Errors
    /// The errors of [`launch`](Self::launch).
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cudaLaunchKernel")]
    pub unsafe fn launch_unchecked<'a, T: TypedKernel>(
        &self,
        kernel: &'a T,
        config: impl CaptureConfig<'a>,
        arguments: impl ArgumentsOf<'a, T::Signature>,
    ) -> Result<()> {
        let (placeholders, source) = (arguments.placeholders(), config.source());
        let config = config.stream_config();
        let prepared = Prepared::with_parameters(kernel, config.config(), arguments)?;
        let tag = match (placeholders.is_empty(), source) {
            (true, None) => None,
            _ => {
                let plain = *config.config();
                self.tag(of_launch(kernel.kernel(), plain, source, &placeholders, &prepared)?)?
            }
        };
        // SAFETY: the declaration has the types of the parameters. The caller promises that the
        // kernel stays within their memory.
        unsafe { self.launch_tagged(kernel.kernel(), config, &prepared, tag) }
    }

    /// Captures a launch of a kernel without a declaration; see [`launch`](Self::launch).
    ///
    /// # Safety
    /// As for [`cuda_launch::Launch::launch`], at every launch of the graph.
    ///
    /// # Errors
    /// The errors of [`launch`](Self::launch).
    #[doc(alias = "cuLaunchKernel")]
    #[doc(alias = "cudaLaunchKernel")]
    pub unsafe fn launch_untyped<'e>(
        &self,
        kernel: &Kernel,
        config: impl Into<StreamConfig<'e>>,
        arguments: impl Arguments,
    ) -> Result<()> {
        // SAFETY: the caller promises this.
        unsafe { self.launch_tagged(kernel, config.into(), &arguments, None) }
    }

    /// Captures a launch with a tag for its record.
    ///
    /// # Safety
    /// As for [`launch_untyped`](Self::launch_untyped).
    unsafe fn launch_tagged(
        &self,
        kernel: &Kernel,
        config: StreamConfig<'_>,
        arguments: &impl Arguments,
        tag: Option<Tag>,
    ) -> Result<()> {
        let stream = self.open()?;
        if arguments.has_handles() {
            self.state.session.hold_conditions(&arguments.handles(), kernel.name())?;
        }
        let _observed = Observed::node(kernel, arguments);
        // SAFETY: the caller's promise; the conditions are those of the graph that the node is for.
        let launched =
            unsafe { launch_captured(kernel, (stream, self.state.session.id()), config, arguments, tag) };
        launched.map_err(|error| match error {
            // Another thread has ended the capture just now.
            cuda_launch::Error::OutsideGraph { .. }
            | cuda_launch::Error::Handles(HandleError::CaptureOver) => {
                CaptureError::Over { kind: K::NAME }.into()
            }
            error => error.into(),
        })
    }

    /// Captures a copy; see [`Stream::copy`]. Host memory has to be pinned or managed, so that the
    /// graph can own it: a plain slice does not compile, and [`copy_of`](Self::copy_of) makes a
    /// copy of one.
    ///
    /// ```compile_fail,E0277
    /// # use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
    /// # fn example(capture: &GraphBuilder<Primary, Capturing>, y: &cuda_handles::Buffer<f32>) {
    /// let host = vec![1.0_f32; 4];
    /// capture.copy(&host[..], y);
    /// # }
    /// ```
    ///
    /// Calls `cuMemcpyAsync` or a variant of it (CUDA 4.0).
    ///
    /// # Errors
    /// The errors of [`Stream::copy`]; [`CaptureError::Over`]: the capture has ended. With a
    /// [parameter](Self::param): [`ParamError::Foreign`](crate::ParamError::Foreign), it is of
    /// another graph; [`NodeError::NoElements`](crate::NodeError::NoElements), there is nothing to
    /// copy.
    #[doc(alias = "cuMemcpyAsync")]
    #[doc(alias = "cudaMemcpyAsync")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl CaptureMemory<'a, T>,
        destination: impl CaptureMemory<'b, T>,
    ) -> Result<()> {
        let placeholders = [source.param(), destination.param()];
        let (source, destination) = (source.slice(), destination.slice());
        match placeholders {
            [None, None] => self.capture(|stream| stream.copy(source, destination)),
            _ => self.copy_bound(source, destination, placeholders),
        }
    }

    /// Captures a fill; see [`Stream::fill`].
    ///
    /// Calls `cuMemsetD8Async` or a variant of it (CUDA 3.2).
    ///
    /// # Errors
    /// The errors of [`Stream::fill`]; [`CaptureError::Over`]: the capture has ended. With a
    /// [parameter](Self::param): [`ParamError::Foreign`](crate::ParamError::Foreign), it is of
    /// another graph; [`NodeError::NoElements`](crate::NodeError::NoElements), the memory is empty.
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "memset")]
    pub fn fill<'a, T: Element>(
        &self,
        memory: impl CaptureMemory<'a, T>,
        value: impl FillValue<T>,
    ) -> Result<()> {
        let placeholders = [memory.param(), value.placeholder()];
        let (memory, value) = (memory.slice(), value.value());
        match placeholders {
            [None, None] => self.capture(|stream| stream.fill(memory, value)),
            _ => self.fill_bound(memory, value, placeholders),
        }
    }

    /// Captures a fill with zeros, whatever the elements; see [`Stream::clear`].
    ///
    /// Calls `cuMemsetD8Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The errors of [`Stream::clear`] and of [`fill`](Self::fill).
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "memset")]
    #[doc(alias = "zero")]
    pub fn clear<'a, T: Element>(&self, memory: impl CaptureMemory<'a, T>) -> Result<()> {
        let placeholder = memory.param();
        let memory = memory.slice();
        match placeholder {
            None => self.capture(|stream| stream.clear(memory)),
            Some(placeholder) => self.clear_bound(memory, placeholder),
        }
    }

    /// Captures a write of these elements: each launch of the graph writes them again. The graph
    /// keeps pinned memory with a copy of them; see [`Stream::write`].
    ///
    /// Calls `cuMemcpyHtoDAsync` (CUDA 3.2).
    ///
    /// # Errors
    /// The errors of [`Stream::write`]; [`CaptureError::Over`]: the capture has ended.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "cudaMemcpyAsync")]
    pub fn write<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>, elements: &[T]) -> Result<()> {
        self.capture(|stream| stream.write(memory, elements))
    }

    /// Pinned memory with a copy of `elements`, which the graph keeps.
    ///
    /// Calls `cuMemHostAlloc` (CUDA 2.2), unless the cache has such memory.
    ///
    /// # Errors
    /// The host has not enough memory to pin; [`CaptureError::Over`]: the capture has ended.
    #[doc(alias = "cuMemHostAlloc")]
    #[doc(alias = "cudaHostAlloc")]
    pub fn copy_of<T: Element + Copy>(&self, elements: &[T]) -> Result<SharedHostBuffer<T>> {
        let context = self.open()?.context();
        let mut copy = context.pinned_zeros::<T>(elements.len())?;
        copy.copy_from_slice(elements);
        let copy = copy.share();
        self.keep(&copy)?;
        Ok(copy)
    }

    /// A buffer of zeros that is allocated once and zeroed by each launch of the graph; see
    /// [`Stream::zeros`].
    ///
    /// # Errors
    /// The errors of [`Stream::zeros`]; [`CaptureError::Over`]: the capture has ended.
    #[doc(alias = "cuMemAllocAsync")]
    #[doc(alias = "cudaMallocAsync")]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.capture(|stream| stream.zeros(len))
    }

    /// Captures a call of a closure on the host; see [`Stream::host`].
    ///
    /// Calls `cuLaunchHostFunc` (CUDA 10.0).
    ///
    /// # Errors
    /// [`ConditionError::NotInBody`](crate::ConditionError::NotInBody): the captured work is for a
    /// body, which holds no host functions; [`CaptureError::Over`]: the capture has ended; or the
    /// driver's error.
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub fn callback<F: Fn() + Send + Sync + 'static>(&self, call: F) -> Result<()> {
        self.capture_host(|stream| stream.host(call))
    }

    /// Captures a call of a closure that views host memory; see [`Stream::host_with`].
    ///
    /// Calls `cuLaunchHostFunc` (CUDA 10.0).
    ///
    /// # Errors
    /// The errors of [`callback`](Self::callback) and of [`Stream::host_with`].
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub fn callback_with<M, F>(&self, memory: M, call: F) -> Result<()>
    where
        M: Viewable,
        F: Fn(&M::Views) + Send + Sync + 'static,
    {
        self.capture_host(|stream| stream.host_with(memory, call))
    }

    /// Captures a call of a C function, and keeps `owner` for it.
    ///
    /// Calls `cuLaunchHostFunc` (CUDA 10.0).
    ///
    /// # Safety
    /// As long as `owner` lives, `function` can be called with `data` at any time and on any
    /// thread.
    ///
    /// # Errors
    /// [`ConditionError::NotInBody`](crate::ConditionError::NotInBody): the captured work is for a
    /// body, which holds no host functions; [`CaptureError::Over`]: the capture has ended; or the
    /// driver's error.
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    pub unsafe fn callback_raw(
        &self,
        function: HostFunction,
        data: *mut c_void,
        owner: impl Into<Owner>,
    ) -> Result<()> {
        let owner = owner.into();
        self.capture_host(|stream| {
            let context = stream.context();
            let access = stream.enqueue()?;
            access.keep(owner)?;
            // SAFETY: the stream is alive; the caller's promise for the function, whose data lives
            // as long as the graph.
            let code = unsafe { context.driver().cuLaunchHostFunc(stream.as_raw(), Some(function), data) };
            drop(access);
            context.check(Call::cuLaunchHostFunc, code)
        })
    }

    /// Keeps `owner` alive as long as the graph, and as long as anything made of it.
    ///
    /// # Errors
    /// [`CaptureError::Over`]: the capture has ended. The owner is not kept then.
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        let owner = owner.into();
        self.capture(|stream| stream.enqueue()?.keep(owner))
    }

    /// Captures work of other code, such as a C library's: `work` gets the driver's stream and
    /// enqueues on it. The graph keeps `keep` alive.
    ///
    /// ```no_run
    /// # use cuda_graph::{Result, capture::{Capturing, GraphBuilder, Primary}};
    /// # use cuda_handles::{Buffer, Owner};
    /// # unsafe fn library_call(_: cuda_sys::CUstream, _: u64) -> i32 { 0 }
    /// # fn example(
    /// #     capture: &GraphBuilder<Primary, Capturing>, values: &Buffer<f32>
    /// # ) -> Result<()> {
    /// // SAFETY: the library uses only `values`, and only on this stream.
    /// let status = unsafe {
    ///     capture.foreign(|stream| library_call(stream, values.address()), [Owner::from(values)])
    /// }?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - `work` enqueues on this stream only, or lets other streams wait for it and this one for
    ///   them.
    /// - Everything that the enqueued work uses lives as long as `keep`, or as a user object that
    ///   `work` gives the captured graph, and the work stays valid at every launch of the graph.
    /// - `work` neither ends the capture nor begins another one on the stream, and does not change
    ///   nodes that it did not add. No other thread ends the capture meanwhile.
    ///
    /// # Errors
    /// [`CaptureError::Over`]: the capture has ended.
    pub unsafe fn foreign<R>(
        &self,
        work: impl FnOnce(CUstream) -> R,
        keep: impl IntoIterator<Item = Owner>,
    ) -> Result<R> {
        let stream = self.open()?;
        keep.into_iter().try_for_each(|owner| self.keep(owner))?;
        Ok(work(stream.as_raw()))
    }

    /// Facts about the capture, as the driver reports them.
    ///
    /// Calls `cuStreamGetCaptureInfo` (CUDA 11.3), in the newest layout that the driver has.
    ///
    /// # Errors
    /// The driver's error; [`CaptureError::Over`]: the capture has ended.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[doc(alias = "cudaStreamGetCaptureInfo")]
    pub fn info(&self) -> Result<CaptureInfo> {
        let over = || Error::Capture(CaptureError::Over { kind: K::NAME });
        self.open()?.capture_info()?.ok_or_else(over)
    }
}
