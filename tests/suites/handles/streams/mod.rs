//! Streams, events, and functions of the host in stream order.

mod default_streams;
mod events;
mod host_functions;
mod host_views;
mod ordered_work;
