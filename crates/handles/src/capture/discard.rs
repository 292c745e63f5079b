//! Ending captures that nobody ends: forgotten ones.

use super::active::{book, end_in_driver, own};
use super::captured_memory;
use crate::error::{Error, Result};
use crate::stream::{Stream, open_captures};

impl Stream {
    /// Ends the capture of this library that the stream is in, and throws away what was captured;
    /// false if it is in none. For a capture whose [`ActiveCapture`](super::ActiveCapture) was
    /// forgotten: on whatever thread, and whichever of its streams this is. The streams can be used
    /// afterwards. An [`ActiveCapture`](super::ActiveCapture) of it that is left gets
    /// [`Discarded`](crate::Error::Discarded) from its end.
    ///
    /// Calls `cuStreamEndCapture` (CUDA 10.0). Another thread than the one that began the capture
    /// gets a refusal from it, by which the capture is over as well.
    ///
    /// # Errors
    /// Another thread is enqueuing on a stream of the capture all the time
    /// ([`Busy`](crate::Error::Busy)), or this is a host function, which that thread may be waiting
    /// for (`NOT_PERMITTED`): the capture goes on, but no more streams join it. The context is
    /// lost.
    #[doc(alias = "cuStreamEndCapture")]
    #[doc(alias = "cudaStreamEndCapture")]
    pub fn discard_capture(&self) -> Result<bool> {
        let context = self.context();
        context.ensure_usable()?;
        let Some(word) = self.capture_id() else { return Ok(false) };
        let Some(origin) = open_captures::origin(word) else { return Ok(false) };
        match open_captures::end(context, word, || end_in_driver(&origin)) {
            Ok(ended) => {
                drop(ended.result.map(|raw| own(&origin, raw)));
                drop(captured_memory::end(word));
                drop(book(ended.log));
                Ok(true)
            }
            // Another thread has ended it just now.
            Err(Error::Discarded) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
