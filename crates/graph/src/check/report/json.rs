//! Reports as JSON.

use core::fmt::{self, Write};

use super::node::FoundNode;
use super::race::{Race, RacingAccess, RacingMemory};
use super::{Finding, NotCompared, Report, Stopped};

impl Report {
    /// The report as one line of JSON, for programs.
    ///
    /// The line is an object:
    ///
    /// | Key | Value |
    /// | --- | --- |
    /// | `clean` | [`is_clean`](Self::is_clean) |
    /// | `findings` | a list, see below |
    /// | `opaque` | a list of objects with the `node` and `why` it is opaque |
    /// | `left_out` | how many findings were [left out](Self::left_out) |
    /// | `stopped` | null, or an object, see below |
    ///
    /// Each finding has `severity`, `class`, `text`, `remedy` and `nodes`; each node its `name` and
    /// the list of names that it is `within`. A data race also has `race`: the `memory`, the
    /// `bytes` with `start` and `end`, the accesses `first` and `second`, and the `edge` that would
    /// fix it, or, if the nodes are `linked`, that needs another kind. Other findings that an edge
    /// would fix have an `edge`, too, and memory that is never freed its `bytes`.
    ///
    /// `stopped` has a `text`, and for a search that reached its limits the `ranges` of memory that
    /// were not compared, `of` how many, and the `first` of them.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_json(&mut text);
        text
    }

    fn write_json(&self, out: &mut String) -> fmt::Result {
        write!(out, "{{\"clean\":{},\"findings\":", self.is_clean())?;
        list(out, &self.findings, finding)?;
        out.write_str(",\"opaque\":")?;
        list(out, &self.opaque, |out, opaque| {
            out.write_str("{\"node\":")?;
            node(out, &opaque.node)?;
            write!(out, ",\"why\":{}}}", JsonString(opaque.why.reason()))
        })?;
        write!(out, ",\"left_out\":{},\"stopped\":", self.left_out)?;
        match &self.stopped {
            None => out.write_str("null")?,
            Some(stopped) => stop(out, stopped)?,
        }
        out.write_char('}')
    }
}

fn finding(out: &mut String, finding: &Finding) -> fmt::Result {
    let (severity, text) = (finding.severity().to_string(), finding.to_string());
    let (class, remedy) = (finding.class(), finding.remedy());
    write!(out, "{{\"severity\":{},\"class\":{},", JsonString(&severity), JsonString(class))?;
    write!(out, "\"text\":{},\"remedy\":{},\"nodes\":", JsonString(&text), JsonString(&remedy))?;
    list(out, &finding.nodes(), |out, found| node(out, found))?;
    match finding {
        Finding::Race(found) => {
            out.write_str(",\"race\":")?;
            race(out, found)?;
        }
        Finding::UnusedCondition { number, setters, .. } => {
            write!(out, ",\"condition\":{number},\"setters\":")?;
            list(out, setters, |out, setter| write!(out, "{}", JsonString(setter)))?;
        }
        Finding::UnorderedCondition { number, edge: ends, may_wait, .. } => {
            write!(out, ",\"condition\":{number},\"may_wait\":{may_wait},\"edge\":")?;
            edge(out, ends)?;
        }
        Finding::EndlessLoop { number, .. } => write!(out, ",\"condition\":{number}")?,
        Finding::MemoryOrder { edge: ends, .. } => {
            out.write_str(",\"edge\":")?;
            match ends {
                None => out.write_str("null")?,
                Some(ends) => edge(out, ends)?,
            }
        }
        Finding::NeverFreed { bytes, .. } => write!(out, ",\"bytes\":{bytes}")?,
        Finding::Cycle { .. } | Finding::NotInBody { .. } | Finding::MixedContexts { .. } => {}
    }
    out.write_char('}')
}

fn race(out: &mut String, race: &Race) -> fmt::Result {
    out.write_str("{\"memory\":")?;
    memory(out, race.memory.as_ref())?;
    write!(out, ",\"bytes\":{{\"start\":{},\"end\":{}}}", race.bytes.start, race.bytes.end)?;
    out.write_str(",\"first\":")?;
    access(out, &race.first)?;
    out.write_str(",\"second\":")?;
    access(out, &race.second)?;
    write!(
        out,
        ",\"more\":{},\"may_wait\":{},\"linked\":{},\"edge\":",
        race.more, race.may_wait, race.are_linked
    )?;
    edge(out, &race.edge)?;
    out.write_char('}')
}

fn edge(out: &mut String, (from, to): &(FoundNode, FoundNode)) -> fmt::Result {
    out.write_str("{\"from\":")?;
    node(out, from)?;
    out.write_str(",\"to\":")?;
    node(out, to)?;
    out.write_char('}')
}

fn access(out: &mut String, access: &RacingAccess) -> fmt::Result {
    out.write_str("{\"node\":")?;
    node(out, &access.node)?;
    let what = access.access.to_string();
    write!(
        out,
        ",\"access\":{},\"role\":{},\"argument\":{}}}",
        JsonString(&what),
        JsonString(access.role),
        access.is_argument
    )
}

fn memory(out: &mut String, memory: Option<&RacingMemory>) -> fmt::Result {
    match memory {
        None => out.write_str("null"),
        Some(RacingMemory { address, bytes, kind }) => {
            let kind = kind.to_string();
            write!(out, "{{\"address\":{address},\"bytes\":{bytes},\"kind\":{}}}", JsonString(&kind))
        }
    }
}

fn stop(out: &mut String, stopped: &Stopped) -> fmt::Result {
    write!(out, "{{\"text\":{}", JsonString(&stopped.to_string()))?;
    match stopped {
        Stopped::Cycle => {}
        Stopped::Steps(NotCompared { of, ranges, first })
        | Stopped::Races(NotCompared { of, ranges, first }) => {
            write!(out, ",\"ranges\":{ranges},\"of\":{of},\"first\":")?;
            memory(out, first.as_ref())?;
        }
    }
    out.write_char('}')
}

fn node(out: &mut String, found: &FoundNode) -> fmt::Result {
    write!(out, "{{\"name\":{},\"within\":", JsonString(found.name()))?;
    list(out, found.within(), |out, name| write!(out, "{}", JsonString(name)))?;
    out.write_char('}')
}

fn list<T>(out: &mut String, items: &[T], each: impl Fn(&mut String, &T) -> fmt::Result) -> fmt::Result {
    out.write_char('[')?;
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.write_char(',')?;
        }
        each(out, item)?;
    }
    out.write_char(']')
}

/// A JSON string, quoted and escaped.
struct JsonString<'t>(&'t str);

impl fmt::Display for JsonString<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(formatter, "\\{character}")?,
                control if control < ' ' => write!(formatter, "\\u{:04x}", u32::from(control))?,
                other => formatter.write_char(other)?,
            }
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(JsonString("a \"b\" \\ \n ä").to_string(), "\"a \\\"b\\\" \\\\ \\u000a ä\"");
    }
}
