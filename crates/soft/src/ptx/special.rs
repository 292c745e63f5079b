//! The special registers.

/// A read-only register that the hardware fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    /// Instructions executed so far, as a clock; the flag asks for the upper word.
    Clock {
        high: bool,
    },
    Clock64,
    /// Nanoseconds of the host's clock.
    GlobalTimer,
    GlobalTimerLow,
    GlobalTimerHigh,
    DynamicShared,
    TotalShared,
    /// With what is reserved.
    AggregateShared,
    /// A place in the reserved shared memory.
    Reserved {
        offset: u32,
    },
    /// A constant here: the one multiprocessor, clusters of one block.
    Fixed(u32),
    /// Cluster indices, where a cluster is a block: the same as `Ctaid`, `Nctaid`.
    GridId,
    /// A half of the address of the grid's workspace, which barriers of the whole grid use.
    Workspace {
        high: bool,
    },
}

impl Special {
    /// Whether it is a position or size in the grid, which old texts read as 16 bits.
    pub(super) fn is_place(self) -> bool {
        matches!(self, Special::Tid(_) | Special::Ntid(_) | Special::Ctaid(_) | Special::Nctaid(_))
    }

    /// An element of a position or size in the grid.
    fn element(name: &str, member: &str) -> Option<Special> {
        let axis = match member {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            // The fourth element exists and is 0.
            "w" | "a" => return Special::element(name, "x").map(|_| Special::Fixed(0)),
            _ => return None,
        };
        Some(match name {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" | "%clusterid" => Special::Ctaid(axis),
            "%nctaid" | "%nclusterid" => Special::Nctaid(axis),
            "%cluster_ctaid" => Special::Fixed(0),
            "%cluster_nctaid" => Special::Fixed(1),
            _ => return None,
        })
    }

    /// The register of that name (with its `%`) and component, with its width in bits.
    pub(super) fn parse(name: &str, member: Option<&str>) -> Option<(Special, u32)> {
        if let Some(member) = member {
            return Special::element(name, member).map(|special| (special, 32));
        }
        let special = match name {
            "%laneid" => Special::LaneId,
            "%warpid" => Special::WarpId,
            "%nwarpid" => Special::WarpCount,
            "%lanemask_eq" => Special::LanemaskEq,
            "%lanemask_le" => Special::LanemaskLe,
            "%lanemask_lt" => Special::LanemaskLt,
            "%lanemask_ge" => Special::LanemaskGe,
            "%lanemask_gt" => Special::LanemaskGt,
            "%clock" => Special::Clock { high: false },
            "%clock_hi" => Special::Clock { high: true },
            "%globaltimer_lo" => Special::GlobalTimerLow,
            "%globaltimer_hi" => Special::GlobalTimerHigh,
            "%dynamic_smem_size" => Special::DynamicShared,
            "%total_smem_size" => Special::TotalShared,
            "%aggr_smem_size" => Special::AggregateShared,
            "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" => Special::Reserved { offset: 0 },
            "%reserved_smem_offset_1" => Special::Reserved { offset: 64 },
            "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => Special::Reserved { offset: 1024 },
            "%smid" | "%cluster_ctarank" => Special::Fixed(0),
            "%nsmid" | "%cluster_nctarank" => Special::Fixed(1),
            "%clock64" => return Some((Special::Clock64, 64)),
            "%globaltimer" => return Some((Special::GlobalTimer, 64)),
            // Older texts read 32 bits.
            "%gridid" => Special::GridId,
            "%current_graph_exec" => return Some((Special::Fixed(0), 64)),
            "%is_explicit_cluster" => return Some((Special::Fixed(0), 1)),
            "%WARP_SZ" => Special::Fixed(32),
            "%envreg1" => Special::Workspace { high: true },
            "%envreg2" => Special::Workspace { high: false },
            _ if is_numbered(name, "%envreg", 32) => Special::Fixed(0),
            // Counters that nobody has set up.
            _ if is_numbered(name, "%pm", 8) => Special::Fixed(0),
            _ if name.strip_suffix("_64").is_some_and(|name| is_numbered(name, "%pm", 8)) => {
                return Some((Special::Fixed(0), 64));
            }
            _ => return None,
        };
        Some((special, 32))
    }
}

/// Whether the name is the prefix and a number below `count`.
fn is_numbered(name: &str, prefix: &str, count: u32) -> bool {
    let number = name.strip_prefix(prefix).filter(|digits| digits.len() == 1 || !digits.starts_with('0'));
    number.is_some_and(|digits| {
        digits.bytes().all(|byte| byte.is_ascii_digit())
            && digits.parse().is_ok_and(|number: u32| number < count)
    })
}
