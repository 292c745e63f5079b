//! A real library is captured: cuBLAS, opened at run time. The numbers are small and whole, so that
//! every order of additions gives the same product.
//!
//! In each test everything is dropped but the executable: library handle, operands, workspace,
//! stream and graphs. What it used it has to keep.

mod library;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cuda_graph::capture::{Capturing, Primary};
use cuda_graph::{GraphBuilder, GraphExec, NodeKind, Result, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Owner, SharedHostBuffer, Stream};
use cuda_sys::{CUgraphNodeType, CUstream};
use cuda_tests::{Setup, no_leaks, setup};

use self::library::{Cublas, Operands};
use crate::common::gone::{flag, soon};

/// All different, and no multiples of a tile.
const M: usize = 67;
const N: usize = 45;
const K: usize = 130;

/// As large as cuBLAS wants it on the largest GPUs.
const WORKSPACE: usize = 32 << 20;

/// What is in `c` before, and its factor.
const BEFORE: f32 = 5.0;
const BETA: f32 = 3.0;

/// Context and library, if there is one; else the test is skipped.
fn with_cublas() -> Option<(Setup, Cublas)> {
    let context = setup();
    match Cublas::new(&context) {
        Ok(cublas) => Some((context, cublas)),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// A matrix of small whole numbers.
fn matrix(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|index| (index * step % 7) as f32 - 3.0).collect()
}

/// The product in plain Rust.
fn on_host(alpha: f32) -> Vec<f32> {
    let (a, b) = (matrix(M * K, 5), matrix(K * N, 3));
    let entries = (0..N).flat_map(|column| (0..M).map(move |row| (row, column)));
    let sum = |(row, column)| (0..K).map(|k| a[row + k * M] * b[k + column * K]).sum::<f32>();
    entries.map(|entry| alpha * sum(entry) + BETA * BEFORE).collect()
}

/// The memory of a product.
#[derive(Clone)]
struct Product {
    a: Buffer<f32>,
    b: Buffer<f32>,
    c: Buffer<f32>,
    workspace: Buffer<u8>,
    result: SharedHostBuffer<f32>,
}

impl Product {
    fn new(stream: &Stream) -> Self {
        let product = Self {
            a: stream.upload(&matrix(M * K, 5)).unwrap(),
            b: stream.upload(&matrix(K * N, 3)).unwrap(),
            c: stream.zeros(M * N).unwrap(),
            workspace: stream.zeros(WORKSPACE).unwrap(),
            result: stream.context().pinned_zeros(M * N).unwrap().share(),
        };
        stream.synchronize_blocking().unwrap();
        product
    }

    /// Enqueues the library's work.
    ///
    /// # Safety
    /// The stream and the memory live as long as the work.
    unsafe fn enqueue(&self, cublas: &Cublas, stream: CUstream, alpha: f32) {
        let operands = Operands {
            sizes: [M, N, K],
            alpha,
            beta: BETA,
            a: self.a.address(),
            b: self.b.address(),
            c: self.c.address(),
            workspace: (self.workspace.address(), WORKSPACE),
        };
        // SAFETY: the caller's promise.
        unsafe { cublas.multiply(stream, &operands) };
    }

    /// The owners of everything that the library's work uses.
    fn owners(&self) -> Vec<Owner> {
        let Self { a, b, c, workspace, .. } = self;
        vec![a.into(), b.into(), c.into(), workspace.into()]
    }

    /// The result of the same calls without a capture. The library loads its kernels here, too.
    fn plain(&self, cublas: &Cublas, stream: &Stream, alpha: f32) -> Vec<f32> {
        stream.fill(&self.c, BEFORE).unwrap();
        // SAFETY: stream and memory are alive, and the read below waits for the work.
        unsafe { self.enqueue(cublas, stream.as_raw(), alpha) };
        let plain = self.c.read_blocking(stream).unwrap();
        assert_eq!(plain, on_host(alpha), "cuBLAS without a capture is not as plain Rust");
        plain
    }

    /// Captures a fill of `c`, then `work`, then the way of `c` to the returned results: nothing of
    /// ours has to be alive to see them.
    fn around(
        &self,
        capture: &GraphBuilder<Primary, Capturing>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Results> {
        let results = Results::default();
        let seen = Arc::clone(&results);
        capture.fill(&self.c, BEFORE)?;
        work()?;
        capture.copy(&self.c, &self.result)?;
        capture.callback_with(&self.result, move |view| seen.lock().unwrap().push(view.to_vec()))?;
        Ok(results)
    }
}

/// The results of each launch.
type Results = Arc<Mutex<Vec<Vec<f32>>>>;

/// Launches twice, on a stream of its own, and compares. Memory that the executable did not keep
/// would be given to other buffers, which are full of other numbers.
#[track_caller]
fn assert_launches_give(context: &Context, mut exec: GraphExec, results: &Results, expected: &[f32]) {
    let stream = context.stream().unwrap();
    let others: Vec<_> = [M * K, K * N, M * N, WORKSPACE / 4]
        .map(|len| {
            let other = stream.alloc::<f32>(len).unwrap();
            stream.fill(&other, f32::NAN).unwrap();
            other
        })
        .into();
    for _ in 0..2 {
        exec.launch(&stream).unwrap();
    }
    stream.synchronize_blocking().unwrap();
    let results = results.lock().unwrap();
    assert_eq!(results.len(), 2, "each launch calls the host function");
    for (launch, result) in (1..).zip(&*results) {
        let wrong = result.iter().zip(expected).position(|(found, expected)| found != expected);
        let shown = wrong.map(|index| (index, result[index], expected[index]));
        assert_eq!(shown, None, "launch {launch}: index, number and expected number of the first difference");
    }
    drop(others);
}

/// The driver does not describe each kernel of other code in full.
fn is_kernel(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Kernel | NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL))
}

fn captured_in(mode: CaptureMode) {
    let Some((context, cublas)) = with_cublas() else { return };
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let product = Product::new(&stream);
        let expected = product.plain(&cublas, &stream, 2.0);
        let (mark, is_gone) = flag();
        let captured = stream.try_capture(mode, |capture| {
            product.around(capture, || {
                let keep = product.owners().into_iter().chain([mark]);
                // SAFETY: the work is on this stream and uses what it keeps.
                unsafe { capture.foreign(|raw| product.enqueue(&cublas, raw, 2.0), keep) }
            })
        });
        let (graph, results) = captured.unwrap();
        let kinds: Vec<_> = graph.nodes().unwrap().iter().map(|node| node.kind()).collect();
        println!("captured: {kinds:?}");
        assert!(kinds.iter().any(|kind| is_kernel(*kind)), "{kinds:?}");
        let exec = graph.instantiate().unwrap();
        stream.synchronize_blocking().unwrap();
        drop((graph, product, stream, cublas));
        assert!(!is_gone(), "the executable keeps what `foreign` was given");
        assert_launches_give(&context, exec, &results, &expected);
        assert!(soon(&is_gone), "nothing keeps it after the executable");
    });
}

#[test]
fn captured_thread_local_it_runs_without_its_makers() {
    captured_in(CaptureMode::ThreadLocal);
}

#[test]
fn captured_relaxed_it_runs_without_its_makers() {
    captured_in(CaptureMode::Relaxed);
}

#[test]
fn its_graph_is_embedded_in_another_capture() {
    let Some((context, cublas)) = with_cublas() else { return };
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let product = Product::new(&stream);
        let expected = product.plain(&cublas, &stream, 2.0);
        let (mark, is_gone) = flag();
        let work = stream.capture(CaptureMode::ThreadLocal, |capture| {
            let keep = product.owners().into_iter().chain([mark]);
            // SAFETY: the work is on this stream and uses what it keeps.
            unsafe { capture.foreign(|raw| product.enqueue(&cublas, raw, 2.0), keep) }
        });
        let work = work.unwrap();
        let captured = stream.try_capture(CaptureMode::ThreadLocal, |capture| {
            product.around(capture, || capture.embed(&work).map(drop))
        });
        let (graph, results) = captured.unwrap();
        let kinds: Vec<_> = graph.nodes().unwrap().iter().map(|node| node.kind()).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == NodeKind::ChildGraph).count(), 1, "{kinds:?}");
        let exec = graph.instantiate().unwrap();
        stream.synchronize_blocking().unwrap();
        drop((graph, work, product, stream, cublas));
        assert!(!is_gone(), "the executable keeps what the child graph keeps");
        assert_launches_give(&context, exec, &results, &expected);
        assert!(soon(&is_gone), "nothing keeps it after the executable");
    });
}

#[test]
fn embedded_as_foreign_work_it_is_captured_again_for_another_factor() {
    let Some((context, cublas)) = with_cublas() else { return };
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let product = Product::new(&stream);
        let [two, five] = [2.0, 5.0].map(|alpha| product.plain(&cublas, &stream, alpha));
        let captures = Arc::new(AtomicU32::new(0));
        let (counted, cublas, inside) = (Arc::clone(&captures), Mutex::new(cublas), product.clone());
        let work = move |raw: CUstream, alpha: &f32| {
            counted.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the work is on this stream and uses what is returned.
            unsafe { inside.enqueue(&cublas.lock().unwrap(), raw, *alpha) };
            Ok(inside.owners())
        };
        let mut node = None;
        let captured = stream.try_capture(CaptureMode::ThreadLocal, |capture| {
            product.around(capture, || {
                // SAFETY: as above.
                node = Some(unsafe { capture.embed_foreign(2.0, work) }?);
                Ok(())
            })
        });
        let ((graph, results), node) = (captured.unwrap(), node.unwrap());
        let with_two = graph.instantiate().unwrap();
        node.set(5.0).unwrap();
        let with_five = graph.instantiate().unwrap();
        node.set(2.0).unwrap();
        assert_eq!(captures.load(Ordering::Relaxed), 2, "the graph of the first factor is known");
        let again = graph.instantiate().unwrap();
        stream.synchronize_blocking().unwrap();
        drop((node, graph, product, stream));
        for (exec, expected) in [(with_two, &two), (with_five, &five), (again, &two)] {
            results.lock().unwrap().clear();
            assert_launches_give(&context, exec, &results, expected);
        }
    });
}
