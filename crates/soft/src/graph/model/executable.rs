//! What is kept of an executable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::program::Program;
use super::user_object::ExecObjects;
use crate::device::context::Context;
use crate::stream::Ticket;

/// An executable.
#[derive(Debug)]
pub(crate) struct Exec {
    /// Never reused.
    pub(crate) uid: u64,
    pub(crate) program: Arc<Program>,
    /// The step of each node that it was made from, by the node's uid. Updates do not change the
    /// keys.
    pub(crate) keys: HashMap<u64, usize>,
    /// The user objects of each part, by the uid of the node that the part is in and its number
    /// there.
    pub(crate) shares: Vec<((u64, usize), Arc<ExecObjects>)>,
    pub(crate) flags: u64,
    /// The graph that counts this executable as its live one: handle and uid.
    pub(crate) source: (u64, u64),
    pub(crate) used: bool,
    pub(crate) context: Arc<Context>,
    /// The end of the last launch or upload.
    pub(crate) last: Arc<Mutex<Option<Ticket>>>,
}
