//! The parameters of a layer: numbers on the host, or buffers on the device.

use super::task::Task;

/// The parameters of a layer.
#[derive(Clone, Debug)]
pub(crate) struct Layer<M> {
    pub(crate) norms: [Norm<M>; 2],
    pub(crate) query: Linear<M>,
    pub(crate) key: Linear<M>,
    pub(crate) value: Linear<M>,
    pub(crate) out: Linear<M>,
    pub(crate) up: Linear<M>,
    pub(crate) down: Linear<M>,
}

/// The parameters of a layer norm.
#[derive(Clone, Debug)]
pub(crate) struct Norm<M> {
    pub(crate) scale: M,
    pub(crate) shift: M,
}

/// A matrix, row by row, and what is added to its product.
#[derive(Clone, Debug)]
pub(crate) struct Linear<M> {
    pub(crate) weights: M,
    pub(crate) bias: M,
}

impl Layer<Vec<f32>> {
    /// A layer of numbers by chance, always the same for the same `seed`.
    pub(crate) fn by_chance(task: Task, seed: u64) -> Self {
        let mut chance = Chance(seed);
        let (width, hidden) = (task.width(), task.hidden());
        Self {
            norms: [chance.norm(width), chance.norm(width)],
            query: chance.linear(width, width),
            key: chance.linear(width, width),
            value: chance.linear(width, width),
            out: chance.linear(width, width),
            up: chance.linear(width, hidden),
            down: chance.linear(hidden, width),
        }
    }

    /// The same layer with its numbers elsewhere.
    pub(crate) fn moved<M, E>(&self, mut send: impl FnMut(&[f32]) -> Result<M, E>) -> Result<Layer<M>, E> {
        let [first, second] = &self.norms;
        Ok(Layer {
            norms: [first.moved(&mut send)?, second.moved(&mut send)?],
            query: self.query.moved(&mut send)?,
            key: self.key.moved(&mut send)?,
            value: self.value.moved(&mut send)?,
            out: self.out.moved(&mut send)?,
            up: self.up.moved(&mut send)?,
            down: self.down.moved(&mut send)?,
        })
    }
}

impl Norm<Vec<f32>> {
    fn moved<M, E>(&self, mut send: impl FnMut(&[f32]) -> Result<M, E>) -> Result<Norm<M>, E> {
        Ok(Norm { scale: send(&self.scale)?, shift: send(&self.shift)? })
    }
}

impl Linear<Vec<f32>> {
    fn moved<M, E>(&self, mut send: impl FnMut(&[f32]) -> Result<M, E>) -> Result<Linear<M>, E> {
        Ok(Linear { weights: send(&self.weights)?, bias: send(&self.bias)? })
    }
}

/// The numbers of a prompt, by chance.
pub(crate) fn prompt(task: Task, seed: u64) -> Vec<f32> {
    Chance(seed).numbers(task.tokens * task.width(), 0.0, 1.0)
}

/// A generator of numbers (xorshift).
struct Chance(u64);

impl Chance {
    /// A number between -1 and 1.
    fn number(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn numbers(&mut self, len: usize, middle: f32, spread: f32) -> Vec<f32> {
        (0..len).map(|_| middle + spread * self.number()).collect()
    }

    fn norm(&mut self, width: usize) -> Norm<Vec<f32>> {
        Norm { scale: self.numbers(width, 1.0, 0.2), shift: self.numbers(width, 0.0, 0.2) }
    }

    fn linear(&mut self, depth: usize, columns: usize) -> Linear<Vec<f32>> {
        let spread = (3.0 / depth as f32).sqrt();
        Linear { weights: self.numbers(depth * columns, 0.0, spread), bias: self.numbers(columns, 0.0, 0.2) }
    }
}
