//! Arguments of every type, and special registers.

use cuda_launch::{Launch, LaunchConfig, ParamBytes, params, per};
use cuda_tests::{no_leaks, setup};

use super::compiled;

#[repr(C)]
#[derive(Clone, Copy)]
struct Packed {
    scale: f32,
    offset: f32,
    count: u32,
    stride: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Padded {
    tag: u8,
    weight: f64,
    corner: [i32; 3],
    last: u16,
}

#[test]
fn structures_are_given_by_value_with_their_padding() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let packed = Packed { scale: 0.5, offset: 3.0, count: 40, stride: 2 };
        let out = stream.zeros::<f32>(80).unwrap();
        // SAFETY: the kernel's structure has these fields, and no addresses are in it.
        let argument = unsafe { ParamBytes::of(&packed) };
        let kernel = compiled!(&context, "arguments", "packed_struct");
        // SAFETY: the arguments are the kernel's, and it writes every second of the 80 elements.
        unsafe { kernel.launch(&stream, per(40, 32), params![argument, &out]) }.unwrap();
        let expected: Vec<f32> =
            (0..80).map(|i| if i % 2 == 0 { (i / 2) as f32 * 0.5 + 3.0 } else { 0.0 }).collect();
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);

        let padded = Padded { tag: 200, weight: -1.25, corner: [-1, 2, i32::MIN], last: 65_535 };
        let out = stream.zeros::<f64>(6).unwrap();
        // SAFETY: as above.
        let argument = unsafe { ParamBytes::of(&padded) };
        let kernel = compiled!(&context, "arguments", "padded_struct");
        // SAFETY: the arguments are the kernel's, and it writes six elements.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), params![argument, &out]) }.unwrap();
        assert_eq!(
            out.read_blocking(&stream).unwrap(),
            [200.0, -1.25, -1.0, 2.0, f64::from(i32::MIN), 65_535.0]
        );
    });
}

#[test]
fn scalars_of_every_width_and_sign_arrive() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<f64>(10).unwrap();
        let kernel = compiled!(&context, "arguments", "widths");
        let params = params![
            255_u8,
            -128_i8,
            65_535_u16,
            -32_768_i16,
            u32::MAX,
            i32::MIN,
            1_u64 << 60,
            -(1_i64 << 60),
            1.5_f32,
            -2.5e300_f64,
            &out
        ];
        // SAFETY: the arguments are the kernel's, and it writes ten elements.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), params) }.unwrap();
        let power = (1_u64 << 60) as f64;
        let expected = [
            255.0,
            -128.0,
            65_535.0,
            -32_768.0,
            f64::from(u32::MAX),
            f64::from(i32::MIN),
            power,
            -power,
            1.5,
            -2.5e300,
        ];
        assert_eq!(out.read_blocking(&stream).unwrap(), expected);
    });
}

#[test]
fn twenty_arguments_of_mixed_widths_arrive() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u64>(4).unwrap();
        let kernel = compiled!(&context, "arguments", "many");
        let params = params![
            1_u32,
            2_u32,
            3_u32,
            4_u32,
            5_u32,
            6_u32,
            7_u32,
            8_u32,
            9_u32,
            10_u32,
            1_u64,
            1_u64 << 40,
            3_u64,
            1_u64 << 50,
            1.0_f32,
            2.0_f32,
            3.0_f32,
            17_u8,
            300_u16,
            &out
        ];
        assert_eq!(params.len(), 20);
        // SAFETY: the arguments are the kernel's, and it writes four elements.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), params) }.unwrap();
        let words = (1..=10_u64).map(|i| i * i).sum();
        let wide = 1 ^ (1 << 41) ^ (3 << 2) ^ (1 << 53);
        assert_eq!(out.read_blocking(&stream).unwrap(), [words, wide, 321, 17 + 256 * 300]);
    });
}

#[test]
fn element_wise_kernels_touch_their_elements_alone() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let n = 777_usize;
        let (values, copy) = (stream.zeros::<f32>(n + 10).unwrap(), stream.zeros::<u32>(n + 10).unwrap());
        let words = values.cast::<u32>().unwrap();
        // SAFETY: the arguments are the kernels', and all buffers have more than n elements.
        unsafe {
            compiled!(&context, "fill", "fill")
                .launch(&stream, per(n, 256), params![n as u32, 1.5_f32, &values])
                .unwrap();
            compiled!(&context, "fill", "scale")
                .launch(&stream, per(n, 256), params![n as u32, -4.0_f32, &values])
                .unwrap();
            let saxpy = compiled!(&context, "saxpy", "saxpy");
            saxpy.launch(&stream, per(n, 256), params![n as u32, 0.5_f32, &values, &values]).unwrap();
            compiled!(&context, "fill", "copy_words")
                .launch(&stream, per(n, 256), params![n as u32, &words, &copy])
                .unwrap();
            let increment = compiled!(&context, "increment", "increment_all");
            increment.launch(&stream, per(n, 256), params![n as u32, &copy]).unwrap();
        }
        let mut expected = vec![(-9.0_f32).to_bits() + 1; n];
        expected.extend([0; 10]);
        assert_eq!(copy.read_blocking(&stream).unwrap(), expected);
    });
}
