//! Pages of HTML, and the links between them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The pages of the documentation by their paths in its folder.
pub(crate) struct Pages {
    texts: HashMap<PathBuf, String>,
    others: HashSet<PathBuf>,
}

impl Pages {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut pages = Self { texts: HashMap::new(), others: HashSet::new() };
        let mut folders = vec![folder.to_owned()];
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(&inner)? {
                let path = entry?.path();
                let name = path.strip_prefix(folder)?.to_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.extension().is_some_and(|extension| extension == "html") {
                    let text = std::fs::read_to_string(&path).context("a page is no text")?;
                    pages.texts.insert(name, text);
                } else {
                    pages.others.insert(name);
                }
            }
        }
        Ok(pages)
    }

    /// The pages with their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// Of the pages in the folders `libraries`.
    pub(crate) fn dead_links(&self, libraries: &BTreeSet<String>) -> Vec<String> {
        let mut dead = BTreeSet::new();
        let is_written = |page: &Path| libraries.iter().any(|library| page.starts_with(library));
        let written = self.texts.iter().filter(|(page, _)| is_written(page));
        for (page, text) in written {
            // Behind this stand methods that other crates give to every type, in their words.
            let text = text.split("<h2 id=\"blanket-implementations\"").next().unwrap_or_default();
            let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            // `${f}` is in a script of rustdoc's.
            let local = links.filter(|link| !["://", "javascript:", "${"].iter().any(|no| link.contains(no)));
            dead.extend(
                local
                    .filter(|link| !self.leads(page, link))
                    .map(|link| format!("{}: nothing is at {link}", page.display())),
            );
        }
        dead.into_iter().collect()
    }

    /// Whether `link` in `page` leads to a page, and to a place of that page that exists.
    fn leads(&self, page: &Path, link: &str) -> bool {
        let (path, place) = link.split_once('#').unwrap_or((link, ""));
        let path = path.split('?').next().unwrap_or_default();
        let target = if path.is_empty() { page.to_owned() } else { resolved(page, path) };
        match self.texts.get(&target) {
            None => self.others.contains(&target),
            // An item whose module is private is documented where it can be reached.
            Some(text) if let Some(to) = redirection(text) => self.leads(&target, &format!("{to}#{place}")),
            // Lines of source code get their places from a script.
            Some(_) if target.starts_with("src") || place.is_empty() => true,
            Some(text) => text.contains(&format!("id=\"{place}\"")),
        }
    }
}

/// The page that a page of rustdoc's redirects to.
fn redirection(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("http-equiv=\"refresh\" content=\"0;URL=")?;
    rest.split('"').next()
}

/// A link's path, which is relative to the folder of its page.
pub(crate) fn resolved(page: &Path, path: &str) -> PathBuf {
    let mut target = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(target.pop()),
            Component::Normal(name) => target.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    if path.ends_with('/') { target.join("index.html") } else { target }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let text = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
        let texts = [
            text("a/index.html", r##"<a href="../b/struct.B.html#method.new">B</a> <a href="#top">top</a>"##),
            text("b/struct.B.html", r#"<h4 id="method.new">"#),
            text(
                "c/index.html",
                r##"<a href="../b/b/struct.B.html#method.new"> <a href="../b/b/struct.B.html#no">"##,
            ),
            text("b/b/struct.B.html", r#"<meta http-equiv="refresh" content="0;URL=../struct.B.html">"#),
            text("b/index.html", r#"<a href="../README.md">no</a> <a href="https://example.com">web</a>"#),
        ];
        Pages { texts: texts.into(), others: HashSet::new() }
    }

    #[test]
    pub(crate) fn dead_links_are_found() {
        let expected = [
            "a/index.html: nothing is at #top",
            "b/index.html: nothing is at ../README.md",
            "c/index.html: nothing is at ../b/b/struct.B.html#no",
        ];
        assert_eq!(pages().dead_links(&["a", "b", "c"].map(str::to_owned).into()), expected);
    }
}
