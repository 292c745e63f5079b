//! When an executable is destroyed: the table of `reaper`, held.
#![cfg(not(loom))]

use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use cuda_handles::internal::ExecEnd;
use cuda_handles::{Context, Device, Error, GraphExecHandle, GraphHandle, Stream, reaper};

/// Longer than the drop of an executable may ever wait.
const LONG: Duration = Duration::from_secs(2);

/// An executable, and a sign that is gone once the driver has destroyed it.
fn executable(context: &Context, end: ExecEnd) -> Result<(GraphExecHandle, Weak<()>), Error> {
    let graph = GraphHandle::create(context)?;
    let mut raw = core::ptr::null_mut();
    let code = context.with_current(|| {
        // SAFETY: the graph is alive and the out pointer valid.
        unsafe { context.driver().cuGraphInstantiateWithFlags(&raw mut raw, graph.as_raw(), 0) }
    })?;
    assert!(code.is_success(), "{code:?}");
    let kept = Arc::new(());
    let sign = Arc::downgrade(&kept);
    // SAFETY: the executable is new and has no other owner.
    Ok((unsafe { GraphExecHandle::from_raw_owned_with(context, raw, Some(kept), end) }, sign))
}

fn is_destroyed(sign: &Weak<()>) -> bool {
    sign.strong_count() == 0
}

fn comes_true(what: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !what() && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
    what()
}

/// Runs `test` while `stream` has work, which ends after it.
fn with_work(stream: &Stream, test: impl FnOnce()) -> Result<(), Error> {
    let (end, ended) = channel::<()>();
    stream.host_once(move || {
        let _ended = ended.recv();
    })?;
    test();
    drop(end);
    Ok(())
}

#[test]
fn executables_are_destroyed_when_the_drop_rules_say() -> Result<(), Error> {
    cuda_soft::loader(cuda_soft::Config::default()).install()?;
    let context = Device::new(0)?.context()?;
    let stream = context.stream()?;

    // At once: in the drop, beside work.
    let (exec, sign) = executable(&context, ExecEnd::AtOnce)?;
    with_work(&stream, || {
        drop(exec);
        assert!(is_destroyed(&sign));
    })?;
    stream.synchronize_blocking()?;

    // Deferred: by nobody unless asked, by a drain, for its memory, or for its graph.
    let asks: [fn(&Context, &Weak<()>); 3] = [
        |_, _| assert!(reaper::drain() > 0),
        |_, _| assert!(GraphExecHandle::destroy_all_deferred()),
        |context, sign| assert_eq!(GraphExecHandle::destroy_deferred(context, sign), Ok(())),
    ];
    for ask in asks {
        let (exec, sign) = executable(&context, ExecEnd::Deferred)?;
        let begin = Instant::now();
        drop(exec);
        assert!(begin.elapsed() < LONG);
        thread::sleep(Duration::from_millis(50));
        assert!(!is_destroyed(&sign) && reaper::pending() > 0);
        ask(&context, &sign);
        assert!(is_destroyed(&sign));
    }

    // Beside work, asking for its graph fails, and the reaper destroys it when there is none.
    let (exec, sign) = executable(&context, ExecEnd::Deferred)?;
    with_work(&stream, || {
        drop(exec);
        let refused = GraphExecHandle::destroy_deferred(&context, &sign);
        assert!(matches!(refused, Err(Error::StillRunning { .. })), "{refused:?}");
        assert!(!GraphExecHandle::destroy_all_deferred() && !is_destroyed(&sign));
    })?;
    assert!(comes_true(|| is_destroyed(&sign)));

    // When idle: in the drop, or later if there is work; without a drain.
    let (exec, sign) = executable(&context, ExecEnd::WhenIdle)?;
    drop(exec);
    assert!(comes_true(|| is_destroyed(&sign)));
    let (exec, sign) = executable(&context, ExecEnd::WhenIdle)?;
    with_work(&stream, || {
        let begin = Instant::now();
        drop(exec);
        assert!(begin.elapsed() < LONG && !is_destroyed(&sign));
    })?;
    assert!(comes_true(|| is_destroyed(&sign)));

    stream.synchronize_blocking()?;
    reaper::drain();
    assert!(comes_true(|| reaper::pending() == 0));
    Ok(())
}
