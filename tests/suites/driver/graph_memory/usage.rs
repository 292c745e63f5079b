//! The graph memory attributes of a device.

use std::ffi::c_void;

use crate::common::table::{Table, said};
use crate::common::*;
use crate::graph_memory::nodes::{alloc, free};
use cuda_sys::*;

type A = CUgraphMem_attribute;
const ALL: [A; 4] = [
    A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
    A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
    A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
    A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
];

/// All four in steps of 32 MiB.
fn steps(driver: &Session) -> [u64; 4] {
    ALL.map(|attribute| {
        let mut bytes = u64::MAX;
        let value: *mut c_void = (&raw mut bytes).cast();
        assert_eq!(unsafe { driver.cuDeviceGetGraphMemAttribute(0, attribute, value) }, OK);
        assert_eq!(bytes % (32 << 20), 0, "{attribute:?}");
        bytes >> 25
    })
}

fn set(driver: &Session, attribute: A, mut bytes: u64) -> CUresult {
    unsafe { driver.cuDeviceSetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) }
}

fn trim(driver: &Session) {
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
        assert_eq!(set(driver, attribute, 0), OK);
    }
}

#[test]
fn graph_memory_rises_by_launches_and_falls_by_a_trim() {
    let driver = session();
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
    let own = driver.graph();
    let (_, address) = alloc(&driver, own, &[], 1 << 20);
    let exec = driver.instantiate(own);
    assert_eq!(steps(&driver), [0; 4]);
    driver.run(exec);
    assert_eq!(steps(&driver), [1; 4]);
    // A trim does not free living memory.
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    assert_eq!(driver.try_read(address, &mut 0), OK);
    assert_eq!(steps(&driver), [1; 4]);
    driver.free(address);
    driver.end(exec);
    assert_eq!(steps(&driver), [1; 4]);
    driver.destroy(&[own]);
    assert_eq!(steps(&driver), [1; 4]);
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    assert_eq!(steps(&driver), [0, 1, 0, 1]);
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
}

#[test]
fn an_upload_maps_the_memory() {
    let driver = session();
    trim(&driver);
    let own = driver.graph();
    let (first, address) = alloc(&driver, own, &[], 40 << 20);
    free(&driver, own, &[first], address);
    let exec = driver.instantiate(own);
    assert_eq!(unsafe { driver.cuGraphUpload(exec, driver.stream) }, OK);
    driver.wait();
    assert_eq!(steps(&driver), [2; 4]);
    driver.run(exec);
    assert_eq!(steps(&driver), [2; 4]);
    driver.end(exec);
    driver.destroy(&[own]);
    trim(&driver);
    assert_eq!(steps(&driver), [0; 4]);
}

#[test]
fn highs_are_set_to_0_and_nothing_else_is_set() {
    let driver = session();
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] {
        assert_eq!(set(&driver, attribute, 0), IV);
    }
    for attribute in [A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] {
        assert_eq!(set(&driver, attribute, 1), IV);
        assert_eq!(set(&driver, attribute, 0), OK);
    }
    let mut bytes = 0u64;
    let unknown = CUgraphMem_attribute(99);
    assert_eq!(unsafe { driver.cuDeviceGetGraphMemAttribute(0, unknown, (&raw mut bytes).cast()) }, IV);
}

/// The four figures in KiB.
fn kibibytes(driver: &Session) -> String {
    let figures = ALL.map(|attribute| {
        let mut bytes = u64::MAX;
        let value: *mut c_void = (&raw mut bytes).cast();
        match unsafe { driver.cuDeviceGetGraphMemAttribute(0, attribute, value) } {
            OK => (bytes >> 10).to_string(),
            code => said(code),
        }
    });
    format!("used {}, most {}; reserved {}, most {}", figures[0], figures[1], figures[2], figures[3])
}

#[test]
fn figures_after_each_call() {
    let driver = session();
    let mut table = Table::default();
    trim(&driver);
    let row = |table: &mut Table, what: &str| table.row(what, kibibytes(&driver));
    row(&mut table, "at first");
    // Each keeps what it allocates.
    let keeping = |len| {
        let own = driver.graph();
        let (_, address) = alloc(&driver, own, &[], len);
        (own, driver.instantiate(own), address)
    };
    let (first, second, large) = (keeping(1 << 20), keeping(1 << 20), keeping(40 << 20));
    row(&mut table, "three executables");
    let upload = |exec| unsafe {
        assert_eq!(driver.cuGraphUpload(exec, driver.stream), OK);
        driver.wait();
    };
    upload(first.1);
    row(&mut table, "1 MiB uploaded");
    driver.run(first.1);
    row(&mut table, "launched");
    driver.run(second.1);
    row(&mut table, "another of 1 MiB launched");
    driver.run(large.1);
    row(&mut table, "one of 40 MiB launched");
    driver.free(large.2);
    row(&mut table, "that freed");
    assert_eq!(set(&driver, A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 0), OK);
    row(&mut table, "most used set to 0");
    driver.run(large.1);
    row(&mut table, "that launched again");
    assert_eq!(unsafe { driver.cuMemFreeAsync(large.2, driver.stream) }, OK);
    driver.wait();
    row(&mut table, "freed on the stream");
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    row(&mut table, "trimmed, two of 1 MiB live");
    assert_eq!(set(&driver, A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, 0), OK);
    row(&mut table, "most reserved set to 0");
    driver.free(first.2);
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    row(&mut table, "one of these freed, trimmed");
    for (own, exec, _) in [first, second, large] {
        driver.end(exec);
        driver.destroy(&[own]);
    }
    row(&mut table, "executables and graphs destroyed");
    driver.free(second.2);
    row(&mut table, "the last one freed");
    assert_eq!(unsafe { driver.cuDeviceGraphMemTrim(0) }, OK);
    row(&mut table, "trimmed");
    trim(&driver);
    row(&mut table, "both set to 0");
    table.is(CALLS);
}

const CALLS: &str = "
at first: used 0, most 0; reserved 0, most 0
three executables: used 0, most 0; reserved 0, most 0
1 MiB uploaded: used 32768, most 32768; reserved 32768, most 32768
launched: used 32768, most 32768; reserved 32768, most 32768
another of 1 MiB launched: used 65536, most 65536; reserved 65536, most 65536
one of 40 MiB launched: used 131072, most 131072; reserved 131072, most 131072
that freed: used 131072, most 131072; reserved 131072, most 131072
most used set to 0: used 131072, most 131072; reserved 131072, most 131072
that launched again: used 131072, most 131072; reserved 131072, most 131072
freed on the stream: used 131072, most 131072; reserved 131072, most 131072
trimmed, two of 1 MiB live: used 65536, most 131072; reserved 65536, most 131072
most reserved set to 0: used 65536, most 131072; reserved 65536, most 65536
one of these freed, trimmed: used 32768, most 131072; reserved 32768, most 65536
executables and graphs destroyed: used 32768, most 131072; reserved 32768, most 65536
the last one freed: used 32768, most 131072; reserved 32768, most 65536
trimmed: used 0, most 131072; reserved 0, most 65536
both set to 0: used 0, most 0; reserved 0, most 0
";

#[test]
fn figures_of_sizes_and_lives() {
    let driver = session();
    let mut table = Table::default();
    const M: usize = 1 << 20;
    // Each is freed by its graph: one after the other, or all at the end.
    let rows: [(&str, &[usize], bool); 9] = [
        ("1", &[1], false),
        ("31 MiB", &[31 * M], false),
        ("32 MiB", &[32 * M], false),
        ("32 MiB and a byte", &[32 * M + 1], false),
        ("100 MiB", &[100 * M], false),
        ("20 MiB three times, one after the other", &[20 * M, 20 * M, 20 * M], true),
        ("20 MiB three times at once", &[20 * M, 20 * M, 20 * M], false),
        ("40 MiB, then 20 MiB", &[40 * M, 20 * M], true),
        ("20 MiB, then 40 MiB", &[20 * M, 40 * M], true),
    ];
    for (what, sizes, in_turn) in rows {
        trim(&driver);
        let (own, mut last, mut made) = (driver.graph(), Vec::new(), Vec::new());
        for len in sizes {
            let (node, address) = alloc(&driver, own, &last, *len);
            last = vec![node];
            if in_turn {
                last = vec![free(&driver, own, &last, address)];
            } else {
                made.push(address);
            }
        }
        for address in made {
            last = vec![free(&driver, own, &last, address)];
        }
        let exec = driver.instantiate(own);
        driver.run(exec);
        table.row(what, kibibytes(&driver));
        driver.run(exec);
        table.row("again", kibibytes(&driver));
        driver.end(exec);
        driver.destroy(&[own]);
    }
    // Two graphs of which each frees its own: whether they share.
    trim(&driver);
    for round in ["a graph of 40 MiB", "another"] {
        let own = driver.graph();
        let (node, address) = alloc(&driver, own, &[], 40 * M);
        free(&driver, own, &[node], address);
        let exec = driver.instantiate(own);
        driver.run(exec);
        table.row(round, kibibytes(&driver));
        driver.end(exec);
        driver.destroy(&[own]);
    }
    trim(&driver);
    table.row("trimmed", kibibytes(&driver));
    table.is(SIZES);
}

const SIZES: &str = "
1: used 32768, most 32768; reserved 32768, most 32768
again: used 32768, most 32768; reserved 32768, most 32768
31 MiB: used 32768, most 32768; reserved 32768, most 32768
again: used 32768, most 32768; reserved 32768, most 32768
32 MiB: used 32768, most 32768; reserved 32768, most 32768
again: used 32768, most 32768; reserved 32768, most 32768
32 MiB and a byte: used 65536, most 65536; reserved 65536, most 65536
again: used 65536, most 65536; reserved 65536, most 65536
100 MiB: used 131072, most 131072; reserved 131072, most 131072
again: used 131072, most 131072; reserved 131072, most 131072
20 MiB three times, one after the other: used 32768, most 32768; reserved 32768, most 32768
again: used 32768, most 32768; reserved 32768, most 32768
20 MiB three times at once: used 65536, most 65536; reserved 65536, most 65536
again: used 65536, most 65536; reserved 65536, most 65536
40 MiB, then 20 MiB: used 65536, most 65536; reserved 65536, most 65536
again: used 65536, most 65536; reserved 65536, most 65536
20 MiB, then 40 MiB: used 65536, most 65536; reserved 98304, most 98304
again: used 65536, most 65536; reserved 98304, most 98304
a graph of 40 MiB: used 65536, most 65536; reserved 65536, most 65536
another: used 65536, most 65536; reserved 65536, most 65536
trimmed: used 0, most 0; reserved 0, most 0
";

#[test]
fn graphs_that_free_their_memory_share_it_on_a_stream() {
    cuda_tests::alone!();
    const LEN: usize = 64 << 20;
    let s = session();
    trim(&s);
    let graphs: Vec<_> = (0..8)
        .map(|_| {
            let own = s.graph();
            let (node, address) = alloc(&s, own, &[], LEN);
            free(&s, own, &[node], address);
            (own, s.instantiate(own))
        })
        .collect();
    for (_, exec) in &graphs {
        s.run(*exec);
        assert_eq!(steps(&s)[2], 2, "64 MiB are reserved");
    }
    // The figures of `cuMemGetInfo` count other processes, too.
    assert_eq!(unsafe { s.cuDeviceGraphMemTrim(0) }, OK);
    assert_eq!(steps(&s)[2], 0);
    for (own, exec) in graphs {
        s.end(exec);
        s.destroy(&[own]);
    }
}

#[test]
fn an_allocation_node_may_be_of_managed_memory() {
    let s = session();
    if !s.has(13, 0) {
        cuda_tests::skip!("no managed pools");
    }
    let own = s.graph();
    let (mut node, mut params) = (std::ptr::null_mut(), crate::graph_memory::nodes::alloc_params(4096));
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
    let answer = unsafe { s.cuGraphAddMemAllocNode(&mut node, own, std::ptr::null(), 0, &mut params) };
    assert_eq!(answer, OK);
    let mut seen = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    assert_eq!(unsafe { s.cuGraphMemAllocNodeGetParams(node, &mut seen) }, OK);
    assert_eq!(seen.poolProps.allocType, CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED);
    let filled = s.fill(own, &[node], params.dptr, 7);
    free(&s, own, &[filled], params.dptr);
    let exec = s.instantiate(own);
    s.run(exec);
    s.end(exec);
    s.destroy(&[own]);
}
