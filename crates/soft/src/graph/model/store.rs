//! The tables of graphs, nodes and executables, under one lock.

use std::sync::{Mutex, MutexGuard};

use super::executable::Exec;
use super::graphs::Graphs;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::sync::lock;

/// All tables. Graphs and executables can be borrowed independently.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) graphs: Graphs,
    pub(crate) execs: Slots<Exec>,
}

static STORE: Mutex<Store> = Mutex::new(Store { graphs: Graphs::new(), execs: Slots::new(Kind::Exec) });

/// Locks the tables. Destructors of the user may call the driver, so nothing that could run one may
/// be dropped while this guard lives.
pub(crate) fn store() -> MutexGuard<'static, Store> {
    lock(&STORE)
}

/// The numbers of live graphs (without children and bodies) and executables.
pub(crate) fn counts() -> (usize, usize) {
    let store = store();
    (store.graphs.count(), store.execs.len())
}

impl Store {
    pub(crate) fn exec(&self, handle: u64) -> Answer<&Exec> {
        self.execs.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn exec_mut(&mut self, handle: u64) -> Answer<&mut Exec> {
        self.execs.get_mut(handle).ok_or(INVALID_VALUE)
    }

    /// The step of an executable for a node of its source.
    pub(crate) fn step_of(&self, exec: u64, node: u64) -> Answer<usize> {
        let exec = self.exec(exec)?;
        let node = self.graphs.node(node)?;
        exec.keys.get(&node.uid).copied().ok_or(INVALID_VALUE)
    }
}
