//! Streams and events.

mod default_stream;
mod elapsed;
mod event;
mod handle;
pub(crate) mod open_captures;
mod recorded;

pub use default_stream::DefaultStream;
pub(crate) use event::WeakEvent;
pub use event::{Event, EventOptions};
pub use handle::{AsStream, Stream, StreamOptions, WeakStream};
