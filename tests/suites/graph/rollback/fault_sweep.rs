//! The fault sweep over the crate: each driver call of these scenarios fails in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{
    ContextExt, Error, InstantiateOptions, NodeAttribute, NodeAttributeKind, RawCopy, RawFill, RawMemory,
};
use cuda_handles::{BarrierScope, Batch, Compare, Copy2d, Copy3d, ExternalSemaphore, SemaphoreKind};
use cuda_launch::{params, per};
use cuda_tests::{Need, is_soft, kernel, needs, setup, skip, sweep, used_stream};

use crate::common::same_as_stream::launched;
use crate::conditions::branches_and_loops::Kernels;

#[test]
fn drawing_running_and_dropping() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("drawing, running and dropping", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (from, to) = (home.zeros::<u32>(8)?, home.zeros::<u32>(8)?);
        let fill = graph.root().fill(&from, 1)?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launch = unsafe { fill.then().launch_untyped(&increment, per(8, 8), params![&from, 8_u32]) }?;
        let copy = launch.then().copy(&from, &to)?;
        let loose = graph.root().empty()?;
        graph.add_edge(&loose, &copy)?;
        graph.remove_edges(&[(&loose, &copy)])?;
        loose.remove()?;
        let mut exec = graph.instantiate()?;
        exec.upload(&home)?;
        exec.launch(&other)?;
        drop(graph);
        assert_eq!(to.read_blocking(&other)?, [2; 8]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn copies_and_fills_of_every_shape() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let host = context.pinned_zeros::<u32>(16).unwrap().share();
    let cases = sweep("copies and fills", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (from, to) = (home.zeros::<u32>(16)?, home.zeros::<u32>(16)?);
        let flat = Copy2d {
            source: from.as_slice(),
            source_pitch: 4,
            destination: to.as_slice(),
            destination_pitch: 4,
            width: 2,
            height: 4,
        };
        let fill = graph.root().fill(&from, 1)?;
        let part = fill.then().fill_2d(&from, 4, [2, 4], 2)?;
        let copy = part.then().copy_2d(flat)?;
        let back = copy.then().copy(&to, &host)?;
        let cuboid = back.then().copy_3d(Copy3d {
            depth: 2,
            height: 2,
            source_rows: 2,
            destination_rows: 2,
            ..flat.layer()
        })?;
        // SAFETY: the owners keep the memory.
        unsafe {
            let source = RawMemory::at(from.address()).keep(&from);
            let target = RawMemory::at(to.address()).keep(&to);
            cuboid.then().copy_raw(RawCopy::new(source, target.clone(), 64))?;
            fill.set_raw(RawFill::new(target, 4, 3, 16))?;
        }
        fill.set(&to, 4)?;
        part.set_2d(&from, 4, [4, 4], 5)?;
        cuboid.set_2d(flat)?;
        cuboid.set(&from, &to)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&other)?;
        drop((graph, fill, part, copy, back, cuboid));
        assert_eq!(to.read_blocking(&other)?, [5; 16]);
        assert_eq!(host.read_blocking(&other)?[..4], [5, 5, 4, 4]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn embedding_replacing_moving_and_cloning() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = kernel(&context, "increment");
    let home = used_stream(&context);
    let moves = crate::common::chains::moves();
    let cases = sweep("embedding, replacing, moving and cloning", || -> Result<(), Error> {
        let numbers = home.zeros::<u32>(8)?;
        let source = context.graph()?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let step = unsafe { source.root().launch_untyped(&increment, per(8, 8), params![&numbers, 8_u32]) }?;
        let outer = context.graph()?;
        let first = outer.root().child(&source)?;
        let graph = context.graph()?;
        let child = graph.root().child(&outer)?;
        let inside = child.embedded()?.children()?.remove(0).embedded()?;
        // SAFETY: as above.
        unsafe { inside.nodes()?[0].then().launch_untyped(&increment, per(8, 8), params![&numbers, 8_u32]) }?;
        let other = child.then().child(&source)?;
        other.set_graph(&inside.clone_graph()?)?;
        other.embedded()?.nodes()?[0].remove()?;
        first.remove()?;
        let clone = graph.clone_graph()?;
        clone.find_clone_of(&child)?;
        if moves {
            let moved = clone.root().child_moved(source)?;
            moved.embedded()?.find_clone_of(&step)?;
        }
        let mut exec = graph.instantiate()?;
        drop((graph, clone));
        exec.launch(&home)?;
        assert_eq!(numbers.read_blocking(&home)?, [3; 8]);
        Ok(())
    });
    assert!(cases >= 100, "{cases}");
}

#[test]
fn lending_and_adopting() {
    use crate::common::other;
    let context = setup();
    let increment = kernel(&context, "increment");
    let home = used_stream(&context);
    let foreign = other::graph();
    other::empty(foreign, &[]);
    let inner = other::graph();
    other::empty(inner, &[other::empty(inner, &[])]);
    other::child(foreign, inner);
    let cases = sweep("lending and adopting", || -> Result<(), Error> {
        let numbers = home.zeros::<u32>(8)?;
        let graph = context.graph()?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![&numbers, 8_u32]) }?;
        let child = graph.root().child(&graph.clone_graph()?)?;
        child.embedded()?.lend()?;
        let raw = graph.lend()?;
        // SAFETY: the graphs live as long as their handles.
        let (known, adopted) = unsafe {
            (cuda_graph::Graph::from_raw(&context, raw)?, cuda_graph::Graph::from_raw(&context, foreign)?)
        };
        assert_eq!(known, graph);
        assert_eq!(adopted.children()?.remove(0).embedded()?.nodes()?.len(), 2);
        graph.root().child(&adopted)?;
        drop(graph.instantiate()?);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
    other::destroy(inner);
    other::destroy(foreign);
}

#[test]
fn batches_of_memory_operations() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("batches", || -> Result<(), Error> {
        let flags = context.alloc_blocking::<u32>(4)?;
        home.fill(&flags, 0)?;
        let (mut first, mut second) = (Batch::new(), Batch::new());
        first.write(&flags, 0, 1)?.wait(&flags, 0, Compare::Equal, 1)?;
        second.write(&flags, 1, 2)?.barrier(BarrierScope::System);
        let graph = context.graph()?;
        other.wait_for(&home)?;
        let node = graph.root().batch(&first)?;
        node.then().batch(&first)?;
        node.set(&second)?;
        assert_eq!(launched(&graph, &other, &flags)?, [1, 2, 0, 0]);
        drop((graph, node));
        other.batch(&second)?;
        assert_eq!(flags.read_blocking(&other)?, [1, 2, 0, 0]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[cfg(unix)]
#[test]
fn semaphores_of_other_interfaces() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    if !is_soft() {
        skip!("the software driver's semaphores are enough for this");
    }
    let stream = used_stream(&context);
    let outside = [(); 2].map(|()| cuda_soft::control::ExternalSemaphore::new().unwrap());
    let cases = sweep("semaphores", || -> Result<(), Error> {
        outside[0].set_value(1);
        outside[1].set_value(0);
        let import = |outside: &cuda_soft::control::ExternalSemaphore| {
            let descriptor = outside.descriptor().unwrap();
            // SAFETY: it is of a timeline.
            unsafe { ExternalSemaphore::import(&context, SemaphoreKind::Timeline, descriptor) }
        };
        let (one, two) = (import(&outside[0])?, import(&outside[1])?);
        let graph = context.graph()?;
        let wait = graph.root().wait_semaphores([(&one, 1)])?;
        let signal = wait.then().signal([(&one, 2)])?;
        signal.set([(&two, 3)])?;
        signal.set_value(0, 4)?;
        wait.set([(&one, 2)])?;
        wait.set_value(0, 0)?;
        let mut exec = graph.instantiate()?;
        exec.node(&wait).set([(&one, 1)])?;
        exec.node(&signal).set([(&two, 5)])?;
        drop((one, two));
        exec.launch(&stream)?;
        drop((graph, exec, wait, signal));
        stream.synchronize_blocking()?;
        assert_eq!((outside[0].value(), outside[1].value()), (1, 5));
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}

#[test]
fn changing_nodes_and_edges() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let stream = used_stream(&context);
    let cases = sweep("changing nodes and edges", || -> Result<(), Error> {
        use cuda_graph::EdgeKind::{Full, Programmatic};
        let other = if Need::EdgeKinds.is_met() { Programmatic } else { Full };
        let graph = context.graph()?;
        let buffer = stream.zeros::<u32>(8)?;
        let launch = |frontier: cuda_graph::Frontier<'_>| {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { frontier.launch_untyped(&increment, per(8, 8).priority(-1), params![&buffer, 8_u32]) }
        };
        let [a, b, c] = [launch(graph.root())?, launch(graph.root())?, launch(graph.root())?];
        // Against the order of the nodes.
        graph.add_edges(&[(&c, &b, Full), (&b, &a, other)])?;
        let between = launch(graph.between(&c, &b)?)?;
        let first = launch(graph.root().before([&*c])?)?;
        graph.set_edge_kind(&c, &between, other)?;
        a.set_in_edges(&[(&c, cuda_graph::EdgeKind::Full), (&between, cuda_graph::EdgeKind::Full)])?;
        b.set_out_edges(&[(&a, other)])?;
        assert_eq!((graph.edges()?.len(), a.in_edges()?.len(), c.successors()?.len()), (6, 3, 2));
        between.remove_bridging()?;
        graph.remove_edges(&[(&first, &c), (&c, &a)])?;
        graph.remove_nodes(&[&a, &b])?;
        assert_eq!(graph.len()?, 2);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn callbacks_events_and_launches_set() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = kernel(&context, "increment");
    let stream = used_stream(&context);
    let (first, second) = (context.event().unwrap(), context.event().unwrap());
    let cases = sweep("callbacks, events and launches set", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (buffer, other) = (stream.zeros::<u32>(8)?, stream.zeros::<u32>(8)?);
        let called = Arc::new(AtomicU32::new(0));
        let call = |by: u32| {
            let called = Arc::clone(&called);
            move || {
                called.fetch_add(by, Ordering::Relaxed);
            }
        };
        let record = graph.root().record(&first)?;
        let host = record.then().host(call(1))?;
        let wait = host.then().wait(&second)?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launch = unsafe {
            let config = per(8, 8).priority(-1).cooperative();
            wait.then().launch_untyped(&increment, config, params![&buffer, 8_u32])
        }?;
        let twin = graph.root().empty()?;
        host.set(call(10))?;
        record.set_event(&second)?;
        wait.set_event(&first)?;
        let before = launch.config()?;
        // SAFETY: as above.
        let set = unsafe { launch.set_untyped(&increment, per(8, 4).priority(0), params![&other, 8_u32]) };
        // Where the driver does not tell the sizes of the arguments, there is no way back from a
        // new launch.
        if matches!(&set, Err(error) if !matches!(error, Error::Broken(_))) {
            assert_eq!(launch.config()?, before);
        }
        set?;
        launch.set_attribute(NodeAttribute::Priority(-2))?;
        launch.attribute(NodeAttributeKind::Priority)?;
        // SAFETY: a copy of its own attributes.
        unsafe { launch.copy_attributes_from(&launch) }?;
        twin.remove()?;
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        drop((graph, record, host, wait, launch));
        assert_eq!(other.read_blocking(&stream)?, [1; 8]);
        assert_eq!(called.load(Ordering::Relaxed), 10);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn memory_of_graphs() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (used_stream(&context), used_stream(&context));
    let moves = crate::common::chains::moves();
    let cases = sweep("memory of graphs", || -> Result<(), Error> {
        let source = context.graph()?;
        let (alloc, numbers) = source.root().alloc::<u32>(8)?;
        let fill = alloc.then().fill(&numbers, 1)?;
        // SAFETY: the arguments are the kernel's, and the count is the memory's.
        let add = unsafe { fill.then().launch_untyped(&increment, per(8, 8), params![&numbers, 8_u32]) }?;
        let graph = context.graph()?;
        let (graph, before) = match moves {
            true => (graph.clone(), (*graph.root().child_moved(source)?).clone()),
            false => (source, (*add).clone()),
        };
        let out = home.zeros::<u32>(8)?;
        let (scratch, words) = graph.root().before([&before])?.alloc::<u32>(8)?;
        let copy = before.then().copy(&numbers, &out)?;
        scratch.then().fill(&words, 3)?;
        graph.free(&words)?;
        graph.after([&copy])?.copy(&out, &numbers)?;
        let mut exec = graph.instantiate()?;
        for stream in [&home, &other] {
            let output = exec.launch_with_outputs(stream)?.take(&numbers)?;
            home.copy(&output, &out)?;
        }
        exec.launch(&home)?;
        // One that frees by itself.
        let freeing = context.graph()?;
        let (alloc, rest) = freeing.root().alloc::<u32>(8)?;
        alloc.then().fill(&rest, 7)?;
        let mut freeing = freeing.instantiate_with(InstantiateOptions::new().auto_free())?;
        freeing.launch(&home)?;
        freeing.launch(&other)?;
        drop((graph, exec, freeing));
        assert_eq!(out.read_blocking(&other)?, [2; 8]);
        context.trim_graph_memory()?;
        context.reset_graph_memory_high_water()?;
        context.graph_memory_usage()?;
        Ok(())
    });
    assert!(cases >= 200, "{cases}");
}

#[test]
fn conditions_loops_and_branches() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let kernels = Kernels::new(&context);
    let home = used_stream(&context);
    let cases = sweep("conditions, loops and branches", || -> Result<(), Error> {
        let graph = context.graph()?;
        let counter = home.zeros::<u32>(1)?;
        let start = graph.root().fill(&counter, 2)?;
        let go_on = graph.condition_with_default(1)?;
        let rounds = start.then().while_node(&go_on)?;
        let body = rounds.body()?;
        let inner = graph.condition_with_default(1)?;
        let branch: cuda_graph::Node = if Need::Branches.is_met() {
            let branch = body.root().if_else_node(&inner)?;
            branch.else_body()?.root().fill(&counter, 9)?;
            branch.into()
        } else {
            body.root().if_node(&inner)?.into()
        };
        let decide = kernels.decide(&branch.then(), &counter, &go_on)?;
        kernels.redecide(&decide, &counter, &go_on)?;
        let left = graph.condition()?;
        if Need::Branches.is_met() {
            rounds.then().switch_node(&left, 2)?.remove()?;
        }
        rounds.then().if_node(&left)?;
        let mut exec = { graph }.instantiate()?;
        exec.launch(&home)?;
        assert_eq!(counter.read_blocking(&home)?, [0]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn host_functions_with_memory() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("host functions with memory", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (buffer, host) = (stream.alloc::<u64>(8)?, context.pinned_zeros::<u64>(8)?.share());
        let clear = graph.root().clear(buffer.slice(..4)?)?;
        clear.set_clear(&buffer)?;
        let copy = clear.then().copy(&buffer, &host)?;
        let look = copy.then().host_with(&host, |_| ())?;
        let seen = Arc::new(AtomicU32::new(0));
        let inside = Arc::clone(&seen);
        look.set_with((&host, host.slice(4..)?), move |(all, part)| {
            let zeros = all.iter().chain(part.iter()).filter(|number| *number == 0);
            inside.store(zeros.count() as u32, Ordering::Relaxed);
        })?;
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        stream.synchronize_blocking()?;
        assert_eq!(seen.load(Ordering::Relaxed), 12);
        Ok(())
    });
    assert!(cases >= 40, "{cases}");
}
