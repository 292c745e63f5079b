//! Buffers of every kind: what is written is read, and what is wrong is refused.

mod addresses;
mod buffers;
mod copies;
mod pinned;
mod pinned_behind_events;
mod pools;
mod pools_across_devices;
mod registered;
mod staged_writes;
mod variables;
