//! Launches across contexts: the error names the kernel, stream or argument, and the devices of the
//! contexts.

use core::fmt;
use core::ptr;

use cuda_graph::ContextExt;
use cuda_handles::{Context, WrongContext};
use cuda_launch::{Error, Launch, ParamBytes, Params, kernel, params, per};
use cuda_tests::{SMALL, alone, count, kernel as untyped, needs, other_device, raw, setup};

kernel! {
    // SAFETY: the kernel has these parameters, and each thread touches the element of its own
    // number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32) where from.len() >= n, to.len() >= n;
}

const N: usize = 8;

/// The error of a launch that the driver never sees.
fn refused<T: fmt::Debug>(launch: impl FnOnce() -> Result<T, Error>) -> WrongContext {
    let (outcome, cost) = count(launch);
    cost.assert_calls(&[]);
    match outcome {
        Err(Error::Handles(cuda_handles::Error::WrongContext(error))) => *error,
        other => panic!("{other:?}"),
    }
}

/// The errors for all mixtures of memory, kernel and stream; `names` are those of the two contexts,
/// and `kernels` is the advice for arguments of kernels.
fn told(here: &Context, there: &Context, names: [&str; 2], kernels: &str) {
    let [near, far] = names;
    let (stream, other) = (here.stream().unwrap(), there.stream().unwrap());
    let (mine, theirs) = (stream.zeros::<u32>(N).unwrap(), other.zeros::<u32>(N).unwrap());
    let (mine_too, theirs_too) = (stream.zeros::<u32>(N).unwrap(), other.zeros::<u32>(N).unwrap());
    let copy = offset_copy::load(here).unwrap();
    let plain = untyped(here, "offset_copy");
    let config = || per(N, N as u32);
    let advice = WrongContext::MEMORY;

    let text = |what: &str| format!("{what} belongs to {far}, the kernel to {near}; {kernels}");
    let typed = |from, to| refused(|| copy.launch(&stream, config(), (from, to, 1, N as u32))).to_string();
    assert_eq!(typed(&theirs, &mine), text("the memory of argument `from` of kernel `offset_copy`"));
    assert_eq!(typed(&mine, &theirs), text("the memory of argument `to` of kernel `offset_copy`"));
    let by_position = |params: Params<'_>| {
        // SAFETY: the launch is refused.
        let error = refused(|| unsafe { plain.launch(&stream, config(), &params) });
        // SAFETY: as before.
        let owned = refused(|| unsafe { plain.launch(&stream, config(), params.into_owned()) });
        assert_eq!(error, owned);
        error.to_string()
    };
    let number = |number| text(&format!("the memory of argument {number} of kernel `offset_copy`"));
    assert_eq!(by_position(params![&theirs, &mine, 1_u32, N as u32]), number(1));
    assert_eq!(by_position(params![&mine, &theirs, 1_u32, N as u32]), number(2));
    let address = mine.address();
    // SAFETY: the kernel takes an address there, and the launch is refused.
    let bytes = unsafe { ParamBytes::of(&address) }.using(&mine).using(&mine).using(&theirs);
    assert_eq!(by_position(params![&mine, bytes, 1_u32, N as u32]), number(2));

    // Stream and memory agree, so it is the kernel.
    let elsewhere = format!(
        "the kernel `offset_copy` belongs to {near}, the stream of the launch to {far}; load it for that context, or use a stream of its own"
    );
    assert_eq!(
        refused(|| copy.launch(&other, config(), (&theirs, &theirs_too, 1, N as u32))).to_string(),
        elsewhere
    );
    assert_eq!(
        refused(|| copy.launch(&other, config(), (&mine, &mine_too, 1, N as u32))).to_string(),
        elsewhere
    );
    // SAFETY: the launch is refused.
    let error =
        refused(|| unsafe { plain.launch(&other, config(), params![&theirs, &theirs_too, 1_u32, 8_u32]) });
    assert_eq!(error.to_string(), elsewhere);

    // Nodes name them, too.
    let graph = here.graph().unwrap();
    let node = graph.root().launch(&copy, config(), (&theirs, &mine, 1, N as u32)).unwrap_err().to_string();
    assert_eq!(node, text("the memory of argument `from` of kernel `offset_copy`"));
    // SAFETY: the node is refused.
    let node =
        unsafe { graph.root().launch_untyped(&plain, config(), params![&mine, &theirs, 1_u32, 8_u32]) };
    assert_eq!(node.unwrap_err().to_string(), number(2));

    // Without a kernel it is the memory, the event, or the stream.
    let memory = format!("the memory belongs to {far}, the stream to {near}; {advice}");
    assert_eq!(stream.fill(&theirs, 1).unwrap_err().to_string(), memory);
    assert_eq!(theirs.read_blocking(&stream).unwrap_err().to_string(), memory);
    assert_eq!(stream.copy(&mine, &theirs).unwrap_err().to_string(), memory);
    let event = there.event().unwrap();
    let text = stream.record(&event).unwrap_err().to_string();
    assert_eq!(text, format!("the event belongs to {far}; {near} is needed"));

    // The advice works.
    stream.copy_peer(&theirs, &mine).unwrap();
    copy.launch(&stream, config(), (&mine, &stream.zeros::<u32>(N).unwrap(), 1, N as u32)).unwrap();
    let loaded = offset_copy::load(there).unwrap();
    loaded.launch(&other, config(), (&theirs, &other.zeros::<u32>(N).unwrap(), 1, N as u32)).unwrap();
    for context in [here, there] {
        context.synchronize_blocking().unwrap();
    }
}

#[test]
fn contexts_of_two_devices_are_told_by_device() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let here = setup();
    needs!(TwoDevices);
    let advice = "let the kernel's device use its pool (`MemPool::grant_access`), or copy it to memory of that \
                  context (`Stream::copy_peer`)";
    let (near, far) = (here.device().ordinal(), other_device());
    let names = [near, far.ordinal()].map(|number| format!("the context of device {number}"));
    told(&here, &far.context().unwrap(), names.each_ref().map(String::as_str), advice);
}

#[test]
fn contexts_of_one_device_are_told_apart() {
    alone!();
    let here = setup();
    let mut own = ptr::null_mut();
    let mut popped = ptr::null_mut();
    // SAFETY: the out pointers are valid, and the context stays to the end of the process.
    let there = unsafe {
        raw::ok(raw::driver().cuCtxCreate(&raw mut own, ptr::null_mut(), 0, 0, here.device().as_raw()));
        raw::ok(raw::driver().cuCtxPopCurrent(&raw mut popped));
        Context::from_raw(own).unwrap()
    };
    let device = here.device().ordinal();
    let primary = format!("the primary context of device {device}");
    let own = format!("the context {:#x} of device {device}", own.addr());
    told(&here, &there, [&primary, &own], WrongContext::MEMORY);
}
