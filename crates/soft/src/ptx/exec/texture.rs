//! Textures and surfaces.

use super::access::{Location, ThreadMemory};
use super::atomic::AtomicChange;
use super::thread_fault::{Checked, ThreadFault};
use super::worker::Worker;
use crate::ptx::code::texture::{Geometry, Outside, Query, TextureInst, TextureOp, Values};
use crate::ptx::code::{AtomicOp, AtomicType, Cell, NONE, Space};
use crate::ptx::error::FaultKind;
use crate::ptx::math::texture::{
    Taps, border_channel, cube_face, half, narrow, weighted_sum, weights, widen,
};
use crate::ptx::memory::MemoryFault;
use crate::ptx::texture::{AddressMode, Shape, TexelFormat, Texels, Texture};

/// The objects that a host thread has used last.
#[derive(Debug, Default)]
pub(super) struct Objects {
    epoch: u64,
    textures: [Option<(u64, Texture)>; SLOTS],
    surfaces: [Option<(u64, Texels)>; SLOTS],
}

const SLOTS: usize = 4;

/// A thread that executes an instruction on a texture or surface.
pub(super) struct TextureThread<'a, 'g, 'm> {
    pub(super) worker: &'a mut Worker<'g>,
    pub(super) memory: &'a mut ThreadMemory<'m>,
    pub(super) registers: &'a mut [u64],
    pub(super) lists: &'a [u32],
    pub(super) pc: usize,
}

/// The element of a texel in memory.
const fn cell(format: TexelFormat) -> Cell {
    match format.bytes() {
        1 => Cell::U8,
        2 => Cell::U16,
        _ => Cell::U32,
    }
}

/// Where a surface access goes.
#[derive(Debug, Clone, Copy)]
struct Target {
    address: u64,
    /// The bytes that it accesses: fewer than it has where the row ends before.
    bytes: u32,
}

impl Target {
    /// The elements that the access reaches, of so many bytes each.
    fn elements(self, bytes: u32) -> usize {
        (self.bytes / bytes) as usize
    }
}

impl TextureThread<'_, '_, '_> {
    pub(super) fn execute(&mut self, inst: &TextureInst) -> Checked<()> {
        match inst.op {
            TextureOp::Sample { from_singles, values } => {
                let texture = self.texture(inst)?;
                let found = self.sample(inst, &texture, from_singles)?;
                self.put(inst, values, found);
            }
            TextureOp::Gather { channel, values } => {
                let texture = self.texture(inst)?;
                let found = self.gather(inst, &texture, channel)?;
                self.put(inst, values, found);
            }
            TextureOp::QueryTexture(query) => {
                let texture = self.texture_object(inst)?;
                self.set(inst.values, answer(query, &texture.texels, texture.sampler.is_normalised));
            }
            TextureOp::QuerySurface(query) => {
                let texels = self.surface_object(inst)?;
                self.set(inst.values, answer(query, &texels, false));
            }
            TextureOp::Load { cell, outside } => self.load(inst, cell, outside)?,
            TextureOp::Store { cell, outside } => self.store(inst, cell, outside)?,
            TextureOp::StoreTexel { outside } => self.store_texel(inst, outside)?,
            TextureOp::Reduce { op, ty, in_bytes, outside } => {
                self.reduce(inst, (op, ty), in_bytes, outside)?;
            }
        }
        Ok(())
    }

    fn register(&self, register: u32) -> u64 {
        self.registers.get(register as usize).copied().unwrap_or(0)
    }

    /// The value of a register in the lists.
    fn get(&self, position: u32) -> u64 {
        self.lists.get(position as usize).map_or(0, |register| self.register(*register))
    }

    /// Sets a register in the lists.
    fn set(&mut self, position: u32, value: u32) {
        self.set_wide(position, value.into());
    }

    fn set_wide(&mut self, position: u32, value: u64) {
        let register = self.lists.get(position as usize).copied().unwrap_or(NONE);
        if let Some(place) = self.registers.get_mut(register as usize) {
            *place = value;
        }
    }

    /// Returns the four values of a texture instruction.
    fn put(&mut self, inst: &TextureInst, values: Values, found: [u32; 4]) {
        let found = match values {
            Values::Words => found,
            Values::Halves => found.map(half),
            Values::Pairs => {
                let [a, b, c, d] = found.map(half);
                [a | b << 16, c | d << 16, 0, 0]
            }
        };
        for (position, value) in (inst.values..).zip(found).take(inst.count.into()) {
            self.set(position, value);
        }
    }

    fn texture_object(&mut self, inst: &TextureInst) -> Checked<Texture> {
        let (handle, memory) = (self.register(inst.object), self.worker.grid.memory);
        let objects = &mut self.worker.objects;
        objects.renew(memory.epoch());
        let slot = &mut objects.textures[self.pc % SLOTS];
        match slot {
            Some((known, texture)) if *known == handle => Ok(*texture),
            _ => {
                let texture = memory.texture(handle).map_err(no_object)?;
                *slot = Some((handle, texture));
                Ok(texture)
            }
        }
    }

    fn surface_object(&mut self, inst: &TextureInst) -> Checked<Texels> {
        let (handle, memory) = (self.register(inst.object), self.worker.grid.memory);
        let objects = &mut self.worker.objects;
        objects.renew(memory.epoch());
        let slot = &mut objects.surfaces[self.pc % SLOTS];
        match slot {
            Some((known, texels)) if *known == handle => Ok(*texels),
            _ => {
                let texels = memory.surface(handle).map_err(no_object)?;
                *slot = Some((handle, texels));
                Ok(texels)
            }
        }
    }

    /// The texture of an instruction whose geometry it has.
    fn texture(&mut self, inst: &TextureInst) -> Checked<Texture> {
        let texture = self.texture_object(inst)?;
        check_geometry(inst.geometry, texture.texels.shape)?;
        Ok(texture)
    }

    /// The layer, where layers outside are the nearest ones inside.
    fn layer(&self, inst: &TextureInst, layers: u32) -> u32 {
        if inst.layer == NONE { 0 } else { (self.register(inst.layer) as u32).min(layers.max(1) - 1) }
    }

    /// The texels along each dimension, and the layer.
    fn taps(&self, inst: &TextureInst, texture: &Texture, from_singles: bool) -> ([Taps; 3], u32) {
        let (texels, sampler) = (&texture.texels, &texture.sampler);
        let mut at = [0.0; 3];
        for (position, at) in (inst.at..).zip(at.iter_mut()).take(inst.geometry.coordinates()) {
            let bits = self.get(position) as u32;
            *at = if from_singles { f64::from(f32::from_bits(bits)) } else { f64::from(bits as i32) };
        }
        let mut layer = self.layer(inst, texels.layers);
        let mut rank = inst.geometry.coordinates();
        let mut modes = sampler.modes;
        let mut is_normalised = sampler.is_normalised && from_singles;
        if let Geometry::Cube { is_layered } = inst.geometry {
            let (face, [s, t]) = cube_face(at);
            at = [s, t, 0.0];
            layer = if is_layered { self.layer(inst, texels.layers / 6) * 6 + face } else { face };
            (rank, is_normalised, modes) = (2, true, [AddressMode::Clamp; 3]);
        }
        let is_linear = sampler.is_linear && from_singles;
        let mut taps = [Taps::SINGLE; 3];
        for (axis, tap) in taps.iter_mut().enumerate().take(rank) {
            let (size, mode) = (texels.size[axis], modes[axis]);
            let offset =
                if inst.offsets == NONE { 0 } else { self.get(inst.offsets + axis as u32) as u32 as i32 };
            let x = at[axis] * if is_normalised { f64::from(size) } else { 1.0 } + f64::from(offset);
            *tap = match texels.shape {
                Shape::Linear => Taps::nearest(at[axis] + f64::from(offset), size, AddressMode::Border),
                _ if is_linear => Taps::linear(x, size, mode),
                _ => Taps::nearest(x, size, mode),
            };
        }
        if is_linear && texels.shape == (Shape::Plain { rank: 1 }) {
            // An array of one dimension is a row of an image, whose upper edge is sampled.
            taps[1] = Taps::linear(0.0, 1, modes[1]);
        }
        (taps, layer)
    }

    /// `tex`.
    fn sample(&mut self, inst: &TextureInst, texture: &Texture, from_singles: bool) -> Checked<[u32; 4]> {
        let (taps, layer) = self.taps(inst, texture, from_singles);
        if !(texture.sampler.is_linear && from_singles) {
            let texel = self.texel(texture, taps.map(|tap| tap.at[0]), layer)?;
            return Ok(widened(texture, texel));
        }
        let (mut texels, mut parts, mut count) = ([[0; 4]; 8], [0; 8], 0);
        for (index, part) in weights(taps).into_iter().enumerate().filter(|(_, part)| *part > 0) {
            let at = [0, 1, 2].map(|axis| taps[axis].at[index >> axis & 1]);
            (texels[count], parts[count]) = (self.texel(texture, at, layer)?, part);
            count += 1;
        }
        let mut found = [0; 4];
        for (channel, found) in found.iter_mut().enumerate() {
            let mut weighted = [(0, 0); 8];
            for (slot, (texel, part)) in weighted.iter_mut().zip(texels.iter().zip(parts)) {
                *slot = (texel[channel], part);
            }
            *found = weighted_sum(texture.texels.format, &weighted[..count], texture.sampler.reads_numbers);
        }
        Ok(found)
    }

    /// `tld4`: the four texels that a linear filter would weigh, counter-clockwise from the lower
    /// left.
    fn gather(&mut self, inst: &TextureInst, texture: &Texture, channel: u8) -> Checked<[u32; 4]> {
        let mut linear = *texture;
        linear.sampler.is_linear = true;
        let (taps, layer) = self.taps(inst, &linear, true);
        let [[left, right], [upper, lower]] = [taps[0].at, taps[1].at];
        let mut found = [0; 4];
        for (value, (x, y)) in
            found.iter_mut().zip([(left, lower), (right, lower), (right, upper), (left, upper)])
        {
            let texel = self.texel(texture, [x, y, Some(0)], layer)?;
            *value = widened(texture, texel)[usize::from(channel & 3)];
        }
        Ok(found)
    }

    /// The bits of the channels of a texel, or of the border. Channels that the format lacks are 0.
    fn texel(&mut self, texture: &Texture, at: [Option<u32>; 3], layer: u32) -> Checked<[u32; 4]> {
        let (texels, sampler) = (&texture.texels, &texture.sampler);
        let mut found = [0; 4];
        let channels = found.iter_mut().enumerate().take(texels.channels as usize);
        let [Some(x), Some(y), Some(z)] = at else {
            if texels.shape != Shape::Linear {
                for (index, channel) in channels {
                    *channel = border_channel(texels.format, sampler.border[index], sampler.reads_numbers);
                }
            }
            return Ok(found);
        };
        let address = texel_address(texels, [x, y, z], layer);
        let location = self.find(address, texels.texel_bytes(), false)?;
        for (index, channel) in channels {
            *channel = self.memory.load(location, cell(texels.format), index) as u32;
        }
        Ok(found)
    }

    fn find(&mut self, address: u64, bytes: u32, write: bool) -> Checked<Location> {
        // Texels need no alignment.
        self.worker.find(self.memory, self.pc, Space::Global, address, bytes, 1, write)
    }

    /// Where a surface access of `bytes`, in elements of `element` bytes, goes; `None` if nowhere.
    /// The first coordinate counts bytes, or texels.
    ///
    /// `.clamp` takes the nearest place that has the access's size and alignment. A row that is
    /// shorter than the access has no such place: then the elements beyond its end are left out.
    fn target(
        &mut self,
        inst: &TextureInst,
        [bytes, element]: [u32; 2],
        in_bytes: bool,
        outside: Outside,
    ) -> Checked<(Texels, Option<Target>)> {
        let texels = self.surface_object(inst)?;
        check_geometry(inst.geometry, texels.shape)?;
        let mut at = [0_i64; 3];
        for (position, at) in (inst.at..).zip(at.iter_mut()).take(inst.geometry.coordinates()) {
            *at = i64::from(self.get(position) as i32);
        }
        if !in_bytes {
            at[0] *= i64::from(texels.texel_bytes());
        }
        let [width, height, depth] = texels.size;
        let row = i64::from(width) * i64::from(texels.texel_bytes());
        let last = [row - i64::from(bytes), i64::from(height) - 1, i64::from(depth) - 1];
        let is_inside = at.iter().zip(last).all(|(at, last)| (0..=last).contains(at));
        match outside {
            _ if is_inside => {}
            Outside::Trap => {
                let [x, y, z] = at;
                let detail = format!(
                    "byte {x} of row {y} in slice {z} is outside of the surface, which has {row} bytes in \
                     each of {height} rows in each of {depth} slices"
                );
                return Err(ThreadFault::new(FaultKind::IllegalAddress, detail));
            }
            Outside::Zero => return Ok((texels, None)),
            Outside::Clamp => {
                let aligned = last[0] - last[0].rem_euclid(i64::from(bytes));
                for (at, last) in at.iter_mut().zip([aligned, last[1], last[2]]) {
                    *at = (*at).clamp(0, last.max(0));
                }
            }
        }
        let layer = self.layer(inst, texels.layers);
        let [x, y, z] = at.map(|at| at as u64);
        let address = texel_address(&texels, [0, y as u32, z as u32], layer) + x;
        if x % u64::from(bytes) != 0 {
            return Err(ThreadFault::misaligned(address, bytes, false));
        }
        let there = bytes.min(u32::try_from(row).unwrap_or(u32::MAX));
        let target = Target { address, bytes: there - there % element };
        Ok((texels, Some(target).filter(|target| target.bytes > 0)))
    }

    /// `suld.b`.
    fn load(&mut self, inst: &TextureInst, cell: Cell, outside: Outside) -> Checked<()> {
        let bytes = cell.bytes() * u32::from(inst.count);
        let (_, target) = self.target(inst, [bytes, cell.bytes()], true, outside)?;
        let found = target.map(|target| self.find(target.address, target.bytes, false)).transpose()?;
        let elements = target.map_or(0, |target| target.elements(cell.bytes()));
        for (index, position) in (inst.values..).enumerate().take(inst.count.into()) {
            let location = found.filter(|_| index < elements);
            let value = location.map_or(0, |location| self.memory.load(location, cell, index));
            self.set_wide(position, value);
        }
        Ok(())
    }

    /// `sust.b`.
    fn store(&mut self, inst: &TextureInst, cell: Cell, outside: Outside) -> Checked<()> {
        let bytes = cell.bytes() * u32::from(inst.count);
        let (_, Some(target)) = self.target(inst, [bytes, cell.bytes()], true, outside)? else {
            return Ok(());
        };
        let location = self.find(target.address, target.bytes, true)?;
        for (index, position) in (inst.values..).enumerate().take(target.elements(cell.bytes())) {
            let value = self.get(position);
            self.memory.store(location, cell, index, value);
        }
        Ok(())
    }

    /// `sust.p`: values for the channels of a texel, in its format.
    fn store_texel(&mut self, inst: &TextureInst, outside: Outside) -> Checked<()> {
        let texels = self.surface_object(inst)?;
        let bytes = texels.texel_bytes();
        let (_, Some(target)) = self.target(inst, [bytes, bytes], false, outside)? else { return Ok(()) };
        let location = self.find(target.address, bytes, true)?;
        for index in 0..texels.channels.min(inst.count.into()) {
            let value = narrow(texels.format, self.get(inst.values + index) as u32);
            self.memory.store(location, cell(texels.format), index as usize, value.into());
        }
        Ok(())
    }

    /// `sured`.
    fn reduce(
        &mut self,
        inst: &TextureInst,
        (op, ty): (AtomicOp, AtomicType),
        in_bytes: bool,
        outside: Outside,
    ) -> Checked<()> {
        let (texels, target) = self.target(inst, [ty.bytes(); 2], in_bytes, outside)?;
        let Some(target) = target else { return Ok(()) };
        let ty = if !in_bytes && texels.format == TexelFormat::S32 { AtomicType::S32 } else { ty };
        self.worker.spans.is_atomic = true;
        let found = self.find(target.address, ty.bytes(), true);
        self.worker.spans.is_atomic = false;
        let value = self.get(inst.values);
        AtomicChange::new(op, ty, value, 0).perform(self.memory, found?);
        Ok(())
    }
}

impl Objects {
    /// Forgets all objects if any was destroyed since.
    fn renew(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Objects { epoch, ..Objects::default() };
        }
    }
}

fn no_object(fault: MemoryFault) -> Box<ThreadFault> {
    ThreadFault::new(fault.kind, fault.message)
}

/// The channels of a texel as a sample returns them.
fn widened(texture: &Texture, texel: [u32; 4]) -> [u32; 4] {
    texel.map(|bits| widen(texture.texels.format, bits, texture.sampler.reads_numbers))
}

/// Fails unless the texels have the geometry of the instruction.
fn check_geometry(geometry: Geometry, shape: Shape) -> Checked<()> {
    let fits = match (geometry, shape) {
        (Geometry::Plain { rank }, Shape::Linear) => rank == 1,
        (Geometry::Plain { rank }, Shape::Plain { rank: has })
        | (Geometry::Layered { rank }, Shape::Layered { rank: has }) => rank == has,
        (Geometry::Cube { is_layered }, Shape::Cube { is_layered: has }) => is_layered == has,
        // Surfaces access a face as a layer.
        (Geometry::Layered { rank }, Shape::Cube { .. }) => rank == 2,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let detail = format!("an access of {geometry:?} to texels of {shape:?}");
    Err(ThreadFault::new(FaultKind::IllegalInstruction, detail))
}

fn answer(query: Query, texels: &Texels, is_normalised: bool) -> u32 {
    let [width, height, depth] = texels.size;
    match query {
        Query::Width => width,
        Query::Height => height,
        Query::Depth => depth,
        Query::ArraySize => match texels.shape {
            Shape::Cube { .. } => texels.layers / 6,
            _ => texels.layers,
        },
        Query::IsNormalised => is_normalised.into(),
        Query::One => 1,
    }
}

fn texel_address(texels: &Texels, [x, y, z]: [u32; 3], layer: u32) -> u64 {
    // Either is 0.
    let slice = u64::from(z) + u64::from(layer);
    let offset =
        texels.slice * slice + texels.pitch * u64::from(y) + u64::from(x) * u64::from(texels.texel_bytes());
    // Memory that a program names may lie anywhere.
    texels.address.wrapping_add(offset)
}
