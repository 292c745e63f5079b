//! Roots in double precision, each thread with steps of its own.

use cuda_launch::{kernel, per};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: `bisection` checks each index against `count`, and a search ends when no number lies
    // between its limits.
    unsafe in "../../../../kernels/fields/bisection.ptx";

    fn bisection(
        count: u32, tolerance: f64, y: In<f64>, products: Out<f64>, waves: Out<f64>, steps: Out<u32>
    )
    where y.len() >= count, products.len() >= count, waves.len() >= count, steps.len() >= count;
}

#[test]
fn roots_solve_their_equations() {
    with_stream(|context, stream| {
        let kernel = bisection::load(context).unwrap();
        let count = size(100, 100_000);
        let y: Vec<f64> = Numbers(13).floats(count).iter().map(|y| f64::from(*y) * 0.3).collect();
        let tolerance = 1e-12;
        let input = stream.upload(&y).unwrap();
        let out = [stream.zeros::<f64>(count).unwrap(), stream.zeros::<f64>(count).unwrap()];
        let steps = stream.zeros::<u32>(count).unwrap();
        let arguments = (count as u32, tolerance, &input, &out[0], &out[1], &steps);
        kernel.launch(stream, per(count, 64), arguments).unwrap();
        let [products, waves] = out.map(|out| out.read_blocking(stream).unwrap());
        for ((y, product), wave) in y.iter().zip(&products).zip(&waves) {
            assert!((product * product.exp() - y).abs() < 4e-12, "{product} for {y}");
            assert!((wave.cos() + wave / 4.0 - y / 4.0).abs() < 4e-12, "{wave} for {y}");
        }
        // Intervals of length 2 and pi are halved until they are shorter than the tolerance.
        let expected = (2.0 / tolerance).log2().ceil() + (std::f64::consts::PI / tolerance).log2().ceil();
        assert_eq!(steps.read_blocking(stream).unwrap(), vec![expected as u32; count]);
    });
}
