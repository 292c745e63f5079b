//! Runs in files, to compare later ones with.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::record::Run;

/// The form of the files. One that older programs cannot read gets another number.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    #[serde(flatten)]
    run: Run,
}

/// The part of a file that all forms have.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Whether a run can be saved in a file, before anything is measured.
pub(crate) fn check(path: &Path) -> Outcome<()> {
    let is_new = !path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    if is_new {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes a run as JSON.
pub(crate) fn save(path: &Path, run: &Run) -> Outcome<()> {
    write(path, &(serde_json::to_string_pretty(&File { format: FORMAT, run: run.clone() })? + "\n"))
}

/// Writes a file of a run.
pub(crate) fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}

/// Reads a run.
pub(crate) fn load(path: &Path) -> Outcome<Run> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{} is no saved run: {error}", path.display()).into())
}

fn parse(text: &str) -> Outcome<Run> {
    let Head { format } = serde_json::from_str(text)?;
    if format != FORMAT {
        return Err(format!("it has form {format}, this program reads form {FORMAT}; measure anew").into());
    }
    Ok(serde_json::from_str::<File>(text)?.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;
    use crate::record::{Origin, Version};

    fn run() -> Run {
        let origin = Origin {
            driver: "system".to_owned(),
            driver_version: Some("CUDA 13.0".to_owned()),
            device: Some("a \"card\"".to_owned()),
            date: "2026-01-02T03:04:05Z".to_owned(),
            version: "0.1.0".to_owned(),
            commit: None,
            processor: Some("a processor".to_owned()),
            is_quick: false,
            peers: vec![Version { name: "cudarc".to_owned(), version: "0.19".to_owned() }],
        };
        Run { origin, rows: vec![row("launch", &[3.0, 4.0, 5.5], &[1.0, 2.0, 3.0])] }
    }

    #[test]
    fn a_saved_run_is_read_again_without_its_samples() {
        let folder = std::env::temp_dir().join(format!("cuda-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let path = folder.join("run.json");
        check(&path).expect("the folder is there");
        assert!(!path.exists() && check(&folder.join("none/run.json")).is_err());
        save(&path, &run()).expect("the folder is there");
        let loaded = load(&path).expect("it was just saved");
        std::fs::remove_dir_all(&folder).expect("it was just made");
        let mut expected = run();
        expected.rows.iter_mut().flat_map(|row| &mut row.sides).for_each(|side| side.samples.clear());
        assert_eq!(loaded, expected);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let reason = |text: &str| parse(text).expect_err("it is no run").to_string();
        assert!(reason(r#"{"format":2}"#).contains("form 2"));
        assert!(reason(r#"{"rows":[]}"#).contains("format"));
        assert!(
            load(Path::new("no such file")).is_err_and(|error| error.to_string().contains("no such file"))
        );
    }
}
