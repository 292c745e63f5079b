//! The output of a process: all of it, or its beginning and its end, so that memory stays bounded.

use std::collections::VecDeque;

/// What is kept of the output of a test.
const KEPT: usize = 32 << 10;

pub(crate) struct Output {
    /// Bytes kept of the beginning, and as many of the end.
    kept: usize,
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    dropped: usize,
}

impl Default for Output {
    /// Keeps the beginning and the end.
    fn default() -> Self {
        Self { kept: KEPT, beginning: Vec::new(), end: VecDeque::new(), dropped: 0 }
    }
}

impl Output {
    /// Keeps everything.
    pub(crate) fn whole() -> Self {
        Self { kept: usize::MAX, ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.kept.saturating_sub(self.beginning.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.beginning.extend_from_slice(first);
        self.end.extend(rest);
        let excess = self.end.len().saturating_sub(self.kept);
        self.end.drain(..excess);
        self.dropped += excess;
    }

    pub(crate) fn into_text(self) -> String {
        let mut bytes = self.beginning;
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.dropped).as_bytes());
        }
        bytes.extend(self.end);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept() {
        let mut output = Output::default();
        output.push(b"first");
        (0..100).for_each(|_| output.push(&[b'.'; 1000]));
        output.push(b"last");
        let text = output.into_text();
        assert!(text.starts_with("first.") && text.ends_with(".last"));
        assert!(text.contains("[34473 bytes left out]"), "{}", text.len());
        let mut short = Output::default();
        short.push(b"all of it");
        assert_eq!(short.into_text(), "all of it");
        let mut whole = Output::whole();
        (0..100).for_each(|_| whole.push(&[b'.'; 1000]));
        assert_eq!(whole.into_text().len(), 100_000);
    }
}
