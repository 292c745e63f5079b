//! The bodies of the fuzz targets `graph` and `capture`, on bytes that proptest makes, and on those
//! that fuzzing once found.

use cuda_tests::{fuzz, is_soft, setup};
use proptest::prelude::*;

#[test]
fn any_operations_on_graphs_do_what_the_model_says() {
    let context = setup();
    fuzz::SEEN_GRAPHS.iter().for_each(|bytes| fuzz::check(&context, fuzz::graph, bytes));
    let cases = if is_soft() { 192 } else { 24 };
    let bytes = prop::collection::vec(any::<u8>(), 0..1500);
    proptest!(ProptestConfig::with_cases(cases), |(bytes in bytes)| {
        fuzz::check(&context, fuzz::graph, &bytes);
    });
}

#[test]
fn any_operations_on_captures_do_what_the_model_says() {
    let context = setup();
    fuzz::SEEN_CAPTURES.iter().for_each(|bytes| fuzz::check(&context, fuzz::capture, bytes));
    let cases = if is_soft() { 192 } else { 24 };
    let bytes = prop::collection::vec(any::<u8>(), 0..600);
    proptest!(ProptestConfig::with_cases(cases), |(bytes in bytes)| {
        fuzz::check(&context, fuzz::capture, &bytes);
    });
}
