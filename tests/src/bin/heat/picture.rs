//! The plate as a picture.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Small plates are enlarged to about this many pixels a side.
const PIXELS: usize = 512;

/// Writes a square plate as PNG, cold cells dark and hot ones bright.
pub(crate) fn write(path: &Path, size: usize, plate: &[f32]) -> Result<(), Box<dyn Error>> {
    let scale = (PIXELS / size).max(1);
    let side = size * scale;
    let mut pixels = Vec::with_capacity(side * side * 3);
    for row in plate.chunks_exact(size) {
        let line: Vec<u8> = row.iter().flat_map(|&heat| colour(heat).repeat(scale)).collect();
        (0..scale).for_each(|_| pixels.extend_from_slice(&line));
    }
    let side = u32::try_from(side)?;
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}

fn colour(heat: f32) -> [u8; 3] {
    let colour = colorous::INFERNO.eval_continuous(f64::from(heat.clamp(0.0, 1.0)));
    [colour.r, colour.g, colour.b]
}
