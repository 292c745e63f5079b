//! The wait for programmatic predecessors, put into the kernels of a PTX text.

use core::ops::Range;

use super::ptx_lexer::{Lexer, Token};

/// The first PTX version with the instruction.
const VERSION: (u32, u32) = (7, 8);
/// The first target with the instruction. Code for it is compiled for every later device, and no
/// later target is known to PTX 7.8.
const TARGET: u32 = 90;
/// The first target whose kernels mean the same when they are compiled for later ones: before it,
/// the threads of a warp run in step.
const LEAST_TARGET: u32 = 70;

/// The text with `griddepcontrol.wait` as the first statement of each kernel, and with the version
/// and the target that the instruction needs. No line changes its number.
///
/// # Errors
/// Why the text stays as it is.
pub(super) fn with_waits(text: &str) -> Result<String, String> {
    let mut scan = Scan { lexer: Lexer::new(text), edits: Vec::new(), entries: 0 };
    scan.module()?;
    if scan.entries == 0 {
        return Err("the PTX has no kernel".to_owned());
    }
    let mut result = String::with_capacity(text.len() + 32 * scan.edits.len());
    let mut end = 0;
    for (range, new) in &scan.edits {
        result.push_str(&text[end..range.start]);
        result.push_str(new);
        end = range.end;
    }
    result.push_str(&text[end..]);
    Ok(result)
}

/// A pass through a text.
struct Scan<'t> {
    lexer: Lexer<'t>,
    /// The changes in the order of the text.
    edits: Vec<(Range<usize>, &'static str)>,
    entries: usize,
}

impl<'t> Scan<'t> {
    fn next(&mut self) -> Result<Option<(Token<'t>, Range<usize>)>, String> {
        self.lexer.next().map_err(unclear)
    }

    /// Directives count outside of all braces only.
    fn module(&mut self) -> Result<(), String> {
        self.version()?;
        let (mut depth, mut has_target) = (0_usize, false);
        while let Some((token, _)) = self.next()? {
            match token {
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') => {
                    depth =
                        depth.checked_sub(1).ok_or_else(|| unclear("a brace is closed, but not opened"))?;
                }
                Token::Dotted("target") if depth == 0 => {
                    self.target()?;
                    has_target = true;
                }
                Token::Dotted("entry") if depth == 0 => depth += usize::from(self.entry()?),
                Token::Dotted("version") if depth == 0 => return Err(unclear("it has a second `.version`")),
                _ => {}
            }
        }
        match (depth, has_target) {
            (0, true) => Ok(()),
            (0, false) => Err(unclear("it has no `.target`")),
            _ => Err(unclear("a brace is opened, but not closed")),
        }
    }

    /// The version, which begins the text.
    fn version(&mut self) -> Result<(), String> {
        let begins = matches!(self.next()?, Some((Token::Dotted("version"), _)));
        let Some((Token::Number(number), range)) = self.next()?.filter(|_| begins) else {
            return Err("the text does not begin with `.version`, so it is no PTX".to_owned());
        };
        let parts = number
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
        let version = parts.ok_or_else(|| unclear(format!("`{number}` is no version")))?;
        if version < VERSION {
            self.edits.push((range, "7.8"));
        }
        Ok(())
    }

    /// A target such as `sm_80` or `sm_90a`. Options may follow it.
    fn target(&mut self) -> Result<(), String> {
        let Some((Token::Word(name), range)) = self.next()? else {
            return Err(unclear("a `.target` has no name"));
        };
        let number = name.strip_prefix("sm_").and_then(|rest| {
            let number = rest.trim_end_matches(|last: char| last.is_ascii_lowercase());
            number.parse::<u32>().ok()
        });
        match number {
            None => Err(unclear(format!("`{name}` is no target"))),
            Some(number) if number < LEAST_TARGET => Err(format!(
                "the PTX is for {name}, and waits are put into PTX for sm_{LEAST_TARGET} or later"
            )),
            Some(number) => {
                if number < TARGET {
                    self.edits.push((range, "sm_90"));
                }
                Ok(())
            }
        }
    }

    /// A kernel from behind its `.entry`; returns whether it has a body, which is open then. The
    /// directives between the parameters and the body end without a semicolon, except `.pragma`.
    fn entry(&mut self) -> Result<bool, String> {
        let (mut parentheses, mut in_pragma) = (0_usize, false);
        while let Some((token, range)) = self.next()? {
            match token {
                Token::Mark(b'(') => parentheses += 1,
                Token::Mark(b')') if parentheses > 0 => parentheses -= 1,
                Token::Dotted("pragma") => in_pragma = true,
                Token::Mark(b';') if in_pragma => in_pragma = false,
                Token::Mark(b';') if parentheses == 0 => return Ok(false),
                Token::Mark(b'{') if parentheses == 0 && !in_pragma => {
                    self.entries += 1;
                    self.edits.push((range.end..range.end, " griddepcontrol.wait; "));
                    return Ok(true);
                }
                Token::Mark(b'{' | b'}' | b')' | b';') | Token::Dotted("entry" | "func" | "target") => break,
                _ => {}
            }
        }
        Err(unclear("the head of a kernel has no end"))
    }
}

fn unclear(what: impl AsRef<str>) -> String {
    format!("the PTX cannot be read: {}", what.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: &str = " griddepcontrol.wait; ";

    /// The text with `{W` for the brace of a kernel, and what it becomes.
    fn check(marked: &str) {
        let text = marked.replace("{W", "{");
        let expected = marked.replace("{W", &format!("{{{WAIT}"));
        assert_eq!(with_waits(&text).as_deref(), Ok(&expected[..]), "{text}");
    }

    fn head(rest: &str) -> String {
        format!(".version 8.0\n.target sm_90\n.address_size 64\n{rest}")
    }

    fn why(text: &str) -> String {
        with_waits(text).unwrap_err()
    }

    #[test]
    fn each_kernel_waits_first() {
        check(&head(
            ".visible .entry a()\n{W\n\tret;\n}\n.weak .entry b(.param .u64 x[2])\r\n{W\r\nret;\r\n}\r\n",
        ));
        check(&head(".entry no_list{Wret;}.entry $other\n{W }"));
        check(&head(".entry griddepcontrol(){W griddepcontrol.wait; ret; }"));
    }

    #[test]
    fn version_and_target_are_raised_where_they_are_too_low() {
        let body = ".address_size 64\n.entry a() { ret; }";
        let made = |version: &str, target: &str| {
            with_waits(&format!("// for sm_10\n.version {version} .target {target}\r\n{body}")).unwrap()
        };
        let expected = |version: &str, target: &str| {
            let body = body.replace('{', &format!("{{{WAIT}"));
            format!("// for sm_10\n.version {version} .target {target}\r\n{body}")
        };
        for (given, made_of) in [
            (("6.0", "sm_70"), ("7.8", "sm_90")),
            (("7.7", "sm_89, texmode_independent"), ("7.8", "sm_90, texmode_independent")),
            (("7.8", "sm_90"), ("7.8", "sm_90")),
            (("8.0", "sm_90a"), ("8.0", "sm_90a")),
            (("8.8", "sm_100f"), ("8.8", "sm_100f")),
            (("9.0", "sm_121"), ("9.0", "sm_121")),
            (("7.10", "sm_75"), ("7.10", "sm_90")),
            (("10.0", "sm_80,debug"), ("10.0", "sm_90,debug")),
        ] {
            assert_eq!(made(given.0, given.1), expected(made_of.0, made_of.1));
        }
    }

    #[test]
    fn comments_and_strings_are_no_kernels() {
        check(&head(
            "// .entry a() {\n/* .entry b() { */\n.entry c() // {\n/* { */ {W // }\n ret; /* } */ }",
        ));
        check(&head(".file 1 \".entry x() {\"\n.entry a() {W .loc 1 2 3\n .pragma \"} .entry {\"; ret; }"));
        check(&head(".file 1 \"a\\\"{\" .entry a() {W ret; }"));
    }

    #[test]
    fn declarations_and_functions_stay() {
        check(&head(".extern .entry a(.param .u32 x);\n.entry b;\n.entry c() {W ret; }"));
        check(&head(
            ".func (.param .b32 r) f(.param .b32 x) { { ret; } }\n.func g();\n.entry a() {W { ret; } }",
        ));
        check(&head(".global .u32 table[2] = { 1, 2 };\n.global .b8 z[2][1] = {{1},{2}};.entry a() {W}"));
        check(&head(".entry a() {W}\n.section .debug_abbrev { .b8 1\n.b64 .debug_info }"));
    }

    #[test]
    fn directives_stand_before_the_brace() {
        check(&head(
            ".entry a(.param .u64 .ptr .global .align 4 x)\n.maxntid 256, 1, 1\n.minnctapersm 2\n{W}",
        ));
        check(&head(".entry a() .pragma \"nounroll\"; .reqntid 32 {W .pragma \"nounroll\"; }"));
        check(&head(
            ".pragma \"nounroll\";\n.entry a() .pragma \"a\", \"b\";\n{W}\n.entry b(.param .b8 x[4]);",
        ));
        check(&head(".entry a() .blocksareclusters .reqnctapercluster 2,1,1 .explicitcluster {W}"));
    }

    #[test]
    fn names_that_only_look_like_directives_stay() {
        check(&head(".entry entry() {W bra $entry; $entry: mov.b32 %entry, 1; }"));
        check(&head(".func f() { call.entry a, (); }\n.entry a() {W}"));
    }

    #[test]
    fn older_code_stays_as_it_is() {
        for target in ["sm_50", "sm_62", "sm_20"] {
            let text = format!(".version 6.0\n.target {target}\n.entry a() {{ }}");
            assert!(why(&text).contains(&format!("for {target}, and waits")), "{text}");
        }
        let lower = head(".target sm_60\n.entry a() { }");
        assert!(why(&lower).contains("sm_60"));
        check(&head(".target sm_100\n.entry a() {W }"));
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        for (text, told) in [
            (String::new(), "no PTX"),
            ("this is no PTX".into(), "no PTX"),
            (".target sm_90 .entry a() {}".into(), "no PTX"),
            (".version x".into(), "no PTX"),
            (".version 8 .target sm_90".into(), "`8` is no version"),
            (".version 8.0 .entry a() {}".into(), "no `.target`"),
            (".version 8.0 .target compute_90 .entry a() {}".into(), "no target"),
            (".version 8.0 .target sm_ .entry a() {}".into(), "no target"),
            (head(""), "no kernel"),
            (head(".extern .entry a();"), "no kernel"),
            (head(".entry a() {"), "not closed"),
            (head(".entry a() { } }"), "not opened"),
            (head(".entry a("), "head of a kernel"),
            (head(".entry a() .entry b() { }"), "head of a kernel"),
            (head(".entry a({ })"), "head of a kernel"),
            (head(".entry a() .pragma \"x\" { }"), "head of a kernel"),
            (head(".entry a() { } /* "), "line 4: a comment"),
            (head(".entry a() { } .version 8.0"), "second `.version`"),
        ] {
            let found = why(&text);
            assert!(found.contains(told), "{text}: {found}");
        }
    }

    #[test]
    fn a_text_cut_off_anywhere_does_not_panic() {
        let text = head(".file 1 \"é\\\"\" .entry a(.param .u32 x) .pragma \"y\"; { /* é */ ret; } // é\n");
        for (cut, _) in text.char_indices() {
            let _ = with_waits(&text[..cut]);
        }
        assert!(with_waits(&text).is_ok());
    }
}
