//! Updates: changing what an executable does without a new one.
//!
//! An update changes later launches. Launches that are enqueued or running keep what they had, and
//! no update waits for them.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`exec_node`] | `ExecNode`, a node of an executable: the common steps of its updates |
//! | [`kernel`], [`copy`], [`fill`], [`child`], [`other`] | updates of the kinds of nodes |
//! | [`params`], [`apply`] | graph parameters: setting them, and the updates before a launch |
//! | [`enable`] | enabling and disabling nodes |
//!
//! [`NodeUpdates`](crate::exec::node_updates::NodeUpdates) knows which nodes an executable has, and
//! what updates have set.
//!
//! # Rules
//!
//! 1. An executable's nodes go by the nodes of the graph that it was made of: those that were in it
//!    then, by identity. The driver needs them to exist. The lock of that graph's hierarchy is held
//!    over the driver call.
//! 2. Updates start from the parameters of **this executable**: those that updates have set, else
//!    the graph's, if they are unchanged since the executable was made.
//! 3. What an update brings is kept by the executable's user object, by node
//!    ([`ExecShare`](crate::exec::share::ExecShare)). The next update of the same node retires it.
//! 4. An executable does not overlap itself, so what is retired goes once the last run has ended.
//!    That run is not known for executables that other code or kernels launch; their nodes are not
//!    updated.
//! 5. What is retired goes in [batches](cuda_handles::internal::Retired), after 64 launches, with
//!    1 MiB that nothing else holds, or when somebody asks for memory. The launching thread marks a
//!    batch and wakes the reaper, without a driver call or an allocation. A batch costs the reaper
//!    one event: it is created, recorded in the stream of the last run, asked for and destroyed.
//! 6. New parameters are declared before the guard, and an update leaves in them what it has
//!    replaced. So all of it is dropped after the lock, on every path.
//! 7. Updates by graph parameters bring the memory of parameters alone. Everything else that a
//!    bound node uses is in the base of the executable, as the binding was made by the same graph.

mod apply;
mod child;
mod copy;
pub(crate) mod enable;
pub(crate) mod exec_node;
mod fill;
mod kernel;
mod other;
pub(crate) mod params;
