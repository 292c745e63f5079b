//! Memory that nodes allocate: what is never freed, and what is used before or after its life.

use super::namer::Namer;
use super::nest::Order;
use super::report::Finding;

/// What is wrong with the lives of memory in a subject. There are no nodes yet that allocate any.
pub(crate) fn lives(_namer: &Namer<'_>, _order: &mut Order<'_>) -> Vec<Finding> {
    Vec::new()
}
