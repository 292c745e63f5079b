//! The fault sweep: each driver call of a scenario fails in turn, with each plausible code.

use core::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use cuda_handles::reaper::{self, DropFailure};
use cuda_handles::{Context, Stream};
use cuda_sys::{CUresult, Call};

use super::leaks::{no_leaks, settle, settles};
use crate::faults::inject::{fail, fail_any};
use crate::faults::swept;
use crate::poll::{SOON, until};
use crate::record::count;
use crate::record::live::{Live, ends_something, live};

/// Failures of drops, reported to the hook.
static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note(failure: &DropFailure) {
    REPORTED.lock().unwrap_or_else(PoisonError::into_inner).push(failure.to_string());
}

fn reported() -> Vec<String> {
    core::mem::take(&mut *REPORTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A stream that already has the events that other streams wait for, so that a scenario that uses
/// it leaves no event behind.
///
/// # Panics
/// The driver refuses.
#[must_use]
pub fn used_stream(context: &Context) -> Stream {
    let use_it = || -> cuda_handles::Result<Stream> {
        let (stream, other) = (context.stream()?, context.stream()?);
        other.fill(&stream.zeros::<u32>(1)?, 1)?;
        stream.fill(&other.zeros::<u32>(1)?, 1)?;
        Ok(stream)
    };
    let stream = use_it().unwrap_or_else(|error| panic!("{error}"));
    settle();
    stream
}

/// One failure of one call.
#[derive(Clone, Copy, Debug)]
struct Case {
    call: Call,
    nth: u64,
    code: CUresult,
}

impl Display for Case {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{} number {} answered {}", self.call.name(), self.nth, self.code)
    }
}

/// Makes every call of `scenario` fail, one at a time, with each plausible code, and returns the
/// number of cases. Calls count by name, on any thread, including those that the reaper makes for
/// the drops at the end. In each case nothing panics; the error names call and code, unless the
/// failure is harmless or was in a drop and went to the hook; nothing is left behind but the object
/// that the failing call was to end; and the scenario works again.
///
/// The scenario leaves nothing behind and makes the same calls each time.
///
/// With `CUDA_TESTS_FAULTS=full` in the environment, each call also fails with a code that it is
/// not known for, and then each two calls of one run fail: the second one often is in the way back.
///
/// # Panics
/// One of these does not hold.
#[track_caller]
pub fn sweep<T, E: Display>(name: &str, mut scenario: impl FnMut() -> Result<T, E>) -> u64 {
    reaper::set_hook(note);
    let mut run = || scenario().map(drop).map_err(|error| error.to_string());
    for _ in 0..2 {
        no_leaks(&mut run).unwrap_or_else(|error| panic!("{name}: without a failure: {error}"));
    }
    let (_, counts) = count(|| {
        let outcome = run();
        settle();
        outcome
    });
    reported();
    let mut cases = 0;
    for &call in Call::ALL {
        for nth in 1..=counts.anywhere(call) {
            let strange = swept::is_full().then_some(CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            for code in codes(call).iter().copied().chain(strange) {
                cases += u64::from(one(name, Case { call, nth, code }, &mut run));
            }
        }
    }
    if swept::is_full() {
        let pairs = pairs(name, &mut run);
        println!("{name}: {pairs} pairs");
    }
    println!("{name}: {cases} cases");
    cases
}

/// Makes each two driver calls of this thread in one run fail, and returns the number of pairs.
/// What the errors say is not compared: one of the two failures is told. Nothing panics, nothing is
/// left behind unless a call that ends something failed, and the scenario works again.
#[track_caller]
fn pairs(name: &str, run: &mut impl FnMut() -> Result<(), String>) -> u64 {
    const CODE: CUresult = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
    let mut pairs = 0;
    for first in 1.. {
        // A capture whose end and state the driver does not tell stays.
        if call_of(first, run) == Some(Call::cuStreamEndCapture) {
            continue;
        }
        // The first failure hides its call from the plan of the second one.
        for second in first.. {
            let before = live();
            let (one, two) = (fail_any(first, CODE), fail_any(second, CODE));
            let outcome = catch_unwind(AssertUnwindSafe(&mut *run));
            let is_settled = settles();
            let hits = (one.hit_call(), two.hit_call());
            drop((one, two));
            let Some(hit) = hits.0 else { return pairs };
            let calls = [Some(hit), hits.1];
            let what = || {
                let names = calls.iter().flatten().map(|call| call.name()).collect::<Vec<_>>();
                format!("{name}: calls {first} and {}, {}", second + 1, names.join(" and "))
            };
            assert!(outcome.is_ok(), "{}: a panic", what());
            if !is_settled && calls.contains(&Some(Call::cuStreamEndCapture)) {
                // The skip above did not see it, as runs differ in a few calls.
                println!("{}: a capture stays, so the pairs behind are not tried", what());
                return pairs;
            }
            assert!(is_settled, "{}: the reaper still has {} things waiting", what(), reaper::pending());
            if !calls.into_iter().flatten().any(ends_something) {
                nothing_more_than(&before, what);
            }
            reported();
            // Also so that each run that fails comes after one that works: its calls are the same.
            let again = run();
            assert!(again.is_ok(), "{}: the next use: {again:?}", what());
            settle();
            reported();
            if hits.1.is_none() {
                break;
            }
            pairs += 1;
        }
    }
    pairs
}

/// The name of a call of one run, which fails.
fn call_of(nth: u64, run: &mut impl FnMut() -> Result<(), String>) -> Option<Call> {
    let injection = fail_any(nth, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    let _ = run();
    settle();
    let hit = injection.hit_call();
    drop(injection);
    let _ = run();
    settle();
    reported();
    hit
}

/// Tries one case. Returns whether the call was made: the reaper may make fewer calls in another
/// run.
#[track_caller]
fn one(name: &str, case: Case, run: &mut impl FnMut() -> Result<(), String>) -> bool {
    let before = live();
    let injection = fail(case.call, case.nth, case.code);
    let outcome = catch_unwind(AssertUnwindSafe(&mut *run));
    let in_the_scenario = injection.hit_thread() == Some(std::thread::current().id());
    settle();
    let hit = injection.hit();
    drop(injection);
    let Ok(outcome) = outcome else { panic!("{name}: {case}: a panic") };
    if !hit {
        return false;
    }
    let drops = reported();
    let what_it_was_to_end = ends_something(case.call) && case.code != CUresult::CUDA_ERROR_NOT_PERMITTED;
    match &outcome {
        Err(text) => assert!(is_named(case, text), "{name}: {case}: the error does not say so: {text}"),
        Ok(()) if drops.iter().any(|text| is_named(case, text)) => {}
        // The reaper repeats a call that ends nothing, so nothing is left behind.
        Ok(()) => assert!(
            need_not_matter(case) || !in_the_scenario && !what_it_was_to_end,
            "{name}: {case}: nobody was told"
        ),
    }
    if !what_it_was_to_end {
        nothing_more_than(&before, || format!("{name}: {case} ({outcome:?})"));
    }
    let before = live();
    assert_eq!(run(), Ok(()), "{name}: after {case} the next use");
    nothing_more_than(&before, || format!("{name}: after {case} the next use"));
    let drops = reported();
    assert!(drops.is_empty(), "{name}: after {case} the next use reported {drops:?}");
    true
}

/// Waits until there are no more objects of any kind than before. There may be fewer: an
/// executable's owners go some time after it.
#[track_caller]
fn nothing_more_than(before: &Live, what: impl Fn() -> String) {
    let back = until(SOON, || {
        reaper::drain();
        !live().is_more_than(before)
    });
    let waiting = reaper::pending();
    assert!(back, "{}, left behind: {}; waiting: {waiting}", what(), live().since(before));
}

/// The code's name, without its number and sentence.
fn code_name(code: CUresult) -> String {
    code.to_string().split_whitespace().next().unwrap_or_default().to_owned()
}

fn is_named(case: Case, text: &str) -> bool {
    let named = case.call.symbol().to_str().is_ok_and(|symbol| text.contains(symbol));
    named && text.contains(&code_name(case.code)) || is_translated(case, text)
}

/// Errors that describe the code in words and do not name the call.
fn is_translated(case: Case, text: &str) -> bool {
    match case.code {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            text.contains("not enough memory") || text.contains("bytes of host memory")
        }
        _ if case.call.symbol().to_bytes().starts_with(b"cuGraphInstantiate") => {
            text.contains("cannot be instantiated") && text.contains(&code_name(case.code))
        }
        _ => false,
    }
}

/// Failures that the library handles itself, so that no error is due.
fn need_not_matter(Case { call, code, nth }: Case) -> bool {
    let call = call.symbol().to_bytes();
    match code {
        // A load looks for a kernel that does not exist, to learn whether the image is valid.
        CUresult::CUDA_ERROR_NOT_FOUND if call == b"cuLibraryGetKernel" => nth == 1,
        // How a driver answers that does not know the attribute.
        CUresult::CUDA_ERROR_INVALID_VALUE if call == b"cuGraphKernelNodeGetAttribute" => true,
        // Freed or destroyed later, elsewhere.
        CUresult::CUDA_ERROR_NOT_PERMITTED if call.starts_with(b"cu") && is_an_end(call) => true,
        // Called by the reaper, for a fence: it tries again.
        CUresult::CUDA_ERROR_NOT_PERMITTED
            if call.starts_with(b"cuEvent") || call == b"cuStreamWaitEvent" || call == b"cuStreamCreate" =>
        {
            true
        }
        // The answer to a free while its stream captures: the free is repeated later.
        CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_ILLEGAL_STATE
            if call == b"cuMemFreeAsync" =>
        {
            true
        }
        _ if call == b"cuMemFreeAsync" && (900..=908).contains(&code.0) => true,
        // Repeated after all pending frees.
        CUresult::CUDA_ERROR_OUT_OF_MEMORY if call.starts_with(b"cuMemAlloc") => true,
        _ => SPARE.contains(&call),
    }
}

fn is_an_end(call: &[u8]) -> bool {
    [&b"Destroy"[..], b"Free", b"Unload", b"Unregister", b"Release"]
        .iter()
        .any(|part| call.windows(part.len()).any(|window| window == *part))
}

/// Calls that only help: to leave captures alone, to say more in an error, to restore the current
/// context.
const SPARE: [&[u8]; 9] = [
    // Called when an executable is dropped: without an answer, its owners go later.
    b"cuStreamQuery",
    // Called to learn whether this is a host function.
    b"cuCtxGetCurrent",
    b"cuThreadExchangeStreamCaptureMode",
    b"cuCtxPopCurrent",
    b"cuMemGetInfo",
    b"cuGetErrorString",
    b"cuGetErrorName",
    b"cuStreamIsCapturing",
    // A user object that was not released stays with the graph and is released later.
    b"cuGraphReleaseUserObject",
];

/// The plausible codes of a call, none of which ends the context.
fn codes(call: Call) -> &'static [CUresult] {
    const OUT_OF_MEMORY: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    const INVALID_VALUE: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
    const NOT_PERMITTED: CUresult = CUresult::CUDA_ERROR_NOT_PERMITTED;
    const OPERATING_SYSTEM: CUresult = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
    let name = call.symbol().to_bytes();
    match name {
        b"cuCtxPushCurrent" | b"cuCtxPopCurrent" => &[CUresult::CUDA_ERROR_INVALID_CONTEXT],
        b"cuLaunchKernel" | b"cuLaunchKernelEx" => &[
            CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUresult::CUDA_ERROR_INVALID_IMAGE,
            CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        ],
        b"cuLibraryLoadData" | b"cuLinkAddData" | b"cuLinkComplete" => &[
            OUT_OF_MEMORY,
            CUresult::CUDA_ERROR_INVALID_PTX,
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
            CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        ],
        b"cuLibraryGetKernel" => &[OUT_OF_MEMORY, CUresult::CUDA_ERROR_INVALID_PTX],
        // This is how the driver says that there are no more parameters.
        b"cuKernelGetParamInfo" | b"cuFuncGetParamInfo" => &[OPERATING_SYSTEM],
        b"cuStreamQuery" | b"cuEventQuery" => &[OPERATING_SYSTEM, NOT_PERMITTED],
        _ if is_an_end(name) => &[INVALID_VALUE, NOT_PERMITTED],
        _ => &[INVALID_VALUE, OUT_OF_MEMORY, NOT_PERMITTED],
    }
}
