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

/// Runs `command` with its own input and output, and kills it after `limit`; `None` then.
pub(crate) fn status_within(mut command: Command, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    end_with_this_process(&mut command);
    let (_open, closed) = channel();
    let mut child = command.spawn()?;
    wait(&mut child, &closed, Instant::now() + limit)
}

fn run_into(output: Output, mut command: Command, limit: Duration) -> std::io::Result<Ended> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    end_with_this_process(&mut command);
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
            kill(child)?;
            return Ok(None);
        }
    }
}

/// A child does not outlive a runner that is killed. The system looks at the thread that starts the
/// child: here, one that waits for it.
fn end_with_this_process(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        // SAFETY: between fork and exec only one call is made, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Kills a child and what it has started: a program that watches a test runs it as a child of its
/// own.
fn kill(child: &mut Child) -> std::io::Result<()> {
    let started = descendants(child.id());
    child.kill()?;
    for process in started {
        // SAFETY: the call takes plain numbers. The process ran a moment ago, and one that has
        // ended since is an answer that does not matter.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
    child.wait()?;
    Ok(())
}

/// The processes that a process has started, and those that they have started, by `/proc`.
fn descendants(process: u32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = numbers.filter_map(|number| Some((number, parent(number)?))).collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(number, _)| *number));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(|number| i32::try_from(number).ok()).collect()
}

/// The parent of a process: the second word behind its name, which may have any letters.
fn parent(process: u32) -> Option<u32> {
    let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_stopped_leaves_no_process_behind() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'echo $$; sleep 60; true'; true"]);
        let ended = run(command, Duration::from_millis(500)).unwrap();
        assert!(ended.status.is_none());
        assert!(ended.time < LAST_WORDS, "{ended:?}");
        let grandchild: u32 = ended.output.trim().parse().unwrap();
        // It is gone, or a zombie that nobody has looked at.
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}
