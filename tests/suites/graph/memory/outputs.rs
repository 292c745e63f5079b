//! Memory that a launch leaves behind.

use std::sync::{Mutex, mpsc};

use cuda_graph::{ContextExt, Error, Graph, GraphExec, InstantiateOptions, MemoryError};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, GraphBuffer, Owner, reaper};
use cuda_launch::{TypedKernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, Kind, SOON, alone, count, fail, in_callback, live, settle, setup, until};

use super::{COUNT, N, in_use, increment, traceless};

/// A graph that leaves memory with 5 in it.
pub(super) fn leaving(context: &Context) -> (Graph, GraphBuffer<u32>) {
    let graph = context.graph().unwrap();
    let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
    alloc.then().fill(&memory, 5).unwrap();
    (graph, memory)
}

fn executable(context: &Context) -> (GraphExec, GraphBuffer<u32>) {
    let (graph, memory) = leaving(context);
    ({ graph }.instantiate().unwrap(), memory)
}

#[test]
fn an_output_is_used_as_a_buffer() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let (mut exec, memory) = executable(context);
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        let other = stream.zeros::<u32>(N).unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        kernel.launch(stream, per(N, 32), (&output, COUNT)).unwrap();
        // SAFETY: the arguments are the kernel's.
        unsafe {
            use cuda_launch::Launch;
            kernel.kernel().launch(stream, per(N, 32), &params![&output, COUNT]).unwrap();
        }
        stream.copy(&output, &other).unwrap();
        stream.copy(output.slice(..32).unwrap(), host.slice(..32).unwrap()).unwrap();
        assert_eq!(other.read_blocking(stream).unwrap(), [7; N]);
        assert_eq!(host.read_blocking(stream).unwrap()[..33], [vec![7; 32], vec![0]].concat());
        assert_eq!(output.as_slice().allocation().kind(), cuda_handles::MemoryKind::Graph);
    });
}

#[test]
fn another_stream_waits_for_the_launch() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        let (other, out) = (context.stream().unwrap(), stream.zeros::<u32>(N).unwrap());
        stream.synchronize_blocking().unwrap();
        let gate = Gate::close(stream);
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        other.copy(&output, &out).unwrap();
        assert!(!other.query().unwrap());
        gate.open();
        assert_eq!(out.read_blocking(&other).unwrap(), [5; N]);
    });
}

#[test]
fn a_launch_waits_for_the_uses_of_what_the_last_one_left() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        let (user, next) = (context.stream().unwrap(), context.stream().unwrap());
        let out = user.zeros::<u32>(N).unwrap();
        user.synchronize_blocking().unwrap();
        // Used at home, and launched elsewhere.
        let gate = Gate::close(stream);
        drop(exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap());
        exec.launch(&next).unwrap();
        assert!(!next.query().unwrap());
        gate.open();
        next.synchronize_blocking().unwrap();
        // Used elsewhere: the reaper frees it, and nobody waits on the host.
        for target in [stream, &next] {
            let gate = {
                let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
                let gate = Gate::close(&user);
                user.copy(&output, &out).unwrap();
                gate
            };
            exec.launch(target).unwrap();
            assert!(!target.query().unwrap());
            gate.open();
            target.synchronize_blocking().unwrap();
            assert_eq!(out.read_blocking(&user).unwrap(), [5; N]);
        }
    });
}

#[test]
fn what_the_reaper_has_freed_by_itself_is_waited_for() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        let (user, next) = (context.stream().unwrap(), context.stream().unwrap());
        let out = user.zeros::<u32>(N).unwrap();
        user.synchronize_blocking().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        let gate = Gate::close(&user);
        user.copy(&output, &out).unwrap();
        drop(output);
        // The reaper's thread is through with it.
        assert!(until(SOON, || reaper::pending() == 0));
        let (launched, cost) = count(|| exec.launch(&next));
        launched.unwrap();
        assert!(cost.calls("cuStreamWaitEvent") >= 2, "{cost}");
        assert!(!next.query().unwrap());
        gate.open();
        next.synchronize_blocking().unwrap();
        assert_eq!(out.read_blocking(&user).unwrap(), [5; N]);
    });
}

#[test]
fn memory_that_something_keeps_is_not_launched_over() {
    traceless(|context, stream| {
        for options in [InstantiateOptions::new(), InstantiateOptions::new().auto_free()] {
            let (graph, memory) = leaving(context);
            let mut exec = graph.instantiate_with(options).unwrap();
            let other = context.graph().unwrap();
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            let fill = other.root().fill(&output, 9).unwrap();
            let holder = params![&output].into_owned();
            let owner = Owner::from(output.as_slice());
            drop(output);
            let refused = |exec: &mut GraphExec| {
                let error = exec.launch(stream).unwrap_err();
                assert!(
                    matches!(&error, Error::Memory(MemoryError::OutputInUse { node }) if **node == *"alloc#0"),
                    "{error}"
                );
            };
            refused(&mut exec);
            drop(owner);
            refused(&mut exec);
            drop(holder);
            refused(&mut exec);
            let mut others = other.instantiate().unwrap();
            others.launch(stream).unwrap();
            fill.remove().unwrap();
            refused(&mut exec);
            drop(others);
            // The owners of an executable go some time after its last launch.
            assert!(until(SOON, || {
                reaper::drain();
                exec.launch(stream).is_ok()
            }));
        }
    });
}

#[test]
fn outputs_are_taken_once_by_their_memory() {
    traceless(|context, stream| {
        let (graph, memory) = leaving(context);
        let (alloc, freed) = graph.root().alloc::<u32>(N).unwrap();
        alloc.then().free(&freed).unwrap();
        let (_, second) = graph.root().alloc::<u64>(3).unwrap();
        let (_, foreign) = leaving(context);
        let mut exec = { graph }.instantiate().unwrap();
        let mut outputs = exec.launch_with_outputs(stream).unwrap();
        assert_eq!((outputs.len(), outputs.is_empty()), (2, false));
        let output = outputs.take(&memory).unwrap();
        let again = outputs.take(&memory).unwrap_err();
        assert_eq!(again, Error::Memory(MemoryError::OutputTaken { address: memory.address() }));
        for (memory, address) in [(&freed, freed.address()), (&foreign, foreign.address())] {
            assert_eq!(outputs.take(memory).unwrap_err(), Error::Memory(MemoryError::NoOutput { address }));
        }
        assert_eq!((outputs.take(&second).unwrap().len(), outputs.len()), (3, 0));
        drop(outputs);
        assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
    });
}

#[test]
fn an_executable_that_frees_by_itself_keeps_what_nobody_asks_for() {
    traceless(|context, stream| {
        let (graph, memory) = leaving(context);
        let mut exec = graph.instantiate_with(InstantiateOptions::new().auto_free()).unwrap();
        for _ in 0..3 {
            let (launched, cost) = count(|| exec.launch(stream));
            launched.unwrap();
            cost.assert_calls(&[("cuGraphLaunch", 1)]);
        }
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
        drop(output);
        exec.launch(stream).unwrap();
        // Its memory goes with it, and the next executable of the graph can be launched.
        let ((), cost) = count(|| drop(exec));
        assert_eq!(cost.calls("cuMemFreeAsync"), 1, "{cost}");
        settle();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(stream).unwrap();
    });
}

#[test]
fn the_next_executable_waits_for_what_the_last_one_left() {
    traceless(|context, stream| {
        let (graph, memory) = leaving(context);
        let other = context.graph().unwrap();
        let mut exec = graph.instantiate().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        let fill = other.root().fill(&output, 9).unwrap();
        drop(output);
        drop(exec);
        // The driver gives an executable back on its thread of host functions, which the gate holds
        // up.
        settle_frees();
        let mut exec = graph.instantiate().unwrap();
        assert!(matches!(exec.launch(stream), Err(Error::Memory(MemoryError::OutputInUse { .. }))));
        fill.remove().unwrap();
        // The home of what was left is another stream now.
        let next = context.stream().unwrap();
        let gate = Gate::close(stream);
        settle_frees();
        exec.launch(&next).unwrap();
        assert!(!next.query().unwrap());
        gate.open();
        next.synchronize_blocking().unwrap();
    });
}

/// Lets the reaper free what it has; a stream that is held back does not keep it from that.
fn settle_frees() {
    assert!(until(SOON, || reaper::pending() == 0));
}

#[test]
fn a_launch_that_fails_leaves_nothing() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        for _ in 0..2 {
            let failing = fail(Call::cuGraphLaunch, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let error = exec.launch_with_outputs(stream).map(drop).unwrap_err();
            assert!(matches!(error, Error::Handles(cuda_handles::Error::Driver { .. })), "{error}");
            drop(failing);
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
        }
    });
}

#[test]
fn an_output_dropped_where_nothing_is_permitted_is_freed_later() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        let (owner, (send, receive)) = (Owner::from(output.as_slice()), mpsc::channel());
        drop(output);
        in_callback(stream, move || {
            drop(owner);
            send.send(()).unwrap();
        });
        receive.recv_timeout(SOON).unwrap();
        exec.launch(stream).unwrap();
    });
}

#[test]
fn an_output_dropped_while_its_home_captures_is_freed_later() {
    traceless(|context, stream| {
        let (mut exec, memory) = executable(context);
        let next = context.stream().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        drop(output);
        let error = exec.launch(&next).unwrap_err();
        assert!(matches!(error, Error::Handles(cuda_handles::Error::Capturing { .. })), "{error}");
        drop(capture.end().unwrap());
        exec.launch(&next).unwrap();
    });
}

#[test]
fn an_output_kept_for_ever_blocks_the_executable_and_nothing_else() {
    let context = setup();
    let stream = context.stream().unwrap();
    settle();
    let (before, unused) = (live().of(Kind::UserObject), in_use(&context));
    let (mut exec, memory) = executable(&context);
    let output = exec.launch_with_outputs(&stream).unwrap().take(&memory).unwrap();
    let address = output.address();
    // As if it were forgotten, but not lost to who looks for leaks.
    static KEPT: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(Owner::from(output.as_slice()));
    drop(output);
    assert!(matches!(exec.launch(&stream), Err(Error::Memory(MemoryError::OutputInUse { .. }))));
    drop(exec);
    // SAFETY: nobody else frees it.
    cuda_tests::raw::ok(unsafe { cuda_tests::raw::driver().cuMemFreeAsync(address, stream.as_raw()) });
    assert_eq!(in_use(&context), unused);
    assert!(until(SOON, || live().of(Kind::UserObject) == before));
}

#[test]
fn an_executable_dropped_where_nothing_is_permitted_makes_room_for_the_next() {
    traceless(|context, stream| {
        let (graph, _memory) = leaving(context);
        let exec = graph.instantiate().unwrap();
        let (send, receive) = mpsc::channel();
        in_callback(stream, move || {
            drop(exec);
            send.send(()).unwrap();
        });
        receive.recv_timeout(SOON).unwrap();
        // Whether or not the reaper's thread was faster.
        graph.instantiate().unwrap().launch(stream).unwrap();
    });
}

#[test]
fn memory_that_could_not_be_freed_is_told_by_the_next_launch() {
    for elsewhere in [false, true] {
        let context = setup();
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let unused = in_use(&context);
        let (mut exec, memory) = executable(&context);
        let address = memory.address();
        let code = CUresult::CUDA_ERROR_ILLEGAL_STATE;
        let output = exec.launch_with_outputs(&stream).unwrap().take(&memory).unwrap();
        if elsewhere {
            other.fill(&output, 1).unwrap();
        }
        // At home the reaper has a second try.
        let failing = [(); 2].map(|()| fail(Call::cuMemFreeAsync, 1, code));
        drop(output);
        assert!(until(SOON, || reaper::pending() == 0));
        assert_eq!(failing.map(|failing| failing.hit()), [true, !elsewhere]);
        for _ in 0..2 {
            let expected = cuda_handles::Error::Driver { call: Call::cuMemFreeAsync, code };
            assert_eq!(exec.launch(&stream).unwrap_err(), Error::Handles(expected));
        }
        drop(exec);
        context.synchronize_blocking().unwrap();
        // SAFETY: nobody else frees it, and what used it is done.
        cuda_tests::raw::ok(unsafe { cuda_tests::raw::driver().cuMemFreeAsync(address, stream.as_raw()) });
        assert_eq!(in_use(&context), unused);
    }
}

#[test]
fn after_a_loss_what_was_left_is_let_go_of_in_silence() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let (mut exec, memory) = executable(&context);
    let (mut other, rest) = executable(&context);
    let output = exec.launch_with_outputs(&stream).unwrap().take(&memory).unwrap();
    let outputs = other.launch_with_outputs(&stream).unwrap();
    settle();
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe {
        use cuda_launch::Launch;
        let poke = cuda_tests::kernel(&context, "poke");
        poke.launch(&stream, per(1, 1), &params![0x40_u64, 7_u32]).unwrap();
    }
    assert!(matches!(stream.synchronize_blocking(), Err(cuda_handles::Error::ContextLost(_))));
    let ((), cost) = count(|| drop((output, outputs)));
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
    let ((), cost) = count(|| {
        for (exec, memory) in [(&mut exec, &memory), (&mut other, &rest)] {
            let lost = exec.launch_with_outputs(&stream).map(|mut outputs| outputs.take(memory)).unwrap_err();
            assert!(matches!(lost, Error::Handles(cuda_handles::Error::ContextLost(_))), "{lost}");
        }
        drop((exec, other, memory, rest));
        settle();
    });
    assert_eq!(cost.total_anywhere(), 0, "{cost}");
}
