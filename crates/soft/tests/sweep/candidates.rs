//! The values of each argument: a valid one first, then extremes.

use std::fmt;

use crate::calls::{Argument, Swept, Value};
use crate::live_objects::{BYTES, LiveObjects, nothing};
use crate::templates;

/// One argument of one call.
#[derive(Clone)]
pub(crate) enum Candidate {
    Word(u64),
    /// A structure given by value.
    Filled(Box<Value>),
    /// A pointer into the argument's own memory, which starts with these bytes. What is `wild` may
    /// hold pointers to nothing.
    Memory {
        offset: u64,
        bytes: Vec<u8>,
        wild: bool,
    },
}

impl fmt::Debug for Candidate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(formatter, "{word:#x}"),
            Self::Filled(value) => write!(formatter, "by value {:x?}", &value[..4]),
            Self::Memory { offset, bytes, .. } => {
                if bytes.len() > 64 && bytes.iter().all(|byte| *byte == 0xff) {
                    return write!(formatter, "memory + {offset}: all bits");
                }
                let words = bytes.chunks(8).take(40).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    format!("{:x}", u64::from_le_bytes(word))
                });
                write!(formatter, "memory + {offset}: {}", words.collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// Numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5555)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const EXTREMES: [u64; 14] = [
    0,
    1,
    2,
    3,
    4,
    7,
    16,
    64,
    0xffff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    // In 32 bits the largest, the most negative and 0; more bytes than any machine has.
    0x1000_ffff_ffff,
    0x1000_8000_0000,
    0x1000_0000_0000,
];

/// The name of a type without its path.
fn last(written: &str) -> &str {
    written.rsplit([':', ' ']).next().unwrap_or(written).trim()
}

fn words(words: impl IntoIterator<Item = u64>) -> Vec<Candidate> {
    words.into_iter().map(Candidate::Word).collect()
}

/// What the type points to.
fn pointee(argument: &Argument) -> &'static str {
    let full = (argument.full)();
    full.strip_prefix("*mut ").or_else(|| full.strip_prefix("*const ")).unwrap_or(full)
}

pub(crate) fn is_pointer(argument: &Argument) -> bool {
    argument.written.starts_with('*')
}

fn handles(kind: &str, objects: &LiveObjects) -> Vec<Candidate> {
    if kind == "CUstream" {
        // Others end the process, as they do on the real driver; tests of their own say so.
        return words([objects.handle(kind), 0, 1, 2]);
    }
    let own = objects.handles.get(kind).cloned().unwrap_or_default();
    let other = [objects.handle("CUgraph"), objects.handle("CUevent"), objects.handle("CUstream")];
    let made_up = [0, 1, 2, 3, u64::MAX, 1 << 63, objects.pinned, objects.handle(kind).wrapping_add(1)];
    words(own.into_iter().chain(other).chain(made_up))
}

fn memory(argument: &Argument, objects: &LiveObjects) -> Vec<Candidate> {
    let kind = pointee(argument);
    let memory = |offset, bytes, wild| Candidate::Memory { offset, bytes, wild };
    // An array of handles: those that the alias names.
    let handle = objects.handle(last(argument.written));
    let right = if handle == 0 { Vec::new() } else { vec![handle.to_ne_bytes().to_vec()] };
    let right: Vec<_> = right.into_iter().chain(templates::of(kind, objects)).collect();
    // Pointers are nowhere in numbers and texts.
    let holds_pointers =
        !matches!(last(kind), "c_char" | "i8" | "u8" | "i32" | "u32" | "u64" | "usize" | "f32");
    let mut all: Vec<_> = right.iter().map(|bytes| memory(0, bytes.clone(), false)).collect();
    all.push(memory(0, Vec::new(), false));
    all.push(Candidate::Word(0));
    all.push(memory(1, right.first().cloned().unwrap_or_default(), holds_pointers));
    all.push(memory(0, vec![0xff; 4096], holds_pointers));
    all
}

/// The values of an argument, a valid one first.
pub(crate) fn of(argument: &Argument, objects: &LiveObjects) -> Vec<Candidate> {
    let (full, alias) = ((argument.full)(), last(argument.written));
    if is_pointer(argument) {
        return memory(argument, objects);
    }
    if full.starts_with('*') {
        return handles(alias, objects);
    }
    if full.contains("Option<") {
        let function: unsafe extern "C" fn(*mut std::ffi::c_void) = nothing;
        return words([(function as *const ()).expose_provenance() as u64, 0]);
    }
    if argument.size > 8 {
        let mut location = [0; 32];
        location[0] = 1;
        return [location, [0; 32], [u64::MAX; 32]].map(|value| Candidate::Filled(Box::new(value))).to_vec();
    }
    if alias.starts_with("CUdeviceptr") {
        let (device, pinned) = (objects.device, objects.pinned);
        let end = device + BYTES as u64;
        return words([
            device,
            pinned,
            device + 1,
            end - 1,
            end,
            pinned + 1,
            0,
            1,
            u64::MAX,
            1 << 63,
            1 << 48,
        ]);
    }
    if alias == "CUgraphConditionalHandle" {
        return words([objects.condition, 0, 1, u64::MAX, 1 << 63]);
    }
    if matches!(alias, "CUdevice" | "CUdevice_v1") {
        return words([0, 1, u64::MAX, 0x8000_0000, 0x7fff_ffff]);
    }
    let right = if argument.name.contains("flags") { 0 } else { 1 };
    words(std::iter::once(right).chain(EXTREMES))
}

/// Memory of the type in which some words were changed.
fn changed(argument: &Argument, objects: &LiveObjects, random: &mut Random) -> Candidate {
    let mut all = templates::of(pointee(argument), objects);
    all.push(vec![0; 256]);
    let mut bytes = random.pick(&all).clone();
    let interesting = [objects.device, objects.pinned, objects.condition, random.next()];
    for _ in 0..=random.below(3) {
        let wide = random.below(3) > 0;
        let size = if wide { 8 } else { 4 };
        let at = random.below(bytes.len() / size) * size;
        let word = if random.below(8) == 0 {
            *random.pick(&interesting)
        } else if random.below(16) == 0 {
            let kinds =
                ["CUevent", "CUgraph", "CUgraphNode", "CUstream", "CUcontext", "CUfunction", "CUkernel"];
            objects.handle(kinds[random.below(kinds.len())])
        } else {
            *random.pick(&EXTREMES)
        };
        if let Some(place) = bytes.get_mut(at..at + size) {
            place.copy_from_slice(&word.to_ne_bytes()[..size]);
        }
    }
    Candidate::Memory { offset: 0, bytes, wild: true }
}

/// How many calls with random arguments there are.
pub(crate) const RANDOM: usize = 300;

/// The arguments of each of the calls of an entry point, by number.
pub(crate) struct Plan<'a> {
    swept: &'a Swept,
    objects: &'a LiveObjects,
    all: Vec<Vec<Candidate>>,
    pairs: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(swept: &'a Swept, objects: &'a LiveObjects, pairs: bool) -> Self {
        let all = swept.arguments.iter().map(|argument| of(argument, objects)).collect();
        Self { swept, objects, all, pairs }
    }

    /// How many calls change one argument alone, of the right ones and of nothing but zeros.
    pub(crate) fn singles(&self) -> usize {
        1 + 2 * self.all.iter().map(Vec::len).sum::<usize>()
    }

    fn pairs(&self) -> usize {
        let lens: Vec<usize> = self.all.iter().map(Vec::len).collect();
        let all = (0..lens.len()).flat_map(|a| (a + 1..lens.len()).map(move |b| (a, b)));
        if self.pairs { all.map(|(a, b)| lens[a] * lens[b]).sum() } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.singles() + self.pairs() + if self.all.is_empty() { 0 } else { RANDOM }
    }

    fn right(&self) -> Vec<Candidate> {
        self.all.iter().map(|list| list[0].clone()).collect()
    }

    /// The arguments of one call.
    pub(crate) fn vector(&self, index: usize, seed: u64) -> Vec<Candidate> {
        let mut arguments = self.right();
        let Some(mut at) = index.checked_sub(1) else { return arguments };
        for zeros in [false, true] {
            for (argument, list) in self.all.iter().enumerate() {
                if at < list.len() {
                    if zeros {
                        arguments.fill(Candidate::Word(0));
                    }
                    arguments[argument] = list[at].clone();
                    return arguments;
                }
                at -= list.len();
            }
        }
        if at < self.pairs() {
            for a in 0..self.all.len() {
                for b in a + 1..self.all.len() {
                    let (first, second) = (&self.all[a], &self.all[b]);
                    if at < first.len() * second.len() {
                        arguments[a] = first[at / second.len()].clone();
                        arguments[b] = second[at % second.len()].clone();
                        return arguments;
                    }
                    at -= first.len() * second.len();
                }
            }
        }
        let mut random = Random::new(seed ^ (index as u64) << 20);
        for (argument, list) in self.all.iter().enumerate() {
            if is_pointer(&self.swept.arguments[argument]) && random.below(2) == 0 {
                arguments[argument] = changed(&self.swept.arguments[argument], self.objects, &mut random);
            } else if random.below(3) == 0 {
                arguments[argument] = random.pick(list).clone();
            }
        }
        arguments
    }
}
