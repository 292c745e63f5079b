//! The depth to which conditional nodes and child nodes can be nested.

use std::ptr::null_mut;

use cuda_sys::{CUgraph, CUresult};
use cuda_tests::needs;

use crate::common::table::{Table, all_said, said};
use crate::common::*;

const DEPTHS: [u32; 7] = [2, 32, 100, 128, 129, 300, 600];

/// A clone is tried, then the graph is instantiated and runs once; what the innermost kernel
/// counted comes last.
fn outcome(driver: &Session, graph: CUgraph, counted: u64) -> String {
    let (mut exec, mut clone, mut codes) = (null_mut(), null_mut(), Vec::new());
    driver.write(counted, 0);
    unsafe {
        codes.push(driver.cuGraphClone(&mut clone, graph));
        if codes[0] == OK {
            driver.destroy(&[clone]);
        }
        codes.push(driver.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        if codes[1] == OK {
            codes.push(driver.launch(exec));
            codes.push(driver.cuStreamSynchronize(driver.stream));
            driver.end(exec);
        }
        codes.push(driver.cuGraphDestroy(graph));
    }
    let mut word = 0;
    match driver.try_read(counted, &mut word) {
        OK => format!("{}; counted {word}", all_said(&codes)),
        code => format!("{}; {}", all_said(&codes), said(code)),
    }
}

/// Conditional nodes in each other, each of which runs its body once.
fn conditions(driver: &Session, kind: (Kind, u32), depth: u32, counted: u64) -> Result<CUgraph, CUresult> {
    let own = driver.graph();
    let mut place = own;
    for _ in 0..depth {
        let handle = driver.condition(own, u32::from(kind.0 != SWITCH));
        let mut params = conditional_params(driver.context, handle, kind.0, kind.1);
        let (answer, _) = driver.add(place, &[], &mut params);
        if answer != OK {
            driver.destroy(&[own]);
            return Err(answer);
        }
        place = unsafe { params.__bindgen_anon_1.conditional.phGraph_out.read() };
        driver.kernel(place, &[], "set", [handle, 0]);
    }
    driver.kernel(place, &[], "add", [counted, 1]);
    Ok(own)
}

fn tabulate(kind: (Kind, u32), what: &str) -> Table {
    let driver = session();
    let (mut table, counted) = (Table::default(), driver.words(1));
    for depth in DEPTHS {
        let seen = match conditions(&driver, kind, depth, counted) {
            Ok(own) => outcome(&driver, own, counted),
            Err(code) => format!("refused, {}", said(code)),
        };
        table.row(format!("{depth} {what}"), seen);
    }
    table
}

#[test]
fn of_branches() {
    drop(session());
    needs!(Conditionals);
    tabulate((IF, 1), "branches").is("
        2 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        32 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        100 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        128 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        129 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        300 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        600 branches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
    ");
}

#[test]
fn of_loops() {
    drop(session());
    needs!(Conditionals);
    tabulate((WHILE, 1), "loops").is("
        2 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        32 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        100 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        128 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        129 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        300 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        600 loops: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
    ");
}

#[test]
fn of_switches() {
    drop(session());
    needs!(Branches);
    tabulate((SWITCH, 2), "switches").is("
        2 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        32 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        100 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        128 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        129 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        300 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
        600 switches: NOT_SUPPORTED, ok, ok, ok, ok; counted 1
    ");
}

#[test]
fn of_children() {
    let driver = session();
    let (mut table, counted, plain) = (Table::default(), driver.words(1), driver.graph());
    for depth in DEPTHS {
        let own = driver.graph();
        let mut place = own;
        for _ in 0..depth {
            let (answer, node) = driver.child(place, plain);
            assert_eq!(answer, OK, "{depth}");
            place = driver.embedded(node);
        }
        driver.kernel(place, &[], "add", [counted, 1]);
        table.row(format!("{depth} children"), outcome(&driver, own, counted));
    }
    driver.destroy(&[plain]);
    table.is("
        2 children: all 5 ok; counted 1
        32 children: all 5 ok; counted 1
        100 children: all 5 ok; counted 1
        128 children: all 5 ok; counted 1
        129 children: all 5 ok; counted 1
        300 children: all 5 ok; counted 1
        600 children: all 5 ok; counted 1
    ");
}
