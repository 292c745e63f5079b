//! The command line.

use std::path::PathBuf;

use crate::driver::Choice;

/// The options of the demo.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) driver: Choice,
    pub(crate) size: Option<u32>,
    pub(crate) steps: Option<u32>,
    pub(crate) out: PathBuf,
    /// Only name the driver and its devices.
    pub(crate) describe: bool,
}

const USAGE: &str =
    "usage: heat [--driver auto|soft|system|PATH] [--size N] [--steps N] [--out FOLDER] [--describe]";

impl Options {
    /// The last one counts of an option that is given twice.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            driver: Choice::Auto,
            size: None,
            steps: None,
            out: PathBuf::from("target/demo"),
            describe: false,
        };
        while let Some(name) = arguments.next() {
            if name == "--describe" {
                options.describe = true;
                continue;
            }
            let value =
                arguments.next().ok_or_else(|| format!("{name} is unknown or lacks its value\n{USAGE}"))?;
            match name.as_str() {
                "--driver" => options.driver = Choice::from(value),
                "--size" => options.size = Some(number(&name, &value, 16, 16384)?),
                "--steps" => options.steps = Some(number(&name, &value, 2, 10000)?),
                "--out" => options.out = PathBuf::from(value),
                _ => return Err(format!("{name} is unknown\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// Two plates take turns, so an even number of steps ends on the plate where it began.
fn number(name: &str, value: &str, least: u32, most: u32) -> Result<u32, String> {
    let number =
        value.parse().ok().filter(|number| (least..=most).contains(number) && number.is_multiple_of(2));
    number.ok_or_else(|| format!("{name} takes an even number from {least} to {most}, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_and_the_later_wins() {
        let options = parse("--driver system --size 64 --describe --driver soft").expect("all are known");
        assert_eq!(options.driver, Choice::Soft);
        assert_eq!(options.size, Some(64));
        assert_eq!(options.steps, None);
        assert!(options.describe);
    }

    #[test]
    fn wrong_options_are_named() {
        for (line, named) in
            [("--size 7", "--size"), ("--size x", "not x"), ("--steps", "--steps"), ("-x 1", "-x")]
        {
            let message = parse(line).expect_err(line);
            assert!(message.contains(named), "{message}");
        }
    }
}
