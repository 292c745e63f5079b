//! The page that says which PTX the interpreter knows, and how far that was compared with a GPU.
//! It is written from the lists in `data/`. Another list is one more entry of [`lists`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{instructions, load, scalar_forms, warps};

/// What the interpreter makes of a form.
pub(super) enum Outcome {
    /// Its results are those that a GPU gave.
    Agrees,
    /// Its results are others, as the message says.
    Differs(String),
    /// It loads; there are no results of a GPU.
    Loads,
    /// It does not load, as the message says.
    Refused(String),
}

/// A text of a list, of one instruction or more.
pub(super) struct Form {
    pub(super) text: &'static str,
    pub(super) outcome: Outcome,
}

/// Fails unless all forms load, and those with a record agree with it.
pub(super) fn assert_agreement(forms: &[Form]) {
    let wrong: Vec<&str> = forms
        .iter()
        .filter_map(|form| match &form.outcome {
            Outcome::Agrees | Outcome::Loads => None,
            Outcome::Differs(message) | Outcome::Refused(message) => Some(message.as_str()),
        })
        .collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A list in `data/`.
struct List {
    file: &'static str,
    about: &'static str,
    forms: Vec<Form>,
}

fn lists() -> Vec<List> {
    let list = |file, about, forms| List { file, about, forms };
    vec![
        list("instructions.txt", "recorded on an H200 (driver 580.159)", instructions::forms()),
        list("warps.txt", "of whole warps, recorded on an H200 (driver 580.159)", warps::forms()),
        list("scalar_forms.txt", "valid for the assembler of CUDA 12.9, not recorded", scalar_forms::forms()),
        list("unsupported.txt", "not supported by design", load::unsupported_forms()),
    ]
}

const TYPES: &[&str] = &[
    "pred", "b1", "b8", "b16", "b32", "b64", "b128", "u2", "u4", "u8", "u16", "u32", "u64", "u16x2", "s2",
    "s4", "s8", "s16", "s32", "s64", "s16x2", "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2",
    "f64", "e2m1x2", "e4m3", "e4m3x2", "e5m2", "e5m2x2", "ue8m0x2",
];

/// An opcode and the types in its modifiers.
type Row = (&'static str, String);

/// The row of each instruction in a text.
fn rows_of(text: &'static str) -> BTreeSet<Row> {
    text.split(';').filter_map(row_of).collect()
}

/// The row of the instruction behind labels, braces and predicates.
fn row_of(statement: &'static str) -> Option<Row> {
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let name = statement.split_whitespace().find(is_name)?;
    let (opcode, modifiers) = name.split_once('.').unwrap_or((name, ""));
    let types: Vec<&str> = modifiers.split('.').filter(|modifier| TYPES.contains(modifier)).collect();
    Some((opcode.split("::").next()?, types.join(" ")))
}

/// Forms, by their outcomes.
#[derive(Default)]
struct Counts {
    agree: u32,
    differ: u32,
    load: u32,
    refused: u32,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Agrees => &mut self.agree,
            Outcome::Differs(_) => &mut self.differ,
            Outcome::Loads => &mut self.load,
            Outcome::Refused(_) => &mut self.refused,
        } += 1;
    }

    /// The cells of a table.
    fn cells(&self) -> String {
        let cells = [self.agree, self.differ, self.load, self.refused];
        cells.map(|count| if count == 0 { " |".to_owned() } else { format!(" {count} |") }).concat()
    }
}

/// The forms of each row. A text that does not agree counts for the rarest of its instructions.
fn table(lists: &[List]) -> BTreeMap<Row, Counts> {
    let texts = || lists.iter().flat_map(|list| &list.forms);
    let mut uses: BTreeMap<Row, u32> = BTreeMap::new();
    for form in texts() {
        for row in rows_of(form.text) {
            *uses.entry(row).or_default() += 1;
        }
    }
    let mut table: BTreeMap<Row, Counts> = BTreeMap::new();
    for form in texts() {
        let mut rows = rows_of(form.text);
        if !matches!(form.outcome, Outcome::Agrees) {
            rows = rows.into_iter().min_by_key(|row| uses.get(row).copied()).into_iter().collect();
        }
        for row in rows {
            table.entry(row).or_default().add(&form.outcome);
        }
    }
    table
}

const HEAD: &str = "\
# Coverage of PTX

This page is written from the lists in `crates/soft/src/ptx/tests/data` and from what the
interpreter of cuda-soft makes of them. After a change run
`CUDA_WRITE_PTX_COVERAGE=1 cargo test -p cuda-soft --lib ptx::tests::coverage`.

A form is an instruction with its modifiers, operands and inputs. It

- **agrees** if all of its results are those of the GPU, approximate ones within a tolerance;
- **differs** if they are not;
- **loads** if the interpreter accepts it and nobody has recorded results;
- is **not supported** if the interpreter refuses it.
";

const ROWS: &str = "
## By instruction and type

The types are those in the name of the instruction, in its order. A form may need several
instructions: it counts for each of them if it agrees, else for the rarest.

| instruction | types | agree | differ | load | not supported |
| --- | --- | --: | --: | --: | --: |
";

fn page() -> String {
    let lists = lists();
    let mut page = HEAD.to_owned();
    page += "\n| list | forms | agree | differ | load | not supported |\n";
    page += "| --- | --- | --: | --: | --: | --: |\n";
    for List { file, about, forms } in &lists {
        let mut counts = Counts::default();
        forms.iter().for_each(|form| counts.add(&form.outcome));
        page += &format!("| `{file}` | {about} |{}\n", counts.cells());
    }
    page += ROWS;
    for ((opcode, types), counts) in table(&lists) {
        page += &format!("| `{opcode}` | {types} |{}\n", counts.cells());
    }
    page
}

#[test]
fn the_page_says_what_the_lists_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ptx-coverage.md");
    if !path.parent().is_some_and(Path::exists) {
        // The crate alone, without the repository around it.
        return;
    }
    let page = page();
    if std::env::var_os("CUDA_WRITE_PTX_COVERAGE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(there.lines()).find(|(new, old)| new != old);
    assert!(
        there == page,
        "docs/ptx-coverage.md is out of date, first at {differs:?}: run CUDA_WRITE_PTX_COVERAGE=1 cargo test -p cuda-soft --lib ptx::tests::coverage"
    );
}

#[test]
fn instructions_are_found_in_texts() {
    let rows = |text| rows_of(text).into_iter().map(|(opcode, types)| format!("{opcode} {types}"));
    let found: Vec<String> =
        rows("mov.u32 %r1, s; FILL: @!%p1 cvt.rn.f16x2.e4m3x2 %r1, %h1; { ret; } prmt.b32.b4e %r1, %r2;")
            .collect();
    assert_eq!(found, ["cvt f16x2 e4m3x2", "mov u32", "prmt b32", "ret "]);
}
