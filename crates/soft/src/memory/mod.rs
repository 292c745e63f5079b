//! Device memory, and host memory that devices can access.
//!
//! Device addresses are made up and never mapped in the process, so code that dereferences one
//! crashes, as it would with a GPU. Memory that both sides can access has the same address on both.
//!
//! # Accesses and frees
//!
//! A free on one thread takes no bytes from an access on another one:
//!
//! 1. `MAP` alone leads from an address to an [`Allocation`], and returns a reference to it.
//! 2. A copy, a fill or a memory operation holds that reference until it is done, and a kernel's
//!    launch those to all memory that it has accessed. The cache of a kernel's threads has pointers
//!    into memory that the launch holds.
//! 3. A free takes the allocation out of `MAP`. Its bytes go back to the system with the last
//!    reference. The other locks of this room guard numbers and texts, so it does not matter that
//!    they are taken one after the other.
//!
//! Memory of the user is the user's: registered memory is unregistered while nothing runs, and
//! pageable memory stays valid until the call that names it returns.

mod access;
mod accounting;
mod address_map;
mod addresses;
mod allocate;
mod allocation;
pub(crate) mod array;
pub(crate) mod copy;
pub(crate) mod copy_params;
pub(crate) mod fill;
mod freed;
pub(crate) mod graph_mapping;
pub(crate) mod graph_va;
pub(crate) mod hint;
pub(crate) mod host_pages;
pub(crate) mod memory_kind;
pub(crate) mod peer_access;
pub(crate) mod pool;
mod range;
pub(crate) mod shared_file;
pub(crate) mod texel_format;
pub(crate) mod texture;

pub(crate) use access::access;
pub(crate) use accounting::free;
pub(crate) use address_map::{
    all, find, find_range, find_start, is_read_only, overlapped, publish_reached, publish_unless_taken,
    remove,
};
pub(crate) use addresses::ALIGNMENT;
pub(crate) use allocate::{allocate, allocate_in, allocate_plain, import, make_at, register};
pub(crate) use allocation::{Allocation, Origin, Request, UNWRITTEN, epoch, epoch_counter};
pub(crate) use range::{AddressRange, STEP};
