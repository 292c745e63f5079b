//! Graphs: their nodes and edges, the executables made of them, and stream capture.
//!
//! ```text
//! params   C structures ◄──► tasks (parse, read back)
//!   │
//! edit     add, connect, clone, remove          capture   work on streams ──► add
//!   │                                              │
//! model    graphs, nodes, executables under one lock ◄┘
//!   ▲
//! exec     instantiate ──► compile ──► Program ──► launch ──► run      update, set_params
//! ```
//!
//! The workspace's `CONTRIBUTING.md` has the steps to add a node type.

pub(crate) mod capture;
pub(crate) mod dot;
pub(crate) mod edit;
pub(crate) mod exec;
pub(crate) mod model;
pub(crate) mod params;
