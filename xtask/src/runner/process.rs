//! One child process with its output kept and its time bounded.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::output::Output;

/// How often a child is asked whether it has ended while something else still holds its output
/// open.
const PERIOD: Duration = Duration::from_millis(50);
/// How long the last words of a child that has ended may take to come, on a machine that is busy
/// with other things.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A child that has ended or was stopped.
pub(crate) struct Ended {
    /// `None`: the time was up and it was killed.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output and error, in the order written.
    pub(crate) output: String,
    pub(crate) time: Duration,
}

/// Runs `command` to its end, or kills it after `limit`.
pub(crate) fn run(mut command: Command, limit: Duration) -> std::io::Result<Ended> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let start = Instant::now();
    let mut child = command.spawn()?;
    // The command holds the writing ends; while they are open here, the reader would never see the
    // end.
    drop(command);
    let output = Arc::new(Mutex::new(Output::default()));
    let (at_end, closed) = channel();
    let sink = Arc::clone(&output);
    std::thread::spawn(move || {
        collect(reader, &sink);
        drop(at_end);
    });
    let status = wait(&mut child, &closed, start + limit)?;
    // What the child wrote may still be on its way; a grandchild that lives on must not hold this
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

/// The end of the output wakes this at once; asking now and then is for a child that ends while its
/// output stays open.
fn wait(child: &mut Child, closed: &Receiver<()>, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if closed.recv_timeout(left.min(PERIOD)) == Err(RecvTimeoutError::Disconnected) && !left.is_zero() {
            // Closed output and the end of the process are moments apart, or the child goes on
            // without output.
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
