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
//! # To add a node type
//!
//! 1. A variant of [`Task`](model::task::Task), or of [`Payload`](model::payload::Payload) if it
//!    has graphs inside. No `match` over them has a wildcard, so the compiler names every place
//!    that decides something for each type: whether it waits, may be in a body, may be updated,
//!    what it prints, what it does in a launch.
//! 2. `params/`: parse its C structure (`parse.rs`), add it to the generic calls (`generic.rs`),
//!    and return it (`read_back.rs`).
//! 3. `exec/run.rs`: what the node does.
//! 4. `abi/graph/`: the typed calls that add, set and return it.

pub(crate) mod capture;
pub(crate) mod dot;
pub(crate) mod edit;
pub(crate) mod exec;
pub(crate) mod model;
pub(crate) mod params;
