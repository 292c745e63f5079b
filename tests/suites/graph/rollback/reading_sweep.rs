//! The fault sweep over what reads graphs, draws them, and adds nodes of other kinds of memory and
//! functions.

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{AllocOptions, ContextExt, DebugDotFlags, Error, RawFill, RawMemory, StreamExt};
use cuda_handles::Owner;
use cuda_tests::{on_two_devices, other_device, setup, sweep, used_stream};

#[test]
fn queries_checks_and_pictures() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let picture = std::env::temp_dir().join(format!("cuda-sweep-{}.dot", std::process::id()));
    let cases = sweep("queries, checks and pictures", || -> Result<(), Error> {
        let (from, to) = (stream.zeros::<u32>(8)?, stream.zeros::<u32>(8)?);
        let graph = context.graph()?;
        let fill = graph.root().fill(&from, 1)?;
        let copy = fill.then().copy(&from, &to)?;
        let inner = context.graph()?;
        inner.root().fill(&to, 2)?;
        copy.then().child(&inner)?;
        assert_eq!(graph.edge_kind(&fill, &copy)?, Some(cuda_graph::EdgeKind::Full));
        assert_eq!((fill.out_edges()?.len(), copy.predecessors()?.len()), (1, 1));
        assert!(graph.check()?.findings().is_empty());
        assert!(graph.to_dot()?.contains("->") && graph.to_svg()?.contains("<svg"));
        graph.debug_dot(&picture, DebugDotFlags::default())?;
        let mut exec = graph.instantiate()?;
        exec.driver_options().map(drop)
    });
    let _ = std::fs::remove_file(&picture);
    assert!(cases >= 60, "{cases}");
}

#[test]
fn nodes_ordered_by_data() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("nodes ordered by data", || -> Result<(), Error> {
        let (from, to) = (stream.zeros::<u32>(8)?, stream.zeros::<u32>(8)?);
        let graph = context.graph()?;
        graph.root().fill(&from, 1)?;
        let flow = graph.dataflow()?;
        flow.copy(&from, &to)?;
        flow.fill(&from, 2)?;
        assert_eq!(graph.edges()?.len(), 2);
        graph.instantiate()?.launch(&stream)?;
        assert_eq!(to.read_blocking(&stream)?, [1; 8]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

/// Adds 1 to the number that the pointer leads to.
unsafe extern "C" fn add_one(number: *mut c_void) {
    // SAFETY: the nodes below give the address of an `AtomicU32`, which their owner keeps.
    unsafe { &*number.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn raw_fills_c_functions_and_copies_by_peers() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("raw fills, C functions and copies by peers", || -> Result<(), Error> {
        let (from, to) = (stream.zeros::<u32>(8)?, stream.zeros::<u32>(8)?);
        let number = Arc::new(AtomicU32::new(0));
        let graph = context.graph()?;
        // SAFETY: the owner keeps the memory.
        let fill = unsafe {
            let memory = RawMemory::at(from.address()).keep(&from);
            graph.root().fill_raw(RawFill::new(memory, 4, 4, 8))
        }?;
        let copy = fill.then().copy_peer(&from, &to)?;
        let pointer = Arc::as_ptr(&number).cast_mut().cast::<c_void>();
        // SAFETY: the function takes an `AtomicU32`, which the owners keep.
        let own = unsafe {
            let raw = copy.then().host_raw(add_one, pointer, Owner::shared(Arc::clone(&number)))?;
            raw.then().host_function(add_one, AtomicU32::new(5))?
        };
        // SAFETY: as above.
        unsafe {
            own.set_function(add_one, AtomicU32::new(7))?;
            own.set_raw(add_one, pointer, Owner::shared(Arc::clone(&number)))?;
        }
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        drop((graph, exec));
        assert_eq!(to.read_blocking(&stream)?, [4; 8]);
        assert_eq!(number.load(Ordering::Relaxed), 2);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn graphs_of_two_devices() {
    on_two_devices!();
    let home = setup();
    let other = other_device().context().unwrap();
    let streams = [used_stream(&home), used_stream(&other)];
    let memory = [&*home, &other].map(|context| context.alloc_blocking::<u32>(8).unwrap());
    let cases = sweep("graphs of two devices", || -> Result<(), Error> {
        let graph = home.graph_spanning(&[&other])?;
        let fill = graph.root().fill(&memory[1], 1)?;
        fill.then().copy(&memory[1], &memory[0])?;
        let mut exec = graph.instantiate()?;
        for stream in &streams {
            exec.launch(stream)?;
        }
        assert_eq!(memory[0].read_blocking(&streams[0])?, [1; 8]);
        Ok(())
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn memory_of_graphs_with_options() {
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("memory of graphs with options", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (alloc, memory) = graph.root().alloc_with::<u32>(8, AllocOptions::default())?;
        let fill = alloc.then().fill(&memory, 1)?;
        drop(fill);
        graph.free(&memory)?;
        graph.instantiate()?.launch(&stream)?;
        stream.synchronize_blocking().map_err(Error::from)
    });
    assert!(cases >= 20, "{cases}");
}

#[test]
fn host_functions_in_captures() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let host = context.pinned_zeros::<u32>(4).unwrap().share();
    let cases = sweep("host functions in captures", || -> Result<(), Error> {
        let number = Arc::new(AtomicU32::new(0));
        let pointer = Arc::as_ptr(&number).cast_mut().cast::<c_void>();
        let graph = stream.capture(cuda_handles::capture::CaptureMode::ThreadLocal, |capture| {
            capture.callback_with(&host, |_| ())?;
            // SAFETY: the function takes an `AtomicU32`, which the owner keeps.
            unsafe { capture.callback_raw(add_one, pointer, Owner::shared(Arc::clone(&number))) }
        })?;
        let mut exec = graph.instantiate()?;
        drop(graph);
        exec.launch(&stream)?;
        stream.synchronize_blocking()?;
        assert_eq!(number.load(Ordering::Relaxed), 1);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}
