# use cuda_handles::{Buffer, Image};
# use cuda_launch::{kernel, per, read_only};
# kernel! {
#     unsafe in Image::Ptx("");
#     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
#     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
#     unsafe fn gather(n: u32, index: In<u32>, values: In<f32>, out: Out<f32>)
#     where index.len() >= n, out.len() >= n;
# }
# fn main() {}
