//! What is on this machine, in lines.

use std::fmt;
use std::path::Path;

use super::{FoundDevice, FoundDriver, Machine, sanitizer};

impl fmt::Display for FoundDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        if let Some(capability) = &self.capability {
            write!(formatter, ", capability {capability}")?;
        }
        self.memory
            .map_or(Ok(()), |bytes| write!(formatter, ", {:.1} GiB", bytes as f64 / f64::from(1 << 30)))
    }
}

impl fmt::Display for FoundDriver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.as_deref().map_or(self.name.as_str().into(), Path::to_string_lossy);
        match (&self.version, &self.problem) {
            (_, Some(problem)) => write!(formatter, "{name}: {problem}"),
            (Some(version), None) => write!(formatter, "{version}, {name}"),
            (None, None) => write!(formatter, "{name}"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: &dyn fmt::Display| writeln!(formatter, "{name:10} {text}");
        line("driver", self.driver())?;
        for (number, device) in self.driver().devices.iter().enumerate() {
            line(&format!("device {number}"), device)?;
        }
        for driver in self.drivers.iter().skip(1) {
            line("beside", driver)?;
        }
        found(&mut line, "sanitizer", self.sanitizer.as_deref(), Some(sanitizer::VARIABLE))?;
        for library in &self.libraries {
            found(&mut line, library.name, library.file.as_deref(), library.variable)?;
        }
        Ok(())
    }
}

fn found(
    line: &mut impl FnMut(&str, &dyn fmt::Display) -> fmt::Result,
    name: &str,
    file: Option<&Path>,
    variable: Option<&str>,
) -> fmt::Result {
    match (file, variable) {
        (Some(file), _) => line(name, &file.display()),
        (None, Some(variable)) => line(name, &format_args!("not found; {variable} can name it")),
        (None, None) => line(name, &"not found"),
    }
}
