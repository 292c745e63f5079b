//! Bodies that attract each other.

use cuda_launch::{kernel, per};

use crate::results::reference::{Numbers, assert_close, size, with_stream};

kernel! {
    // SAFETY: `n_body_step` checks each body against `count`, and its tile is a block's bodies.
    unsafe in "../../../../kernels/fields/n_body.ptx";

    fn n_body_step(
        count: u32, softening: f32, step: f32, bodies: In<[f32; 4]>, velocities: InOut<[f32; 4]>,
        moved: Out<[f32; 4]>
    )
    where count >= 1, bodies.len() >= count, velocities.len() >= count, moved.len() >= count,
        block.y * block.z == 1, shared >= 16 * block.x;
}

const SOFTENING: f32 = 0.01;
const STEP: f32 = 1e-3;

/// One step, in double precision.
fn step(bodies: &mut [[f64; 4]], velocities: &mut [[f64; 4]]) {
    let pull = |body: &[f64; 4], all: &[[f64; 4]]| {
        let mut pull = [0.0; 3];
        for other in all {
            let distance = [0, 1, 2].map(|i| other[i] - body[i]);
            let square: f64 = distance.iter().map(|x| x * x).sum::<f64>() + f64::from(SOFTENING);
            let force = other[3] / square.powf(1.5);
            (0..3).for_each(|i| pull[i] += distance[i] * force);
        }
        pull
    };
    let pulls: Vec<[f64; 3]> = bodies.iter().map(|body| pull(body, bodies)).collect();
    for ((body, velocity), pull) in bodies.iter_mut().zip(velocities).zip(pulls) {
        for i in 0..3 {
            velocity[i] += pull[i] * f64::from(STEP);
            body[i] += velocity[i] * f64::from(STEP);
        }
    }
}

#[test]
fn steps_move_the_bodies() {
    with_stream(|context, stream| {
        let kernel = n_body_step::load(context).unwrap();
        let (count, block) = (size(70, 1500), size(32, 256) as u32);
        let mut numbers = Numbers(12);
        let start: Vec<[f32; 4]> = (0..count)
            .map(|_| [numbers.float(), numbers.float(), numbers.float(), 0.5 + 0.5 * numbers.float()])
            .collect();
        let config = per(count, block).shared_bytes(16 * block);
        let mut from = stream.upload(&start).unwrap();
        let mut to = stream.zeros::<[f32; 4]>(count).unwrap();
        let velocities = stream.zeros::<[f32; 4]>(count).unwrap();
        let mut bodies: Vec<[f64; 4]> = start.iter().map(|body| body.map(f64::from)).collect();
        let mut speeds = vec![[0.0; 4]; count];
        for _ in 0..3 {
            kernel.launch(stream, config, (count as u32, SOFTENING, STEP, &from, &velocities, &to)).unwrap();
            std::mem::swap(&mut from, &mut to);
            step(&mut bodies, &mut speeds);
        }
        assert_close(from.read_blocking(stream).unwrap().as_flattened(), bodies.as_flattened(), 1e-5);
        // Sums of as many pulls, each rounded to seven digits.
        let bound = 1e-6 * count as f64;
        assert_close(velocities.read_blocking(stream).unwrap().as_flattened(), speeds.as_flattened(), bound);
    });
}
