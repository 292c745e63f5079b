//! A machine that takes its instructions out of memory.

#[path = "../../../../crates/graph/examples/dispatch/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/dispatch/reference.rs"]
mod reference;

use cuda_handles::Context;
use cuda_tests::{count, no_leaks};

use self::program::{Dispatch, NAMES};
use super::{assert_drawn, branching};

/// Not a multiple of a block, and odd.
const NUMBERS: usize = 301;
const ROOM: usize = 10;

pub(super) fn program(context: &Context) -> Dispatch {
    Dispatch::new(context, NUMBERS, ROOM).unwrap()
}

fn expected(instructions: &[u32]) -> Vec<u32> {
    let mut numbers = vec![0; NUMBERS];
    instructions.iter().for_each(|instruction| reference::run(*instruction, &mut numbers));
    numbers
}

#[test]
fn each_instruction_does_what_it_does_on_the_host() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        let instructions = [0, 1, 3, 2, 1, 3, 1, 0, 3, 2];
        program.load(&instructions).unwrap();
        for done in 1..=instructions.len() {
            program.launch().unwrap();
            assert_eq!(program.numbers().unwrap(), expected(&instructions[..done]));
        }
    });
}

#[test]
fn instructions_out_of_range_do_nothing() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        let most = NAMES.len() as u32;
        let instructions = [most, 0, most, 5, u32::MAX, 1, 1 << 31, 3, 1 << 8, 1000];
        program.load(&instructions).unwrap();
        for done in 1..=instructions.len() {
            program.launch().unwrap();
            assert_eq!(program.numbers().unwrap(), expected(&instructions[..done]));
        }
        // There are no more, which is out of range, too.
        program.launch().unwrap();
        assert_eq!(program.numbers().unwrap(), expected(&[0, 1, 3]));
    });
}

#[test]
fn ten_launches_in_a_row_are_a_program() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        program.launch().unwrap();
        assert_eq!(program.numbers().unwrap(), [0; NUMBERS], "nothing was loaded");
        let mut all = Vec::new();
        for first in 0..3 {
            let instructions: Vec<u32> = (0..10).map(|i| (i * i + first) % 5).collect();
            program.load(&instructions).unwrap();
            let ((), cost) = count(|| (0..10).for_each(|_| program.launch().unwrap()));
            cost.assert_calls(&[("cuGraphLaunch", 10)]);
            all.extend(instructions);
            assert_eq!(program.numbers().unwrap(), expected(&all));
        }
        assert!(program.load(&[0; ROOM + 1]).is_err());
    });
}

#[test]
fn its_picture_tells_of_it() {
    let Some(context) = branching() else { return };
    let program = program(&context);
    let words = ["dispatch", "fetch", "branch 0", "branch 3", "lower half", "upper half", "numbers out"];
    assert_drawn(program.graph(), &words);
}
