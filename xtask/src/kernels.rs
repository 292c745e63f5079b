//! `cargo xtask kernels`: compiles the CUDA C++ of the tests, of cuda-graph and of its examples to
//! PTX, which is checked in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cuda_nvrtc::{Arch, Compiler, Program, Standard, Target};
use xtask::pypi::Wheel;

/// The oldest supported compiler: its PTX loads on every supported driver.
const COMPILER: Wheel = Wheel { package: "nvidia-cuda-nvrtc-cu12", version: "12.0.76" };
const LIBRARY: &str = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";

/// The newest compiler that is tested; its PTX has version 9.
const NEWEST: Wheel = Wheel { package: "nvidia-cuda-nvrtc", version: "13.0.88" };
const NEWEST_LIBRARY: &str = "nvidia/cu13/lib/libnvrtc.so.13";

/// The folders with kernels. Most are compiled for the oldest GPUs that the tests run on.
const FOLDERS: [(&str, Arch); 7] = [
    ("tests/kernels", Arch::new(7, 0)),
    ("tests/kernels/fields", Arch::new(7, 0)),
    ("tests/kernels/fields/compute_80", Arch::new(8, 0)),
    ("tests/nccl/kernels", Arch::new(7, 0)),
    ("crates/graph/kernels", Arch::new(7, 0)),
    ("crates/graph/examples/kernels", Arch::new(7, 0)),
    ("docs/guide/src/kernels", Arch::new(7, 0)),
];

/// The oldest compiler's library.
pub(crate) fn oldest_compiler(target: &Path) -> Result<PathBuf> {
    Ok(COMPILER.unpacked(target)?.join(LIBRARY))
}

/// The newest compiler's library.
pub(crate) fn newest_compiler(target: &Path) -> Result<PathBuf> {
    Ok(NEWEST.unpacked(target)?.join(NEWEST_LIBRARY))
}

/// Writes each kernel's PTX beside it, or with `check` compares it with what is checked in.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let path = oldest_compiler(&root.join("target"))?;
    // SAFETY: the library is the one of NVIDIA's wheel.
    let compiler = unsafe { Compiler::open(&path) }?;
    let mut compiled = 0;
    for (folder, arch) in FOLDERS {
        compiled += compile_all(&compiler, &root.join(folder), arch, check)?;
    }
    if check {
        println!("the PTX of {compiled} files is what the compiler gives");
    }
    Ok(())
}

fn compile_all(compiler: &Compiler, folder: &Path, arch: Arch, check: bool) -> Result<usize> {
    let sources = files(folder, "cu")?;
    for source in &sources {
        let ptx = compile(compiler, source, arch)?;
        write(&source.with_extension("ptx"), &ptx, check)?;
    }
    for image in files(folder, "ptx")? {
        ensure!(image.with_extension("cu").exists(), "{} has no source", image.display());
    }
    Ok(sources.len())
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// With a later standard, the compiler's own headers put some forty unused constants into every
/// image.
fn compile(compiler: &Compiler, source: &Path, arch: Arch) -> Result<String> {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let program = Program::new(name, std::fs::read_to_string(source)?)
        .target(Target::Ptx(arch))
        .standard(Standard::Cpp03);
    let compiled =
        compiler.compile(&program).with_context(|| format!("{} does not compile", source.display()))?;
    Ok(without_call_numbers(compiled.ptx().unwrap_or_default()))
}

/// Removes the comments in which the compiler numbers calls through all files, so that a file does
/// not depend on those compiled before it.
fn without_call_numbers(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match line.split_once(" // callseq ") {
            Some((code, _)) => {
                out.push_str(code);
                out.push('\n');
            }
            None => out.push_str(line),
        }
    }
    out
}

fn write(path: &Path, text: &str, check: bool) -> Result<()> {
    if check {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        ensure!(
            found == text,
            "{} differs from what the compiler gives; run `cargo xtask kernels`",
            path.display()
        );
        return Ok(());
    }
    std::fs::write(path, text)?;
    println!("wrote {}", path.display());
    Ok(())
}
