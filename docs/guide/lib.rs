//! The pages of the guide as documentation of this crate, so that `cargo test --doc --package
//! cuda-guide` compiles and runs each Rust block of them.
//!
//! A file that a block names is looked for beside its page. A block runs in the package's folder,
//! in a process of its own, on the software driver. Its first hidden lines install that.

/// One item for each page.
macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!(concat!("src/", $file))]
            #[cfg(doctest)]
            struct $name;
        )*

        #[cfg(test)]
        const PAGES: &[(&str, &str)] = &[$(($file, include_str!(concat!("src/", $file)))),*];
    };
}

pages! {
    About "about.md"
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
    Errors "errors.md"
    Testing "testing.md"
    Beside "beside.md"
    FromRuntime "from-runtime.md"
    FromDriver "from-driver.md"
    FromCudaCore "from-cuda-core.md"
    FromCudarc "from-cudarc.md"
    Examples "examples.md"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::PAGES;

    #[test]
    fn every_page_is_compiled_and_in_the_contents() {
        let contents = include_str!("src/SUMMARY.md");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in folder.read_dir().unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                assert!(PAGES.iter().any(|(page, _)| *page == name), "{name} is not in `pages!`");
                assert!(contents.contains(&format!("({name})")), "{name} is not in the contents");
            }
        }
    }

    #[test]
    fn the_kernels_of_the_examples_are_those_of_the_guide() {
        let of_examples = include_str!("../../crates/graph/examples/kernels/basics.cu");
        assert_eq!(include_str!("src/kernels/basics.cu"), of_examples);
    }

    /// The CUDA C++ on a page, but for empty lines and comments, is in the file.
    #[test]
    fn the_kernels_on_the_pages_are_in_their_file() {
        let file = include_str!("src/kernels/basics.cu");
        for (page, text) in PAGES {
            let blocks = text.split("```cpp\n").skip(1).filter_map(|rest| rest.split("```").next());
            for line in blocks.flat_map(str::lines) {
                assert!(file.lines().any(|known| known == line), "{page}: {line}");
            }
        }
    }

    #[test]
    fn the_codes_have_their_numbers() {
        let (_, page) = PAGES.iter().find(|(name, _)| *name == "errors.md").unwrap();
        let mut codes = 0;
        for (name, rest) in page.split('`').zip(page.split('`').skip(1)) {
            let number = rest.strip_prefix(" (").and_then(|rest| rest.split_once(')'));
            if let (true, Some((number, _))) = (name.starts_with("CUDA_ERROR_"), number) {
                assert_eq!(cuda_sys::CUresult(number.parse().unwrap()).name(), Some(name));
                codes += 1;
            }
        }
        assert!(codes > 30, "{codes} codes");
    }
}
