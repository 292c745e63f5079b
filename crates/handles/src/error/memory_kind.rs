//! The kinds of memory.

/// The origin of memory, which decides how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// From a pool, in the order of a home stream: [`Stream::zeros`](crate::Stream::zeros). Freed
    /// in stream order.
    Pooled,
    /// Allocated for all streams: [`Context::alloc_blocking`](crate::Context::alloc_blocking).
    /// Freed in stream order as well, by the reaper.
    Plain,
    /// Host memory that does not move: [`Context::pinned_zeros`](crate::Context::pinned_zeros).
    /// Cached for later allocations.
    Pinned,
    /// Memory of another owner on the host, registered with the driver:
    /// [`Context::register`](crate::Context::register). It is unregistered by
    /// [`reaper::drain`](crate::reaper::drain), and then its owner is dropped.
    Registered,
    /// Memory that moves between host and device:
    /// [`Context::managed_zeros`](crate::Context::managed_zeros). Cached for later allocations.
    Managed,
    /// Memory of another owner: [`Buffer::from_foreign`](crate::Buffer::from_foreign). Its owner is
    /// dropped.
    Foreign,
    /// A variable of a library: [`Library::global`](crate::Library::global). Freed with the
    /// library.
    Global,
    /// Another process's: [`MemPool::import`](crate::MemPool::import). Unmapped in stream order, by
    /// the reaper.
    Imported,
    /// Memory of an allocation node of a graph ([`GraphBuffer`](crate::GraphBuffer)), or memory
    /// that a launch left, which is freed in stream order.
    Graph,
}

impl core::fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Pooled => "pooled",
            Self::Plain => "plain",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
            Self::Managed => "managed",
            Self::Foreign => "foreign",
            Self::Global => "global",
            Self::Imported => "imported",
            Self::Graph => "graph",
        })
    }
}

impl MemoryKind {
    /// Whether the driver's copy calls always take its address for an address of the device.
    pub(crate) fn is_of_device(self) -> bool {
        match self {
            Self::Pooled | Self::Plain | Self::Global | Self::Imported | Self::Graph => true,
            Self::Pinned | Self::Registered | Self::Managed | Self::Foreign => false,
        }
    }
}
