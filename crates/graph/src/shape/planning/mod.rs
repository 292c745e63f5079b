//! Plans of shapes: a graph that does the same as the drawn one and that the driver runs faster.
//!
//! A plan is made from plain data and is plain data: this room knows neither drivers nor locks. The
//! driver pays for each root, each edge, and each small fill and copy to or from the host at every
//! launch. It dissolves empty nodes, so that the nodes behind them count as roots. The plan has
//! fewer of all of these.
//!
//! # Steps
//!
//! [`plan`] begins with a [`sketch`] of the drawing, and [`steps`] changes it:
//!
//! | Step | Done for | File |
//! | --- | --- | --- |
//! | edges that follow from others go | all wishes but `AsBuilt` | [`reduction`], by [`rows`] on [`chains`], and [`hubs`] |
//! | kernels take the place of nodes that the host submits | the same, as far as the user wants it | [`host_submitted`] |
//! | empty nodes are dissolved | the same | [`empties`] |
//! | the others become kernels that do nothing | the same, but `FewerEdges` | [`empties`] |
//! | a kernel that does nothing is put in front of many roots | the same | [`front`] |
//! | sets of twins are threaded through lanes | `Lanes` and `Auto` | [`lanes`], by [`twins`] and [`kernel_roots`] |
//! | full edges become programmatic | the wish for it | [`overlap`](mod@overlap) |
//!
//! # What a plan promises
//!
//! **Order.** Two nodes are ordered if a path of full edges leads from one to the other. Nodes that
//! the drawing orders are ordered in the plan, where edges count as full that the plan has made
//! programmatic: all kernels at those wait at their entry. `Reduced` orders no other two nodes of
//! the user; lanes order only [`twins`] anew.
//!
//! **Other edges** of the drawing (programmatic ones) are kept exactly as drawn and do not count as
//! order. A node at such an edge is *fixed*: it keeps all of its edges.
//!
//! **Progress.** A kernel may wait for another that runs beside it, unless it promises not to. So
//! an empty node, a fill or a copy becomes a kernel, a root gets a kernel in front, and a node is
//! ordered anew only if every kernel that is unordered with it promises progress ([`progress`]).
//!
//! **Bodies** of conditional nodes are planned one by one, each as a graph in its [`surroundings`]:
//! what runs beside the conditional node runs beside every node of its bodies. The device starts
//! their nodes. So nothing is put in front of their roots or in place of fills and copies, `Auto`
//! makes no lanes, and an empty node becomes a kernel only for many edges.
//!
//! **Bounds.** Time and memory are bounded ([`rows::Limits`], [`progress`]). A plan for a graph
//! beyond a bound keeps the promises above and has more edges than it needs; its report says so.

mod chains;
pub(crate) mod drawn;
mod empties;
pub(crate) mod figures;
mod front;
mod horizon;
mod host_submitted;
mod hubs;
mod kernel_roots;
mod lanes;
mod overlap;
pub(crate) mod plan;
mod progress;
mod reduction;
pub(crate) mod report;
mod rows;
mod sketch;
mod steps;
pub(crate) mod surroundings;
mod twins;
pub(crate) mod wish;

#[cfg(test)]
mod tests;
