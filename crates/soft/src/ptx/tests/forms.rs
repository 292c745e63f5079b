//! Forms of PTX that compilers write, each in a text of its own. An assembler of CUDA 13.0 judged
//! which are valid.

use crate::ptx::Image;

const FORMS: &str = include_str!("data/forms.txt");

/// The texts with that verdict, by name.
pub(super) fn forms(verdict: &str) -> impl Iterator<Item = (&'static str, String)> {
    FORMS.split("\n### ").skip(1).filter_map(move |form| {
        let (head, text) = form.split_once('\n')?;
        let (found, name) = head.split_once(": ")?;
        (found == verdict).then(|| (name, text.to_owned()))
    })
}

#[test]
fn valid_forms_load() {
    let mut refused = Vec::new();
    for (name, text) in forms("valid") {
        if let Err(errors) = Image::parse(&text) {
            refused.push(format!("{name}: {}", errors[0]));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn invalid_forms_are_refused() {
    let loaded: Vec<_> =
        forms("invalid").filter(|(_, text)| Image::parse(text).is_ok()).map(|(name, _)| name).collect();
    assert!(loaded.is_empty(), "{}", loaded.join("\n"));
}
