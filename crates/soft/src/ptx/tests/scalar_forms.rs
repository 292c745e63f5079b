//! Forms of single instructions. An assembler of CUDA 12.9 judged which are valid for PTX 8.5 and
//! `sm_90a`; `data/scalar_forms.py` lists them and asks it.

use super::coverage::{Form, Outcome, assert_agreement};
use crate::ptx::Image;

const TEMPLATE: &str = include_str!("data/scalar_form.template");
const FORMS: &str = include_str!("data/scalar_forms.txt");

/// A text with that body.
pub(super) fn text(body: &str) -> String {
    TEMPLATE.replace("@VERSION@", "8.5").replace("@TARGET@", "sm_90a").replace("@BODY@", body)
}

/// The bodies with that verdict.
pub(super) fn bodies(verdict: &str) -> impl Iterator<Item = &'static str> {
    FORMS.lines().filter_map(move |line| {
        let (found, body) = line.split_once(' ')?;
        (found == verdict).then_some(body)
    })
}

/// The valid bodies.
pub(super) fn forms() -> Vec<Form> {
    let outcome = |body| match Image::parse(&text(body)) {
        Ok(_) => Outcome::Loads,
        Err(errors) => Outcome::Refused(format!("{body}\n    {}", errors[0])),
    };
    bodies("valid").map(|body| Form { text: body, outcome: outcome(body) }).collect()
}

#[test]
fn valid_forms_load() {
    assert_agreement(&forms());
}

#[test]
fn invalid_forms_are_refused() {
    let loaded: Vec<&str> = bodies("invalid").filter(|body| Image::parse(&text(body)).is_ok()).collect();
    assert!(loaded.is_empty(), "{} load:\n{}", loaded.len(), loaded.join("\n"));
}
