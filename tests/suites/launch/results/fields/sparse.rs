//! Sparse matrices times vectors.

use cuda_handles::Buffer;
use cuda_launch::{kernel, per};

use crate::results::reference::{Numbers, assert_close, size, with_stream};

kernel! {
    // SAFETY: the kernels check the row, and read `starts` at the row and behind it.
    unsafe in "../../../../kernels/fields/sparse.ptx";

    struct Sparse;

    /// # Safety
    /// `starts` rises, up to the lengths of `columns` and `values`; columns are below that of `x`.
    unsafe fn sparse_by_thread(
        rows: u32, starts: In<u32>, columns: In<u32>, values: In<f32>, x: In<f32>, y: Out<f32>
    )
    where starts.len() > rows, y.len() >= rows;
    /// # Safety
    /// As for one thread a row.
    unsafe fn sparse_by_warp(
        rows: u32, starts: In<u32>, columns: In<u32>, values: In<f32>, x: In<f32>, y: Out<f32>
    )
    where starts.len() > rows, y.len() >= rows, block.x % 32 == 0, block.y * block.z == 1;
}

#[test]
fn rows_of_all_lengths_are_summed() {
    with_stream(|context, stream| {
        let kernels = Sparse::load(context).unwrap();
        let (rows, width) = (size(60, 50_000), size(200, 20_000));
        let mut numbers = Numbers(17);
        let x = numbers.floats(width);
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut expected = Vec::new();
        for row in 0..rows {
            // Some rows are empty, and one in seven is long.
            let length = if row % 7 == 0 { 100 } else { numbers.below(9) };
            let mut sum = 0.0;
            for _ in 0..length {
                let (column, value) = (numbers.below(width as u32), numbers.float());
                sum += f64::from(value) * f64::from(x[column as usize]);
                columns.push(column);
                values.push(value);
            }
            starts.push(columns.len() as u32);
            expected.push(sum);
        }
        let (starts, columns) = (stream.upload(&starts).unwrap(), stream.upload(&columns).unwrap());
        let (values, x) = (stream.upload(&values).unwrap(), stream.upload(&x).unwrap());
        let out: [Buffer<f32>; 2] = [(); 2].map(|()| stream.zeros(rows).unwrap());
        let n = rows as u32;
        // SAFETY: each row starts where the one before ends, and columns are below `width`.
        unsafe {
            let arguments = (n, &starts, &columns, &values, &x, &out[0]);
            kernels.sparse_by_thread.launch(stream, per(rows, 64), arguments).unwrap();
            let arguments = (n, &starts, &columns, &values, &x, &out[1]);
            kernels.sparse_by_warp.launch(stream, per(32 * rows, 128), arguments).unwrap();
        }
        for y in &out {
            assert_close(&y.read_blocking(stream).unwrap(), &expected, 1e-5);
        }
    });
}
