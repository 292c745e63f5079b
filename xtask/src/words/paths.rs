//! The files that the documents name: each exists.
//!
//! A document is every Markdown file but CHANGELOG.md, which tells of files as they were. It names
//! a file by a link, or as code: a span that ends with `.rs`, `.md`, `.toml`, `.ptx`, `.cu` or `/`,
//! or begins with a folder of the workspace's root. A span may leave out leading folders, as in
//! `memory/pool.rs`; then some file has to end with it.

use super::files::{File, Files};

const EXTENSIONS: [&str; 5] = [".rs", ".md", ".toml", ".ptx", ".cu"];

/// One finding for each name of a file that does not exist.
pub(super) fn check(files: &Files) -> Vec<String> {
    let documents = files.written().iter().filter(|file| file.path.ends_with(".md"));
    let documents = documents.filter(|file| file.path != "CHANGELOG.md");
    documents.flat_map(|file| check_file(file, files.all())).collect()
}

fn check_file(file: &File, all: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let spans = line.split('`').skip(1).step_by(2);
        let named = spans.filter(|span| !is_code && is_path(span, all) && !ends_a_path(span, all));
        let linked = targets(line).filter(|target| !is_code && !leads(&file.path, target, all));
        for name in named.chain(linked) {
            findings.push(format!("{}:{number}: there is no {name}", file.path));
        }
    }
    findings
}

/// Whether a span of code names a file or a folder.
fn is_path(span: &str, all: &[String]) -> bool {
    let plain = span.chars().all(|one| one.is_ascii_alphanumeric() || "_-./".contains(one));
    let named = EXTENSIONS.iter().any(|extension| span.ends_with(extension) && span != *extension);
    let folder = span.ends_with('/') && span.len() > 1;
    let rooted = span.split_once('/').is_some_and(|(first, _)| is_root_folder(first, all));
    plain && !span.starts_with('/') && (named || folder || rooted)
}

fn is_root_folder(name: &str, all: &[String]) -> bool {
    all.iter().any(|path| path.split_once('/').is_some_and(|(first, _)| first == name))
}

/// Whether some file or folder of the workspace ends with `span`, folder by folder.
fn ends_a_path(span: &str, all: &[String]) -> bool {
    let inner = format!("/{}/", span.trim_matches('/'));
    all.iter().any(|path| {
        let path = format!("/{path}/");
        if is_root_folder(span.split('/').next().unwrap_or_default(), all) {
            path.starts_with(&inner)
        } else {
            path.contains(&inner)
        }
    })
}

/// The targets of the links in a line that may be files.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inside = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = inside.map(|(target, _)| target.split('#').next().unwrap_or_default());
    // Documentation of Rust also links to items, which rustdoc checks.
    targets.filter(|target| !target.contains("::") && !target.contains(':') && target.contains(['/', '.']))
}

/// Whether a link in `document` leads to a file or a folder of the workspace.
fn leads(document: &str, target: &str, all: &[String]) -> bool {
    let mut folders: Vec<&str> = document.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()),
            _ => folders.push(part),
        }
    }
    let path = folders.join("/");
    all.iter()
        .any(|found| found.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let all = ["docs/a.md", "crates/graph/src/memory/rules.rs", "README.md"].map(str::to_owned);
        check_file(&File { path: "docs/a.md".to_owned(), text: text.to_owned() }, &all)
    }

    #[test]
    fn what_exists_may_be_named() {
        let text = "`rules.rs`, `memory/rules.rs`, `memory/`, `crates/graph`, `crates/graph/src/memory/rules.rs`\n\
            [readme](../README.md), [part](a.md#part), [web](https://example.com/a.md), [item](crate::a)\n\
            `cuda.h`, `a / b`, `.rs`, `mov.u32`\n```sh\nls `gone.rs`\n```\n";
        assert_eq!(findings(text), [""; 0]);
    }

    #[test]
    fn what_does_not_exist_is_found() {
        let text = "`gone.rs` `ules.rs`\n`crates/graph/gone` `order/`\n[a](gone.md)";
        let expected = [
            "docs/a.md:1: there is no gone.rs",
            "docs/a.md:1: there is no ules.rs",
            "docs/a.md:2: there is no crates/graph/gone",
            "docs/a.md:2: there is no order/",
            "docs/a.md:3: there is no gone.md",
        ];
        assert_eq!(findings(text), expected);
    }
}
