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
    /// A constant here: the one multiprocessor, clusters of one block.
    Fixed(u32),
    /// Cluster indices, where a cluster is a block: the same as `Ctaid`, `Nctaid`.
    GridId,
}

impl Special {
    /// Whether it is a position or size in the grid, which old texts read as 16 bits.
    pub(super) fn is_place(self) -> bool {
        matches!(self, Special::Tid(_) | Special::Ntid(_) | Special::Ctaid(_) | Special::Nctaid(_))
    }

    /// The register of that name (with its `%`) and component, with its width in bits.
    pub(super) fn parse(name: &str, member: Option<&str>) -> Option<(Special, u32)> {
        if let Some(member) = member {
            let axis = match member {
                "x" | "r" => 0,
                "y" | "g" => 1,
                "z" | "b" => 2,
                // The fourth element exists and is 0.
                "w" | "a" if Special::parse(name, Some("x")).is_some() => {
                    return Some((Special::Fixed(0), 32));
                }
                _ => return None,
            };
            let special = match name {
                "%tid" => Special::Tid(axis),
                "%ntid" => Special::Ntid(axis),
                "%ctaid" | "%clusterid" => Special::Ctaid(axis),
                "%nctaid" | "%nclusterid" => Special::Nctaid(axis),
                "%cluster_ctaid" => Special::Fixed(0),
                "%cluster_nctaid" => Special::Fixed(1),
                _ => return None,
            };
            return Some((special, 32));
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
            "%total_smem_size" | "%aggr_smem_size" => Special::TotalShared,
            "%smid"
            | "%cluster_ctarank"
            | "%reserved_smem_offset_begin"
            | "%reserved_smem_offset_end"
            | "%reserved_smem_offset_cap" => Special::Fixed(0),
            "%nsmid" | "%cluster_nctarank" => Special::Fixed(1),
            "%clock64" => return Some((Special::Clock64, 64)),
            "%globaltimer" => return Some((Special::GlobalTimer, 64)),
            "%gridid" => return Some((Special::GridId, 64)),
            "%current_graph_exec" => return Some((Special::Fixed(0), 64)),
            "%is_explicit_cluster" => return Some((Special::Fixed(0), 1)),
            "%WARP_SZ" => Special::Fixed(32),
            _ => return None,
        };
        Some((special, 32))
    }
}
