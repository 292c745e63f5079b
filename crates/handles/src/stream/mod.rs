//! Streams and events.

mod create;
mod default_stream;
mod elapsed;
mod event;
mod handle;
mod held;
pub(crate) mod open_captures;
mod options;
mod order;
mod recorded;
mod synchronize;
mod weak;
mod work;

pub use default_stream::DefaultStream;
pub(crate) use event::WeakEvent;
pub use event::{Event, EventOptions, Recording};
pub use handle::{AsStream, Stream};
pub use held::HeldStream;
pub use options::StreamOptions;
pub use weak::WeakStream;
pub use work::Work;
