//! Reports without the names of private folders, since reports are kept and shown to others.

use std::path::Path;

/// A text in which `.` stands for the current folder, and `~` for the user's.
pub(super) fn hidden(text: &str) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let home = std::env::var_os("HOME").unwrap_or_default();
    without(&without(text, &current, "."), Path::new(&home), "~")
}

/// A text with another name for a folder and what is in it.
fn without(text: &str, folder: &Path, name: &str) -> String {
    let folder = folder.to_string_lossy();
    let folder = folder.trim_end_matches('/');
    // `/` itself is nobody's.
    if !folder.starts_with('/') {
        return text.to_owned();
    }
    let mut parts = text.split(folder);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Not `/home/me` in `/home/me2` or in `/srv/home/me`.
        let is_whole = !part.starts_with(is_of_a_name) && !out.ends_with(is_of_a_name);
        out.push_str(if is_whole { name } else { folder });
        out.push_str(part);
    }
    out
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-_.".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_another_name_where_it_is_meant() {
        let hide = |text| without(text, Path::new("/home/me"), "~");
        assert_eq!(hide("at /home/me/a, \"/home/me\""), "at ~/a, \"~\"");
        assert_eq!(hide("/home/me2 /srv/home/me /home/me-too/x"), "/home/me2 /srv/home/me /home/me-too/x");
        assert_eq!(without("/a/b", Path::new("/"), "~"), "/a/b");
        assert_eq!(without("a/b", Path::new(""), "~"), "a/b");
    }
}
