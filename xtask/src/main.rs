//! The workspace's runner: `cargo xtask --help`.

mod bindgen;
mod pypi;

fn main() -> anyhow::Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(std::path::Path::new("."));
    bindgen::run(root, std::env::args().any(|argument| argument == "--check"))
}
