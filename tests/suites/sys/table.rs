//! The table of driver calls against the driver that runs.

use std::collections::HashSet;

use cuda_sys::{CUdriverProcAddressQueryResult, Call, Table};
use cuda_tests::{is_soft, raw, setup};

/// Calls that NVIDIA's driver has on some platforms only, though it is new enough.
const OTHER_PLATFORMS: &[Call] = &[];

fn resolves(call: Call) -> bool {
    let mut pointer = core::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    // SAFETY: the symbol is a C string and the out pointers are valid.
    let result = unsafe {
        raw::driver().cuGetProcAddress(
            call.symbol().as_ptr(),
            &raw mut pointer,
            call.since().as_raw(),
            1,
            &raw mut status,
        )
    };
    result.is_success() && !pointer.is_null()
}

#[test]
fn every_baseline_call_is_found_on_the_driver_that_runs() {
    let _context = setup();
    let missing: Vec<_> = Call::ALL.iter().filter(|call| call.is_baseline() && !resolves(**call)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_call_that_the_driver_is_new_enough_for_is_found() {
    let _context = setup();
    let version = raw::driver().version();
    let missing: Vec<_> = Call::ALL
        .iter()
        .filter(|call| call.since() <= version && !resolves(**call))
        .filter(|call| is_soft() || !OTHER_PLATFORMS.contains(call))
        .collect();
    assert!(missing.is_empty(), "not found on a driver of version {version}: {missing:?}");
}

#[test]
fn a_call_newer_than_the_driver_is_not_found() {
    let _context = setup();
    let version = raw::driver().version();
    let found: Vec<_> = Call::ALL.iter().filter(|call| call.since() > version && resolves(**call)).collect();
    assert!(found.is_empty(), "found on a driver of version {version}: {found:?}");
}

macro_rules! present {
    (baseline $table:ident $name:ident) => {
        true
    };
    (optional $table:ident $name:ident) => {
        $table.$name.is_some()
    };
}

macro_rules! entries {
    ($($need:ident $name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        fn entries(table: &Table) -> Vec<(Call, bool)> {
            vec![$((Call::$name, present!($need table $name))),*]
        }
    };
}

cuda_sys::for_each_call!(entries);

#[test]
fn the_table_has_an_optional_call_exactly_if_the_driver_has_it() {
    let _context = setup();
    let wrong: Vec<_> = entries(raw::driver().table())
        .into_iter()
        .filter(|(call, present)| resolves(*call) != *present)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn calls_have_names_of_their_own_and_know_their_symbols() {
    let names: HashSet<_> = Call::ALL.iter().map(|call| call.name()).collect();
    assert_eq!(names.len(), Call::ALL.len());
    assert!(Call::ALL.is_sorted_by_key(|call| call.name()));
    for call in Call::ALL {
        let symbol = call.symbol().to_str().unwrap();
        let rest =
            call.name().strip_prefix(symbol).unwrap_or_else(|| panic!("{} is no {symbol}", call.name()));
        let suffix = format!("_v{}", call.since().as_raw());
        assert!(rest.is_empty() || rest == suffix, "{}: since {}", call.name(), call.since());
    }
}

#[test]
fn a_layout_with_a_suffix_has_an_older_one_with_the_plain_name() {
    for call in Call::ALL.iter().filter(|call| call.name() != call.symbol().to_str().unwrap()) {
        let plain = Call::ALL.iter().find(|other| other.name() == call.symbol().to_str().unwrap());
        assert!(plain.is_some_and(|plain| plain.since() < call.since()), "{}", call.name());
    }
}
