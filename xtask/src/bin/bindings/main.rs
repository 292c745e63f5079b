//! `cargo xtask bindgen` runs this: the generator, with packages that no other command needs.

mod bindgen;

fn main() -> anyhow::Result<()> {
    bindgen::run(&xtask::workspace(), std::env::args().any(|argument| argument == "--check"))
}
