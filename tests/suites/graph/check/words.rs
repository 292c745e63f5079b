//! How a report reads, and what a check costs.
