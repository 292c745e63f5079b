//! Forks: branches of a capture, on streams of their own.

use std::sync::Arc;

use crate::capture::builder::GraphBuilder;
use crate::capture::kind::{Capturing, Fork, Kind};
use crate::error::{CaptureError, Result};

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// Splits off `N` forks, each on a stream of the library. Their work comes after everything
    /// captured here so far, and unordered with what is captured here from now on, until they are
    /// [joined](Self::join). Forks can be split again.
    ///
    /// Calls `cuEventRecord` and `cuStreamWaitEvent` for each, and `cuStreamCreate` where no stream
    /// is left.
    ///
    /// # Errors
    /// The driver's error; [`CaptureError::Over`]: the capture has ended. There is no fork then.
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
    pub fn split<const N: usize>(&self) -> Result<[GraphBuilder<Fork, Capturing>; N]> {
        let forks = self.split_into(N)?;
        // There are as many as asked for.
        forks.try_into().map_err(|_| CaptureError::Over { kind: K::NAME }.into())
    }

    /// [Splits](Self::split) off a number of forks.
    ///
    /// # Errors
    /// The errors of [`split`](Self::split).
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
    pub fn split_into(&self, forks: usize) -> Result<Vec<GraphBuilder<Fork, Capturing>>> {
        let session = &self.state.session;
        session.ensure_open(&self.state.stream, K::NAME)?;
        // Without work of its own, a fork that is dropped after an error needs no join.
        let streams = (0..forks).map(|_| {
            let stream = session.spare_stream()?;
            stream.wait_for(&self.state.stream)?;
            Ok(stream)
        });
        let streams = streams.collect::<Result<Vec<_>>>()?;
        let fork = |stream| {
            session.note_fork(&stream);
            GraphBuilder::fork(Arc::clone(session), stream)
        };
        Ok(streams.into_iter().map(fork).collect())
    }

    /// Joins forks: work captured here from now on comes after everything captured on them.
    ///
    /// Calls `cuEventRecord` and `cuStreamWaitEvent` for each.
    ///
    /// # Errors
    /// [`CaptureError::OtherCapture`]: a fork belongs to another capture; [`CaptureError::Over`]:
    /// the capture has ended; or the driver's error. All forks are given up; those that are not
    /// joined make the [end](Self::end) fail. A capture by a
    /// [closure](crate::StreamExt::capture) joins them at its end.
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
    pub fn join(&self, forks: impl IntoIterator<Item = GraphBuilder<Fork, Capturing>>) -> Result<()> {
        let session = &self.state.session;
        session.ensure_open(&self.state.stream, K::NAME)?;
        let forks: Vec<_> = forks.into_iter().collect();
        if !forks.iter().all(|fork| Arc::ptr_eq(&fork.state.session, session)) {
            return Err(CaptureError::OtherCapture { kind: K::NAME }.into());
        }
        forks.iter().try_for_each(|fork| {
            self.state.stream.wait_for(&fork.state.stream)?;
            session.note_joined(&fork.state.stream);
            Ok(())
        })
    }
}
