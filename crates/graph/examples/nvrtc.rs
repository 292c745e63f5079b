//! Runtime compilation: a polynomial whose coefficients are compiled into the kernel, for two types
//! of numbers, in a graph.
//!
//! It needs NVIDIA's runtime compiler, from a CUDA toolkit or from PyPI (`pip install
//! nvidia-cuda-nvrtc-cu12`). On the software driver it needs no GPU.
//!
//! ```sh
//! cargo run -p cuda-graph --features nvrtc --example nvrtc -- --driver soft
//! ```

mod common;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use cuda_graph::ContextExt;
use cuda_handles::nvrtc::Program;
use cuda_handles::{Context, Image, Library};
use cuda_launch::{params, per};

use common::Options;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The header `coefficients.h` has the numbers. The compiler unrolls the loop over them.
const SOURCE: &str = r#"
#include "coefficients.h"

template <class T> __global__ void polynomial(unsigned n, const T *x, T *y)
{
    const T coefficients[] = {COEFFICIENTS};
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        T value = 0;
        for (unsigned k = 0; k < sizeof(coefficients) / sizeof(T); ++k)
            value = fma(value, x[i], coefficients[k]);
        y[i] = value;
    }
}
"#;

const COEFFICIENTS: [f32; 4] = [0.5, -2.0, 3.0, 1.25];

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let program = polynomial(&COEFFICIENTS);
    let compiled = context.compile(&program)?;
    let version = compiled.ptx_version().map_or_else(String::new, |version| version.to_string());
    println!("NVRTC   {}, PTX {version}", compiled.compiler());
    let is_kept = Arc::ptr_eq(&compiled, &context.compile(&program)?);
    println!("again   {}", if is_kept { "what was compiled before" } else { "compiled twice" });

    let library = Library::load(context, Image::from(&*compiled))?;
    let single = library.kernel(compiled.lowered_name("polynomial<float>")?)?;
    let double = library.kernel(compiled.lowered_name("polynomial<double>")?)?;

    let stream = context.stream()?;
    let len = if options.is_soft { 100 } else { 100_000 };
    let numbers: Vec<f32> = (0..len).map(|number| number as f32 / 16.0).collect();
    let wide: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
    let (x, y) = (stream.upload(&numbers)?, stream.zeros::<f32>(len)?);
    let (wide_x, wide_y) = (stream.upload(&wide)?, stream.zeros::<f64>(len)?);

    let graph = context.graph()?;
    let count = u32::try_from(len)?;
    // SAFETY: these are the parameters of the source above. Each thread accesses the elements of
    // its own number, below `n`.
    unsafe {
        let first = graph.root().launch_untyped(&single, per(len, 64), params![count, &x, &y])?;
        first.then().launch_untyped(&double, per(len, 64), params![count, &wide_x, &wide_y])?;
    }
    common::show(&graph, options)?;
    graph.instantiate()?.launch(&stream)?;

    let is_good = y.read_blocking(&stream)? == numbers.iter().map(|x| expected(*x)).collect::<Vec<f32>>()
        && wide_y.read_blocking(&stream)? == wide.iter().map(|x| expected_wide(*x)).collect::<Vec<f64>>();
    println!("{len} values of each type");
    Ok(is_good & is_kept & tells_what_is_wrong(context))
}

/// The program for some coefficients, from the highest power to the constant.
fn polynomial(coefficients: &[f32]) -> Program {
    let list: Vec<String> = coefficients.iter().map(|number| format!("{number:?}")).collect();
    Program::new("polynomial.cu", SOURCE)
        .header("coefficients.h", format!("#define COEFFICIENTS {}", list.join(", ")))
        .expression("polynomial<float>")
        .expression("polynomial<double>")
}

/// Compiles an invalid program: the error has the compiler's message.
fn tells_what_is_wrong(context: &Context) -> bool {
    let wrong = Program::new("wrong.cu", "__global__ void wrong(float *x)\n{\n    *x = sine(*x);\n}\n");
    match context.compile(&wrong) {
        Ok(_) => false,
        Err(error) => {
            println!("\n{error}\n");
            error.to_string().contains("wrong.cu(3)")
        }
    }
}

fn expected(x: f32) -> f32 {
    COEFFICIENTS.iter().fold(0.0, |value, coefficient| f32::mul_add(value, x, *coefficient))
}

fn expected_wide(x: f64) -> f64 {
    COEFFICIENTS.iter().fold(0.0, |value, coefficient| f64::mul_add(value, x, f64::from(*coefficient)))
}
