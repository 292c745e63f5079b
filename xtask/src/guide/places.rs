//! Links from page to page: the heading that a link names exists.

use super::Page;

/// One finding for each link to a heading that is not there. That the files exist is checked with
/// the other Markdown.
pub(super) fn dead(page: &Page, pages: &[Page]) -> Vec<String> {
    let mut findings = Vec::new();
    for target in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let Some((file, place)) = target.split_once('#') else { continue };
        let other = match file {
            "" => Some(page),
            _ => pages.iter().find(|other| other.name == file),
        };
        if other.is_some_and(|other| !headings(&other.text).any(|heading| heading == place)) {
            findings.push(format!("{}: there is no place {target}", page.name));
        }
    }
    findings
}

/// The places of a page, as mdBook and others name them after headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|one| one.is_alphanumeric() || [' ', '-', '_'].contains(one));
        kept.map(|one| if one == ' ' { '-' } else { one }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_headings() {
        let page = |name: &str, text: &str| Page { name: name.to_owned(), text: text.to_owned() };
        let pages = [
            page("a.md", "# Start\n[b](b.md#two-words) [c](b.md#three) [d](#start)"),
            page("b.md", "## Two words\n"),
        ];
        assert_eq!(dead(&pages[0], &pages), ["a.md: there is no place b.md#three"]);
    }
}
