//! Graphs that do not run at the same time share memory: the device reserves what they need at
//! once.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuda_sys::*;

use crate::common::table::Table;
use crate::common::*;
use crate::graph_memory::nodes::{alloc, free};

const M: usize = 1 << 20;

/// A graph with its executable, and the memory that its launches leave.
struct Made {
    graph: CUgraph,
    exec: CUgraphExec,
    kept: CUdeviceptr,
}

/// The gate of a host node.
static OPEN: AtomicBool = AtomicBool::new(true);

unsafe extern "C" fn wait(_: *mut c_void) {
    let start = Instant::now();
    while !OPEN.load(Ordering::Acquire) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
}

struct Graphs {
    driver: Session,
    streams: [CUstream; 2],
    made: Vec<Made>,
    table: Table,
}

impl Graphs {
    fn new() -> Self {
        let driver = session();
        let streams = [0, 1].map(|_| crate::calls::stream(&driver));
        let graphs = Self { driver, streams, made: Vec::new(), table: Table::default() };
        graphs.trim();
        for attribute in [
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
        ] {
            let mut zero = 0u64;
            let answer =
                unsafe { graphs.driver.cuDeviceSetGraphMemAttribute(0, attribute, (&raw mut zero).cast()) };
            assert_eq!(answer, OK);
        }
        graphs
    }

    /// A graph that allocates, waits for the gate, and frees.
    fn make(&mut self, sizes: &[usize]) -> usize {
        self.add(sizes, false, false)
    }

    /// A graph that leaves what it allocates.
    fn keeping(&mut self, size: usize) -> usize {
        self.add(&[size], true, false)
    }

    /// A graph that frees each allocation before the next one.
    fn one_by_one(&mut self, sizes: &[usize]) -> usize {
        self.add(sizes, false, true)
    }

    fn add(&mut self, sizes: &[usize], keeps: bool, one_by_one: bool) -> usize {
        let driver = &self.driver;
        let (graph, mut last, mut made) = (driver.graph(), Vec::new(), Vec::new());
        for size in sizes {
            let (node, address) = alloc(driver, graph, &last, *size);
            last = vec![node];
            if one_by_one {
                last = vec![free(driver, graph, &last, address)];
            }
            made.push(address);
        }
        let (mut node, params) =
            (null_mut(), CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(wait), ..Default::default() });
        let answer =
            unsafe { driver.cuGraphAddHostNode(&mut node, graph, last.as_ptr(), last.len(), &params) };
        assert_eq!(answer, OK);
        last = vec![node];
        for address in made.iter().filter(|_| !keeps && !one_by_one) {
            last = vec![free(driver, graph, &last, *address)];
        }
        let exec = driver.instantiate(graph);
        self.made.push(Made { graph, exec, kept: made[0] });
        self.made.len() - 1
    }

    fn launch(&self, made: usize, stream: usize) {
        assert_eq!(unsafe { self.driver.cuGraphLaunch(self.made[made].exec, self.streams[stream]) }, OK);
    }

    fn wait(&self, stream: usize) {
        assert_eq!(unsafe { self.driver.cuStreamSynchronize(self.streams[stream]) }, OK);
    }

    fn run(&mut self, what: &str, made: usize, stream: usize) {
        self.launch(made, stream);
        self.wait(stream);
        self.row(what);
    }

    fn trim(&self) {
        assert_eq!(unsafe { self.driver.cuDeviceGraphMemTrim(0) }, OK);
    }

    fn free(&self, made: usize) {
        self.driver.free(self.made[made].kept);
    }

    /// Used and reserved, with the most of each, in MiB.
    fn row(&mut self, what: &str) {
        type A = CUgraphMem_attribute;
        let all = [
            A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
            A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
            A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
        ];
        let [used, most_used, reserved, most_reserved] = all.map(|attribute| {
            let mut bytes = u64::MAX;
            let answer =
                unsafe { self.driver.cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) };
            assert_eq!(answer, OK);
            bytes >> 20
        });
        self.table.row(what, format!("{used}/{most_used}, {reserved}/{most_reserved}"));
    }

    /// Compares the rows; nothing stays.
    fn are(self, expected: &str) {
        for made in &self.made {
            self.driver.end(made.exec);
            self.driver.destroy(&[made.graph]);
        }
        self.trim();
        for stream in self.streams {
            assert_eq!(unsafe { self.driver.cuStreamDestroy(stream) }, OK);
        }
        self.table.is(expected);
    }
}

#[test]
fn graphs_in_turn_have_the_same_memory() {
    let mut graphs = Graphs::new();
    let made: Vec<_> = (0..8).map(|_| graphs.make(&[64 * M])).collect();
    graphs.row("instantiated");
    for own in &made {
        graphs.launch(*own, 0);
    }
    graphs.row("eight launched");
    graphs.wait(0);
    graphs.row("ended");
    for (own, stream) in made.iter().zip([0, 1, 0, 1]) {
        graphs.launch(*own, stream);
        graphs.wait(stream);
    }
    graphs.row("four on two streams, each waited for");
    graphs.trim();
    graphs.row("trimmed");
    for (own, stream) in made.iter().zip([0, 1, 0, 1]) {
        assert_eq!(
            unsafe { graphs.driver.cuGraphUpload(graphs.made[*own].exec, graphs.streams[stream]) },
            OK
        );
        graphs.wait(stream);
    }
    graphs.row("four uploaded");
    graphs.run("one launched", made[3], 0);
    graphs.are(
        "instantiated: 0/0, 0/0
        eight launched: 64/64, 64/64
        ended: 64/64, 64/64
        four on two streams, each waited for: 64/64, 64/64
        trimmed: 0/64, 0/64
        four uploaded: 64/64, 64/64
        one launched: 64/64, 64/64",
    );
}

#[test]
fn graphs_at_once_have_memory_of_their_own() {
    let mut graphs = Graphs::new();
    let (first, second, third) = (graphs.make(&[64 * M]), graphs.make(&[64 * M]), graphs.make(&[64 * M]));
    OPEN.store(false, Ordering::Release);
    graphs.launch(first, 0);
    graphs.row("one runs");
    graphs.launch(third, 0);
    graphs.row("another comes behind it");
    graphs.launch(second, 1);
    graphs.row("a third runs beside them");
    graphs.trim();
    graphs.row("trimmed meanwhile");
    OPEN.store(true, Ordering::Release);
    graphs.wait(0);
    graphs.wait(1);
    graphs.row("ended");
    graphs.run("the second where the first was", second, 0);
    graphs.run("the first where the second was", first, 1);
    graphs.trim();
    graphs.row("trimmed");
    graphs.run("one after the other", first, 0);
    graphs.run("one after the other", second, 0);
    graphs.are(
        "one runs: 64/64, 64/64
        another comes behind it: 64/64, 64/64
        a third runs beside them: 128/128, 128/128
        trimmed meanwhile: 128/128, 128/128
        ended: 128/128, 128/128
        the second where the first was: 128/128, 128/128
        the first where the second was: 128/128, 128/128
        trimmed: 0/128, 0/128
        one after the other: 64/128, 64/128
        one after the other: 64/128, 64/128",
    );
}

#[test]
fn what_lives_on_is_not_shared() {
    let mut graphs = Graphs::new();
    let (passing, other) = (graphs.make(&[64 * M]), graphs.make(&[64 * M, 64 * M]));
    let (first, second) = (graphs.keeping(64 * M), graphs.keeping(64 * M));
    graphs.run("one passes", passing, 0);
    graphs.run("another stays where it was", first, 0);
    graphs.run("the one passes again", passing, 0);
    graphs.run("another stays", second, 0);
    graphs.free(first);
    graphs.row("the first that stayed is freed");
    graphs.run("the one passes where it was", passing, 0);
    graphs.run("two at once pass", other, 0);
    graphs.trim();
    graphs.row("trimmed, one stays");
    graphs.free(second);
    graphs.trim();
    graphs.row("freed and trimmed");
    graphs.are(
        "one passes: 64/64, 64/64
        another stays where it was: 64/64, 64/64
        the one passes again: 128/128, 128/128
        another stays: 128/128, 128/128
        the first that stayed is freed: 128/128, 128/128
        the one passes where it was: 128/128, 128/128
        two at once pass: 192/192, 192/192
        trimmed, one stays: 64/192, 64/192
        freed and trimmed: 0/192, 0/192",
    );
}

#[test]
fn graphs_of_other_sizes_take_what_there_is() {
    let mut graphs = Graphs::new();
    let (small, large) = (graphs.make(&[32 * M]), graphs.make(&[96 * M]));
    let (middle, by_one) = (graphs.make(&[64 * M]), graphs.one_by_one(&[20 * M, 40 * M]));
    graphs.run("32", small, 0);
    graphs.run("96", large, 0);
    graphs.run("64", middle, 0);
    graphs.run("20, then 40", by_one, 0);
    graphs.trim();
    graphs.row("trimmed");
    graphs.run("20, then 40", by_one, 0);
    graphs.run("64", middle, 0);
    graphs.run("96", large, 0);
    graphs.are(
        "32: 32/32, 32/32
        96: 96/96, 96/96
        64: 96/96, 96/96
        20, then 40: 96/96, 96/96
        trimmed: 0/96, 0/96
        20, then 40: 64/96, 96/96
        64: 64/96, 96/96
        96: 96/96, 96/96",
    );
}
