//! Errors in images: the messages, and damaged images.

use cuda_handles::{Error, Image, Library};
use cuda_sys::CUresult;
use cuda_tests::{UNKNOWN_INSTRUCTION, setup, skip};

fn log(context: &cuda_handles::Context, ptx: &str, name: &str) -> String {
    let error = Library::load(context, Image::Ptx(ptx)).and_then(|library| library.kernel(name)).unwrap_err();
    let Error::Jit { log, code, .. } = error else { panic!("{error:?}") };
    assert!(
        matches!(code, CUresult::CUDA_ERROR_INVALID_PTX | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
        "{code}"
    );
    log.into_string()
}

macro_rules! soft {
    () => {{
        let context = setup();
        if !cuda_tests::is_soft() {
            skip!("about the software driver");
        }
        context
    }};
}

/// A kernel with this line as its body's second, which is line 7.
fn with(line: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n{line}\nret;\n}}\n"
    )
}

#[test]
fn an_unknown_instruction_is_named_with_its_line() {
    let context = soft!();
    let log = log(&context, UNKNOWN_INSTRUCTION, "broken");
    assert!(log.contains("line 10") && log.contains("frobnicate"), "{log}");
}

#[test]
fn an_instruction_that_is_not_interpreted_is_named_with_its_line() {
    let context = soft!();
    for (line, name) in [
        (
            "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r3,%r4}, {%r5,%r6}, {%r7,%r8}, %r9, 0;",
            "mma.sp",
        ),
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05"),
    ] {
        let log = log(&context, &with(line), "k");
        assert!(log.contains("line 7") && log.contains(name), "{name}: {log}");
    }
}

#[test]
fn what_is_wrong_in_an_instruction_is_named_with_its_line() {
    let context = soft!();
    for line in [
        "add.u32 %r1, %r2;",
        "add.u32 %r1, %r2, %r99;",
        "add.u32 %r1, %r2, nothing;",
        "bra NOWHERE;",
        "ld.param.u64 %rd1, [missing];",
        "add.u32 %r1, %rd2, %r3;",
        "setp.lt.u32 %r1, %r2, %r3;",
        "mov.u32 %r1 5;",
    ] {
        let log = log(&context, &with(line), "k");
        assert!(log.contains("line 7") || log.contains("line 8"), "{line}: {log}");
    }
}

#[test]
fn no_text_makes_the_loader_panic() {
    let context = soft!();
    let whole = cuda_tests::SMALL;
    // Every prefix up to some length, then steps; and every line left out.
    let ends = (0..400).chain((400..whole.len()).step_by(97)).filter(|end| whole.is_char_boundary(*end));
    for end in ends {
        let _ =
            Library::load(&context, Image::Ptx(&whole[..end])).and_then(|library| library.kernel("saxpy"));
    }
    let lines: Vec<&str> = whole.lines().collect();
    for left_out in (0..lines.len()).step_by(3) {
        let text: Vec<&str> =
            lines.iter().enumerate().filter(|(line, _)| *line != left_out).map(|(_, line)| *line).collect();
        let _ =
            Library::load(&context, Image::Ptx(&text.join("\n"))).and_then(|library| library.kernel("saxpy"));
    }
    cuda_tests::settle();
    drop(cuda_tests::kernel(&context, "saxpy"));
}
