//! Reuse of the addresses of freed graph memory.

use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::needs;

use crate::common::table::{Table, said};
use crate::common::*;
use crate::graph_memory::embedded::source;
use crate::graph_memory::nodes::{alloc, free};

/// The position of memory relative to earlier memory.
fn place(new: CUdeviceptr, len: usize, old: &[(CUdeviceptr, usize)]) -> String {
    for (index, (start, old_len)) in old.iter().enumerate() {
        let (end, old_end) = (new + len as u64, start + *old_len as u64);
        if new == *start {
            return format!("at the start of {index}");
        }
        if new < old_end && *start < end {
            return format!("in {index}, at {}", new.wrapping_sub(*start) as i64);
        }
    }
    "elsewhere".to_owned()
}

#[test]
fn within_a_graph_by_their_sizes() {
    let driver = session();
    let mut table = Table::default();
    const K: usize = 1 << 10;
    const M: usize = 1 << 20;
    let rows: &[(&[usize], usize)] = &[
        (&[64], 1),
        (&[64], 32),
        (&[64], 64),
        (&[64], 65),
        (&[64], 512),
        (&[64], 513),
        (&[512], 64),
        (&[512], 512),
        (&[4 * K], K),
        (&[M], 64),
        (&[M], 512 * K),
        (&[M], M - 1),
        (&[M], M),
        (&[M], M + 1),
        (&[M], 2 * M),
        (&[4 * M], M),
        (&[40 * M], 33 * M),
        (&[40 * M], 40 * M),
        (&[64, 64], 64),
        (&[64, 64], 128),
        (&[64, 64], 1024),
        (&[M, M], M),
        (&[M, M], 2 * M),
        (&[2 * M, M], M),
        (&[M, 2 * M], M),
        (&[4 * M, 2 * M, M], M),
    ];
    for (before, len) in rows {
        let own = driver.graph();
        let made: Vec<_> = before.iter().map(|len| alloc(&driver, own, &[], *len)).collect();
        let mut freed = Vec::new();
        for (node, address) in &made {
            let mut after = freed.clone();
            after.push(*node);
            freed = vec![free(&driver, own, &after, *address)];
        }
        let (_, address) = alloc(&driver, own, &freed, *len);
        let old: Vec<_> = made.iter().map(|made| made.1).zip(before.iter().copied()).collect();
        let mut exec = null_mut();
        let answer = unsafe { driver.cuGraphInstantiateWithFlags(&mut exec, own, 0) };
        if answer == OK {
            driver.run(exec);
            driver.free(address);
            driver.end(exec);
        }
        table.row(
            format!("{len} after {before:?}"),
            format!("{}, {}", place(address, *len, &old), said(answer)),
        );
        driver.destroy(&[own]);
    }
    table.is(SIZES);
}

const SIZES: &str = "
1 after [64]: at the start of 0, ok
32 after [64]: at the start of 0, ok
64 after [64]: at the start of 0, ok
65 after [64]: at the start of 0, ok
512 after [64]: at the start of 0, ok
513 after [64]: elsewhere, ok
64 after [512]: at the start of 0, ok
512 after [512]: at the start of 0, ok
1024 after [4096]: at the start of 0, ok
64 after [1048576]: at the start of 0, ok
524288 after [1048576]: at the start of 0, ok
1048575 after [1048576]: at the start of 0, ok
1048576 after [1048576]: at the start of 0, ok
1048577 after [1048576]: elsewhere, ok
2097152 after [1048576]: elsewhere, ok
1048576 after [4194304]: at the start of 0, ok
34603008 after [41943040]: at the start of 0, ok
41943040 after [41943040]: at the start of 0, ok
64 after [64, 64]: at the start of 0, ok
128 after [64, 64]: at the start of 0, ok
1024 after [64, 64]: at the start of 0, ok
1048576 after [1048576, 1048576]: at the start of 0, ok
2097152 after [1048576, 1048576]: at the start of 0, ok
1048576 after [2097152, 1048576]: at the start of 0, ok
1048576 after [1048576, 2097152]: at the start of 0, ok
1048576 after [4194304, 2097152, 1048576]: at the start of 0, ok
";

#[test]
fn between_graphs() {
    let driver = session();
    let mut table = Table::default();
    let seen = |address, old: &[CUdeviceptr]| {
        let old: Vec<_> = old.iter().map(|address| (*address, 64)).collect();
        place(address, 64, &old)
    };
    // Freed by another graph, which then allocates.
    let (own, other) = (driver.graph(), driver.graph());
    let (_, first) = alloc(&driver, own, &[], 64);
    let freed = free(&driver, other, &[], first);
    let (_, second) = alloc(&driver, other, &[freed], 64);
    table.row("after the free of another graph's", seen(second, &[first]));
    driver.destroy(&[own, other]);
    let own = driver.graph();
    let (_, third) = alloc(&driver, own, &[], 64);
    table.row("once both graphs are gone", seen(third, &[first, second]));
    driver.destroy(&[own]);
    // Two executables of two graphs, one after the other.
    let graph = || {
        let own = driver.graph();
        let (node, address) = alloc(&driver, own, &[], 64);
        let filled = driver.fill(own, &[node], address, 3);
        free(&driver, own, &[filled], address);
        (own, address)
    };
    let (own, first) = graph();
    let exec = driver.instantiate(own);
    driver.run(exec);
    let (other, second) = graph();
    table.row("beside an executable that has run", seen(second, &[first]));
    let later = driver.instantiate(other);
    driver.run(later);
    driver.run(exec);
    driver.destroy(&[own]);
    let (more, third) = graph();
    table.row("beside an executable whose graph is gone", seen(third, &[first, second]));
    driver.end(exec);
    let (most, fourth) = graph();
    table.row("once that is gone, too", seen(fourth, &[first, second, third]));
    driver.end(later);
    driver.destroy(&[other, more, most]);
    // Memory that a launch left and a call freed.
    let own = driver.graph();
    let (_, first) = alloc(&driver, own, &[], 64);
    let exec = driver.instantiate(own);
    driver.run(exec);
    driver.free(first);
    let (_, second) = alloc(&driver, own, &[], 64);
    table.row("in the graph, once a call freed it", seen(second, &[first]));
    driver.end(exec);
    driver.destroy(&[own]);
    table.is(GRAPHS);
}

const GRAPHS: &str = "
after the free of another graph's: elsewhere
once both graphs are gone: at the start of 1
beside an executable that has run: elsewhere
beside an executable whose graph is gone: elsewhere
once that is gone, too: at the start of 0
in the graph, once a call freed it: elsewhere
";

#[test]
fn by_way_of_other_nodes() {
    let driver = session();
    let (mut table, plain) = (Table::default(), driver.graph());
    let seen = |what: &str, table: &mut Table, between: &dyn Fn(CUgraph, CUgraphNode) -> CUgraphNode| {
        let own = driver.graph();
        let (node, first) = alloc(&driver, own, &[], 64);
        let freed = free(&driver, own, &[node], first);
        let last = between(own, freed);
        let (_, second) = alloc(&driver, own, &[last], 64);
        table.row(what, place(second, 64, &[(first, 64)]));
        driver.destroy(&[own]);
    };
    let edge = |own, from, to| {
        assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &from, &to, 1) }, OK);
        to
    };
    seen("an empty node", &mut table, &|own, freed| driver.empty(own, &[freed]));
    seen("an edge that comes later", &mut table, &|own, freed| edge(own, freed, driver.empty(own, &[])));
    seen("a child node", &mut table, &|own, freed| edge(own, freed, driver.child(own, plain).1));
    seen("a child node and another", &mut table, &|own, freed| {
        let child = edge(own, freed, driver.child(own, plain).1);
        driver.empty(own, &[child])
    });
    driver.destroy(&[plain]);
    table.is(WAYS);
}

const WAYS: &str = "
an empty node: at the start of 0
an edge that comes later: elsewhere
a child node: elsewhere
a child node and another: elsewhere
";

#[test]
fn between_a_graph_and_its_children() {
    let driver = session();
    needs!(MovedGraphs);
    let mut table = Table::default();
    let seen = |address, old: &[CUdeviceptr]| {
        let old: Vec<_> = old.iter().map(|address| (*address, 64)).collect();
        place(address, 64, &old)
    };
    let moved = |own, inner| {
        let (answer, node) = driver.embed(own, inner, 1);
        assert_eq!(answer, OK);
        node
    };
    // Memory freed in a child.
    let (own, (inner, first)) = (driver.graph(), source(&driver, true));
    let node = moved(own, inner);
    let (_, second) = alloc(&driver, own, &[node], 64);
    table.row("after a child that frees its own", seen(second, &[first]));
    driver.destroy(&[own]);
    // Memory of the child, freed in the parent.
    let (own, (inner, first)) = (driver.graph(), source(&driver, false));
    let node = moved(own, inner);
    let freed = free(&driver, own, &[node], first);
    let (_, second) = alloc(&driver, own, &[freed], 64);
    table.row("after the parent's free of a child's", seen(second, &[first]));
    driver.destroy(&[own]);
    // Memory freed in the parent before the child ran.
    let (own, (inner, first)) = (driver.graph(), source(&driver, true));
    let (made, before) = alloc(&driver, own, &[], 64);
    let freed = free(&driver, own, &[made], before);
    let node = moved(own, inner);
    assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &freed, &node, 1) }, OK);
    table.row("a child's, beside what the parent freed", seen(first, &[before]));
    let (_, after) = alloc(&driver, own, &[node], 64);
    table.row("after both", seen(after, &[before, first]));
    driver.destroy(&[own]);
    // Siblings.
    let own = driver.graph();
    let ((one, first), (two, second)) = (source(&driver, true), source(&driver, true));
    let (one, two) = (moved(own, one), moved(own, two));
    assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &one, &two, 1) }, OK);
    table.row("of two children, before they are embedded", seen(second, &[first]));
    let exec = driver.instantiate(own);
    driver.run(exec);
    driver.run(exec);
    driver.end(exec);
    let (last, third) = source(&driver, true);
    let last = moved(own, last);
    assert_eq!(unsafe { driver.cuGraphAddDependencies(own, &two, &last, 1) }, OK);
    table.row("of a third one, later", seen(third, &[first, second]));
    driver.destroy(&[own]);
    // A child that allocates no more once it is one.
    let (own, (inner, _)) = (driver.graph(), source(&driver, true));
    moved(own, inner);
    let mut params = crate::graph_memory::nodes::alloc_params(64);
    let answer = unsafe { driver.cuGraphAddMemAllocNode(&mut null_mut(), inner, null(), 0, &mut params) };
    table.row("an allocation node in it", said(answer));
    driver.destroy(&[own]);
    table.is(CHILDREN);
}

const CHILDREN: &str = "
after a child that frees its own: elsewhere
after the parent's free of a child's: elsewhere
a child's, beside what the parent freed: elsewhere
after both: elsewhere
of two children, before they are embedded: elsewhere
of a third one, later: elsewhere
an allocation node in it: NOT_SUPPORTED
";
