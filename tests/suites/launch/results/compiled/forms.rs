//! Rare forms of PTX, each with a value that shows how it was read.

use cuda_launch::{Launch, LaunchConfig, params};
use cuda_tests::{no_leaks, setup};

const FORMS: &str = include_str!("../../../ptx/forms.ptx");

/// The result of a kernel of `forms.ptx` in 16 zeros.
fn words(name: &str, config: LaunchConfig) -> [u32; 16] {
    let context = setup();
    let mut found = [0; 16];
    no_leaks(|| {
        let (kernel, stream) = (super::load(&context, FORMS, name), context.stream().unwrap());
        let out = stream.zeros::<u32>(16).unwrap();
        // SAFETY: the kernels of this image write 16 words at most.
        unsafe { kernel.launch(&stream, config, params![&out]) }.unwrap();
        found.copy_from_slice(&out.read_blocking(&stream).unwrap());
    });
    found
}

fn by_one_thread(name: &str) -> [u32; 16] {
    words(name, LaunchConfig::new(1, 1))
}

#[test]
fn a_list_of_one_register_is_that_register() {
    assert_eq!(by_one_thread("lists_of_one")[..6], [42, 42, 7, 0, 7, 8]);
}

#[test]
fn a_body_has_variables_of_its_own() {
    assert_eq!(by_one_thread("inner_variables")[..5], [200, 3, 4, 6, 205]);
}

#[test]
fn variables_of_functions_keep_their_values_and_an_alias_is_the_function() {
    assert_eq!(by_one_thread("inner_variables_of_functions")[..3], [11, 12, 100]);
}

#[test]
fn vector_registers_have_elements() {
    let [one, two] = [1_f32, 2.0].map(f32::to_bits);
    let expected = [5, 6, 6, 11, 6, 5, 0, 0, one, two, two, two, 0x0003_0007, 0, 5, 6];
    assert_eq!(by_one_thread("vector_registers"), expected);
}

#[test]
fn a_constant_is_added_to_a_register() {
    let expected = [5, 0, 19, 84, 3, 20, 17, 110, 1, 0];
    assert_eq!(by_one_thread("register_plus_constant")[..10], expected);
}

#[test]
fn constant_expressions_are_computed() {
    let minus = |value: i32| -value as u32;
    let float = 3.5_f32.to_bits();
    let expected = [11, 10, 2, 0, !5, 63, float, 2, minus(3), minus(4), 3, 0, 3, 15, 93];
    assert_eq!(by_one_thread("constant_expressions")[..15], expected);
}

#[test]
fn special_registers_are_vectors_of_four() {
    let config = LaunchConfig::new([2, 5, 1], [3, 2, 1]);
    assert_eq!(words("special_registers", config)[..8], [3, 2, 1, 0, 5, 0, 2, 2]);
}

#[test]
fn addresses_are_initialised_byte_by_byte() {
    assert_eq!(by_one_thread("split_addresses")[..4], [5, 9, 7, 7]);
}

#[test]
fn shared_memory_and_parameters_have_generic_addresses() {
    assert_eq!(by_one_thread("shared_addresses")[..9], [6, 6, 1, 0, 0, 0, 6, 1, 3]);
}
