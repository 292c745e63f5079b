//! The bodies of the fuzz targets `ptx` and `image`, on bytes that proptest makes, and on
//! those that fuzzing once found.

use cuda_tests::{SMALL, VARIABLES, fuzz, is_soft, needs, setup, skip};
use proptest::prelude::*;
use proptest::sample::Index;

/// Changes of a text or an image: bytes become others, and parts are left out or put in twice.
#[derive(Clone, Debug)]
enum Edit {
    Byte(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, len)| Edit::Remove(at, len)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, len)| Edit::Repeat(at, len)),
    ]
}

fn edited(seed: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for edit in edits.iter().filter(|_| !seed.is_empty()) {
        let range = |at: &Index, len: usize, of: usize| {
            let start = at.index(of);
            start..(start + len).min(of)
        };
        match edit {
            Edit::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Edit::Remove(at, len) if !bytes.is_empty() => drop(bytes.drain(range(at, *len, bytes.len()))),
            Edit::Repeat(at, len) if !bytes.is_empty() => {
                bytes.extend_from_within(range(at, *len, bytes.len()))
            }
            _ => {}
        }
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(edit(), 0..6)
}

#[test]
fn any_text_is_loaded_or_refused() {
    let context = setup();
    if !is_soft() {
        skip!("a GPU's compiler is not under test");
    }
    needs!(KernelNames);
    fuzz::SEEN_TEXTS.iter().for_each(|text| fuzz::check(&context, fuzz::ptx, text.as_bytes()));
    let seeds = prop::sample::select(vec![SMALL, VARIABLES]);
    let config = ProptestConfig::with_cases(64);
    proptest!(config, |(seed in seeds, edits in edits())| {
        fuzz::check(&context, fuzz::ptx, &edited(seed.as_bytes(), &edits));
    });
}

#[test]
fn any_bytes_are_refused_unless_they_are_whole() {
    let context = setup();
    if !is_soft() {
        skip!("a driver that reads machine code trusts what the headers do not say");
    }
    let seeds = prop::sample::select(fuzz::images());
    let config = ProptestConfig::with_cases(512);
    proptest!(config, |(seed in seeds, edits in edits())| {
        fuzz::check(&context, fuzz::image, &edited(&seed, &edits));
    });
}
