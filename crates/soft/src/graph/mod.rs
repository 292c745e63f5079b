//! Graphs: their nodes and edges, the executables made of them, and user objects.

pub(crate) mod capture;
pub(crate) mod dot;
pub(crate) mod edit;
pub(crate) mod exec;
pub(crate) mod model;
pub(crate) mod params;
