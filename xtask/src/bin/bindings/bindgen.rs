//! `cargo xtask bindgen`: the generated half of cuda-sys.
//!
//! One run of bindgen over CUDA's headers gives the types. The header with one function-pointer
//! type for each call **and layout** gives the table: name, the driver version whose layout it is,
//! and the signature. The same types give the symbols that a driver library exports, one for each
//! layout, and one for each variant whose default stream is the thread's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use quote::ToTokens;
use syn::visit_mut::VisitMut;

use xtask::pypi::Wheel;

const HEADERS: Wheel = Wheel { package: "nvidia-cuda-runtime", version: "13.5.37" };
const CLANG: Wheel = Wheel { package: "libclang", version: "18.1.1" };

/// The header of the profiler's two calls is not in that package.
const HEADERS_READ: &str = "\
#include <cuda.h>
#include <cudaTypedefs.h>
typedef CUresult (CUDAAPI *PFN_cuProfilerStart_v4000)(void);
typedef CUresult (CUDAAPI *PFN_cuProfilerStop_v4000)(void);
";

/// The oldest driver that cuda-sys loads. Of the layouts up to it, the newest is in the table.
const BASELINE: u32 = 12020;

/// Writes `bindings.rs`, `calls.rs` and `exports.rs`, or with `check` compares them with the files
/// checked in.
///
/// # Errors
/// The headers cannot be had or parsed; with `check`, a file that differs.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let target = root.join("target");
    let include = HEADERS.unpacked(&target)?.join("nvidia/cu13/include");
    let file = parse(&include, &CLANG.unpacked(&target)?)?;
    let (types, layouts, variants) = split(file)?;
    let source = root.join("crates/sys/src/generated");
    let generated = [
        (source.join("bindings.rs"), bindings(types.clone())?),
        (source.join("calls.rs"), calls(&types, &layouts)?),
        (source.join("exports.rs"), exports(&layouts, &variants)?),
    ];
    for (path, text) in generated {
        if check {
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            ensure!(
                found == text,
                "{} differs from what the headers give; run `cargo xtask bindgen`",
                path.display()
            );
        } else {
            std::fs::write(&path, text)?;
            println!("wrote {}", path.display());
        }
    }
    if check {
        println!("the generated files are what the headers give");
    }
    Ok(())
}

fn parse(include: &Path, clang: &Path) -> Result<syn::File> {
    // SAFETY: xtask has one thread at this point, so nothing reads the environment at the same
    // time.
    unsafe {
        std::env::set_var(
            "LIBCLANG_PATH",
            clang.join(format!("libclang-{}.data/platlib/clang/native", CLANG.version)),
        )
    };
    let text = bindgen::Builder::default()
        .header_contents("driver.h", HEADERS_READ)
        // Declares the oldest layouts as well.
        .clang_arg("-D__CUDA_API_VERSION_INTERNAL")
        .clang_arg(format!("-I{}", include.display()))
        .clang_args(compiler_headers()?)
        .allowlist_file(".*/cuda\\.h")
        .allowlist_type("PFN_cu.*")
        .blocklist_function(".*")
        .blocklist_type("(pthread|fsid|ldiv|div|lldiv|drand48|random)_.*")
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
        .ctypes_prefix("::core::ffi")
        .use_core()
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .generate()
        .context("bindgen cannot read CUDA's headers")?
        .to_string();
    Ok(syn::parse_file(&text)?)
}

/// libclang from PyPI brings no `stddef.h`; the C compiler's serves.
fn compiler_headers() -> Result<Vec<String>> {
    let output = Command::new("cc")
        .arg("-print-file-name=include")
        .output()
        .context("`cc` does not start; a C compiler's headers are needed")?;
    let folder = String::from_utf8(output.stdout)?;
    Ok(vec![format!("-isystem{}", folder.trim())])
}

/// One layout of one call, as a function-pointer type in the header gives it.
struct Layout {
    since: u32,
    /// The symbol of a driver library that has this layout.
    export: String,
    arguments: Vec<(String, syn::Type)>,
}

impl Layout {
    fn signature(&self) -> String {
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|(name, ty)| format!("{}: {}", argument_name(name), qualified(ty)));
        arguments.collect::<Vec<_>>().join(", ")
    }
}

type Layouts = BTreeMap<String, Vec<Layout>>;

/// The types, the layouts of each call, and their variants for the per-thread default stream.
fn split(file: syn::File) -> Result<(Vec<syn::Item>, Layouts, Layouts)> {
    let mut types = Vec::new();
    let (mut layouts, mut variants) = (Layouts::new(), Layouts::new());
    for item in file.items {
        match &item {
            syn::Item::Type(alias) if alias.ident.to_string().starts_with("PFN_") => {
                let Some((name, since, suffix)) = name_and_version(&alias.ident.to_string()) else {
                    continue;
                };
                let of = if suffix.is_empty() { &mut layouts } else { &mut variants };
                let arguments = arguments(&alias.ty)?;
                of.entry(name).or_default().push(Layout { since, export: suffix, arguments });
            }
            _ => types.push(item),
        }
    }
    for (symbol, versions) in &mut layouts {
        versions.sort_by_key(|layout| layout.since);
        for (index, layout) in versions.iter_mut().enumerate() {
            layout.export = export(symbol, index);
        }
    }
    for (symbol, versions) in &mut variants {
        let plain = layouts.get(symbol).with_context(|| format!("{symbol} has variants only"))?;
        versions.sort_by_key(|layout| layout.since);
        for variant in versions {
            let is_like = |layout: &&Layout| layout.since <= variant.since;
            let like = plain.iter().rev().find(is_like).with_context(|| format!("{symbol} is newer"))?;
            let is_same = like.arguments.len() == variant.arguments.len();
            ensure!(is_same, "{symbol} has other arguments than its variant");
            // They differ in names of arguments and aliases of types.
            variant.arguments.clone_from(&like.arguments);
            variant.export = format!("{}_{}", like.export, variant.export);
        }
    }
    Ok((types, layouts, variants))
}

/// The oldest layout has the plain symbol, each later one the next number.
fn export(symbol: &str, index: usize) -> String {
    if index == 0 { symbol.to_owned() } else { format!("{symbol}_v{}", index + 1) }
}

/// A call whose newer layout has a name of its own, `cuGraphInstantiateWithFlags`.
const SUPERSEDED: &str = "cuGraphInstantiate";

/// Where the layouts begin that the table has: at the newest one that the oldest driver has.
fn first_in_table(symbol: &str, versions: &[Layout]) -> usize {
    if symbol == SUPERSEDED {
        return versions.len();
    }
    versions.iter().rposition(|layout| layout.since <= BASELINE).unwrap_or(0)
}

/// `PFN_cuMemAlloc_v3020` is `cuMemAlloc` as of 3.2. Variants for the per-thread default stream
/// have a suffix: `PFN_cuMemcpy_v7000_ptds`.
fn name_and_version(pointer: &str) -> Option<(String, u32, String)> {
    let (name, version) = pointer.strip_prefix("PFN_")?.rsplit_once("_v")?;
    let (version, suffix) = version.split_once('_').unwrap_or((version, ""));
    Some((name.to_owned(), version.parse().ok()?, suffix.to_owned()))
}

fn arguments(pointer: &syn::Type) -> Result<Vec<(String, syn::Type)>> {
    let syn::Type::Path(option) = pointer else {
        bail!("not a function pointer: {}", pointer.to_token_stream())
    };
    let last = option.path.segments.last().context("an empty path")?;
    let syn::PathArguments::AngleBracketed(inner) = &last.arguments else { bail!("not an option") };
    let Some(syn::GenericArgument::Type(syn::Type::BareFn(function))) = inner.args.first() else {
        bail!("not a function")
    };
    ensure!(function.output.to_token_stream().to_string().ends_with("CUresult"), "a call without a result");
    let named = function.inputs.iter().enumerate().map(|(index, input)| {
        let name =
            input.name.as_ref().map_or_else(|| format!("argument{index}"), |(name, _)| name.to_string());
        (name, input.ty.clone())
    });
    Ok(named.collect())
}

const HEAD: &str = "// Made by `cargo xtask bindgen` from the headers of CUDA ";

fn head() -> String {
    format!("{HEAD}{}. Do not edit.\n\n", HEADERS.version)
}

fn bindings(items: Vec<syn::Item>) -> Result<String> {
    Ok(head() + &prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items }))
}

/// Writes types for use in other crates: names of the bindings get `$crate::` in front.
struct Qualify;

impl VisitMut for Qualify {
    fn visit_type_path_mut(&mut self, path: &mut syn::TypePath) {
        syn::visit_mut::visit_type_path_mut(self, path);
        let single = path.path.get_ident().map(ToString::to_string);
        if let Some(name) = single
            .filter(|name| name.chars().next().is_some_and(char::is_uppercase) || name.starts_with("cu"))
        {
            // `$crate` is not an identifier to syn; a placeholder is replaced in the text.
            path.path = syn::parse_quote!(dollar_crate::Placeholder);
            if let Some(last) = path.path.segments.last_mut() {
                last.ident = quote::format_ident!("{name}");
            }
        }
    }
}

fn qualified(ty: &syn::Type) -> String {
    let mut ty = ty.clone();
    Qualify.visit_type_mut(&mut ty);
    let text = ty.to_token_stream().to_string();
    let tight = text
        .replace(" :: ", "::")
        .replace(":: ", "::")
        .replace("* mut", "*mut")
        .replace("* const", "*const")
        .replace("::core", " ::core")
        .replace("  ", " ");
    tight.replace("dollar_crate", "$crate").trim().to_owned()
}

fn calls(types: &[syn::Item], layouts: &Layouts) -> Result<String> {
    let mut text = head();
    writeln!(
        text,
        "/// Passes all driver calls to the macro named: `baseline` or `optional`, name, symbol, version of\n\
         /// the layout, arguments."
    )?;
    writeln!(
        text,
        "#[macro_export]\nmacro_rules! for_each_call {{\n    ($($apply:tt)+) => {{\n        $($apply)+! {{"
    )?;
    for (symbol, versions) in layouts {
        for (index, layout) in versions[first_in_table(symbol, versions)..].iter().enumerate() {
            let name = if index == 0 { symbol.clone() } else { format!("{symbol}_v{}", layout.since) };
            let need = if layout.since <= BASELINE { "baseline" } else { "optional" };
            writeln!(
                text,
                "            {need} {name} c\"{symbol}\" {} ({});",
                layout.since,
                layout.signature()
            )?;
        }
    }
    writeln!(text, "        }}\n    }};\n}}\n")?;
    names(types, &mut text)?;
    Ok(text)
}

/// Every layout of every call as a driver library exports it; and those that are too old for the
/// table; and the variants for the per-thread default stream.
fn exports(layouts: &Layouts, variants: &Layouts) -> Result<String> {
    let mut text = head();
    let rows = layouts.iter().flat_map(|(symbol, versions)| versions.iter().map(move |one| (symbol, one)));
    macro_of(
        &mut text,
        "/// Passes all symbols that a driver library exports to the macro named: the symbol, the name and the\n\
         /// version by which `cuGetProcAddress` finds it, and the arguments. The oldest layout of a call has\n\
         /// the plain symbol.",
        "for_each_export",
        rows,
    )?;
    let old = layouts.iter().flat_map(|(symbol, versions)| {
        versions[..first_in_table(symbol, versions)].iter().map(move |one| (symbol, one))
    });
    writeln!(text)?;
    macro_of(
        &mut text,
        "/// Passes the layouts older than those of [`for_each_call!`](crate::for_each_call) to the macro\n\
         /// named, in the form of [`for_each_export!`](crate::for_each_export).",
        "for_each_old_layout",
        old,
    )?;
    let variants =
        variants.iter().flat_map(|(symbol, versions)| versions.iter().map(move |one| (symbol, one)));
    writeln!(text)?;
    macro_of(
        &mut text,
        "/// Passes the symbols whose default stream is the thread's own to the macro named, in the form\n\
         /// of [`for_each_export!`](crate::for_each_export). A flag of `cuGetProcAddress`\n\
         /// finds them.",
        "for_each_per_thread_export",
        variants,
    )?;
    Ok(text)
}

fn macro_of<'a>(
    text: &mut String,
    documentation: &str,
    name: &str,
    rows: impl Iterator<Item = (&'a String, &'a Layout)>,
) -> Result<()> {
    writeln!(text, "{documentation}\n#[macro_export]\nmacro_rules! {name} {{")?;
    writeln!(text, "    ($($apply:tt)+) => {{\n        $($apply)+! {{")?;
    for (symbol, layout) in rows {
        let Layout { since, export, .. } = layout;
        writeln!(text, "            {export} c\"{symbol}\" {since} ({});", layout.signature())?;
    }
    writeln!(text, "        }}\n    }};\n}}")?;
    Ok(())
}

fn argument_name(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase()
            && !snake.is_empty()
            && !snake.ends_with('_')
            && !snake.chars().next_back().is_some_and(char::is_uppercase)
        {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    if matches!(snake.as_str(), "type" | "mod" | "fn" | "ref" | "in") { format!("{snake}_") } else { snake }
}

/// The names of the result codes, in the order of the header.
fn names(types: &[syn::Item], text: &mut String) -> Result<()> {
    writeln!(text, "/// Every result code that the headers name.")?;
    writeln!(text, "pub(crate) const RESULT_NAMES: &[(crate::CUresult, &str)] = &[")?;
    for item in types {
        let syn::Item::Impl(block) = item else { continue };
        if block.self_ty.to_token_stream().to_string() != "cudaError_enum" {
            continue;
        }
        for constant in &block.items {
            if let syn::ImplItem::Const(constant) = constant {
                writeln!(text, "    (crate::CUresult::{0}, \"{0}\"),", constant.ident)?;
            }
        }
    }
    writeln!(text, "];")?;
    Ok(())
}
