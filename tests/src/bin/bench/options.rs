//! The command line.

use std::path::PathBuf;

use crate::driver::Choice;

/// The options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) driver: Choice,
    pub(crate) task: Task,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The host's time of each operation and of the raw call.
    Figures { json: bool, filter: Option<String> },
    /// The slowest launch while things are dropped elsewhere.
    Latency,
    /// The memory over so many replays with a new buffer each.
    Replays(u32),
    /// Graphs in all shapes, with a picture if a file is named.
    Shapes { filter: Option<String>, svg: Option<PathBuf> },
}

const USAGE: &str = "usage: bench [--driver null|soft|system|PATH] [--json] [--filter TEXT] | bench --latency|--replays COUNT [--driver soft|system|PATH] | bench --shapes [--filter TEXT] [--svg FILE] [--driver soft|system|PATH]";

impl Options {
    /// The last one counts of an option that is given twice.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut driver, mut json, mut filter, mut svg, mut other) = (None, false, None, None, None);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} lacks its value\n{USAGE}"));
            match name.as_str() {
                "--driver" => driver = Some(Choice::parse(&value()?)),
                "--filter" => filter = Some(value()?),
                "--json" => json = true,
                "--svg" => svg = Some(PathBuf::from(value()?)),
                "--shapes" => other = Some((name, Task::Shapes { filter: None, svg: None })),
                "--latency" => other = Some((name, Task::Latency)),
                "--replays" => {
                    let count = value()?;
                    let count = count.parse().map_err(|_| format!("{count} is no count\n{USAGE}"))?;
                    other = Some((name, Task::Replays(count)));
                }
                _ => return Err(format!("{name} is unknown\n{USAGE}")),
            }
        }
        if svg.is_some() && !matches!(other, Some((_, Task::Shapes { .. }))) {
            return Err(format!("--svg goes with --shapes alone\n{USAGE}"));
        }
        let Some((name, task)) = other else {
            let driver = driver.unwrap_or(Choice::Null);
            return Ok(Self { driver, task: Task::Figures { json, filter } });
        };
        match driver.unwrap_or(Choice::Soft) {
            Choice::Null => Err(format!("on the driver that does nothing no work runs for {name}\n{USAGE}")),
            driver if name == "--shapes" && !json => Ok(Self { driver, task: Task::Shapes { filter, svg } }),
            _ if json || filter.is_some() => {
                Err(format!("{name} goes with neither --json nor --filter\n{USAGE}"))
            }
            driver => Ok(Self { driver, task }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn without_options_the_figures_are_measured_on_the_driver_that_does_nothing() {
        let options = parse("").expect("nothing is needed");
        assert_eq!(options.driver, Choice::Null);
        assert_eq!(options.task, Task::Figures { json: false, filter: None });
    }

    #[test]
    fn options_are_read() {
        let options = parse("--driver soft --json --filter launch").expect("all are known");
        assert_eq!(options.driver, Choice::Soft);
        assert_eq!(options.task, Task::Figures { json: true, filter: Some("launch".to_owned()) });
        let options = parse("--latency --driver system").expect("all are known");
        assert_eq!((options.driver, options.task), (Choice::System, Task::Latency));
        let options = parse("--replays 1000").expect("all are known");
        assert_eq!((options.driver, options.task), (Choice::Soft, Task::Replays(1000)));
    }

    #[test]
    fn shapes_can_be_filtered_and_drawn() {
        let options = parse("--shapes --filter chain --svg x.svg").expect("all are known");
        let (filter, svg) = (Some("chain".to_owned()), Some(PathBuf::from("x.svg")));
        assert_eq!((options.driver, options.task), (Choice::Soft, Task::Shapes { filter, svg }));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for line in [
            "--driver",
            "--fast",
            "--latency --driver null",
            "--latency --json",
            "--replays",
            "--replays many",
            "--replays 5 --filter launch",
            "--shapes --json",
            "--shapes --driver null",
            "--svg x.svg",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
