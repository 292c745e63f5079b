//! A table that threads fill at the same time.

use std::collections::HashMap;

use cuda_launch::{kernel, per};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: the kernels check each key's index, and a slot's index is below `slots`, which is a
    // power of two.
    unsafe in "../../../../kernels/fields/hash_table.ptx";

    struct HashTable;

    fn hash_insert(
        count: u32, slots: u32, keys: In<u32>, table: InOut<[u32; 2]>, failures: InOut<u32>
    )
    where keys.len() >= count, slots >= 1, (1 << 31) % slots == 0, table.len() >= slots,
        failures.len() >= 1;
    fn hash_find(count: u32, slots: u32, keys: In<u32>, table: In<[u32; 2]>, counts: Out<u32>)
    where keys.len() >= count, slots >= 1, (1 << 31) % slots == 0, table.len() >= slots,
        counts.len() >= count;
}

const EMPTY: [u32; 2] = [u32::MAX, 0];

#[test]
fn keys_are_counted_and_found() {
    with_stream(|context, stream| {
        let kernels = HashTable::load(context).unwrap();
        let (count, slots) = (size(1000, 1_000_000), size(512, 1 << 19));
        let mut numbers = Numbers(14);
        // Fewer different keys than slots.
        let keys: Vec<u32> = (0..count).map(|_| numbers.below(slots as u32 * 3 / 4) * 77).collect();
        let (input, failures) = (stream.upload(&keys).unwrap(), stream.zeros::<u32>(1).unwrap());
        let table = stream.upload(&vec![EMPTY; slots]).unwrap();
        let (n, length) = (count as u32, slots as u32);
        kernels.hash_insert.launch(stream, per(count, 128), (n, length, &input, &table, &failures)).unwrap();
        let mut expected = HashMap::new();
        keys.iter().for_each(|key| *expected.entry(*key).or_insert(0) += 1);
        let found: HashMap<u32, u32> = table
            .read_blocking(stream)
            .unwrap()
            .into_iter()
            .filter(|slot| *slot != EMPTY)
            .map(Into::into)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(failures.read_blocking(stream).unwrap(), [0]);

        let asked: Vec<u32> = (0..count as u32).map(|i| i * 7).collect();
        let (input, counts) = (stream.upload(&asked).unwrap(), stream.zeros::<u32>(count).unwrap());
        kernels.hash_find.launch(stream, per(count, 128), (n, length, &input, &table, &counts)).unwrap();
        let answers: Vec<u32> = asked.iter().map(|key| expected.get(key).copied().unwrap_or(0)).collect();
        assert_eq!(counts.read_blocking(stream).unwrap(), answers);
    });
}

#[test]
fn a_full_table_takes_no_more_keys() {
    with_stream(|context, stream| {
        let kernels = HashTable::load(context).unwrap();
        let keys: Vec<u32> = (0..100).collect();
        let (input, failures) = (stream.upload(&keys).unwrap(), stream.zeros::<u32>(1).unwrap());
        let table = stream.upload(&[EMPTY; 64]).unwrap();
        kernels.hash_insert.launch(stream, per(100, 32), (100, 64, &input, &table, &failures)).unwrap();
        assert_eq!(failures.read_blocking(stream).unwrap(), [36]);
        let mut taken: Vec<u32> = table.read_blocking(stream).unwrap().iter().map(|[key, _]| *key).collect();
        taken.sort_unstable();
        taken.dedup();
        assert!(taken.len() == 64 && taken.iter().all(|key| *key < 100), "{taken:?}");
    });
}
