//! Captures: the graphs that are made from the work of streams.

mod cublas;
