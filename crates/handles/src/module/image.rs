//! Images of device code, checked against their length before the driver reads them.

use core::ffi::c_void;
use std::ffi::CString;

use crate::error::{Error, Result};

/// Device code to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Image<'a> {
    /// PTX, which the driver compiles for the device. Zero bytes at its end are left out: compilers
    /// count them into their sizes.
    Ptx(&'a str),
    /// A cubin or a fatbin.
    Binary(&'a [u8]),
}

/// Kernels that are compiled at run time are declared so.
const NO_IMAGE: &str = "it is empty. What was declared without an image (`Image::Ptx(\"\")`) comes from a library that was \
                        loaded: `Library::load`, then `unsafe { K::of(&library) }` for the kernel `K`";

/// An image that the driver can read to its end.
pub(crate) enum Checked<'a> {
    Text(CString),
    Binary(&'a [u8]),
}

impl<'a> Image<'a> {
    /// The image in the driver's form. The driver gets no length: it reads as far as the image's
    /// headers say.
    pub(crate) fn check(self) -> Result<Checked<'a>> {
        match self {
            Self::Ptx(text) if text.trim_end_matches('\0').trim().is_empty() => refuse(NO_IMAGE.to_owned()),
            Self::Ptx(text) => match CString::new(text.trim_end_matches('\0')) {
                Ok(text) => Ok(Checked::Text(text)),
                Err(error) => refuse(format!("the PTX has a zero byte at position {}", error.nul_position())),
            },
            Self::Binary(bytes) => {
                check_binary(bytes)?;
                Ok(Checked::Binary(bytes))
            }
        }
    }
}

impl Checked<'_> {
    pub(crate) fn as_ptr(&self) -> *const c_void {
        match self {
            Self::Text(text) => text.as_ptr().cast(),
            Self::Binary(bytes) => bytes.as_ptr().cast(),
        }
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Image(reason.into()))
}

const FATBIN: u32 = 0xba55_ed50;
const ELF: [u8; 4] = *b"\x7fELF";

fn check_binary(bytes: &[u8]) -> Result<()> {
    let needed = match read::<4>(bytes, 0) {
        Some(ELF) => elf_size(bytes)?,
        Some(magic) if u32::from_le_bytes(magic) == FATBIN => fatbin_size(bytes),
        _ => return refuse("it is neither a cubin nor a fatbin; PTX goes into `Image::Ptx`".to_owned()),
    };
    match needed {
        Some(needed) if needed <= bytes.len() as u64 => Ok(()),
        Some(needed) => refuse(format!("it says that it has {needed} bytes, but {} were given", bytes.len())),
        None => refuse(format!("its {} bytes end within its header", bytes.len())),
    }
}

const ARCHIVE: &[u8] = b"!<arch>\n";
/// A member's header: a name of 16 bytes; at 48 the size in decimal, of 10 bytes; at 58 its end.
const MEMBER: usize = 60;

/// Whether an archive's members, and the images among them, lie within it to their ends.
pub(crate) fn check_archive(archive: &[u8]) -> Result<()> {
    let Some(mut rest) = archive.strip_prefix(ARCHIVE) else {
        return refuse("it does not begin as an archive does".to_owned());
    };
    while !rest.is_empty() {
        let at = archive.len() - rest.len();
        let Some((header, behind)) =
            rest.split_at_checked(MEMBER).filter(|(header, _)| header.ends_with(b"`\n"))
        else {
            return refuse(format!("the archive has no header of a member at byte {at}"));
        };
        let Some((member, behind)) = decimal(&header[48..58]).and_then(|size| behind.split_at_checked(size))
        else {
            return refuse(format!("the archive's member at byte {at} has no size, or goes beyond its end"));
        };
        // A long name in BSD's format precedes the contents of the member.
        let name = header[..16].strip_prefix(b"#1/").and_then(decimal).unwrap_or(0);
        let held = member.get(name..).unwrap_or_default();
        if held.starts_with(&ELF) || held.starts_with(&FATBIN.to_le_bytes()) {
            check_binary(held)?;
        }
        // Members begin at even places.
        rest = behind.get(member.len() % 2..).unwrap_or_default();
    }
    Ok(())
}

/// A number with spaces behind it.
fn decimal(field: &[u8]) -> Option<usize> {
    core::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

/// The sizes of the header and of the contents, from the fatbin's header.
fn fatbin_size(bytes: &[u8]) -> Option<u64> {
    let header = u16::from_le_bytes(read(bytes, 6)?);
    let rest = u64::from_le_bytes(read(bytes, 8)?);
    Some(rest.saturating_add(u64::from(header)))
}

/// A table of an ELF file.
struct Table {
    of: &'static str,
    start: u64,
    /// The size of an entry, as the header says and as cubins have it.
    entry: u64,
    usual_entry: u64,
    count: u64,
    /// The places of a part's offset and size in an entry.
    offset_at: u64,
    size_at: u64,
}

/// The tables of segments and of sections. Cubins are of the 64-bit little-endian kind.
fn elf_tables(bytes: &[u8]) -> Option<[Table; 2]> {
    let long = |at| read(bytes, at).map(u64::from_le_bytes);
    let short = |at| read(bytes, at).map(u16::from_le_bytes).map(u64::from);
    if read::<2>(bytes, 4)? != [2, 1] {
        return None;
    }
    let sections = long(0x28)?;
    // Numbers that are too large for the header are in the entry of section 0.
    let first = |at: u64| usize::try_from(sections.saturating_add(at)).ok().filter(|_| sections != 0);
    let many_sections = || first(32).and_then(long);
    let many_segments = || first(44).and_then(|at| read(bytes, at)).map(u32::from_le_bytes).map(u64::from);
    let segment_count = match short(0x38)? {
        0xffff => many_segments().unwrap_or(0xffff),
        count => count,
    };
    let section_count = match short(0x3c)? {
        // A table has that entry at least.
        0 if sections != 0 => many_sections().unwrap_or(1).max(1),
        count => count,
    };
    let (offset_at, size_at) = (8, 32);
    let segments = Table {
        of: "segments",
        start: long(0x20)?,
        entry: short(0x36)?,
        usual_entry: 56,
        count: segment_count,
        offset_at,
        size_at,
    };
    let (offset_at, size_at) = (24, 32);
    let sections = Table {
        of: "sections",
        start: sections,
        entry: short(0x3a)?,
        usual_entry: 64,
        count: section_count,
        offset_at,
        size_at,
    };
    Some([segments, sections])
}

/// The end of the farthest of an ELF file's tables, segments and sections; `None` if its header is
/// cut off.
fn elf_size(bytes: &[u8]) -> Result<Option<u64>> {
    let Some(tables) = elf_tables(bytes) else { return Ok(None) };
    let mut end = 64;
    for table in tables {
        let Table { of, start, entry, usual_entry, count, .. } = table;
        // A driver may go by either size.
        if count > 0 && entry != usual_entry {
            return refuse(format!(
                "its table of {of} has entries of {entry} bytes, and not of {usual_entry}"
            ));
        }
        end = end.max(start.saturating_add(entry.saturating_mul(count)));
        end = end.max(table.end_of_parts(bytes));
    }
    Ok(Some(end))
}

impl Table {
    /// The end of the farthest part in the table.
    fn end_of_parts(&self, bytes: &[u8]) -> u64 {
        let read_at = |at: u64| usize::try_from(at).ok().and_then(|at| read(bytes, at));
        let mut end = 0;
        for number in 0..self.count {
            let at = self.start.saturating_add(self.entry.saturating_mul(number));
            let long = |field: u64| read_at(at.saturating_add(field)).map(u64::from_le_bytes);
            let (Some(offset), Some(size)) = (long(self.offset_at), long(self.size_at)) else {
                // The table itself is cut off; its end says so.
                break;
            };
            // A section of type 8 (NOBITS) has a size and no bytes.
            let kind = usize::try_from(at.saturating_add(4)).ok().and_then(|at| read(bytes, at));
            let is_empty = self.of == "sections" && kind.map(u32::from_le_bytes) == Some(8);
            end = end.max(if is_empty { 0 } else { offset.saturating_add(size) });
        }
        end
    }
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(image: Image<'_>) -> String {
        image.check().err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn fatbin(rest: u64) -> Vec<u8> {
        let mut bytes = FATBIN.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend(rest.to_le_bytes());
        bytes
    }

    /// An ELF file with one section of `size` bytes, of type `kind`, between its header and its
    /// section table.
    fn elf(kind: u32, size: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 16 + 64];
        bytes[..4].copy_from_slice(&ELF);
        bytes[4..6].copy_from_slice(&[2, 1]);
        bytes[0x28..0x30].copy_from_slice(&80_u64.to_le_bytes());
        bytes[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&1_u16.to_le_bytes());
        bytes[84..88].copy_from_slice(&kind.to_le_bytes());
        bytes[104..112].copy_from_slice(&64_u64.to_le_bytes());
        bytes[112..120].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    #[test]
    fn an_empty_text_stands_for_an_image_to_come() {
        for text in ["", "\0", " \n"] {
            let refusal = refusal(Image::Ptx(text));
            assert!(
                refusal.contains("without an image") && refusal.contains("`unsafe { K::of(&library) }`"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn text_is_ended() {
        let Ok(Checked::Text(text)) = Image::Ptx(".version 7.8").check() else { panic!("refused") };
        assert_eq!(text.as_bytes_with_nul().last(), Some(&0));
        for text in [".version 7.8\0", ".version 7.8\0\0"] {
            let Ok(Checked::Text(text)) = Image::Ptx(text).check() else { panic!("refused") };
            assert_eq!(text.as_bytes(), b".version 7.8");
        }
        assert!(refusal(Image::Ptx("a\0b")).contains("zero byte at position 1"));
    }

    #[test]
    fn fatbins_are_whole() {
        let mut whole = fatbin(4);
        whole.extend([0; 4]);
        assert!(Image::Binary(&whole).check().is_ok());
        assert!(refusal(Image::Binary(&fatbin(4))).contains("says that it has 20 bytes, but 16 were given"));
        assert!(refusal(Image::Binary(&fatbin(0)[..10])).contains("end within its header"));
        assert!(refusal(Image::Binary(&fatbin(u64::MAX))).contains("but 16 were given"));
    }

    #[test]
    fn cubins_are_whole() {
        assert!(Image::Binary(&elf(1, 16)).check().is_ok());
        assert!(Image::Binary(&elf(8, 1 << 40)).check().is_ok());
        assert!(refusal(Image::Binary(&elf(1, 1 << 40))).contains("but 144 were given"));
        assert!(refusal(Image::Binary(&elf(1, 16)[..100])).contains("says that it has 144 bytes, but 100"));
        assert!(refusal(Image::Binary(&elf(1, 16)[..50])).contains("end within its header"));
    }

    /// Writes a number into an ELF file.
    fn with(mut bytes: Vec<u8>, at: usize, number: &[u8]) -> Vec<u8> {
        bytes[at..at + number.len()].copy_from_slice(number);
        bytes
    }

    #[test]
    fn entries_of_a_table_have_their_size() {
        // The table would end within the file, and its only entry would not.
        let narrow = with(elf(1, 16), 0x3a, &8_u16.to_le_bytes());
        assert!(refusal(Image::Binary(&narrow)).contains("entries of 8 bytes, and not of 64"));
        let wide = with(elf(1, 16), 0x3a, &128_u16.to_le_bytes());
        assert!(refusal(Image::Binary(&wide)).contains("entries of 128 bytes"));
    }

    #[test]
    fn numbers_of_entries_may_be_in_section_0() {
        let many = with(elf(1, 2), 0x3c, &0_u16.to_le_bytes());
        // Two entries of 64 bytes from byte 80 on.
        assert!(refusal(Image::Binary(&many)).contains("says that it has 208 bytes, but 144 were given"));
        assert!(Image::Binary(&with(many, 112, &1_u64.to_le_bytes())).check().is_ok());
    }

    fn member(name: &str, size: usize, held: &[u8]) -> Vec<u8> {
        let mut bytes = format!("{name:<16}{:<32}{size:<10}`\n", 0).into_bytes();
        bytes.extend(held);
        bytes
    }

    fn archive(members: &[Vec<u8>]) -> Vec<u8> {
        [ARCHIVE.to_vec(), members.concat()].concat()
    }

    #[test]
    fn archives_are_whole() {
        let (text, object) = (member("note/", 3, b"abc\n"), member("object.o/", 144, &elf(1, 16)));
        assert_eq!(check_archive(&archive(&[])), Ok(()));
        let whole =
            archive(&[text.clone(), object.clone(), member("#1/4", 20, &[b"long", &fatbin(0)[..]].concat())]);
        assert_eq!(check_archive(&whole), Ok(()));
        // The padding may be missing at the end.
        assert_eq!(check_archive(&archive(&[object.clone(), text.clone()])[..8 + 204 + 63]), Ok(()));
        let reason = |bytes: &[u8]| check_archive(bytes).unwrap_err().to_string();
        assert!(reason(&whole[1..]).contains("does not begin"));
        let ends = [8, 72, 276, 356];
        for cut in (0..whole.len()).filter(|cut| !ends.contains(cut) && *cut != 71) {
            assert!(check_archive(&whole[..cut]).is_err(), "cut off at {cut}");
        }
        assert!(reason(&archive(&[member("a/", 999_999_999, &ELF)])).contains("goes beyond its end"));
        assert!(reason(&archive(&[member("a/", 144, &elf(1, 1 << 40))])).contains("but 144 were given"));
        assert!(
            reason(&archive(&[member("#1/4", 20, &[b"long", &fatbin(9)[..]].concat())])).contains("25 bytes")
        );
        assert!(reason(&archive(&[text, b"behind".to_vec()])).contains("no header of a member at byte 72"));
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&b""[..], b"\x7fEL", b".version 7.8", b"\0\0\0\0\0\0\0\0"] {
            assert!(refusal(Image::Binary(bytes)).contains("neither a cubin nor a fatbin"));
        }
    }
}
