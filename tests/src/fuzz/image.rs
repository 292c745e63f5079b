//! Any bytes as an image: refused, unless a driver can read them to the end that they name.

use core::ops::Range;

use cuda_handles::{Context, Error, Image, Library, Linker};

/// Loads and links the bytes as a binary and as an archive. The bytes that reach the driver are
/// those that the library has taken for whole, so a reader of the driver's kind finds all that
/// their headers name.
///
/// # Panics
/// An image that is cut off reaches the driver.
pub fn image(context: &Context, bytes: &[u8]) {
    // A block of its own, so that a sanitiser sees every access behind its end.
    let bytes: Box<[u8]> = bytes.into();
    if reaches_driver(Library::load(context, Image::Binary(&bytes)).map(drop)) {
        is_whole(&bytes);
    }
    let mut linker = Linker::new(context).expect("a linker");
    if reaches_driver(linker.add("image", Image::Binary(&bytes)).map(drop)) {
        is_whole(&bytes);
    }
    if reaches_driver(linker.add_archive("archive", &bytes).map(drop)) {
        is_archive(&bytes);
    }
    assert!(linker.link().is_err(), "something is linked of nothing");
}

/// Whether the library has taken an image for whole.
#[track_caller]
fn reaches_driver(outcome: cuda_handles::Result<()>) -> bool {
    match outcome {
        Err(Error::Image(_)) => false,
        Ok(()) | Err(Error::Jit { .. }) => true,
        Err(error) => panic!("refused for another reason: {error}"),
    }
}

/// A reader that has the bytes of an image and nothing behind them.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    #[track_caller]
    fn part(&self, start: u64, len: u64) -> &[u8] {
        let end = start.checked_add(len).expect("no part ends behind all addresses");
        let range: Range<usize> = start as usize..end as usize;
        self.0.get(range).unwrap_or_else(|| panic!("bytes {start}..{end} of {}", self.0.len()))
    }

    #[track_caller]
    fn number(&self, at: u64, bytes: u64) -> u64 {
        self.part(at, bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Reads an image as a driver does.
#[track_caller]
fn is_whole(bytes: &[u8]) {
    let image = Reader(bytes);
    if bytes.starts_with(b"\x7fELF") {
        elf(&image);
    } else {
        let (header, rest) = (image.number(6, 2), image.number(8, 8));
        image.part(0, header);
        image.part(header, rest);
    }
}

/// Sizes of an ELF file's program header and section header.
const SEGMENT: u64 = 56;
const SECTION: u64 = 64;

#[track_caller]
fn elf(image: &Reader<'_>) {
    image.part(0, 64);
    let (segments, sections) = (image.number(0x20, 8), image.number(0x28, 8));
    // The numbers in the header are too small for large files, which have them in section 0.
    let count = |field: u64, at_large: u64, in_first: Range<u64>| match image.number(field, 2) {
        found if found == at_large && sections != 0 => {
            image.number(sections + in_first.start, in_first.end - in_first.start)
        }
        found => found,
    };
    for number in 0..count(0x38, 0xffff, 44..48) {
        let header = segments + number * SEGMENT;
        image.part(header, SEGMENT);
        image.part(image.number(header + 8, 8), image.number(header + 32, 8));
    }
    for number in 0..count(0x3c, 0, 32..40) {
        let header = sections + number * SECTION;
        image.part(header, SECTION);
        const HAS_NO_BYTES: u64 = 8;
        if image.number(header + 4, 4) != HAS_NO_BYTES {
            image.part(image.number(header + 24, 8), image.number(header + 32, 8));
        }
    }
}

/// Reads an archive, and the images in it.
#[track_caller]
fn is_archive(bytes: &[u8]) {
    let archive = Reader(bytes);
    let mut at = 8;
    while at < bytes.len() as u64 {
        let field = |start: u64, len: u64| {
            let text = core::str::from_utf8(archive.part(at + start, len)).ok()?;
            text.trim_end().parse::<u64>().ok()
        };
        let size = field(48, 10).expect("a member has a size");
        let is_long = archive.part(at, 3) == b"#1/";
        let name = if is_long { field(3, 13).unwrap_or(0) } else { 0 };
        let member = archive.part(at + 60, size);
        let held = member.get(name as usize..).unwrap_or_default();
        if held.starts_with(b"\x7fELF") || held.starts_with(&0xba55_ed50_u32.to_le_bytes()) {
            is_whole(held);
        }
        at += 60 + size + size % 2;
    }
}
