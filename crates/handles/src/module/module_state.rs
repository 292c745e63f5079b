//! Whether kernels of a PTX text can keep state between launches outside of their arguments.

use core::ops::Range;

use super::ptx_lexer::{Lexer, Token};

/// Whether launches of the kernels of a PTX text share nothing but the memory of their arguments.
///
/// The text has no variable that kernels can write, and no function from elsewhere, such as
/// `vprintf` or `malloc`. Constants are no state, since kernels cannot write them, and neither are
/// conditions of graphs, which kernels set by handles among their arguments.
///
/// A text that cannot be read may have state.
pub(super) fn is_stateless(text: &str) -> bool {
    let mut scan = Scan { lexer: Lexer::new(text), chain: Chain::default(), parentheses: 0 };
    scan.finds_none().unwrap_or(false)
}

/// Names of the device's own functions with a state: the text of `printf`, and the heap.
const SYSTEM: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Functions from elsewhere that go by arguments alone.
const HARMLESS: [&str; 1] = ["cudaGraphSetConditional"];

/// Tokens without a space between them, such as `ld.global.u32`.
#[derive(Default)]
struct Chain {
    end: usize,
    /// Whether it begins with an instruction, so that `.global` in it is a modifier.
    is_instruction: bool,
}

impl Chain {
    fn add(&mut self, token: Token<'_>, range: &Range<usize>) {
        let goes_on = range.start == self.end && matches!(token, Token::Dotted(_));
        if !goes_on {
            self.is_instruction = matches!(token, Token::Word(_));
        }
        self.end = range.end;
    }
}

/// A pass through a text.
struct Scan<'t> {
    lexer: Lexer<'t>,
    chain: Chain,
    parentheses: usize,
}

impl<'t> Scan<'t> {
    fn next(&mut self) -> Result<Option<Token<'t>>, String> {
        let Some((token, range)) = self.lexer.next()? else { return Ok(None) };
        self.chain.add(token, &range);
        match token {
            Token::Mark(b'(') => self.parentheses += 1,
            Token::Mark(b')') => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
        Ok(Some(token))
    }

    /// Whether the text has no state.
    fn finds_none(&mut self) -> Result<bool, String> {
        while let Some(token) = self.next()? {
            let is_fine = match token {
                // Parameters have the names of spaces in their lists.
                Token::Dotted(space) if self.parentheses == 0 && !self.chain.is_instruction => match space {
                    "global" | "tex" | "texref" | "surfref" | "samplerref" | "managed" => false,
                    "extern" => self.is_fine_outside()?,
                    "func" => self.is_fine_function()?,
                    _ => true,
                },
                Token::Word(name) => !SYSTEM.contains(&name),
                _ => true,
            };
            if !is_fine {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether what is declared behind `.extern` is memory of a block, which ends with it, or a
    /// harmless function.
    fn is_fine_outside(&mut self) -> Result<bool, String> {
        match self.next()? {
            Some(Token::Dotted("shared")) => Ok(true),
            Some(Token::Dotted("func")) => self.is_fine_function(),
            _ => Ok(false),
        }
    }

    /// Whether a function, from behind its `.func`, has a body, which is looked at next, or is a
    /// harmless one from elsewhere.
    fn is_fine_function(&mut self) -> Result<bool, String> {
        let mut name = None;
        while let Some(token) = self.next()? {
            match token {
                Token::Word(word) if self.parentheses == 0 && name.is_none() => name = Some(word),
                Token::Mark(b'{') => return Ok(true),
                Token::Mark(b';') => return Ok(name.is_some_and(|name| HARMLESS.contains(&name))),
                _ => {}
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = ".visible .entry a(.param .u64 .ptr .global .align 4 x, .param .u64 y)\n{\n.reg .b32 \
                          %r<3>; .shared .align 4 .b8 s[64];\n ld.param.u64 %rd1, [x]; cvta.to.global.u64 %rd2, \
                          %rd1;\n @%p1 ld.global.u32 %r1, [%rd2]; .loc 1 2 3\nst.global.v2.u32 [%rd2], {%r1, %r1};\n \
                          ret;\n}\n";

    fn is_free(more: &str) -> bool {
        let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
        let before = is_stateless(&format!("{head}{more}\n{KERNEL}"));
        assert_eq!(before, is_stateless(&format!("{head}{KERNEL}{more}\n")), "{more}");
        before
    }

    #[test]
    fn kernels_that_use_their_arguments_alone_have_no_state() {
        for more in [
            "",
            ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};",
            ".extern .shared .align 16 .b8 dynamic[];",
            ".shared .align 4 .b8 block[64];",
            ".func (.param .b32 r) twice(.param .b32 x) { ret; }",
            ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);",
            "// .global .u32 x;\n/* .extern .func vprintf */",
            ".file 1 \".global .u32 x;\"",
        ] {
            assert!(is_free(more), "{more}");
        }
    }

    #[test]
    fn variables_and_functions_of_the_device_are_state() {
        for more in [
            ".global .align 4 .u32 calls;",
            ".visible .global .align 4 .u32 calls = 3;",
            ".visible.global .u32 calls;",
            ".global .attribute(.managed) .align 4 .u32 calls;",
            ".extern .global .u32 calls;",
            ".extern .const .u32 table[];",
            ".global .texref t;",
            ".tex .u32 t;",
            ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);",
            ".func (.param .b32 r) elsewhere(.param .b64 a);",
            ".visible .func elsewhere;",
            ".entry b() { .global .u32 inside; ret; }",
            ".entry b() { L: .global .u32 inside; ret; }",
            ".entry b() { call.uni (r), malloc, (p); }",
        ] {
            assert!(!is_free(more), "{more}");
        }
    }

    #[test]
    fn what_cannot_be_read_may_have_state() {
        for text in ["/* ", "\"", ".entry é", "#"] {
            assert!(!is_stateless(text), "{text}");
        }
    }
}
