//! A child process with captured output and bounded time.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::output::Output;

/// How often to look whether a child has ended while another process still holds its output open.
const PERIOD: Duration = Duration::from_millis(50);
/// How long the rest of the output of a child that has ended may take on a busy machine.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A child that has ended or was stopped.
#[derive(Debug)]
pub struct Ended {
    /// `None` if the child was killed because its time was up.
    pub status: Option<ExitStatus>,
    /// Standard output and error, in the order of writing.
    pub output: String,
    /// How long the child ran.
    pub time: Duration,
}

/// Runs `command`, and kills it after `limit`. Of long output it keeps the beginning and the end.
///
/// # Errors
/// The command does not start, or cannot be waited for.
pub fn run(command: Command, limit: Duration) -> std::io::Result<Ended> {
    run_into(Output::default(), command, limit)
}

/// As [`run`], with all of the output.
pub(crate) fn run_for_output(command: Command, limit: Duration) -> std::io::Result<Ended> {
    run_into(Output::whole(), command, limit)
}

fn run_into(output: Output, mut command: Command, limit: Duration) -> std::io::Result<Ended> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let start = Instant::now();
    let mut child = command.spawn()?;
    // The command holds the writing ends. While they are open, the reader never sees the end.
    drop(command);
    let output = Arc::new(Mutex::new(output));
    let (at_end, closed) = channel();
    let sink = Arc::clone(&output);
    std::thread::spawn(move || {
        collect(reader, &sink);
        drop(at_end);
    });
    let status = wait(&mut child, &closed, start + limit)?;
    // The child's output may still be on its way, but a grandchild that lives on must not hold this
    // up for ever.
    let _ = closed.recv_timeout(LAST_WORDS);
    let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ended { status, output: output.into_text(), time: start.elapsed() })
}

fn collect(mut reader: std::io::PipeReader, sink: &Mutex<Output>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut chunk) {
        let mut output = sink.lock().unwrap_or_else(PoisonError::into_inner);
        output.push(chunk.get(..count).unwrap_or_default());
    }
}

/// The end of the output wakes this at once. Polling is for a child that ends while its output
/// stays open.
fn wait(child: &mut Child, closed: &Receiver<()>, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if closed.recv_timeout(left.min(PERIOD)) == Err(RecvTimeoutError::Disconnected) && !left.is_zero() {
            // The process ends moments after it closes its output, or goes on without output.
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if left.is_zero() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
    }
}
