//! What is accepted and refused when a text is loaded.

use super::coverage::{Form, Outcome};
use super::{Memory, arg, launch, load};
use crate::ptx::error::PtxError;
use crate::ptx::{Image, head};

const HEAD: &str = ".version 8.0\n.target sm_70\n.address_size 64\n";

/// A kernel with some registers; its body begins in line 6.
fn kernel(body: &str) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 out, .param .u32 n) {{\n.reg .pred %p<3>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n{body}\nret;\n}}\n"
    )
}

fn errors(text: &str) -> Vec<PtxError> {
    Image::parse(text).map(|_| ()).expect_err("this text is wrong")
}

/// The only error of a kernel body.
fn error(body: &str) -> String {
    let errors = errors(&kernel(body));
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

/// What a body that stores one word at `%rd1` stores there.
fn result(text: &str) -> u32 {
    let image = load(text);
    let mut memory = Memory::default();
    let out = memory.put(&[0_u32; 2]);
    launch(&image, &mut memory, "k", [1, 1, 1], [1, 1, 1], 0, &[arg(out), arg(5_u32)]).unwrap();
    memory.get::<u32>(out)[0]
}

#[test]
fn unknown_instructions_are_named() {
    let message = "ptx line 6: instruction `foo.bar.u32` is not supported by the software driver";
    assert_eq!(error("foo.bar.u32 %r1, %r2;"), message);
    let message = "ptx line 6: instruction `add.rn.fast.f32` is not supported by the software driver";
    assert_eq!(error("add.rn.fast.f32 %r1, %r2, %r3;"), message);
    for body in [
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd1];",
        "atom.global.add.f32.foo %r1, [%rd1], %r2;",
        "cvt.u32.pred %r1, %p1;",
        "mul.u32 %r1, %r2, %r3;",
        "shl.s32 %r1, %r2;\n",
    ] {
        assert!(Image::parse(&kernel(body)).is_err(), "{body}");
    }
}

#[test]
fn all_errors_are_found() {
    let body = "foo %r1;\nadd.u32 %r1, %r2;\nadd.u32 %r1, %x, 1;\nbra NOWHERE;\nadd.u64 %rd1, %rd1, %r1;\nset.lt %r1;";
    let found = errors(&kernel(body));
    assert_eq!(found.iter().map(|error| error.line).collect::<Vec<_>>(), [6, 7, 8, 9, 10, 11]);
    assert!(found[1].message.contains("expected 3 operands, found 2"), "{}", found[1]);
    assert!(found[2].message.contains("`%x`"), "{}", found[2]);
    assert!(found[3].message.contains("there is no label `NOWHERE`"), "{}", found[3]);
    assert!(found[4].message.contains("`%r1` is 32 bits, the instruction takes 64 bits"), "{}", found[4]);
}

#[test]
fn operands_are_checked() {
    assert!(error("add.u32 %r1, %r9, 1;").contains("`%r9` is not declared"));
    assert!(error("add.u32 %r01, %r1, 1;").contains("`%r01` is not declared"));
    assert!(error("@%r1 bra L;\nL:").contains("`%r1` is 32 bits, the instruction takes a predicate"));
    assert!(error("selp.b32 %r1, %r2, %p1, %p2;").contains("a predicate"));
    assert!(error("ld.param.u64 %rd1, [n];").contains("outside"));
    assert!(error("ld.param.u32 %r1, [n+4];").contains("outside"));
    assert!(error("ld.global.u32 %r1, [n];").contains("another space"));
    assert!(error("st.param.u32 [n], %r1;").contains("cannot be written"));
    assert!(error("ld.global.v2.u32 {%r1}, [%rd1];").contains("expected 2 elements, found 1"));
    assert!(error("mov.b64 {%r1, %h1}, %rd1;").contains("`%h1` is 16 bits"));
    assert!(error(".reg .b32 %r<8>;").contains("defined twice"));
    assert!(error("L: L:").contains("label `L` is defined twice"));
    assert!(error("call missing, (%r1);").contains("`missing` is not a function"));
    assert!(error("add.u32 %r1, %r2, $;").contains("`$` is not declared"));
}

#[test]
fn texts_that_are_none() {
    for text in [
        "",
        "hello",
        ".version",
        ".version 8.0\n.entry",
        "\0\0",
        "{{{{",
        ".version 8.0 .entry k() {",
        "@ @ @",
        ";;;",
    ] {
        assert!(!errors(text).is_empty(), "{text}");
    }
    assert!(errors("").first().unwrap().message.contains("is it PTX?"));
    assert!(
        errors(&format!("{HEAD}.extern .func elsewhere; .entry k() {{ call elsewhere; }}"))[0]
            .message
            .contains("`elsewhere` is declared but defined nowhere")
    );
    assert!(errors(".version 8.0\n.target sm_70\n.address_size 32\n")[0].message.contains("64"));
    assert!(
        errors(&format!("{HEAD}.global .u32 a; .global .u32 a;"))[0].message.contains("`a` is defined twice")
    );
    assert!(
        errors(&format!("{HEAD}.entry k() {{ ret; }} .entry k() {{ ret; }}"))[0]
            .message
            .contains("defined twice")
    );
}

#[test]
fn textures_are_told_by_name_and_line() {
    for (line, name) in [
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];", "tex.2d.v4.f32.f32"),
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, %rd2, {%r1, %r2}];", "tex.2d.v4.f32.f32"),
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1, %r2}], %r3;", "tex.2d.v4.f32.f32"),
        ("tex.2dms.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1, %r2, %r3, %r4}];", "tex.2dms.v4.u32.s32"),
        ("tex.2d.v2.f32.f32 {%r1, %r2}, [%rd1, {%r1, %r2}];", "tex.2d.v2.f32.f32"),
        ("tld4.r.3d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1, %r2, %r3, %r4}];", "tld4.r.3d.v4.f32.f32"),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}|%p1, [t, s, {%r1}], 5;", "tex.1d.v4.f32.s32"),
        ("sust.p.2d.f32.trap [%rd1, {%r1, %r2}], {%r3};", "sust.p.2d.f32.trap"),
        ("suld.p.2d.b32.trap {%r3}, [%rd1, {%r1, %r2}];", "suld.p.2d.b32.trap"),
        ("suld.b.2d.v4.b64.trap {%rd1, %rd1, %rd1, %rd1}, [%rd1, {%r1, %r2}];", "suld.b.2d.v4.b64.trap"),
        ("sured.b.xor.2d.b32.trap [%rd1, {%r1, %r2}], %r3;", "sured.b.xor.2d.b32.trap"),
        ("txq.channel_order.b32 %r1, [%rd1];", "txq.channel_order.b32"),
        ("txq.filter_mode.b32 %r1, [%rd1];", "txq.filter_mode.b32"),
        ("suq.memory_layout.b32 %r1, [%rd1];", "suq.memory_layout.b32"),
        (
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2}], [%r3];",
            "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes",
        ),
    ] {
        let text = kernel(&format!("mov.u32 %r1, 1;\n{line}"));
        let found = errors(&text);
        let expected = format!("instruction `{name}` is not supported by the software driver");
        let at = text.lines().position(|each| each == line).map(|before| before as u32 + 1);
        assert_eq!((found.len(), &found[0].message, Some(found[0].line)), (1, &expected, at), "{line}");
    }
}

#[test]
fn references_of_module_scope_load_until_they_are_used() {
    for kind in ["texref", "surfref", "samplerref"] {
        let head = format!("{HEAD}\n.global .{kind} t;\n");
        load(&format!("{head}.visible .entry k() {{ ret; }}"));
        for (use_, words) in [
            (".reg .b64 %rd1; mov.u64 %rd1, t;", "texture or surface reference, which is not supported"),
            (
                ".reg .b64 %rd1; ld.global.u64 %rd1, [t];",
                "texture or surface reference, which is not supported",
            ),
            (".reg .b32 %r1; txq.width.b32 %r1, [t];", "instruction `txq.width.b32` is not supported"),
            (".global .texref u;", "a reference inside a function is not supported"),
        ] {
            let found = errors(&format!("{head}.visible .entry k() {{\n{use_}\nret; }}"));
            assert_eq!((found.len(), found[0].line), (1, 7), "{}", found[0]);
            assert!(found[0].message.contains(words), "{}", found[0]);
        }
    }
    let found = errors(&format!("{HEAD}.global .u64 x = t; .global .texref t;"));
    assert!(found[0].message.contains("`t` has no address"), "{}", found[0]);
}

#[test]
fn operands_of_textures_are_counted() {
    for (line, words) in [
        ("tex.2d.v4.f32.f32 {%r1, %r2, %r3}, [%rd1, {%r1, %r2}];", "expected 4 elements, found 3"),
        ("tex.3d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1, %r2}];", "expected 3 coordinates, found 2"),
        ("tex.a1d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1}];", "expected 2 coordinates, found 1"),
        ("tex.level.1d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r1}];", "expected a level"),
        ("tex.1d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1];", "expected an object and coordinates"),
        ("sust.b.1d.v2.b32.trap [%rd1, {%r1}], %r2;", "expected 2 elements, found 1"),
        ("suq.width.b32 %r1, %rd1;", "expected an object in brackets"),
    ] {
        let found = error(line);
        assert!(found.contains(words), "{line}: {found}");
    }
}

#[test]
fn after_many_errors_only_those_are_told() {
    for count in [99, 100, 101, 5000] {
        for line in ["frobnicate %r1 5;\n", "add.u32 %r1 5;\n", "frobnicate;\n"] {
            let found = errors(&kernel(&line.repeat(count)));
            assert_eq!(found.len(), count.min(100), "{line}");
            let first = &found[0].message;
            assert!(found.iter().all(|error| error.message == *first), "{line}");
        }
    }
}

#[test]
fn expressions_and_declarations_are_judged() {
    let nested = format!("mov.u32 %r1, {}1{};", "(".repeat(100), ")".repeat(100));
    let mut other = Vec::new();
    for (line, words) in [
        ("mov.u32 %r1, 1/0;", "divides by zero"),
        ("mov.u32 %r1, 1.0 << 2;", "`<<` takes integers"),
        ("mov.u32 %r1, (1;", "expected `)`"),
        (nested.as_str(), "too deep"),
        ("ld.global.u32 %r1, [%rd1+1.5];", "expected an integer"),
        ("add.f32 %r1, %r2+1, %r3;", "where the instruction takes integers"),
        (".reg .v2 .u32 v; mov.u32 v.z, 1;", "`v` has 2 elements, `.z` is none"),
        (".reg .v2 .u32 v; add.u32 v, v, v;", "expected a register or a number"),
        (".reg .v2 .u32 v; ld.global.u32 %r1, [v];", "`v` is not a variable"),
        (".reg .v4 .b64 v;", "at most 128 bits"),
        (".reg .v2 .pred v;", "no predicates"),
        (".shared .b8 x[];", "`x` has no size"),
        (".local .b8 x[0];", "`x` has no size"),
        (".global .u8 x[][4611686018427387904] = {{1},{1},{1},{1},{1}};", "the size of `x` is impossible"),
        ("ld.param.u64 %rd1, [out+9223372036854775807];", "are outside of its 8"),
        ("ld.param.u64 %rd1, [out+-9223372036854775808];", "are outside of its 8"),
        (".global .u32 x = nothing;", "8 bytes"),
        (".global .u64 x = nothing;", "`nothing` has no address"),
        (".global .u8 x = 0x1FF(x);", "one byte of ones"),
        (".global .u32 x = 0xFF(x);", "an element of 1 byte"),
        ("mov.v2.u32 %r1, %r2;", "expected two vectors of 2"),
        ("mov.v2.u32 {%r1, %r2}, {%r1};", "expected two vectors of 2"),
        ("ld.global.L2::cache_hint.u32 %r1, [%rd1];", "expected"),
    ] {
        let found = errors(&kernel(line)).remove(0).message;
        if !found.contains(words) {
            other.push(format!("{line}: {found}"));
        }
    }
    for (text, words) in [
        (".alias f, g;", "`g` is not a function"),
        (".func g(); .alias f, g;", "`g` is not a function"),
        (".func f() { ret; } .func g() { ret; } .alias f, g;", "`f` is defined twice"),
        (".entry k(.param .b8 a[]) { ret; }", "has no size"),
        (".entry k(.reg .u32 a) { ret; }", "has to be `.param`"),
        (".entry k(.param .pred a) { ret; }", "no predicate"),
        (".entry (.param .u32 r) k() { ret; }", "a kernel returns nothing"),
        (".func f(.reg .u32 a[3]) { ret; }", "a register cannot be an array"),
    ] {
        let found = errors(&format!("{HEAD}{text}")).remove(0).message;
        if !found.contains(words) {
            other.push(format!("{text}: {found}"));
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n"));
}

#[test]
fn deep_nesting_overflows_nothing() {
    let deep = |open: &str, count| open.repeat(count);
    errors(&kernel(&deep("{", 100_000)));
    errors(&format!("{HEAD}.global .u32 a[4] = {}", deep("{", 100_000)));
    errors(&kernel(&format!("add.u32 %r1, {}1, 1, 1;", deep("-", 100_001))));
    errors(&kernel(&format!("mov.b64 {};", deep("{", 100_000))));
    let body = format!("{}{}", deep("{\n", 900), deep("}\n", 900));
    load(&kernel(&body));
}

#[test]
fn kernels_and_their_properties() {
    let text = format!(
        "{HEAD}.visible .entry a(.param .u8 c, .param .u64 .ptr .global .align 4 p, .param .align 16 .b8 s[20], .param .u16 h)\n\
         .maxntid 128, 2, 1 .minnctapersm 2 {{ .local .align 8 .b8 depot[24]; .shared .u32 x[10]; .reg .b32 %r<3>; mov.u32 %r1, x; ret; }}\n\
         .entry b() .reqntid 64 {{ ret; }}\n.func f() {{ ret; }}\n"
    );
    let image = load(&text);
    assert_eq!((image.version(), head(&text).target), ((8, 0), Some("sm_70")));
    assert_eq!(image.kernels().map(|kernel| kernel.name()).collect::<Vec<_>>(), ["a", "b"]);
    let a = image.kernel("a").unwrap();
    let params: Vec<_> = a.params().iter().map(|param| (param.offset, param.size, param.align)).collect();
    assert_eq!(params, [(0, 1, 1), (8, 8, 8), (16, 20, 16), (36, 2, 2)]);
    assert_eq!((a.param_bytes(), a.max_threads(), a.required()), (38, 256, None));
    assert_eq!((a.static_shared_bytes(), a.local_bytes()), (40, 24));
    assert!((8..=255).contains(&a.registers()));
    let b = image.kernel("b").unwrap();
    assert_eq!((b.param_bytes(), b.max_threads(), b.required()), (0, 64, Some([64, 1, 1])));
    assert!(image.kernel("f").is_none());
}

#[test]
fn variables_and_their_contents() {
    let text = format!(
        "{HEAD}.global .align 4 .u32 a[2][3] = {{{{1, 2}}, {{4}}}};\n.const .f32 pi = 3.5, e = 0f40000000;\n\
         .global .u64 p[3] = {{a, generic(pi)+4, 7}};\n.global .align 16 .b8 big[1000000];\n\
         .visible .global .attribute(.managed) .s16 m = -2;\n.global .b8 open[] = {{1, 2, 3}};\n"
    );
    let image = load(&text);
    let global = |name: &str| image.globals().iter().find(|global| global.name == name).unwrap();
    let addresses: Vec<u64> = (1..=image.globals().len() as u64).map(|index| index << 32).collect();
    let bytes = |name: &str| image.initial_bytes(global(name), &addresses);
    let a: Vec<u8> = [1_u32, 2, 0, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!((bytes("a"), global("a").size, global("a").is_const), (a, 24, false));
    assert_eq!((bytes("pi"), global("pi").is_const), (3.5_f32.to_le_bytes().to_vec(), true));
    assert_eq!(bytes("e"), 2_f32.to_le_bytes());
    let p: Vec<u8> = [addresses[0], addresses[1] + 4, 7].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(bytes("p"), p);
    assert_eq!((bytes("big").len(), global("big").size, global("big").align), (0, 1_000_000, 16));
    assert_eq!((bytes("m"), global("m").is_managed), (vec![0xfe, 0xff], true));
    assert_eq!((bytes("open"), global("open").size), (vec![1, 2, 3], 3));
}

#[test]
fn scopes_shadow_names_and_labels() {
    let text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, 1;\n{\n.reg .b32 %r1;\nmov.u32 %r1, 50;\nbra L;\nmov.u32 %r1, 60;\nL:\n\
         mov.u32 %r2, %r1;\n}\n{\nbra L;\nmov.u32 %r2, 1000;\nL:\n}\nadd.u32 %r3, %r1, %r2;\nst.global.u32 [%rd1], %r3;",
    );
    assert_eq!(result(&text), 51);
}

#[test]
fn debug_information_is_skipped() {
    let text = kernel(
        "// comment\n/* two\nlines */ .loc 1 2 3\n.loc 1 2 3, function_name $L0, inlined_at 1 5 6\n.pragma \"nounroll\";\n\
         ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], 0x10;\nLOCAL: ",
    ) + "\n.file 1 \"a.cu\", 12, 34\n.section .debug_str { info: .b8 1, 2\n.b64 info+4 { } }\n";
    assert_eq!(result(&text), 16);
}

#[test]
fn numbers_are_read_in_every_form() {
    for (number, value) in [
        ("0x1F", 31),
        ("0b101", 5),
        ("017", 15),
        ("12U", 12),
        ("-1", u32::MAX),
        ("0xffffffffffffffff", u32::MAX),
        ("~0", u32::MAX),
        ("WARP_SZ", 32),
    ] {
        let text =
            kernel(&format!("ld.param.u64 %rd1, [out];\nmov.u32 %r1, {number};\nst.global.u32 [%rd1], %r1;"));
        assert_eq!(result(&text), value, "{number}");
    }
    let float = |number: &str| {
        let text =
            kernel(&format!("ld.param.u64 %rd1, [out];\nmov.f32 %r1, {number};\nst.global.f32 [%rd1], %r1;"));
        f32::from_bits(result(&text))
    };
    assert_eq!((float("0f3FC00000"), float("1.5e2"), float("-0d3FF8000000000000")), (1.5, 150.0, -1.5));
}

#[test]
fn address_spaces_and_generic_addresses() {
    let text = format!("{HEAD}.const .u32 c = 9;\n.global .u32 g = 11;\n.shared .align 8 .b32 s[4];\n")
        + kernel(
            "ld.param.u64 %rd1, [out];\n.local .align 8 .b8 depot[16];\n\
             mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2; st.u32 [%rd3+4], 1; ld.local.u32 %r1, [%rd2+4];\n\
             mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; st.u32 [%rd5+8], 20; ld.shared.u32 %r2, [s+8];\n\
             add.u32 %r1, %r1, %r2; ld.const.u32 %r2, [c]; mad.lo.u32 %r1, %r2, 100, %r1;\n\
             mov.u64 %rd6, g; cvta.global.u64 %rd6, %rd6; ld.u32 %r2, [%rd6]; mad.lo.u32 %r1, %r2, 1000, %r1;\n\
             mov.b64 %rd7, n; cvta.param.u64 %rd7, %rd7; ld.u32 %r2, [%rd7]; mad.lo.u32 %r1, %r2, 100000, %r1;\n\
             isspacep.shared %p1, %rd5; selp.b32 %r2, 1000000, 0, %p1; add.u32 %r1, %r1, %r2;\n\
             isspacep.local %p1, %rd3; selp.b32 %r2, 2000000, 0, %p1; add.u32 %r1, %r1, %r2;\n\
             isspacep.global %p1, %rd6; selp.b32 %r2, 4000000, 0, %p1; add.u32 %r1, %r1, %r2;\n\
             isspacep.global %p1, %rd5; selp.b32 %r2, 9, 0, %p1; add.u32 %r1, %r1, %r2;\n\
             st.global.u32 [%rd1], %r1;",
        )
        .trim_start_matches(HEAD);
    assert_eq!(result(&text), 7_000_000 + 500_000 + 11_000 + 900 + 21);
}

#[test]
fn calls_with_registers_and_structs() {
    let text = format!(
        "{HEAD}.func (.reg .u32 sum) add3(.reg .u32 a, .reg .u32 b, .reg .u32 c) {{ add.u32 sum, a, b; add.u32 sum, sum, c; ret; }}\n\
         .func (.param .align 8 .b8 back[16]) swap(.param .align 8 .b8 it[16]) {{ .reg .b64 %x<4>; mov.b64 %x3, it; ld.param.u64 %x1, [%x3+8]; ld.param.u64 %x2, [it]; st.param.v2.u64 [back], {{%x1, %x2}}; ret; }}\n"
    ) + kernel(
        "ld.param.u64 %rd1, [out];\n.reg .b32 %sum;\ncall (%sum), add3, (%r5, 7, 30);\n\
         {\n.param .align 8 .b8 p0[16];\n.param .align 8 .b8 r0[16];\nst.param.u64 [p0], 100; st.param.b64 [p0+8], 2000;\n\
         call.uni (r0), swap, (p0);\nld.param.v2.u32 {%r1, %r2}, [r0]; ld.param.u64 %rd2, [r0+8];\n}\n\
         cvt.u32.u64 %r2, %rd2; shl.b32 %r2, %r2, 16; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %sum;\nst.global.u32 [%rd1], %r1;",
    )
    .trim_start_matches(HEAD);
    assert_eq!(result(&text), 2000 + (100 << 16) + 37);
    let wrong = text.replace("call (%sum), add3, (%r5, 7, 30)", "call (%sum), add3, (%r5, 7)");
    assert!(errors(&wrong)[0].message.contains("`add3` has 3 arguments, 2 are given"));
}

#[test]
fn waits_for_grids_need_their_version_and_target() {
    let with = |version: &str, target: &str, body: &str| {
        let head = format!(".version {version}\n.target {target}\n.address_size 64\n");
        Image::parse(&kernel(body).replace(HEAD, &head))
    };
    for body in ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "@%p1 griddepcontrol.wait;"] {
        assert!(with("7.8", "sm_90", body).is_ok() && with("8.6", "sm_100a", body).is_ok());
        for (version, target) in [("7.7", "sm_90"), ("8.0", "sm_89")] {
            let errors = with(version, target, body).map(|_| ()).unwrap_err();
            assert!(errors[0].to_string().contains("needs PTX 7.8"), "{errors:?}");
        }
    }
    for body in ["griddepcontrol;", "griddepcontrol.go;", "griddepcontrol.wait %r1;"] {
        assert!(with("8.0", "sm_90", body).is_err(), "{body}");
    }
}

const UNSUPPORTED: &str = include_str!("data/unsupported.txt");

/// Instructions that the interpreter lacks, by design.
pub(super) fn unsupported_forms() -> Vec<Form> {
    let outcome = |line| match Image::parse(&kernel(&format!("mov.u32 %r1, 1;\n{line}"))) {
        Ok(_) => Outcome::Loads,
        Err(errors) => Outcome::Refused(errors[0].to_string()),
    };
    UNSUPPORTED.lines().map(|line| Form { text: line, outcome: outcome(line) }).collect()
}

/// Instructions that the interpreter lacks are told as such, and nothing else is told.
#[test]
fn what_is_missing_is_told_once() {
    for line in UNSUPPORTED.lines() {
        let found = errors(&kernel(&format!("mov.u32 %r1, 1;\n{line}")));
        let name = line.split([' ', ';']).next().unwrap();
        let expected = format!("ptx line 7: instruction `{name}` is not supported by the software driver");
        assert_eq!((found.len(), found[0].to_string()), (1, expected), "{line}");
    }
}
