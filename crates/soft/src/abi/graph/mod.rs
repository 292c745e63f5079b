//! Graph calls, a file for each group of them.

pub(super) mod add_node;
mod attribute;
mod create;
mod edge;
pub(super) mod exec;
mod memory;
mod node_list;
pub(super) mod node_params;
mod user_object;

pub(super) use node_list::read_nodes;

use super::table::Entries;

pub(super) const fn add(entries: Entries) -> Entries {
    let entries = create::add(entries);
    let entries = node_params::add(add_node::add(edge::add(entries)));
    let entries = memory::add(exec::add(attribute::add(entries)));
    user_object::add(entries)
}
