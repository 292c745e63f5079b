//! The width of comments and of Markdown: at most 100 columns.
//!
//! rustfmt breaks code at 110 columns and leaves comments alone. Tables are exempt, and so is a
//! line that holds nothing but a URL, since neither can be broken. Examples inside documentation
//! are comment lines, and fenced code in Markdown is Markdown.

use super::files::{File, Files};

const COLUMNS: usize = 100;

/// One finding for each line that is too wide.
pub(super) fn check(files: &Files) -> Vec<String> {
    files.written().iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<String> {
    let is_prose: fn(&str) -> Option<&str> = match file.path.rsplit_once('.') {
        Some((_, "rs" | "cu")) => comment,
        Some((_, "md")) => |line| Some(line),
        _ => return Vec::new(),
    };
    let lines = (1..).zip(file.text.lines());
    let wide = lines.filter_map(|(number, line)| {
        let columns = line.chars().count();
        let prose = is_prose(line).filter(|_| columns > COLUMNS)?;
        (!cannot_break(prose)).then_some((number, columns))
    });
    wide.map(|(number, columns)| format!("{}:{number}: {columns} columns", file.path)).collect()
}

/// The text of a line that is a comment, and not part of a string that goes on.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//").filter(|_| !line.ends_with("\\n\\"))?;
    Some(text.trim_start_matches(['/', '!']))
}

fn cannot_break(prose: &str) -> bool {
    let text = prose.trim();
    let is_table = text.starts_with('|');
    // `[name]: https://…` is the definition of a link.
    let target = text.split_once("]: ").map_or(text, |(_, target)| target);
    let is_url = target.contains("://") && !target.contains(' ');
    is_table || is_url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> usize {
        check_file(&File { path: path.to_owned(), text: format!("short\n{line}\n") }).len()
    }

    #[test]
    fn wide_comments_and_wide_markdown_are_found() {
        let words = "word ".repeat(20) + "end";
        for line in [format!("// {words}"), format!("    /// {words}"), format!("//! # {words}")] {
            assert_eq!(found("a.rs", &line), 1, "{line}");
        }
        assert_eq!(found("a.md", &words), 1);
        assert_eq!(found("a.rs", &words), 0, "code is rustfmt's");
        assert_eq!(found("a.rs", &format!("/// {words}\\n\\")), 0, "a string");
        assert_eq!(found("a.toml", &words), 0);
    }

    #[test]
    fn tables_and_urls_may_be_wide() {
        let wide = "x".repeat(120);
        for line in [format!("| {wide} |"), format!("[a]: https://{wide}"), format!("<https://{wide}>")] {
            assert_eq!(found("a.md", &line), 0, "{line}");
            assert_eq!(found("a.rs", &format!("/// {line}")), 0, "{line}");
        }
        assert_eq!(found("a.md", &format!("see https://{wide}")), 1);
    }

    #[test]
    fn columns_are_characters() {
        assert_eq!(found("a.md", &"é".repeat(100)), 0);
        assert_eq!(found("a.md", &"é".repeat(101)), 1);
    }
}
