//! Broken texts and wild kernels: errors and faults, never a panic.

use std::sync::atomic::AtomicU64;

use proptest::prelude::*;

use super::forms::forms;
use super::products::PRODUCTS;
use super::scalar_forms::{bodies, text as scalar_text};
use super::{BASIC, CONDITIONAL, COOPERATION, FUNCTIONS, Memory};
use crate::ptx::error::Fault;
use crate::ptx::{DeviceMemory, Image, Launch, MemoryFault, Span, run};

/// Memory in which nothing runs for long.
struct Bounded(Memory);

impl DeviceMemory for Bounded {
    fn translate(&self, address: u64, len: usize, write: bool) -> Result<Span, MemoryFault> {
        self.0.translate(address, len, write)
    }
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }
    fn epoch_counter(&self) -> Option<&AtomicU64> {
        self.0.epoch_counter()
    }
    fn set_conditional(&self, handle: u64, value: u32) -> Result<(), MemoryFault> {
        self.0.set_conditional(handle, value)
    }
    fn cancelled(&self) -> bool {
        true
    }
}

/// Launches every kernel of a text that loads; the arguments are all the address of one small
/// buffer.
fn run_all(text: &str) -> Vec<Result<(), Fault>> {
    let Ok(image) = Image::parse(text) else { return Vec::new() };
    let mut memory = Memory::default();
    let at = memory.put(&[1_u64; 64]);
    let globals = vec![at; image.globals().len()];
    let memory = Bounded(memory);
    let mut results = Vec::new();
    for kernel in image.kernels() {
        let params: Vec<u8> =
            at.to_le_bytes().into_iter().cycle().take(kernel.param_bytes() as usize).collect();
        let launch = Launch {
            kernel,
            grid: [2, 1, 1],
            block: [33, 2, 1],
            dynamic_shared: 64,
            params: &params,
            globals: &globals,
        };
        results.push(run(&launch, &memory));
    }
    results
}

fn sources() -> impl Strategy<Value = String> {
    let forms: Vec<String> = forms("valid").map(|(_, text)| text).collect();
    let one = proptest::sample::select(forms);
    prop_oneof![
        2 => one,
        1 => Just(BASIC.to_owned()),
        1 => Just(COOPERATION.to_owned()),
        1 => Just(CONDITIONAL.to_owned()),
        1 => Just(FUNCTIONS.to_owned()),
        1 => Just(PRODUCTS.to_owned()),
    ]
}

/// The `index`-th line of a text, around.
fn line(text: &str, index: usize) -> &str {
    text.lines().nth(index % text.lines().count().max(1)).unwrap_or("")
}

/// Each number of each form becomes a number at an edge, one after the other: none overflows
/// anything.
#[test]
fn numbers_at_the_edges() {
    const EDGES: [&str; 9] = [
        "0",
        "1",
        "-1",
        "2147483647",
        "-2147483648",
        "4294967295",
        "9223372036854775807",
        "-9223372036854775808",
        "0xFFFFFFFFFFFFFFFF",
    ];
    for (form, (_, text)) in forms("valid").enumerate() {
        let bytes = text.as_bytes();
        let is_word = |at: usize| {
            bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$%.".contains(byte))
        };
        let starts = (1..bytes.len()).filter(|&at| bytes[at].is_ascii_digit() && !is_word(at - 1));
        for (index, start) in starts.enumerate() {
            let end = (start..bytes.len()).find(|&at| !is_word(at)).unwrap_or(bytes.len());
            let edge = EDGES[(form + index) % EDGES.len()];
            for edge in [edge, EDGES[6], EDGES[8]] {
                run_all(&format!("{}{edge}{}", &text[..start], &text[end..]));
            }
        }
    }
}

/// Each form of an instruction runs or faults, on memory that may not hold what it accesses.
#[test]
fn every_form_of_an_instruction_runs() {
    for body in bodies("valid") {
        run_all(&scalar_text(body));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = Image::parse(&text);
        let _ = Image::parse(&format!(".version 8.0\n.target sm_70\n.address_size 64\n{text}"));
    }

    #[test]
    fn any_tokens(tokens in proptest::collection::vec(
        prop_oneof![
            Just(".version 8.0"), Just(".target sm_70"), Just(".entry"), Just(".func"), Just("k"), Just("("), Just(")"), Just("{"),
            Just("}"), Just(";"), Just(","), Just(".param"), Just(".u64"), Just(".reg"), Just(".b32"), Just("%r<4>"), Just("%r1"),
            Just("add.u32"), Just("mov.b64"), Just("ld.global.v4.u32"), Just("["), Just("]"), Just("+"), Just("-"), Just("7"),
            Just("0f3F800000"), Just("@%p"), Just(":"), Just(".align 8"), Just(".shared"), Just(".b8"), Just("call"), Just("|"),
            Just("="), Just("bra"), Just(".v2"), Just(".x"), Just(".const"), Just("("), Just("*"), Just("<<"), Just("?"), Just("generic"), Just("{1, 2}"), Just(".alias"), Just("mov.v2.u32"), Just(".global"), Just("<"), Just(">"), Just("ret;"), Just("_"), Just("!"), Just("L"), Just(".local"),
        ],
        0..60,
    )) {
        run_all(&format!(".version 8.0\n.target sm_70\n{}", tokens.join(" ")));
    }

    #[test]
    fn broken_bytes(text in sources(), edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at % bytes.len();
            bytes[at] = byte % 128;
        }
        run_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn exchanged_lines(text in sources(), edits in proptest::collection::vec((any::<usize>(), any::<usize>()), 1..8)) {
        let mut lines: Vec<&str> = text.lines().collect();
        for (at, from) in edits {
            let at = at % lines.len();
            lines[at] = line(&text, from);
        }
        run_all(&lines.join("\n"));
    }

    /// Numbers in instructions become others, so that addresses, masks, barriers and targets go
    /// astray.
    #[test]
    fn wild_numbers(text in sources(), edits in proptest::collection::vec((any::<usize>(), any::<i64>(), 0..4_u32), 1..12)) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, number, kind) in edits {
            let at = at % lines.len();
            let number = match kind { 0 => number % 40, 1 => number % 1000, 2 => i64::from(number as i32), _ => number };
            if let Some((head, _)) = lines[at].rsplit_once(", ") {
                lines[at] = format!("{head}, {number};");
            } else if lines[at].contains('[') && lines[at].contains('+') {
                let (head, tail) = lines[at].split_once('+').unwrap_or_default();
                let tail = tail.split_once(']').map_or("", |(_, tail)| tail).to_owned();
                lines[at] = format!("{head}+{number}]{tail}");
            }
        }
        run_all(&lines.join("\n"));
    }
}
