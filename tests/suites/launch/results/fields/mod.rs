//! Whole programs of several fields, as people write them in CUDA C++: `tests/kernels/fields`, each
//! compared with a plain computation in Rust. Whole numbers are equal; floats lie within a bound
//! that the test states.

mod attention;
mod bisection;
mod bitonic_sort;
mod fft;
mod hash_table;
mod histogram;
mod layer_norm;
mod life;
mod list_ranking;
mod matmul;
mod monte_carlo;
mod n_body;
mod radix_sort;
mod reduction;
mod scan;
mod softmax;
mod sparse;
mod tensor_matmul;
mod transpose;
