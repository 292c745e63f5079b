//! Compiling, where there is a compiler: without one these tests say that they are skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

use std::sync::Arc;

use cuda_nvrtc::{Arch, Compiler, Error, Program, Standard, Target, Version};

/// The compiler, or the end of the test.
macro_rules! compiler {
    () => {
        match Compiler::load() {
            Ok(compiler) => compiler,
            Err(error @ Error::NotFound { .. }) => {
                println!("skipped: {}", error.to_string().lines().next().unwrap_or_default());
                return;
            }
            Err(error) => panic!("{error}"),
        }
    };
}

const FILL: &str = "extern \"C\" __global__ void fill(int *x) { x[threadIdx.x] = VALUE; }";

fn fill() -> Program {
    Program::new("fill.cu", FILL).define("VALUE", "4711").target(Target::Ptx(Arch::new(8, 0)))
}

#[test]
fn gives_ptx_for_the_target() {
    let compiler = compiler!();
    let compiled = compiler.compile(&fill()).unwrap();
    let ptx = compiled.ptx().unwrap();
    assert!(
        ptx.contains(".target sm_80") && ptx.contains(".visible .entry fill(") && ptx.contains("4711"),
        "{ptx}"
    );
    assert!(compiled.cubin().is_none() && compiled.log().is_empty(), "{}", compiled.log());
    assert_eq!(compiled.compiler(), compiler.version());
    assert!(compiled.ptx_version().is_some_and(|version| version >= Version::new(8, 0)));
    assert_eq!(compiled.check_driver(compiler.version()), Ok(()));
    // The same again.
    compiler.forget();
    let again = compiler.compile(&fill()).unwrap();
    assert!(*again == *compiled && !Arc::ptr_eq(&again, &compiled));
}

#[test]
fn compiles_a_program_once() {
    let compiler = compiler!();
    let first = compiler.compile(&fill()).unwrap();
    assert!(Arc::ptr_eq(&first, &compiler.compile(&fill()).unwrap()));
    assert!(Arc::ptr_eq(&first, &Compiler::load().unwrap().compile(&fill()).unwrap()), "one compiler");
    for other in [
        fill().define("MORE", "1"),
        fill().header("unused.h", ""),
        fill().target(Target::Ptx(Arch::new(8, 6))),
    ] {
        assert!(!Arc::ptr_eq(&first, &compiler.compile(&other).unwrap()), "{other:?}");
    }
}

#[test]
fn gives_a_cubin() {
    let compiler = compiler!();
    let compiled = compiler.compile(&fill().target(Target::Cubin(Arch::new(8, 0)))).unwrap();
    assert!(compiled.cubin().unwrap().starts_with(b"\x7fELF"));
    assert_eq!((compiled.ptx(), compiled.ptx_version()), (None, None));
    let specific = fill().target(Target::Cubin(Arch::new(9, 0).specific()));
    assert!(compiler.compile(&specific).unwrap().cubin().unwrap().len() > 64);
}

#[test]
fn finds_headers_in_memory_and_in_folders() {
    let compiler = compiler!();
    let folder = std::env::temp_dir().join(format!("cuda-nvrtc-include-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("two.h"), "#define TWO 4000").unwrap();
    let source =
        "#include \"one.h\"\n#include <two.h>\nextern \"C\" __global__ void sum(int *x) { *x = ONE + TWO; }";
    let program = Program::new("sum.cu", source).header("one.h", "#define ONE 711").include(&folder);
    let compiled = compiler.compile(&program);
    std::fs::remove_dir_all(&folder).unwrap();
    let compiled = compiled.unwrap();
    assert!(compiled.ptx().unwrap().contains("4711"), "{compiled:?}");
}

#[test]
fn options_arrive() {
    let compiler = compiler!();
    let source = "#if __cplusplus != EXPECTED\n#error another standard\n#endif\n\
        extern \"C\" __global__ void divide(float *x) { x[0] = x[1] / x[2]; }";
    let program = |standard, expected| {
        Program::new("divide.cu", source).standard(standard).define("EXPECTED", expected)
    };
    for (standard, expected) in [
        (Standard::Cpp11, "201103L"),
        (Standard::Cpp14, "201402L"),
        (Standard::Cpp17, "201703L"),
        (Standard::Cpp20, "202002L"),
    ] {
        compiler
            .compile(&program(standard, expected))
            .unwrap_or_else(|error| panic!("{standard:?}: {error}"));
    }
    let ptx = |program: Program| compiler.compile(&program).unwrap().ptx().unwrap().to_owned();
    let plain = || program(Standard::Cpp17, "201703L");
    assert!(ptx(plain()).contains("div.rn.f32"));
    assert!(ptx(plain().fast_math()).contains("div.approx"));
    assert!(!ptx(plain()).contains(".loc") && ptx(plain().line_info()).contains(".loc"));
    assert!(ptx(plain().device_debug()).contains("debug"));
    assert!(
        ptx(plain().max_registers(32)).contains(".maxnreg") || ptx(plain().max_registers(32)).contains("div")
    );
    assert!(ptx(plain().relocatable().option("--fmad=false")).contains("div.rn.f32"));
}

#[test]
fn expressions_have_names() {
    let compiler = compiler!();
    let source = "template <class T> __global__ void twice(T *x) { x[0] *= 2; }\nnamespace mine { __device__ int counter; }";
    let program = Program::new("twice.cu", source)
        .expression("twice<float>")
        .expression("twice< unsigned int >")
        .expression("&mine::counter");
    let compiled = compiler.compile(&program).unwrap();
    let ptx = compiled.ptx().unwrap();
    for (expression, name) in [
        ("twice<float>", "_Z5twiceIfEvPT_"),
        ("twice< unsigned int >", "_Z5twiceIjEvPT_"),
        ("&mine::counter", "_ZN4mine7counterE"),
    ] {
        assert_eq!(compiled.lowered_name(expression), Ok(name));
        assert!(ptx.contains(name), "{name} in {ptx}");
    }
    assert!(matches!(compiled.lowered_name("twice<int>"), Err(Error::NoExpression { .. })));
}

#[test]
fn what_does_not_compile_is_told_in_the_compilers_words() {
    let compiler = compiler!();
    let program = Program::new("wrong.cu", "extern \"C\" __global__ void wrong(int *x)\n{\n    *x = y;\n}\n");
    let error = compiler.compile(&program).unwrap_err();
    let Error::Compile { name, log, .. } = &error else { panic!("{error:?}") };
    assert!(name == "wrong.cu" && log.contains("wrong.cu(3)") && log.contains("\"y\""), "{log}");
    assert!(error.to_string().contains("NVRTC_ERROR_COMPILATION"), "{error}");
    assert_eq!(compiler.compile(&program).unwrap_err(), error, "a failure is not kept, and repeated");
    let error = compiler.compile(&fill().option("--no-such-option")).unwrap_err();
    assert!(error.to_string().contains("--no-such-option"), "{error}");
    let error = compiler.compile(&fill().target(Target::Ptx(Arch::new(1, 0)))).unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
    let error = compiler.compile(&fill().expression("nothing<int>")).unwrap_err();
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn warnings_are_kept() {
    let compiler = compiler!();
    let source = "extern \"C\" __global__ void warn(int *x) { int unused; *x = 1; }";
    let compiled = compiler.compile(&Program::new("warn.cu", source)).unwrap();
    assert!(
        compiled.log().contains("warn.cu(1)") && compiled.log().contains("unused"),
        "{:?}",
        compiled.log()
    );
}

#[test]
fn texts_with_a_zero_byte_are_refused() {
    let compiler = compiler!();
    for (program, what) in [
        (Program::new("a.cu", "ab\0c"), "the source"),
        (Program::new("a\0.cu", ""), "the name of the program"),
        (Program::new("a.cu", "").header("\0", ""), "the name of a header"),
        (Program::new("a.cu", "").header("a.h", "\0"), "a header"),
        (Program::new("a.cu", "").expression("a\0"), "an expression"),
        (Program::new("a.cu", "").option("\0"), "an option"),
    ] {
        let error = compiler.compile(&program).unwrap_err();
        assert!(matches!(error, Error::Zero { what: found, .. } if found == what), "{error:?}");
    }
}

#[test]
fn knows_its_architectures() {
    let compiler = compiler!();
    let known = compiler.architectures().unwrap();
    assert!(
        known.is_sorted() && known.contains(&Arch::new(8, 0)) && known.contains(&Arch::new(9, 0)),
        "{known:?}"
    );
    assert_eq!(compiler.best_arch((8, 0)), Ok(Arch::new(8, 0)));
    assert_eq!(compiler.best_arch((8, 4)), Ok(Arch::new(8, 0)));
    assert_eq!(compiler.best_arch((99, 0)).ok(), known.last().copied());
    let text = compiler.best_arch((2, 0)).unwrap_err().to_string();
    assert!(text.contains("compute capability 2.0") && text.contains("sm_80"), "{text}");
    assert!(compiler.version() >= Version::new(12, 0));
}

#[test]
fn threads_compile_beside_each_other() {
    let compiler = compiler!();
    let one = |number: usize| {
        let program = fill().define("NUMBER", &number.to_string()).expression("fill");
        compiler.compile(&program).map(|compiled| compiled.lowered_name("fill").map(str::to_owned))
    };
    let names = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || one(number % 4))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(
        names.iter().all(|name| name.as_ref().is_ok_and(|name| name.as_deref() == Ok("fill"))),
        "{names:?}"
    );
}

#[test]
fn what_is_no_compiler_is_an_error() {
    let no_library = std::env::current_exe().unwrap();
    for path in [std::path::Path::new("/nowhere/libnvrtc.so.12"), &no_library] {
        // SAFETY: there is no such library, or a program of this crate.
        let error = unsafe { Compiler::open(path) }.unwrap_err();
        assert!(matches!(error, Error::Library { .. }), "{error:?}");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
    }
}
