//! Stream options.

/// The options of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// Lower numbers go first; 0 is the default and the lowest priority. The driver takes the
    /// nearest that the device has; see
    /// [`Context::stream_priorities`](crate::Context::stream_priorities).
    pub priority: i32,
    /// Whether it and the legacy default stream wait for each other. Default: no.
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    pub blocking_with_legacy: bool,
}
