//! Places in PTX texts and in shared memory, in words.

use std::fmt;

use crate::ptx::code::Program;
use crate::ptx::image::{Launch, UNUSED};

/// The place of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// Line of the PTX text, or 0 if it is unknown.
    pub(super) line: u32,
    /// File and line of the source that the text was made from.
    pub(super) source: Option<Box<str>>,
}

impl Position {
    /// The position of the instruction in front of `pc`, to which a thread has advanced.
    pub(super) fn before(program: &Program, function: u32, pc: usize) -> Position {
        let found = program.functions.get(function as usize).zip(pc.checked_sub(1));
        let Some((function, index)) = found else { return Position { line: 0, source: None } };
        let line = function.lines.get(index).copied().unwrap_or(0);
        let after = function.sources.partition_point(|source| source.pc as usize <= index);
        let source = after.checked_sub(1).and_then(|last| function.sources.get(last));
        let source = source.filter(|source| source.line != 0).and_then(|source| {
            let file = program.files.get(source.file as usize)?;
            Some(format!("{file}:{}", source.line).into())
        });
        Position { line, source }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptx line {}", self.line)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// The variable in shared memory that holds `offset` or ends last in front of it.
pub(super) fn shared_variable(launch: &Launch<'_>, offset: u64) -> Option<String> {
    let kernel = launch.kernel;
    let (mut nearest, mut start) = (None, 0);
    for (variable, &at) in kernel.program.shared.iter().zip(&kernel.shared_offsets) {
        if at != UNUSED && u64::from(at) <= offset && (nearest.is_none() || at >= start) {
            (nearest, start) = (Some(variable), at);
        }
    }
    let (variable, inside) = (nearest?, offset - u64::from(start));
    let size = if variable.is_dynamic { launch.dynamic_shared } else { variable.size };
    let name = &variable.name;
    Some(match inside.checked_sub(u64::from(size)) {
        None if inside == 0 => format!("at the start of `{name}`"),
        None => format!("at byte {inside} of `{name}`"),
        Some(0) => format!("at the end of `{name}`, which has {size} bytes"),
        Some(behind) => format!("{behind} bytes behind the end of `{name}`, which has {size} bytes"),
    })
}
