//! Names inside a function: registers, variables and labels, by block.

use std::collections::HashMap;

use crate::ptx::code::Reg;
use crate::ptx::syntax::{Statement, StatementKind};
use crate::ptx::types::Type;

/// What a name inside a function stands for.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Register {
        ty: Type,
        slot: Option<Reg>,
    },
    /// A parameter of the kernel.
    Entry {
        offset: u32,
        size: u32,
    },
    /// A variable of the frame; `is_param` tells the parameter space from the local one.
    Frame {
        offset: u32,
        size: u32,
        is_param: bool,
    },
    Shared(u32),
    /// Labels that an indirect branch chooses from.
    Targets(Vec<u32>),
}

#[derive(Debug, Default)]
struct Block<'t> {
    id: u32,
    names: HashMap<&'t str, Name>,
    /// Registers declared by number: type and how many.
    ranges: HashMap<&'t str, (Type, u32)>,
    /// Where the frame ended when the block began.
    frame_end: u32,
}

/// The blocks that are open, the innermost last.
#[derive(Debug)]
pub(super) struct Scopes<'t> {
    open: Vec<Block<'t>>,
    labels: HashMap<(u32, &'t str), u32>,
    opened: u32,
}

impl<'t> Scopes<'t> {
    /// Finds all labels first: branches go forward too. The second value lists the labels defined twice.
    pub(super) fn new(body: &[Statement<'t>]) -> (Self, Vec<(u32, &'t str)>) {
        let mut labels = HashMap::new();
        let mut twice = Vec::new();
        let mut ids = vec![0_u32];
        let mut opened = 0;
        for statement in body {
            match statement.kind {
                StatementKind::Open => {
                    opened += 1;
                    ids.push(opened);
                }
                StatementKind::Close => {
                    ids.pop();
                }
                StatementKind::Label(name) => {
                    let index = labels.len() as u32;
                    if labels.insert((ids.last().copied().unwrap_or(0), name), index).is_some() {
                        twice.push((statement.line, name));
                    }
                }
                _ => {}
            }
        }
        (Scopes { open: vec![Block::default()], labels, opened: 0 }, twice)
    }

    pub(super) fn label_count(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn open(&mut self, frame_end: u32) {
        self.opened += 1;
        self.open.push(Block { id: self.opened, frame_end, ..Block::default() });
    }

    /// Where the frame ended when the block began.
    pub(super) fn close(&mut self) -> Option<u32> {
        self.open.pop().map(|block| block.frame_end)
    }

    /// False when the block has that name already.
    pub(super) fn define(&mut self, name: &'t str, what: Name) -> bool {
        self.open.last_mut().is_some_and(|block| block.names.insert(name, what).is_none())
    }

    pub(super) fn define_range(&mut self, prefix: &'t str, ty: Type, count: u32) -> bool {
        self.open.last_mut().is_some_and(|block| block.ranges.insert(prefix, (ty, count)).is_none())
    }

    /// The innermost thing of that name. A numbered register comes into being when it is first named.
    pub(super) fn find(&mut self, name: &'t str) -> Option<&mut Name> {
        let depth = self
            .open
            .iter()
            .rposition(|block| block.names.contains_key(name) || numbered(name, &block.ranges).is_some())?;
        let block = self.open.get_mut(depth)?;
        if !block.names.contains_key(name) {
            let ty = numbered(name, &block.ranges)?;
            block.names.insert(name, Name::Register { ty, slot: None });
        }
        block.names.get_mut(name)
    }

    /// The number of the innermost label of that name.
    pub(super) fn label(&self, name: &str) -> Option<u32> {
        self.open.iter().rev().find_map(|block| self.labels.get(&(block.id, name)).copied())
    }
}

/// The type of `%r7` where `%r<8>` is declared.
fn numbered(name: &str, ranges: &HashMap<&str, (Type, u32)>) -> Option<Type> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(prefix.len()..)?;
    // The prefix itself may end in digits: `%a1` with `%a1<4>` declared is `%a10`. So each split is tried.
    for split in 0..digits.len() {
        let number = digits.get(split..)?;
        if number.len() > 1 && number.starts_with('0') {
            continue;
        }
        let Some(&(ty, count)) = name.get(..prefix.len() + split).and_then(|prefix| ranges.get(prefix))
        else {
            continue;
        };
        if number.parse::<u32>().is_ok_and(|number| number < count) {
            return Some(ty);
        }
    }
    None
}
