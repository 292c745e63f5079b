//! Images as the user gives them: PTX texts, and texts linked together.

use cuda_sys::{CUresult, Version};

use crate::code::{INVALID_IMAGE, INVALID_PTX, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION};
use crate::driver;
use crate::ptx::Image;

/// How a linked image begins; to everybody else it is a comment of a PTX text.
const LINKED: &str = "// Linked by cuda-soft: ";

/// Why an image was refused: the code and the lines for the log.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: CUresult,
    pub(crate) log: String,
}

fn refusal(code: CUresult, log: impl Into<String>) -> Refusal {
    Refusal { code, log: log.into() }
}

/// The newest PTX version that the driver takes.
fn newest_ptx(version: Version) -> (u32, u32) {
    let (major, minor) = (version.major().unsigned_abs(), version.minor().unsigned_abs());
    match (major, minor) {
        // 12.5 and 12.6 share a version of PTX; from then on it lags by one.
        (12, 0..=5) => (8, minor),
        (12, _) => (8, minor.saturating_sub(1)),
        _ => (major.saturating_sub(4), minor),
    }
}

fn text_of(image: &[u8]) -> Result<&str, Refusal> {
    if image.starts_with(b"\x7fELF") || image.starts_with(&[0x50, 0xED, 0x55, 0xBA]) {
        return Err(refusal(NO_BINARY_FOR_GPU, "the software driver runs PTX, not machine code"));
    }
    core::str::from_utf8(image).map_err(|_| refusal(INVALID_IMAGE, "the image is no text"))
}

/// Whether this driver and its devices can run what was parsed.
fn accept(parsed: Result<Image, Vec<impl ToString>>) -> Result<Image, Refusal> {
    let image = parsed.map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        refusal(INVALID_PTX, lines.join("\n"))
    })?;
    let newest = newest_ptx(driver::version());
    if image.version() > newest {
        let (major, minor) = image.version();
        let log = format!(
            "PTX version {major}.{minor} is newer than {}.{}, the newest that a driver of CUDA {} takes",
            newest.0,
            newest.1,
            driver::version()
        );
        return Err(refusal(UNSUPPORTED_PTX_VERSION, log));
    }
    let digits: String = image.target().chars().filter(char::is_ascii_digit).collect();
    let (major, minor) = driver::config().capability;
    if digits.parse().is_ok_and(|target: u32| target > major.saturating_mul(10).saturating_add(minor)) {
        let log = format!("{} is newer than the device, which is sm_{major}{minor}", image.target());
        return Err(refusal(INVALID_PTX, log));
    }
    Ok(image)
}

/// Reads an image.
pub(crate) fn parse(image: &[u8]) -> Result<Image, Refusal> {
    let text = text_of(image)?;
    match parts(text) {
        Some(parts) => accept(Image::link(&parts)),
        None => accept(Image::parse(text)),
    }
}

/// Checks a text that is to be linked with others; what it wants of them stays open.
pub(crate) fn check_part(image: &[u8]) -> Result<&str, Refusal> {
    let text = text_of(image)?;
    accept(Image::parse_part(text))?;
    Ok(text)
}

/// Links texts to an image that [`parse`] reads.
pub(crate) fn link(texts: &[String]) -> Result<String, Refusal> {
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    accept(Image::link(&parts))?;
    let lengths: Vec<String> = texts.iter().map(|text| text.len().to_string()).collect();
    Ok(format!("{LINKED}{}\n{}", lengths.join(" "), texts.concat()))
}

/// The texts of a linked image.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (lengths, mut rest) = text.strip_prefix(LINKED)?.split_once('\n')?;
    let mut parts = Vec::new();
    for length in lengths.split(' ') {
        let (part, after) = rest.split_at_checked(length.parse().ok()?)?;
        parts.push(part);
        rest = after;
    }
    Some(parts)
}
