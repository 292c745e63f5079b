//! What fuzzing begins with, and what it once found.

/// Writes the [images] into the folder that the environment variable `CUDA_FUZZ_SEEDS` names, if it
/// names one.
///
/// # Panics
/// A file cannot be written.
pub fn write_images() {
    let Some(folder) = std::env::var_os("CUDA_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    for (number, image) in images().into_iter().enumerate() {
        let file = folder.join(format!("image-{number}"));
        std::fs::write(&file, image).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// Images of each kind that are whole, and have no code.
#[must_use]
pub fn images() -> Vec<Vec<u8>> {
    vec![fatbin(4), elf(1, 16), elf(8, 1 << 40), archive()]
}

/// Texts that a promise was once broken for.
pub const SEEN_TEXTS: &[&str] = &[
    // More memory than the device has.
    ".version 8.3\n.target sm_80\n.address_size 64\n.global .b32 a[4000000000] = {1};\n\
     .visible .entry f() { ret; }",
];

/// Operations about which graph and model once disagreed.
pub const SEEN_GRAPHS: &[&[u8]] = &[
    // An executable is updated from another graph, and its own one is moved.
    include_bytes!("seen/origin-moved"),
    // An edge that is refused, an update from the graph, an update of a node.
    include_bytes!("seen/refused-edge"),
    // An update from another graph, the removal of that one's node, another value of its parameter.
    include_bytes!("seen/other-removed"),
    // A disabled node that is removed, another one in its place, an update.
    include_bytes!("seen/disabled-removed"),
];

/// Operations about which captures and model once disagreed.
pub const SEEN_CAPTURES: &[&[u8]] = &[];

/// A fatbin with `len` bytes behind its header.
fn fatbin(len: u64) -> Vec<u8> {
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend(len.to_le_bytes());
    bytes.resize(bytes.len() + len as usize, 0);
    bytes
}

/// An ELF file with one segment and one section, both of `size` bytes, between its header and its
/// tables.
fn elf(kind: u32, size: u64) -> Vec<u8> {
    const DATA: u64 = 64;
    const SEGMENTS: u64 = DATA + 16;
    const SECTIONS: u64 = SEGMENTS + 56;
    let mut bytes = vec![0; SECTIONS as usize + 64];
    let mut put = |at: u64, value: &[u8]| bytes[at as usize..][..value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01");
    put(0x20, &SEGMENTS.to_le_bytes());
    put(0x28, &SECTIONS.to_le_bytes());
    put(0x36, &[56, 0, 1, 0, 64, 0, 1, 0]);
    put(SEGMENTS + 8, &DATA.to_le_bytes());
    put(SEGMENTS + 32, &16_u64.to_le_bytes());
    put(SECTIONS + 4, &kind.to_le_bytes());
    put(SECTIONS + 24, &DATA.to_le_bytes());
    put(SECTIONS + 32, &size.to_le_bytes());
    bytes
}

/// An archive with one member of each kind.
fn archive() -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, held) in [("note/", b"abcd".to_vec()), ("code/", elf(1, 16)), ("fat/", fatbin(4))] {
        bytes.extend(format!("{name:<16}{:<32}{:<10}`\n", 0, held.len()).bytes());
        bytes.extend(held);
    }
    bytes
}
