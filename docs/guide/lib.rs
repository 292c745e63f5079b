//! The pages of the guide as documentation of this crate, so that `cargo test --doc --package
//! cuda-guide` compiles and runs each Rust block of them.
//!
//! A file that a block names is looked for beside its page. A block runs in the package's folder,
//! in a process of its own, on the software driver.

/// One item for each page.
macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!(concat!("src/", $file))]
            #[cfg(doctest)]
            struct $name;
        )*
    };
}

pages! {
    Start "start.md"
    Compiling "compiling.md"
    Memory "memory.md"
    Launching "launching.md"
    Graphs "graphs.md"
    Capture "capture.md"
    Loops "loops.md"
    Parameters "parameters.md"
    CallSites "call-sites.md"
    Checking "checking.md"
    Shaping "shaping.md"
    Devices "devices.md"
}
