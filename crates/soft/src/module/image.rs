//! Images as the user gives them: PTX texts, and linked texts.

use cuda_sys::{CUresult, Version};

use crate::driver::result_code::{INVALID_IMAGE, INVALID_PTX, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION};
use crate::driver::{self, explain};
use crate::ptx::{self, Image};

/// The first line of a linked image. In PTX it is a comment.
const LINKED: &str = "// Linked by cuda-soft: ";

/// Why an image was rejected: the result code and the text for the log.
#[derive(Debug)]
pub(crate) struct RejectedImage {
    pub(crate) code: CUresult,
    pub(crate) log: String,
}

fn refusal(code: CUresult, log: impl Into<String>) -> RejectedImage {
    let log = log.into();
    explain::image(code, &log);
    RejectedImage { code, log }
}

/// The newest PTX version that the driver accepts.
fn newest_ptx(version: Version) -> (u32, u32) {
    let (major, minor) = (version.major().unsigned_abs(), version.minor().unsigned_abs());
    match (major, minor) {
        // 12.5 and 12.6 have the same version of PTX. From then on it lags by one.
        (12, 0..=5) => (8, minor),
        (12, _) => (8, minor.saturating_sub(1)),
        _ => (major.saturating_sub(4), minor),
    }
}

fn text_of(image: &[u8]) -> Result<&str, RejectedImage> {
    if image.starts_with(b"\x7fELF") || image.starts_with(&[0x50, 0xED, 0x55, 0xBA]) {
        return Err(refusal(NO_BINARY_FOR_GPU, "the software driver runs PTX, not machine code"));
    }
    core::str::from_utf8(image).map_err(|_| refusal(INVALID_IMAGE, "the image is not text"))
}

/// Checks that this driver and its devices can run what the text targets. This comes first, since
/// the rest of a newer text may look wrong.
fn check_head(text: &str) -> Result<(), RejectedImage> {
    let head = ptx::head(text);
    if !head.is_ptx {
        return Err(refusal(INVALID_IMAGE, "the text does not begin with `.version`; is it PTX?"));
    }
    let newest = newest_ptx(driver::version());
    if let Some((major, minor)) = head.version.filter(|version| *version > newest) {
        let log = format!(
            "PTX version {major}.{minor} is newer than {}.{}, the newest that a driver of CUDA {} takes",
            newest.0,
            newest.1,
            driver::version()
        );
        return Err(refusal(UNSUPPORTED_PTX_VERSION, log));
    }
    let target = head.target.unwrap_or("");
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    let (major, minor) = driver::config().capability;
    if digits.parse().is_ok_and(|target: u32| target > major.saturating_mul(10).saturating_add(minor)) {
        let log = format!("{target} is newer than the device, which is sm_{major}{minor}");
        return Err(refusal(INVALID_PTX, log));
    }
    Ok(())
}

/// The errors of a text as a rejection.
fn reject_errors<T>(parsed: Result<T, Vec<impl ToString>>) -> Result<T, RejectedImage> {
    parsed.map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        refusal(INVALID_PTX, lines.join("\n"))
    })
}

/// Parses an image.
pub(crate) fn parse(image: &[u8]) -> Result<Image, RejectedImage> {
    let text = text_of(image)?;
    match parts(text) {
        Some(parts) => link_parts(&parts),
        None => {
            check_head(text)?;
            reject_errors(Image::parse(text))
        }
    }
}

/// Checks a text that will be linked with others. Names that they define stay unresolved.
pub(crate) fn check_part(image: &[u8]) -> Result<&str, RejectedImage> {
    let text = text_of(image)?;
    check_head(text)?;
    reject_errors(Image::parse_part(text))?;
    Ok(text)
}

fn link_parts(parts: &[&str]) -> Result<Image, RejectedImage> {
    parts.iter().try_for_each(|part| check_head(part))?;
    reject_errors(Image::link(parts))
}

/// Links texts to an image for [`parse`].
pub(crate) fn link(texts: &[String]) -> Result<String, RejectedImage> {
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    link_parts(&parts)?;
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
