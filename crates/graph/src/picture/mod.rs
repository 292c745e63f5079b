//! Pictures of graphs.

mod dot;
