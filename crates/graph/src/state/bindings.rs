//! Graph parameters of a hierarchy: their values, and the nodes that use them.

use core::mem::MaybeUninit;
use std::collections::HashMap;

use cuda_handles::{Event, FillLayout, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_launch::internal::{StoredArguments, StoredMemory};
use smallvec::SmallVec;

use crate::state::ids::NodeId;

/// The parameters of a hierarchy's graphs, and the nodes that use them.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    values: Vec<ParamValue>,
    nodes: HashMap<NodeId, Binding>,
}

/// The value of a parameter.
#[derive(Clone, Debug)]
pub(crate) enum ParamValue {
    Memory(StoredMemory),
    Bytes(ValueBytes),
    Event(Event),
    Config(LaunchConfig),
    Enabled(bool),
}

/// A value that is passed by its bytes.
#[derive(Clone, Debug)]
pub(crate) struct ValueBytes {
    pub(crate) bytes: SmallVec<[MaybeUninit<u8>; 16]>,
    /// Whether all bytes are initialised, so that values can be compared.
    pub(crate) is_plain: bool,
}

/// A node with parameters.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) node: BoundNode,
    pub(crate) uses: Uses,
}

/// The uses of parameters by one node.
pub(crate) type Uses = SmallVec<[Use; 4]>;

/// A parameter in a place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) param: u32,
    pub(crate) place: Place,
}

/// A place in a node that a parameter fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An argument of a kernel.
    Argument(usize),
    /// An argument of a kernel that is the length of the parameter's memory.
    Length {
        position: usize,
        /// The longest that the argument can express.
        longest: u64,
        /// The size of an element in bytes.
        element: usize,
    },
    /// The configuration of a kernel.
    Config,
    /// The grid of a kernel: a thread for each element of the second size, in blocks of the first.
    Grid(u32, usize),
    /// The memory of a fill.
    Target,
    /// The value of a fill.
    Value,
    /// The memory that a copy reads.
    Source,
    /// The memory that a copy writes.
    Destination,
    /// The memory that the kernel of a ready-made loop or branch tests.
    Tested,
    /// The event that a node records or waits for.
    Event,
    /// Whether the node is enabled.
    Enabled,
}

/// The parameters of a bound node, each of which can be replaced.
#[derive(Clone, Debug)]
pub(crate) enum BoundNode {
    Kernel {
        kernel: Kernel,
        arguments: Box<StoredArguments>,
        config: LaunchConfig,
    },
    /// A node that decides about a ready-made loop or branch.
    Decider(BoundDecider),
    Fill(BoundFill),
    Copy(BoundCopy),
    /// A node that records the event.
    Record(Event),
    /// A node that waits for the event.
    Wait(Event),
    /// Any node, which a parameter enables and disables.
    Plain,
}

/// A node that decides about a loop or branch by a number in memory.
#[derive(Clone, Debug)]
pub(crate) struct BoundDecider {
    /// The kernel of the library; `None` if the host decides.
    pub(crate) launch: Option<Box<DeciderLaunch>>,
    /// The size of the memory in bytes.
    pub(crate) bytes: u64,
    /// The size of the number in bytes.
    pub(crate) element: u64,
}

/// A launch of a kernel of the library that decides.
#[derive(Clone, Debug)]
pub(crate) struct DeciderLaunch {
    pub(crate) kernel: Kernel,
    pub(crate) config: LaunchConfig,
    pub(crate) arguments: StoredArguments,
    /// The position of the address of the number.
    pub(crate) tested: usize,
}

/// A copy in one dimension.
#[derive(Clone, Debug)]
pub(crate) struct BoundCopy {
    pub(crate) source: StoredMemory,
    pub(crate) destination: StoredMemory,
    /// Whether source and destination are parameters: the length of the copy is theirs.
    pub(crate) follows: [bool; 2],
    /// Whether the node has source and destination by addresses of no certain space, as managed
    /// memory and some captured nodes have. An update keeps to that.
    pub(crate) unified: [bool; 2],
    /// Whether source and destination [have a context](cuda_handles::Allocation::has_context) in
    /// the node, as far as that is known. An update keeps to that, too.
    pub(crate) have_context: [Option<bool>; 2],
}

/// A fill of memory in one dimension.
#[derive(Clone, Debug)]
pub(crate) struct BoundFill {
    pub(crate) memory: StoredMemory,
    pub(crate) layout: FillLayout,
    /// Whether it clears memory of any type: the size of the driver's elements depends on it.
    pub(crate) clears: bool,
}

impl Bindings {
    /// A new parameter; returns its number.
    pub(crate) fn add(&mut self, value: ParamValue) -> u32 {
        self.values.push(value);
        // Memory runs out before the number does.
        (self.values.len() - 1) as u32
    }

    /// Notes what a node uses.
    pub(crate) fn bind(&mut self, id: NodeId, binding: Binding) {
        match self.nodes.get_mut(&id) {
            Some(known) => known.uses.extend(binding.uses),
            None => {
                self.nodes.insert(id, binding);
            }
        }
    }

    /// Forgets a node that is removed. What it used is returned, to be dropped without the lock.
    pub(crate) fn forget(&mut self, id: NodeId) -> Option<Binding> {
        self.nodes.remove(&id)
    }

    /// Whether there are parameters.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of all parameters.
    pub(crate) fn values(&self) -> &[ParamValue] {
        &self.values
    }

    /// The nodes that use parameters.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Binding)> {
        self.nodes.iter().map(|(id, binding)| (*id, binding))
    }

    /// Whether a parameter disables a node of new executables.
    pub(crate) fn is_off(&self, id: NodeId) -> bool {
        let is_off = |one: &Use| {
            let value = self.values.get(one.param as usize);
            one.place == Place::Enabled && matches!(value, Some(ParamValue::Enabled(false)))
        };
        self.nodes.get(&id).is_some_and(|binding| binding.uses.iter().any(is_off))
    }

    /// A node that uses parameters.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Binding> {
        self.nodes.get(&id)
    }
}

impl ParamValue {
    /// Whether two values are the same: the same owner, or the same bytes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Memory(one), Self::Memory(other)) => one.is_same(other),
            (Self::Bytes(one), Self::Bytes(other)) => one.is_same(other),
            (Self::Event(one), Self::Event(other)) => one == other,
            (Self::Config(one), Self::Config(other)) => one == other,
            (Self::Enabled(one), Self::Enabled(other)) => one == other,
            (Self::Memory(_) | Self::Bytes(_) | Self::Event(_) | Self::Config(_) | Self::Enabled(_), _) => {
                false
            }
        }
    }
}

impl ParamValue {
    /// The owner of the memory or event, if it is one.
    pub(crate) fn into_owner(self) -> Option<Owner> {
        match self {
            Self::Memory(memory) => Some(Owner::from(memory.allocation)),
            Self::Event(event) => Some(Owner::Event(event)),
            Self::Bytes(_) | Self::Config(_) | Self::Enabled(_) => None,
        }
    }
}

impl ValueBytes {
    /// The bytes of a value. `is_plain` says that it has no padding.
    pub(crate) fn of<T: Copy>(value: &T, is_plain: bool) -> Self {
        let start = core::ptr::from_ref(value).cast::<MaybeUninit<u8>>();
        // SAFETY: the bytes of a value, which may be uninitialised where it has padding.
        let bytes = unsafe { core::slice::from_raw_parts(start, size_of::<T>()) };
        Self { bytes: SmallVec::from_slice(bytes), is_plain }
    }

    fn is_same(&self, other: &Self) -> bool {
        if !(self.is_plain && other.is_plain) || self.bytes.len() != other.bytes.len() {
            return false;
        }
        // SAFETY: plain values have no padding.
        self.bytes
            .iter()
            .zip(&other.bytes)
            .all(|(one, other)| unsafe { one.assume_init() == other.assume_init() })
    }

    /// The lowest bytes, as a number; `None` if there may be padding.
    pub(crate) fn bits(&self) -> Option<u32> {
        let mut bits = [0; 4];
        for (to, from) in bits.iter_mut().zip(&self.bytes) {
            // SAFETY: plain values have no padding.
            *to = if self.is_plain { unsafe { from.assume_init() } } else { return None };
        }
        Some(u32::from_le_bytes(bits))
    }
}
