//! The kernels write the same bytes, and no others.

use cuda_graph::{ContextExt, Frontier, Graph, Node};
use cuda_handles::{Buffer, Copy3d, SharedHostBuffer, Slice, Stream};
use cuda_tests::{is_soft, no_leaks, setup};
use proptest::prelude::*;

use super::by_kernels;

/// Bytes of each of the memories.
const BYTES: usize = 12_000;

/// Rows in bytes: where they begin, their width, how many, and how far they are apart.
#[derive(Clone, Copy, Debug)]
struct Rows {
    start: usize,
    width: usize,
    count: usize,
    gap: usize,
}

impl Rows {
    fn pitch(self) -> usize {
        self.width + self.gap
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A fill of rows of elements, of the memory of the device or the host.
    Fill { of_host: bool, element: usize, value: u32, rows: Rows },
    /// A copy of a box between the two memories. `more` are the rows between two layers.
    Copy { to_host: bool, from: Rows, to_start: usize, to_gap: usize, depth: usize, more: [usize; 2] },
}

fn rows() -> impl Strategy<Value = Rows> {
    let small = (0..40_usize, 1..70_usize, 1..5_usize, 0..20_usize);
    let narrow = (0..40_usize, 1..4_usize, 100..300_usize, 0..3_usize);
    let long = (0..40_usize, 1..1900_usize, Just(1), Just(0));
    let rows = |(start, width, count, gap)| Rows { start, width, count, gap };
    prop_oneof![4 => small.prop_map(rows), 1 => narrow.prop_map(rows), 2 => long.prop_map(rows)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let element = prop_oneof![Just(1_usize), Just(2), Just(4)];
    let fill = (any::<bool>(), element, any::<u32>(), rows())
        .prop_map(|(of_host, element, value, rows)| Operation::Fill { of_host, element, value, rows });
    let copy = (any::<bool>(), rows(), 0..40_usize, 0..20_usize, 1..4_usize, [0..3_usize, 0..3_usize]);
    let copy = copy.prop_map(|(to_host, from, to_start, to_gap, depth, more)| {
        // The sides are apart by a multiple of 16 in half of the copies.
        let (to_start, to_gap) =
            if to_gap < 10 { (from.start + 16, from.gap + 16) } else { (to_start, to_gap) };
        Operation::Copy { to_host, from, to_start, to_gap, depth, more }
    });
    prop_oneof![fill, copy]
}

/// What the memories of the device and the host have in them.
type Model = [Vec<u8>; 2];

impl Operation {
    fn run(self, model: &mut Model) {
        match self {
            Self::Fill { of_host, element, value, rows } => {
                let bytes = value.to_le_bytes();
                for row in 0..rows.count {
                    for at in 0..rows.width * element {
                        let place = rows.start * element + row * rows.pitch() * element + at;
                        model[usize::from(of_host)][place] = bytes[at % element];
                    }
                }
            }
            Self::Copy { to_host, from, to_start, to_gap, depth, more } => {
                let to_pitch = from.width + to_gap;
                for layer in 0..depth {
                    for row in 0..from.count {
                        let source = from.start + (layer * (from.count + more[0]) + row) * from.pitch();
                        let target = to_start + (layer * (from.count + more[1]) + row) * to_pitch;
                        for at in 0..from.width {
                            model[usize::from(to_host)][target + at] =
                                model[usize::from(!to_host)][source + at];
                        }
                    }
                }
            }
        }
    }

    fn fits(self) -> bool {
        match self {
            Self::Fill { element, rows, .. } => {
                rows.width * rows.count * element < 8 << 10
                    && (rows.start + rows.count * rows.pitch()) * element <= BYTES
            }
            Self::Copy { from, to_start, to_gap, depth, more, .. } => {
                let rows = |more| depth * (from.count + more);
                from.start + rows(more[0]) * from.pitch() <= BYTES
                    && to_start + rows(more[1]) * (from.width + to_gap) <= BYTES
            }
        }
    }
}

struct Memories {
    device: Buffer<u8>,
    host: SharedHostBuffer<u8>,
}

impl Memories {
    fn of(&self, is_host: bool) -> Slice<'_, u8> {
        if is_host { self.host.as_slice() } else { self.device.as_slice() }
    }

    fn add(&self, frontier: &Frontier<'_>, operation: Operation) -> Node {
        match operation {
            Operation::Fill { of_host, element, value, rows } => {
                let start = rows.start * element;
                let end = start + (rows.count * rows.pitch() - rows.gap) * element;
                let target = self.of(of_host).slice(start..end).unwrap();
                let (pitch, extent) = (rows.pitch(), [rows.width, rows.count]);
                let fill = match element {
                    1 => frontier.fill_2d(target, pitch, extent, value as u8),
                    2 => frontier.fill_2d(target.cast::<u16>().unwrap(), pitch, extent, value as u16),
                    _ => frontier.fill_2d(target.cast::<u32>().unwrap(), pitch, extent, value),
                };
                (*fill.unwrap()).clone()
            }
            Operation::Copy { to_host, from, to_start, to_gap, depth, more } => {
                let copy = Copy3d {
                    source: self.of(!to_host).slice(from.start..).unwrap(),
                    source_pitch: from.pitch(),
                    source_rows: from.count + more[0],
                    destination: self.of(to_host).slice(to_start..).unwrap(),
                    destination_pitch: from.width + to_gap,
                    destination_rows: from.count + more[1],
                    width: from.width,
                    height: from.count,
                    depth,
                };
                (*frontier.copy_3d(copy).unwrap()).clone()
            }
        }
    }

    /// A chain of operations.
    fn draw(&self, graph: &Graph, operations: &[Operation]) {
        let mut last: Option<Node> = None;
        for operation in operations {
            last = Some(match &last {
                Some(last) => self.add(&last.then(), *operation),
                None => self.add(&graph.root(), *operation),
            });
        }
    }

    fn read(&self, stream: &Stream) -> Model {
        [self.device.read_blocking(stream).unwrap(), self.host.read_blocking(stream).unwrap()]
    }
}

#[test]
fn the_bytes_of_fills_and_copies_are_written_and_no_others() {
    let context = setup();
    let cases = if is_soft() { 80 } else { 500 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let host = context.pinned_zeros::<u8>(BYTES).unwrap().share();
        for device in [stream.zeros(BYTES).unwrap(), context.alloc_blocking(BYTES).unwrap()] {
            let memories = Memories { device, host: host.clone() };
            let noise = |seed: usize| (0..BYTES).map(|at| ((at * 7 + at / 251) ^ seed) as u8).collect();
            let start: Model = [noise(0), noise(99)];
            let operations =
                prop::collection::vec(operation().prop_filter("too large", |one| one.fits()), 1..6);
            let mut runner = proptest::test_runner::TestRunner::new(config.clone());
            let checked = runner.run(&operations, |operations| {
                let graph = context.graph().unwrap();
                memories.draw(&graph, &operations);
                let mut expected = start.clone();
                operations.iter().for_each(|operation| operation.run(&mut expected));
                for options in by_kernels() {
                    let mut exec = graph.instantiate_with(options).unwrap();
                    let report = exec.shape_report().unwrap();
                    let (before, after) = (report.before().unwrap(), report.after().unwrap());
                    prop_assert_eq!((before.host_submitted, after.host_submitted), (operations.len(), 0));
                    memories.device.write_blocking(&stream, &start[0]).unwrap();
                    memories.host.write_blocking(&stream, &start[1]).unwrap();
                    exec.launch(&stream).unwrap();
                    let found = memories.read(&stream);
                    for (found, expected) in found.iter().zip(&expected) {
                        let differs = (0..BYTES).find(|at| found[*at] != expected[*at]);
                        prop_assert_eq!(differs, None, "{}", exec.shape_report().unwrap());
                    }
                }
                Ok(())
            });
            checked.unwrap();
        }
    });
}
