//! Versions: order, text, and the baseline.

use cuda_sys::{Call, Version};
use proptest::prelude::*;

#[test]
fn versions_order_by_number_not_by_text() {
    let mut versions =
        [(13, 0), (12, 10), (12, 2), (12, 9), (9, 2)].map(|(major, minor)| Version::new(major, minor));
    versions.sort_unstable();
    assert_eq!(versions.map(|version| version.to_string()), ["9.2", "12.2", "12.9", "12.10", "13.0"]);
}

#[test]
fn the_baseline_is_12_2() {
    assert_eq!(Version::BASELINE, Version::from_raw(12020));
    assert_eq!(format!("{} {:?}", Version::BASELINE, Version::BASELINE), "12.2 12.2");
}

#[test]
fn a_baseline_call_is_as_old_as_the_baseline() {
    for call in Call::ALL.iter().filter(|call| call.is_baseline()) {
        assert!(call.since() <= Version::BASELINE, "{}", call.name());
    }
}

#[test]
fn a_call_newer_than_the_baseline_is_optional() {
    for call in Call::ALL.iter().filter(|call| call.since() > Version::BASELINE) {
        assert!(!call.is_baseline(), "{}", call.name());
    }
}

proptest! {
    #[test]
    fn a_version_comes_back_from_its_raw_number(major in 1_u16..99, minor in 0_u8..99) {
        let version = Version::new(major, minor);
        prop_assert_eq!(Version::from_raw(version.as_raw()), version);
        prop_assert_eq!((version.major(), version.minor()), (i32::from(major), i32::from(minor)));
        prop_assert_eq!(version.to_string(), format!("{major}.{minor}"));
    }

    #[test]
    fn versions_compare_as_their_parts(a in (1_u16..40, 0_u8..99), b in (1_u16..40, 0_u8..99)) {
        prop_assert_eq!(Version::new(a.0, a.1).cmp(&Version::new(b.0, b.1)), a.cmp(&b));
    }
}
