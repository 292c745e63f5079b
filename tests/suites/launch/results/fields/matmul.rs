//! Products of matrices in tiles.

use cuda_launch::{kernel, per_2d};

use crate::results::reference::{Numbers, assert_close, product, size, wide, with_stream};

kernel! {
    // SAFETY: the kernels check rows and columns against the sizes of the matrices.
    unsafe in "../../../../kernels/fields/matmul.ptx";

    struct Matmul;

    fn matmul_floats(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>)
    where a.len() >= m * k, b.len() >= k * n, c.len() >= m * n,
        block.x == 16, block.y == 16, block.z == 1;
    fn matmul_doubles(m: u32, n: u32, k: u32, a: In<f64>, b: In<f64>, c: Out<f64>)
    where a.len() >= m * k, b.len() >= k * n, c.len() >= m * n,
        block.x == 16, block.y == 16, block.z == 1;
    fn matmul_bytes(m: u32, n: u32, k: u32, a: In<[i8; 4]>, b: In<[i8; 4]>, c: Out<i32>)
    where a.len() >= m * k, b.len() >= k * n, c.len() >= m * n;
}

#[test]
fn tiles_of_floats_and_doubles_make_the_product() {
    with_stream(|context, stream| {
        let kernels = Matmul::load(context).unwrap();
        let (m, n, k) = (size(21, 301), size(40, 417), size(35, 270));
        let mut numbers = Numbers(7);
        let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
        let expected = product(n, k, &wide(&a), &wide(&b));
        let sizes = (m as u32, n as u32, k as u32);
        let config = per_2d((n, m), (16, 16));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<f32>(m * n).unwrap();
        kernels
            .matmul_floats
            .launch(stream, config, (sizes.0, sizes.1, sizes.2, &left, &right, &out))
            .unwrap();
        // Each of k sums is rounded once, to a unit of at most k.
        assert_close(&out.read_blocking(stream).unwrap(), &expected, (k * k) as f64 * 6e-8);

        let (left, right) = (stream.upload(&wide(&a)).unwrap(), stream.upload(&wide(&b)).unwrap());
        let out = stream.zeros::<f64>(m * n).unwrap();
        kernels
            .matmul_doubles
            .launch(stream, config, (sizes.0, sizes.1, sizes.2, &left, &right, &out))
            .unwrap();
        for (found, expected) in out.read_blocking(stream).unwrap().iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
        }
    });
}

#[test]
fn products_of_bytes_are_exact() {
    with_stream(|context, stream| {
        let kernels = Matmul::load(context).unwrap();
        let (m, n, k) = (size(20, 300), size(30, 200), size(9, 100));
        let mut numbers = Numbers(8);
        let mut bytes = |count| -> Vec<[i8; 4]> {
            (0..count).map(|_| numbers.word().to_le_bytes().map(u8::cast_signed)).collect()
        };
        let (a, b) = (bytes(m * k), bytes(n * k));
        let (left, right) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let out = stream.zeros::<i32>(m * n).unwrap();
        let arguments = (m as u32, n as u32, k as u32, &left, &right, &out);
        kernels.matmul_bytes.launch(stream, per_2d((n, m), (8, 4)), arguments).unwrap();
        let dot = |a: &[[i8; 4]], b: &[[i8; 4]]| -> i32 {
            a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
        };
        let expected: Vec<i32> =
            a.chunks(k).flat_map(|row| b.chunks(k).map(move |column| dot(row, column))).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}
