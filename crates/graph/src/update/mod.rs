//! Updates: changing what an executable does without a new one.
//!
//! An update changes later launches. Launches that are enqueued or running keep what they had, and
//! no update waits for them.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`whole`] | `GraphExec::update`: the whole executable, from a graph |
//! | [`source`] | that graph, and its nodes by those of the executable |
//! | [`whole_shaped`] | the same for executables that were shaped |
//! | [`compare`] | `Graph::check_update`: why a graph is refused, in words |
//! | [`check`] | `GraphExec::check_update`: the same for an executable |
//! | [`pairing`], [`shape`] | nodes of two graphs in pairs, as the driver pairs them |
//! | [`rules`] | which parameters a node can get in place of others |
//! | [`exec_node`] | `ExecNode`, a node of an executable: the common steps of its updates |
//! | [`located`] | finding the node under the locks of its graphs |
//! | [`kernel`], [`copy`], [`fill`], [`child`], [`other`] | updates of the kinds of nodes |
//! | [`params`], [`apply`] | graph parameters: setting them, and the updates before a launch |
//! | [`values`] | the parameters of a node with the values of graph parameters |
//! | [`enable`] | enabling and disabling nodes |
//!
//! [`NodeUpdates`](crate::exec::node_updates::NodeUpdates) knows which nodes an executable has, and
//! what updates have set.
//!
//! # Rules
//!
//! 1. An executable's nodes go by the nodes of the graph that it was made of, the **keys**: those
//!    that were in it then, by identity. The driver needs them to exist. The lock of that graph's
//!    hierarchy is held over the driver call.
//! 2. Updates start from the parameters of **this executable**: those that updates have set, else
//!    those of the graph of the last whole update (or of the instantiation), if they are unchanged
//!    since.
//! 3. What an update brings is kept by the executable: by node, or as the value of a graph
//!    parameter ([`Since`](crate::exec::since::Since)). The next update of the same node, or with
//!    another value of the parameter, retires it. After a whole update or the drop it lives until
//!    the runs are over ([`ExecResources`](crate::exec::resources::ExecResources)).
//! 4. An executable does not overlap itself, so what is retired goes once the last run has ended.
//!    That run is not known for executables that other code or kernels launch; their nodes are not
//!    updated one by one.
//! 5. What is retired goes in [batches](cuda_handles::internal::Retired), after 64 launches, with
//!    1 MiB that nothing else holds, or when somebody asks for memory. The launching thread marks a
//!    batch and wakes the reaper, without a driver call or an allocation. A batch costs the reaper
//!    one question whether the stream of the last run is idle. If not, it costs one event as well,
//!    which is created, recorded there, asked for and destroyed.
//! 6. New parameters are declared before the guard, and an update leaves in them what it has
//!    replaced. So all of it is dropped after the lock, on every path.
//! 7. After a whole update from another graph, its nodes are **counterparts** of the keys. They are
//!    paired as the driver pairs them, once something needs it, and only if neither graph has
//!    changed its nodes and edges in the meantime. Otherwise nodes are not updated one by one.
//!    Nothing that is kept alive depends on the pairs.
//! 8. Everything that is noted by node goes by the key, but the events that launches record: these
//!    go by the node of the latest graph.

pub(crate) mod apply;
pub(crate) mod check;
mod child;
pub(crate) mod compare;
mod copy;
pub(crate) mod enable;
pub(crate) mod exec_node;
mod fill;
mod kernel;
mod located;
mod other;
mod pairing;
pub(crate) mod params;
mod rules;
mod shape;
mod source;
pub(crate) mod values;
pub(crate) mod whole;
mod whole_shaped;
