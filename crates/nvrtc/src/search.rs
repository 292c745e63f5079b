//! The search for NVRTC in the system, in toolkits and in Python environments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the library or its folder.
pub(crate) const VARIABLE: &str = "CUDA_NVRTC";

#[cfg(windows)]
const NAMES: [&str; 2] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
#[cfg(not(windows))]
const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

/// The machine as a search sees it, replaced in tests.
pub trait Environment {
    /// The value of an environment variable, if it has one that is not empty.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The folder that stands for the root of the file system.
    fn root(&self) -> &Path {
        Path::new("/")
    }

    /// The folders that an environment variable lists, as `PATH` does.
    fn listed(&self, variable: &str) -> Vec<PathBuf> {
        let value = self.variable(variable).unwrap_or_default();
        std::env::split_paths(&value).filter(|folder| !folder.as_os_str().is_empty()).collect()
    }
}

/// The environment of the process.
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name).filter(|value| !value.is_empty())
    }
}

/// The file that the environment variable names, or the newest in the folder it names.
pub(crate) fn named(environment: &impl Environment) -> Option<PathBuf> {
    let path = PathBuf::from(environment.variable(VARIABLE)?);
    let inside = in_folder(&path).into_iter().next();
    Some(inside.unwrap_or(path))
}

/// The candidates for NVRTC, and the places without one.
pub(crate) struct Found {
    /// The libraries in the order of trial: by the loader's search path, in toolkits, in Python
    /// environments. In each place the newest comes first.
    pub(crate) libraries: Vec<PathBuf>,
    /// Toolkits and environments without NVRTC.
    pub(crate) empty: Vec<PathBuf>,
}

/// Searches all places. Libraries newer than `major` come last.
pub(crate) fn find(environment: &impl Environment, major: Option<u32>) -> Found {
    let mut found = Found { libraries: NAMES.iter().map(PathBuf::from).collect(), empty: Vec::new() };
    let toolkits = toolkits(environment).into_iter().map(|root| (in_toolkit(&root), root));
    let environments = environments(environment).into_iter().map(|root| (in_environment(&root), root));
    for (folders, root) in toolkits.chain(environments) {
        let before = found.libraries.len();
        found.libraries.extend(folders.iter().flat_map(|folder| in_folder(folder)));
        if found.libraries.len() == before && !found.empty.contains(&root) {
            found.empty.push(root);
        }
    }
    let is_too_new =
        |path: &PathBuf| major.is_some_and(|most| major_of(path).is_some_and(|found| found > most));
    found.libraries.sort_by_key(is_too_new);
    found
}

/// The folders of toolkits and of Python environments in which NVIDIA's libraries lie.
#[must_use]
pub fn folders(environment: &impl Environment) -> Vec<PathBuf> {
    let toolkits = toolkits(environment).into_iter().flat_map(|root| in_toolkit(&root));
    let environments = environments(environment).into_iter().flat_map(|root| in_environment(&root));
    toolkits.chain(environments).collect()
}

fn named_folders<const N: usize>(environment: &impl Environment, names: [&str; N]) -> Vec<PathBuf> {
    names.iter().filter_map(|name| environment.variable(name)).map(PathBuf::from).collect()
}

fn toolkits(environment: &impl Environment) -> Vec<PathBuf> {
    let mut roots = named_folders(environment, ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"]);
    if cfg!(not(windows)) {
        roots.extend(["usr/local/cuda", "opt/cuda"].map(|folder| environment.root().join(folder)));
    }
    roots
}

fn in_toolkit(root: &Path) -> Vec<PathBuf> {
    let inside = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin", "bin/x64"];
    inside.map(|folder| root.join(folder)).into()
}

/// The roots of Python environments.
fn environments(environment: &impl Environment) -> Vec<PathBuf> {
    let mut roots = named_folders(environment, ["VIRTUAL_ENV", "CONDA_PREFIX"]);
    roots.extend(of_the_python_in_path(environment));
    roots.extend(behind_shims(environment));
    roots.extend(environment.variable("HOME").map(|home| PathBuf::from(home).join(".local")));
    if cfg!(not(windows)) {
        roots.extend(["usr/local", "usr"].map(|folder| environment.root().join(folder)));
    }
    roots
}

/// The root of the environment whose `python3` the search path finds first.
fn of_the_python_in_path(environment: &impl Environment) -> Option<PathBuf> {
    let folder = pythons_in_path(environment).next()?;
    // A shim lies in no environment.
    folder.parent().filter(|_| !is_shims(&folder)).map(Path::to_owned)
}

/// The roots of the versions that shims in the search path stand for, as pyenv lays them out:
/// `shims/python3` beside `versions/3.12.4`. The newest comes first.
fn behind_shims(environment: &impl Environment) -> Vec<PathBuf> {
    let shims = pythons_in_path(environment).filter(|folder| is_shims(folder));
    shims.flat_map(|folder| newest_first(&folder.with_file_name("versions"))).collect()
}

/// The folders of the search path that have a `python3`.
fn pythons_in_path(environment: &impl Environment) -> impl Iterator<Item = PathBuf> {
    environment.listed("PATH").into_iter().filter(|folder| folder.join("python3").is_file())
}

fn is_shims(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "shims")
}

/// The entries of a folder by the numbers in their names, the greatest first; other names come
/// last.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let numbers = |path: &PathBuf| -> Vec<u32> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split('.').map_while(|part| part.parse().ok()).collect()
    };
    let mut found = entries(folder);
    found.sort_by_key(|path| core::cmp::Reverse(numbers(path)));
    found
}

/// The folders of NVIDIA's wheels: `nvidia/cuda_nvrtc/lib` for CUDA 12, `nvidia/cu13/lib` for CUDA
/// 13.
fn in_environment(root: &Path) -> Vec<PathBuf> {
    let pythons = entries(&root.join("lib")).into_iter().filter(|path| starts_with(path, "python3"));
    let inside = |path: PathBuf| ["site-packages", "dist-packages"].map(|name| path.join(name));
    let packages = pythons.flat_map(inside).chain([root.join("Lib/site-packages")]);
    packages
        .flat_map(|folder| entries(&folder.join("nvidia")))
        .flat_map(|package| ["lib", "bin", "bin/x86_64"].map(|folder| package.join(folder)))
        .collect()
}

/// The libraries of a folder, the newest first.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = entries(folder).into_iter().filter(|path| major_of(path).is_some()).collect();
    found.sort_by_key(|path| core::cmp::Reverse(major_of(path)));
    found
}

/// The library's second part, in the same folder: `libnvrtc-builtins.so.13.0`.
pub(crate) fn builtins(library: &Path) -> Vec<PathBuf> {
    let is_builtins = |path: &PathBuf| {
        ["libnvrtc-builtins.so.", "nvrtc-builtins64_"].iter().any(|start| starts_with(path, start))
    };
    let folder = library.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(Vec::new, |folder| entries(folder).into_iter().filter(is_builtins).collect())
}

/// The entries of a folder, sorted by name; empty if it does not exist.
#[must_use]
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found
}

fn starts_with(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

/// The major version in the library's name: `libnvrtc.so.12`, `nvrtc64_120_0.dll`. `None` for other
/// files.
fn major_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    if let Some(number) = name.strip_prefix("libnvrtc.so.") {
        return number.parse().ok();
    }
    let number = name.strip_prefix("nvrtc64_")?.strip_suffix("_0.dll")?;
    number.parse::<u32>().ok().map(|number| number / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Vec<(&'static str, PathBuf)>);

    impl Environment for Fixed {
        fn variable(&self, name: &str) -> Option<OsString> {
            self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        }
    }

    #[test]
    fn names_have_major_numbers() {
        let major = |name: &str| major_of(Path::new(name));
        assert_eq!(major("/a/libnvrtc.so.12"), Some(12));
        assert_eq!(major("nvrtc64_120_0.dll"), Some(12));
        assert_eq!(major("nvrtc64_130_0.dll"), Some(13));
        for other in [
            "libnvrtc.so",
            "libnvrtc-builtins.so.12.0",
            "libnvrtc.alt.so.13",
            "libnvrtc.so.12.4.127",
            "nvrtc64_120_0.alt.dll",
        ] {
            assert_eq!(major(other), None, "{other}");
        }
    }

    /// A folder of its own for one test, gone afterwards.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("cuda-nvrtc-{name}-{}", std::process::id()));
            Self(folder)
        }

        fn file(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            let made = path.parent().map(std::fs::create_dir_all);
            assert!(made.is_some_and(|made| made.is_ok()) && std::fs::write(&path, "").is_ok(), "{path:?}");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn wheels_and_toolkits_are_found() {
        let folder = Folder::new("found");
        let twelve = folder.file("env/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        let thirteen = folder.file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        folder.file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
        let toolkit = folder.file("cuda/lib64/libnvrtc.so.12");
        let environment =
            Fixed(vec![("VIRTUAL_ENV", folder.0.join("env")), ("CUDA_HOME", folder.0.join("cuda"))]);
        let ours = |found: Vec<PathBuf>| -> Vec<PathBuf> {
            found.into_iter().filter(|path| path.starts_with(&folder.0)).collect()
        };
        let all = find(&environment, None).libraries;
        assert_eq!(all[0], Path::new(NAMES[0]));
        assert_eq!(ours(all), [toolkit.clone(), thirteen.clone(), twelve.clone()]);
        assert_eq!(ours(find(&environment, Some(12)).libraries), [toolkit, twelve, thirteen]);
        let found = find(&environment, Some(12));
        assert_eq!(found.libraries[0], Path::new(NAMES[1]));
        assert!(found.empty.iter().all(|root| !root.starts_with(&folder.0)), "{:?}", found.empty);
        let nothing = Fixed(vec![("CUDA_HOME", folder.0.join("none"))]);
        assert!(find(&nothing, None).empty.contains(&folder.0.join("none")));
    }

    #[test]
    fn shims_lead_to_all_versions() {
        let folder = Folder::new("shims");
        folder.file("pyenv/shims/python3");
        let wheel = "site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
        let [old, new, named] = ["3.9.1/lib/python3.9", "3.12.4/lib/python3.12", "mine/lib/python3.12"]
            .map(|version| folder.file(&format!("pyenv/versions/{version}/{wheel}")));
        let environment = Fixed(vec![("PATH", folder.0.join("pyenv/shims"))]);
        let found = find(&environment, None);
        let ours: Vec<_> = found.libraries.iter().filter(|path| path.starts_with(&folder.0)).collect();
        assert_eq!(ours, [&new, &old, &named]);
        assert!(!found.empty.contains(&folder.0.join("pyenv")), "{:?}", found.empty);
    }

    #[test]
    fn the_environment_names_a_file_or_its_folder() {
        let folder = Folder::new("named");
        let file = folder.file("lib/libnvrtc.so.12");
        let by = |path: PathBuf| named(&Fixed(vec![(VARIABLE, path)]));
        assert_eq!(by(file.clone()), Some(file.clone()));
        assert_eq!(by(folder.0.join("lib")), Some(file));
        assert_eq!(by(folder.0.join("none")), Some(folder.0.join("none")));
        assert_eq!(named(&Fixed(Vec::new())), None);
    }
}
