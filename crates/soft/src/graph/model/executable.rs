//! Executable graphs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::program::Program;
use super::user_object::ExecObjects;
use crate::device::context::Context;
use crate::stream::Ticket;

/// An executable graph.
#[derive(Debug)]
pub(crate) struct Exec {
    /// Never reused.
    pub(crate) uid: u64,
    pub(crate) program: Arc<Program>,
    /// The step of each node of its first graph, by the uid of the node. Updates do not change the
    /// keys.
    pub(crate) keys: HashMap<u64, usize>,
    /// The user objects of each part, by the uid of the node that contains the part and its number
    /// there.
    pub(crate) shares: Vec<((u64, usize), Arc<ExecObjects>)>,
    pub(crate) flags: u64,
    /// The graph that counts this executable: handle and uid.
    pub(crate) source: (u64, u64),
    pub(crate) used: bool,
    pub(crate) context: Arc<Context>,
    /// The end of the last launch or upload.
    pub(crate) last: Arc<Mutex<Option<Ticket>>>,
}
