//! The page of the lock order is written from the declared ranks.

use std::path::Path;

use cuda_handles::internal::Rank;

#[test]
fn the_page_says_what_is_declared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lock-order.md");
    if !path.parent().is_some_and(Path::exists) {
        // The crate alone, without the repository around it.
        return;
    }
    let page = Rank::page();
    if std::env::var_os("CUDA_WRITE_LOCK_ORDER").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/lock-order.md differs from the declared ranks: run CUDA_WRITE_LOCK_ORDER=1 cargo test -p cuda-handles --test lock_order"
    );
}

#[test]
fn every_rank_is_in_its_place() {
    for (index, (rank, ..)) in Rank::ALL.iter().enumerate() {
        assert_eq!(*rank as usize, index);
    }
}
