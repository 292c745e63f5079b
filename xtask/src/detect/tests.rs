//! The search, in folders that stand for a machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::Environment;

use super::*;

/// A machine: a folder of its own for its root, gone afterwards, and environment variables.
struct Fake {
    root: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Fake {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-detect-{name}-{}", std::process::id()));
        Self { root, variables: Vec::new() }
    }

    fn file(&self, path: &str) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        path
    }

    fn set(&mut self, name: &'static str, path: &Path) {
        self.variables.push((name, path.to_str().unwrap().to_owned()));
    }
}

impl Environment for Fake {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }

    fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn library(fake: &Fake, name: &str) -> Option<PathBuf> {
    libraries::all(fake).into_iter().find(|library| library.name == name).and_then(|library| library.file)
}

#[test]
fn nothing_is_found_on_an_empty_machine() {
    let fake = Fake::new("empty");
    assert!(beside::libraries(&fake).is_empty());
    assert_eq!(sanitizer::find(&fake), None);
    assert!(libraries::all(&fake).iter().all(|library| library.file.is_none()));
}

#[test]
fn drivers_side_by_side_are_found_once_each() {
    let fake = Fake::new("drivers");
    let compat = fake.file("usr/local/cuda-12.8/compat/libcuda.so.570.86.15");
    let system = fake.file("usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06");
    fake.file("usr/local/cuda-12.8/lib64/stubs/libcuda.so");
    fake.file("usr/lib/x86_64-linux-gnu/libcudadebugger.so.1");
    let (short, also) = (compat.with_file_name("libcuda.so.1"), system.with_file_name("libcuda.so.1"));
    std::os::unix::fs::symlink(&compat, &short).unwrap();
    std::os::unix::fs::symlink(&system, &also).unwrap();
    assert_eq!(beside::libraries(&fake), [short, also]);
}

#[test]
fn the_sanitizer_is_found_in_the_path_and_in_toolkits_unless_it_is_named() {
    let mut fake = Fake::new("sanitizer");
    let wheel = fake.file("usr/local/lib/python3.12/dist-packages/nvidia/cu13/bin/compute-sanitizer");
    assert_eq!(sanitizer::find(&fake), Some(wheel));
    let toolkit = fake.file("usr/local/cuda-13.0/bin/compute-sanitizer");
    assert_eq!(sanitizer::find(&fake), Some(toolkit));
    let in_path = fake.file("home/bin/compute-sanitizer");
    fake.set("PATH", in_path.parent().unwrap());
    assert_eq!(sanitizer::find(&fake), Some(in_path.clone()));
    let named = fake.file("elsewhere/compute-sanitizer");
    fake.set("CUDA_SANITIZER", named.parent().unwrap());
    assert_eq!(sanitizer::find(&fake), Some(named));
    fake.variables.pop();
    fake.set("CUDA_SANITIZER", Path::new("/nowhere/at/all"));
    assert_eq!(sanitizer::find(&fake), None);
}

#[test]
fn libraries_are_found_in_wheels_and_where_the_loader_searches() {
    let mut fake = Fake::new("libraries");
    let wheel = fake.file("env/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
    let environment = fake.root.join("env");
    fake.set("VIRTUAL_ENV", &environment);
    assert_eq!(library(&fake, "NCCL"), Some(wheel));
    let in_path = fake.file("opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
    let python = fake.file("opt/torch/.venv/bin/python3");
    fake.variables.pop();
    fake.set("PATH", python.parent().unwrap());
    assert_eq!(library(&fake, "NCCL"), Some(in_path));
    let configured = fake.file("srv/libs/libnccl.so.2");
    fake.file("srv/libs/libnccl.so.2.27.3");
    std::fs::create_dir_all(fake.root.join("etc/ld.so.conf.d")).unwrap();
    std::fs::write(fake.root.join("etc/ld.so.conf.d/nccl.conf"), "# NCCL\n/srv/libs\n").unwrap();
    assert_eq!(library(&fake, "NCCL"), Some(configured));
    let (twelve, thirteen) = (fake.file("usr/lib64/libcublas.so.12"), fake.file("usr/lib64/libcublas.so.13"));
    assert_eq!(library(&fake, "cuBLAS"), Some(thirteen));
    fake.set("CUDA_CUBLAS", &twelve);
    assert_eq!(library(&fake, "cuBLAS"), Some(twelve));
    let vulkan = fake.file("usr/lib/x86_64-linux-gnu/libvulkan.so.1");
    assert_eq!(library(&fake, "Vulkan"), Some(vulkan));
}

#[test]
fn the_software_driver_has_the_devices_of_the_environment() {
    let mut fake = Fake::new("soft");
    fake.variables = vec![("CUDA_SOFT_DEVICES", "2".to_owned()), ("CUDA_SOFT_CAPABILITY", "8.0".to_owned())];
    let machine = Machine::detect(&Driver::Soft, &fake);
    assert_eq!((machine.driver().devices.len(), machine.refusal()), (2, None));
    assert!(machine.to_string().contains("device 1   in software, capability 8.0\n"), "{machine}");
    fake.variables = vec![("CUDA_SOFT_DEVICES", "0".to_owned())];
    let refusal = Machine::detect(&Driver::Soft, &fake).refusal().unwrap();
    assert!(refusal.contains("finds no device") && refusal.contains("--driver soft"), "{refusal}");
}
