//! The generator of the bindings, which `cargo xtask bindgen` runs. It needs packages that no other
//! command needs.

mod bindgen;

fn main() -> anyhow::Result<()> {
    bindgen::run(&xtask::workspace(), std::env::args().any(|argument| argument == "--check"))
}
