//! Device memory, and host memory that devices can access.
//!
//! Device addresses are made up and never mapped in the process, so code that dereferences one
//! crashes, as it would with a GPU. Memory that both sides can access has the same address on both.

mod access;
mod accounting;
mod address_map;
mod addresses;
mod allocate;
mod allocation;
pub(crate) mod copy;
pub(crate) mod copy_params;
pub(crate) mod fill;
mod freed;
pub(crate) mod graph_mapping;
pub(crate) mod graph_va;
pub(crate) mod host_pages;
pub(crate) mod memory_kind;
pub(crate) mod pool;
mod range;
pub(crate) mod shared_file;

pub(crate) use access::access;
pub(crate) use accounting::free;
pub(crate) use address_map::{
    all, find, find_range, find_start, is_read_only, overlapped, publish_reached, publish_unless_taken,
    remove,
};
pub(crate) use addresses::ALIGNMENT;
pub(crate) use allocate::{allocate, allocate_in, allocate_plain, import, make_at, register};
pub(crate) use allocation::{Allocation, Origin, Request, epoch};
pub(crate) use range::{AddressRange, STEP};
