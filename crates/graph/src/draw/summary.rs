//! A node's parameters, in one line.

use core::fmt;

use cuda_handles::{BatchOperation, CopyLayout, FillLayout};
use cuda_sys::CUgraphNodeType;

use crate::state::host_function::Host;
use crate::state::params::{ConditionSource, NodeParams};

impl NodeParams {
    /// The parameters in one line; empty if the type says everything.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Other { kind: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL } => {
                "its class can be asked for from CUDA 13.2 on".to_owned()
            }
            Self::Empty | Self::Child { .. } | Self::Other { .. } => String::new(),
            Self::Conditional(conditional) => match conditional.by {
                ConditionSource::Condition(condition) => format!("by condition {condition}"),
                ConditionSource::Foreign(_) => "by a condition of other code".to_owned(),
                ConditionSource::Host => "by the host".to_owned(),
            },
            Self::Kernel { kernel, config, .. } => format!("{}, {}", kernel.name(), config.get()),
            Self::Memcpy(layout) => Copy(layout).to_string(),
            Self::Memset(layout) => Fill(layout).to_string(),
            Self::Host(host) => Called(host).to_string(),
            Self::EventRecord(event) => format!("record {:?}", event.as_raw()),
            Self::EventWait(event) => format!("wait for {:?}", event.as_raw()),
            Self::Batch(operations) => Operations(operations).to_string(),
            Self::Alloc { memory, options } => format!("allocate {} B, {}", memory.bytes(), options.place()),
            Self::Free { address, .. } => format!("free {address:#x}"),
            Self::SignalSemaphores(semaphores) => counted("signal", semaphores.len()),
            Self::WaitSemaphores(semaphores) => counted("wait for", semaphores.len()),
        }
    }
}

fn counted(verb: &str, count: usize) -> String {
    format!("{verb} {count} semaphore{}", if count == 1 { "" } else { "s" })
}

/// Such as `copy 4096 B device -> pinned` and `copy 16 x 8 x 2 B device -> device`.
struct Copy<'a>(&'a CopyLayout);

impl fmt::Display for Copy<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CopyLayout { source, destination, width, height, depth } = self.0;
        write!(formatter, "copy {width}")?;
        match (height, depth) {
            (1, 1) => {}
            (_, 1) => write!(formatter, " x {height}")?,
            _ => write!(formatter, " x {height} x {depth}")?,
        }
        write!(formatter, " B {} -> {}", source.space, destination.space)
    }
}

/// Such as `fill 1024 x 4 B = 0xff` and `fill 16 x 8 x 4 B = 0xff`.
struct Fill<'a>(&'a FillLayout);

impl fmt::Display for Fill<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FillLayout { element, value, width, height, .. } = self.0;
        write!(formatter, "fill {width}")?;
        if *height > 1 {
            write!(formatter, " x {height}")?;
        }
        write!(formatter, " x {element} B = {value:#x}")
    }
}

/// Such as `call app::step` for a closure in that function, and `call 0x5581c0de0000`.
struct Called<'a>(&'a Host);

impl fmt::Display for Called<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Host::Closure(name) => write!(formatter, "call {}", function_of(name)),
            Host::Function(function) | Host::Raw(function, _) => {
                write!(formatter, "call {:#x}", *function as usize)
            }
        }
    }
}

/// The function that contains a closure, without generic arguments and with only as much of its
/// path as tells it from others.
fn function_of(closure: &str) -> String {
    let mut depth = 0_usize;
    let is_outside = |character: &char| {
        depth += usize::from(*character == '<');
        let is_outside = depth == 0;
        depth -= usize::from(*character == '>' && depth > 0);
        is_outside
    };
    let plain: String = closure.replace("->", "").chars().filter(is_outside).collect();
    let parts: Vec<&str> =
        plain.split("::").filter(|part| !part.is_empty() && *part != "{{closure}}").collect();
    parts[parts.len().saturating_sub(2)..].join("::")
}

/// The first operations of a batch, and how many more there are.
struct Operations<'a>(&'a [BatchOperation]);

impl fmt::Display for Operations<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let mut separator = "";
        for operation in self.0.iter().take(SHOWN) {
            write!(formatter, "{separator}{operation}")?;
            separator = ", ";
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "{separator}{more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use cuda_handles::{BarrierScope, Compare, CopySide, MemorySpace};

    use super::*;

    #[test]
    fn copies_read_as_text() {
        let side = |space| CopySide { address: 0x1000, space, pitch: 4096, rows: 1 };
        let (source, destination) = (side(MemorySpace::Device), side(MemorySpace::Pinned));
        let row = CopyLayout { source, destination, width: 4096, height: 1, depth: 1 };
        assert_eq!(NodeParams::Memcpy(row).summary(), "copy 4096 B device -> pinned");
        let rectangle = CopyLayout { width: 16, height: 8, ..row };
        assert_eq!(NodeParams::Memcpy(rectangle).summary(), "copy 16 x 8 B device -> pinned");
        let cuboid = CopyLayout { depth: 2, ..rectangle };
        assert_eq!(NodeParams::Memcpy(cuboid).summary(), "copy 16 x 8 x 2 B device -> pinned");
    }

    #[test]
    fn fills_read_as_text() {
        let (space, pitch) = (MemorySpace::Device, 64);
        let row = FillLayout { address: 8, space, element: 4, value: 255, pitch, width: 16, height: 1 };
        assert_eq!(NodeParams::Memset(row).summary(), "fill 16 x 4 B = 0xff");
        assert_eq!(NodeParams::Memset(FillLayout { height: 3, ..row }).summary(), "fill 16 x 3 x 4 B = 0xff");
    }

    #[test]
    fn closures_are_called_by_their_functions() {
        assert_eq!(function_of("app::step::{{closure}}"), "app::step");
        assert_eq!(
            function_of("app::heat::Plate::graph<app::chain::{{closure}}>::{{closure}}::{{closure}}"),
            "Plate::graph"
        );
        assert_eq!(function_of("<app::Plate<f32> as app::Draw>::draw::{{closure}}"), "draw");
        assert_eq!(function_of("app::call<fn() -> u32>::{{closure}}"), "app::call");
        assert_eq!(function_of("main::{{closure}}"), "main");
        assert_eq!(function_of(""), "");
    }

    #[test]
    fn batches_read_as_text() {
        let write = BatchOperation::Write { address: 8, value: 7, wide: false };
        let wait = BatchOperation::Wait {
            address: 8,
            value: 1,
            wide: true,
            compare: Compare::AtLeast,
            flush: false,
        };
        let barrier = BatchOperation::Barrier { scope: BarrierScope::System };
        let text = |operations: &[BatchOperation]| NodeParams::Batch(operations.into()).summary();
        assert_eq!(text(&[write, wait, barrier]), "write 7, wait >= 1, barrier");
        assert_eq!(text(&[write, write, write, wait, wait]), "write 7, write 7, write 7, 2 more");
    }
}
