//! Features of the driver, and the version that brought each.

use core::fmt;

use crate::Version;

macro_rules! features {
    ($($(#[$attribute:meta])* $name:ident ($major:literal, $minor:literal) $words:literal;)*) => {
        /// A feature that came after [`Version::BASELINE`], so that some supported drivers lack it.
        ///
        /// This is the one table of such versions. A single driver call needs no entry:
        /// [`Call::since`](crate::Call::since) has its version, and calling it on an older driver
        /// is the error [`Missing`](crate::Missing).
        ///
        /// ```
        /// use cuda_sys::{Feature, Version};
        ///
        /// assert_eq!(Feature::Switch.since(), Version::new(12, 8));
        /// assert!(Version::new(13, 0).has(Feature::Switch));
        /// assert_eq!(Feature::Switch.to_string(), "a switch");
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Feature {
            $(
                $(#[$attribute])*
                #[doc = concat!("\n\nSince CUDA ", $major, ".", $minor, ".")]
                $name,
            )*
        }

        impl Feature {
            /// All features, by version.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The first version of the driver that has the feature.
            #[must_use]
            pub const fn since(self) -> Version {
                match self { $(Self::$name => Version::new($major, $minor)),* }
            }

            const fn words(self) -> &'static str {
                match self { $(Self::$name => $words),* }
            }
        }
    };
}

features! {
    /// Graph edges that carry data: programmatic edges and edges out of a port.
    EdgeData (12, 3) "an edge with data";
    /// Conditional nodes with one body: IF and WHILE.
    Conditional (12, 3) "a conditional node";
    /// An event that a kernel launch records once all of its blocks have started.
    CompletionEvent (12, 3) "the completion event of a launch";
    /// Queries of a kernel's parameters: their number, offsets and sizes.
    ParameterLayout (12, 4) "the layout of a kernel's parameters";
    /// The list of a library's kernels with their names.
    KernelNames (12, 4) "the names of a library's kernels";
    /// A shared-memory carve-out as an attribute of one launch.
    SharedCarveout (12, 5) "a shared-memory carve-out for one launch";
    /// Conditional nodes with two bodies: IF with ELSE.
    IfElse (12, 8) "a conditional node with two bodies";
    /// Conditional nodes with any number of bodies: SWITCH.
    Switch (12, 8) "a switch";
    /// Conditional nodes with an empty body. Older drivers hang in such a launch.
    EmptyBody (12, 8) "an empty body of a conditional node";
    /// A preferred cluster size beside the smallest acceptable one.
    PreferredCluster (12, 8) "a preferred cluster";
    /// Moving a child graph into its node, instead of cloning it.
    ChildGraphMove (12, 9) "moving a graph into a node";
    /// Graph memory that is managed: reachable from host and devices at one address.
    ManagedGraphMemory (13, 0) "managed memory of a graph";
    /// Child graphs in the bodies of a conditional node with two bodies. Drivers that have
    /// [`IfElse`](Self::IfElse) and not this run them wrongly.
    ChildGraphInIfElse (13, 0) "a child graph in a conditional node with two bodies";
    /// Atomic reductions in a batch of memory operations.
    AtomicReduction (13, 1) "an atomic reduction in a batch of memory operations";
}

impl Feature {
    /// Whether a driver of version `driver` has the feature.
    #[must_use]
    pub const fn is_in(self, driver: Version) -> bool {
        driver.as_raw() >= self.since().as_raw()
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.words())
    }
}

impl Version {
    /// Whether a driver of this version has `feature`.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        feature.is_in(self)
    }

    /// Checks that a driver of this version has `feature`.
    ///
    /// # Errors
    /// [`DriverTooOld`] if the version is older than [`Feature::since`].
    pub const fn ensure(self, feature: Feature) -> Result<(), DriverTooOld> {
        if self.has(feature) { Ok(()) } else { Err(DriverTooOld { feature, found: self }) }
    }
}

/// The error of a feature that the driver is too old for.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{feature} needs a CUDA driver of version {} or newer; this one is {found}", feature.since())]
#[non_exhaustive]
pub struct DriverTooOld {
    /// The feature.
    pub feature: Feature,
    /// The driver's version.
    pub found: Version,
}

impl fmt::Debug for DriverTooOld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Call;

    #[test]
    fn every_feature_is_newer_than_the_baseline_and_they_are_sorted() {
        assert!(Feature::ALL.iter().all(|feature| feature.since() > Version::BASELINE));
        assert!(Feature::ALL.is_sorted_by_key(|feature| feature.since()));
    }

    #[test]
    fn features_are_as_old_as_their_calls() {
        for (feature, call) in [
            (Feature::EdgeData, Call::cuGraphAddNode_v12030),
            (Feature::Conditional, Call::cuGraphConditionalHandleCreate),
            (Feature::ParameterLayout, Call::cuKernelGetParamInfo),
            (Feature::KernelNames, Call::cuLibraryEnumerateKernels),
        ] {
            assert_eq!(feature.since(), call.since(), "{feature}");
        }
    }

    #[test]
    fn the_error_is_a_sentence() {
        let error = Version::new(12, 4).ensure(Feature::Switch).unwrap_err();
        let text = "a switch needs a CUDA driver of version 12.8 or newer; this one is 12.4";
        assert_eq!((error.to_string(), format!("{error:?}")), (text.to_owned(), text.to_owned()));
        assert!(!Version::new(12, 7).has(Feature::Switch) && Feature::Switch.is_in(Version::new(12, 8)));
    }
}
