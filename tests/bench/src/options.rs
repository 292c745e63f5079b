//! The command line.

use std::path::PathBuf;

use crate::driver::Choice;
use crate::record::Part;

/// The options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) driver: Choice,
    pub(crate) task: Task,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Times beside those of the raw driver.
    Measure(Measure),
    /// One operation so often, twice, for a profiler.
    Twice { operation: String, count: u32 },
    /// The slowest launch while things are dropped elsewhere.
    Latency,
    /// The memory over so many replays with a new buffer each.
    Replays(u32),
    /// Graphs in all shapes, with a picture if a file is named.
    Shapes { filter: Option<String>, svg: Option<PathBuf> },
}

/// What to measure, and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) parts: Vec<Part>,
    pub(crate) filter: Option<String>,
    pub(crate) json: bool,
    /// Measures just enough to show that everything runs.
    pub(crate) is_quick: bool,
    /// The driver's library is the software driver.
    pub(crate) is_smoke_test: bool,
    pub(crate) save: Option<PathBuf>,
    pub(crate) compare: Option<PathBuf>,
    /// A file for the tables as Markdown.
    pub(crate) markdown: Option<PathBuf>,
    /// A folder for plots.
    pub(crate) svg: Option<PathBuf>,
    /// A file with lines of peers in other languages.
    pub(crate) lines: Option<PathBuf>,
    /// The commit that was built.
    pub(crate) commit: Option<String>,
}

const USAGE: &str = "usage:
  bench [--driver null|soft|system|PATH] [--part paths|graphs|sizes|collectives]… [--filter TEXT] [--quick] [--json]
        [--save FILE] [--compare FILE] [--markdown FILE] [--svg FOLDER] [--peer-lines FILE] [--commit TEXT]
        [--smoke-test]
  bench --twice OPERATION --count COUNT [--driver …]
  bench --latency|--replays COUNT [--driver soft|system|PATH]
  bench --shapes [--filter TEXT] [--svg FILE] [--driver soft|system|PATH]";

/// The options as given. The last one counts of one that is given twice, except for parts.
#[derive(Default)]
struct Given {
    driver: Option<Choice>,
    filter: Option<String>,
    svg: Option<PathBuf>,
    count: Option<u32>,
    /// The options of measurements alone, the first of which is named in errors.
    measured: Option<String>,
    parts: Vec<Part>,
    flags: [bool; 3],
    files: [Option<PathBuf>; 4],
    commit: Option<String>,
    other: Option<(String, Task)>,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut given = Given::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} lacks its value"));
            given.read(&name, &mut value).map_err(|error| format!("{error}\n{USAGE}"))?;
        }
        given.options().map_err(|error| format!("{error}\n{USAGE}"))
    }
}

impl Given {
    fn read(&mut self, name: &str, value: &mut dyn FnMut() -> Result<String, String>) -> Result<(), String> {
        match name {
            "--driver" => self.driver = Some(Choice::parse(&value()?)),
            "--filter" => self.filter = Some(value()?),
            "--svg" => self.svg = Some(PathBuf::from(value()?)),
            "--count" => self.count = Some(number(&value()?)?),
            "--latency" => self.other = Some((name.to_owned(), Task::Latency)),
            "--replays" => self.other = Some((name.to_owned(), Task::Replays(number(&value()?)?))),
            "--shapes" => self.other = Some((name.to_owned(), Task::Shapes { filter: None, svg: None })),
            "--twice" => {
                self.other = Some((name.to_owned(), Task::Twice { operation: value()?, count: 0 }));
            }
            _ => {
                self.read_measured(name, value)?;
                self.measured.get_or_insert_with(|| name.to_owned());
            }
        }
        Ok(())
    }

    fn read_measured(
        &mut self,
        name: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        let [json, quick, smoke_test] = &mut self.flags;
        let [save, compare, lines, markdown] = &mut self.files;
        match name {
            "--json" => *json = true,
            "--quick" => *quick = true,
            "--smoke-test" => *smoke_test = true,
            "--save" => *save = Some(PathBuf::from(value()?)),
            "--compare" => *compare = Some(PathBuf::from(value()?)),
            "--markdown" => *markdown = Some(PathBuf::from(value()?)),
            "--peer-lines" => *lines = Some(PathBuf::from(value()?)),
            "--commit" => self.commit = Some(value()?),
            "--part" => {
                let part = value()?;
                let part = Part::parse(&part).ok_or_else(|| format!("{part} is no part"))?;
                if !self.parts.contains(&part) {
                    self.parts.push(part);
                }
            }
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }

    fn options(mut self) -> Result<Options, String> {
        let Some((name, task)) = self.other.take() else {
            let driver = self.driver.take().unwrap_or(Choice::Null);
            return Ok(Options { driver, task: Task::Measure(self.measure()) });
        };
        if let Some(measured) = self.measured {
            return Err(format!("{name} goes without {measured}"));
        }
        let task = match (task, self.filter, self.svg, self.count) {
            (Task::Shapes { .. }, filter, svg, None) => Task::Shapes { filter, svg },
            (Task::Twice { operation, .. }, None, None, Some(count)) => Task::Twice { operation, count },
            (Task::Twice { .. }, ..) => return Err(format!("{name} goes with --count alone")),
            (task, None, None, None) => task,
            _ => return Err(format!("{name} goes with --driver alone")),
        };
        let usual = if matches!(task, Task::Twice { .. }) { Choice::Null } else { Choice::Soft };
        match self.driver.unwrap_or(usual) {
            Choice::Null if !matches!(task, Task::Twice { .. }) => {
                Err(format!("on the driver that does nothing no work runs for {name}"))
            }
            driver => Ok(Options { driver, task }),
        }
    }

    fn measure(self) -> Measure {
        let ([json, is_quick, is_smoke_test], [save, compare, lines, markdown]) = (self.flags, self.files);
        let parts = if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts };
        let (filter, svg, commit) = (self.filter, self.svg, self.commit);
        Measure { parts, filter, json, is_quick, is_smoke_test, save, compare, markdown, svg, lines, commit }
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text} is no count"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    fn measure(line: &str) -> (Choice, Measure) {
        match parse(line).expect("all are known") {
            Options { driver, task: Task::Measure(measure) } => (driver, measure),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_options_all_is_measured_on_the_driver_that_does_nothing() {
        let (driver, measure) = measure("");
        assert_eq!((driver, measure.parts.len()), (Choice::Null, 4));
        assert!(!measure.json && !measure.is_quick && measure.save.is_none());
    }

    #[test]
    fn options_are_read() {
        let (driver, found) =
            measure("--driver soft --json --filter launch --part sizes --part sizes --save x --commit c");
        assert_eq!((driver, found.parts), (Choice::Soft, vec![Part::Sizes]));
        assert!(found.json);
        assert_eq!((found.filter.as_deref(), found.commit.as_deref()), (Some("launch"), Some("c")));
        assert_eq!(found.save, Some(PathBuf::from("x")));
        let options = parse("--latency --driver system").expect("all are known");
        assert_eq!((options.driver, options.task), (Choice::System, Task::Latency));
        let options = parse("--replays 1000").expect("all are known");
        assert_eq!((options.driver, options.task), (Choice::Soft, Task::Replays(1000)));
        let options = parse("--twice fill --count 7").expect("all are known");
        let task = Task::Twice { operation: "fill".to_owned(), count: 7 };
        assert_eq!((options.driver, options.task), (Choice::Null, task));
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
            "--part all",
            "--twice fill",
            "--latency --driver null",
            "--latency --json",
            "--replays",
            "--replays many",
            "--replays 5 --filter launch",
            "--shapes --json",
            "--shapes --driver null",
            "--latency --svg x.svg",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
