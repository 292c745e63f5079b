//! Graph parameters: one value in any number of nodes, set for each launch.
//!
//! A [`GraphParam`](graph_param::GraphParam) stands in the place of an argument when nodes are
//! added. Each executable has values of its own, at first the graph's.
//! [`GraphExec::set`](crate::GraphExec::set) changes one; the next launch updates the nodes that
//! use what has changed.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`graph_param`] | `GraphParam`, and what can be one |
//! | [`argument`] | parameters as arguments of kernels |
//! | [`config`] | launch configurations that depend on parameters |
//! | [`fill_value`] | parameters as values of fills |
//! | [`node_event`] | parameters as events of nodes |
//! | [`bind`] | nodes that use parameters, as they are added |
//!
//! Executables set parameters in [`update::params`](crate::update::params), and apply them before a
//! launch in [`update::apply`](crate::update::apply).
//!
//! # Rules
//!
//! 1. A parameter belongs to a hierarchy of graphs. Nodes of all its graphs, bodies and children
//!    included, can use it; nodes of other graphs cannot.
//! 2. Changed means another owner, or other bytes. Addresses recur, so they are not compared alone.
//! 3. All changed nodes are checked with the whole new set of values before the first driver call.
//!    A refusal launches nothing. The values stay, and a later `set` mends them.
//! 4. A node is up to date once the driver has taken its update. If a call fails on the way, the
//!    nodes before it are up to date, nothing is launched, and the next launch goes on.
//! 5. A bound node is not set by hand: its parameter is.
//! 6. Copies of a graph have no parameters: clones, graphs embedded in nodes, and graphs moved
//!    there. Their nodes keep the values of that time.
//! 7. Values and lists of values are of this crate alone (sealed traits). Arguments, memory of
//!    nodes and values of fills can be implemented elsewhere, and may lie: a placeholder is taken
//!    for the type of its values only, and values are checked as they are put in.

pub(crate) mod argument;
pub(crate) mod bind;

pub(crate) mod config;
pub(crate) mod fill_value;
pub(crate) mod graph_param;
pub(crate) mod node_event;
