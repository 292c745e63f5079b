//! Instructions that a whole warp executes on matrices.

use super::access::{Location, ThreadMemory};
use super::thread::Thread;
use super::thread_fault::{Checked, ThreadFault};
use super::wgmma;
use super::worker::Worker;
use crate::ptx::code::matrix::{Element, Fragment, Layout, MatrixInst, MatrixOp, Product, Role, Shape};
use crate::ptx::code::{Cell, Reg};
use crate::ptx::math::fragment;
use crate::ptx::math::matrix::{decode, product};

/// The lanes of a warp, which all execute the instruction, and their shared memory.
pub(super) struct WarpLanes<'a> {
    pub(super) threads: &'a mut [Option<Box<Thread>>],
    pub(super) shared: &'a mut [u8],
    pub(super) pc: usize,
    /// The number of the warp in its block.
    pub(super) warp: usize,
}

/// A fault of one lane.
pub(super) type LaneResult<T> = Result<T, (usize, Box<ThreadFault>)>;

/// The rows of a matrix of `ldmatrix`, and its columns.
const SIDE: usize = 8;
/// The bytes of such a row.
const ROW_BYTES: u32 = 16;

/// Performs an instruction for all lanes.
pub(super) fn perform(
    worker: &mut Worker<'_>,
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
) -> LaneResult<()> {
    match inst.op {
        MatrixOp::Load { is_transposed } => load(worker, lanes, inst, is_transposed),
        MatrixOp::Store { is_transposed } => store(worker, lanes, inst, is_transposed),
        MatrixOp::Transpose => {
            let matrix = lanes.small_matrix(&inst.a, 0);
            lanes.set_small_matrix(&inst.d, 0, &transposed(&matrix));
            Ok(())
        }
        MatrixOp::Product(how) => {
            multiply(lanes, inst, &how);
            Ok(())
        }
        MatrixOp::GroupProduct(how) => wgmma::multiply(lanes, inst, &how, lanes.warp % 4),
        MatrixOp::LoadFragment(fragment) => load_fragment(worker, lanes, inst, fragment),
        MatrixOp::StoreFragment(fragment) => store_fragment(worker, lanes, inst, fragment),
    }
}

/// An 8x8 matrix of 16 bits.
type SmallMatrix = [[u16; SIDE]; SIDE];

fn transposed(matrix: &SmallMatrix) -> SmallMatrix {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[column][row]))
}

impl WarpLanes<'_> {
    pub(super) fn get(&self, lane: usize, register: Reg) -> u64 {
        self.threads.get(lane).and_then(Option::as_ref).map_or(0, |thread| thread.get(register))
    }

    fn set(&mut self, lane: usize, register: Reg, value: u64) {
        if let Some(Some(thread)) = self.threads.get_mut(lane) {
            thread.set(register, value);
        }
    }

    /// The matrix that lies in the `index`-th register of each lane.
    fn small_matrix(&self, registers: &[Reg], index: usize) -> SmallMatrix {
        let mut matrix = SmallMatrix::default();
        let Some(&register) = registers.get(index) else { return matrix };
        for lane in 0..32 {
            let value = self.get(lane, register);
            matrix[lane / 4][lane % 4 * 2] = value as u16;
            matrix[lane / 4][lane % 4 * 2 + 1] = (value >> 16) as u16;
        }
        matrix
    }

    fn set_small_matrix(&mut self, registers: &[Reg], index: usize, matrix: &SmallMatrix) {
        let Some(&register) = registers.get(index) else { return };
        let at = |row: usize, column: usize| u64::from(matrix[row][column]);
        for lane in 0..32 {
            let (row, column) = (lane / 4, lane % 4 * 2);
            self.set(lane, register, at(row, column) | at(row, column + 1) << 16);
        }
    }

    /// An access of a lane, at `more` bytes behind the address operand.
    fn access<T>(
        &mut self,
        worker: &mut Worker<'_>,
        lane: usize,
        inst: &MatrixInst,
        more: u64,
        (bytes, write): (u32, bool),
        each: impl FnOnce(&mut ThreadMemory<'_>, Location) -> T,
    ) -> LaneResult<T> {
        let memory = inst.memory;
        let base = self.get(lane, memory.base);
        let address = base.wrapping_add_signed(i64::from(memory.offset)).wrapping_add(more);
        let mut thread_memory = match self.threads.get_mut(lane) {
            Some(Some(thread)) => ThreadMemory {
                local: &mut thread.local,
                local_base: thread.local_base,
                ..ThreadMemory::unchecked(self.shared, worker.grid.launch.params)
            },
            _ => ThreadMemory::unchecked(self.shared, &[]),
        };
        let found: Checked<Location> =
            worker.find(&thread_memory, self.pc, memory.space, address, bytes, bytes, write);
        let location = found.map_err(|fault| (lane, fault))?;
        Ok(each(&mut thread_memory, location))
    }
}

/// `ldmatrix`: lane `8 * i + r` has the address of row `r` of matrix `i`.
fn load(
    worker: &mut Worker<'_>,
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
    is_transposed: bool,
) -> LaneResult<()> {
    let mut matrices = [SmallMatrix::default(); 4];
    for (index, matrix) in matrices.iter_mut().enumerate().take(inst.d.len()) {
        for (row, place) in matrix.iter_mut().enumerate() {
            let lane = index * SIDE + row;
            *place = lanes.access(worker, lane, inst, 0, (ROW_BYTES, false), |memory, location| {
                std::array::from_fn(|column| memory.load(location, Cell::U16, column) as u16)
            })?;
        }
    }
    for (index, matrix) in matrices.iter().enumerate() {
        let matrix = if is_transposed { transposed(matrix) } else { *matrix };
        lanes.set_small_matrix(&inst.d, index, &matrix);
    }
    Ok(())
}

/// `stmatrix`, the opposite of `ldmatrix`.
fn store(
    worker: &mut Worker<'_>,
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
    is_transposed: bool,
) -> LaneResult<()> {
    for index in 0..inst.a.len() {
        let matrix = lanes.small_matrix(&inst.a, index);
        let matrix = if is_transposed { transposed(&matrix) } else { matrix };
        for (row, values) in matrix.iter().enumerate() {
            let lane = index * SIDE + row;
            lanes.access(worker, lane, inst, 0, (ROW_BYTES, true), |memory, location| {
                for (column, &value) in values.iter().enumerate() {
                    memory.store(location, Cell::U16, column, value.into());
                }
            })?;
        }
    }
    Ok(())
}

/// `mma` and `wmma.mma`.
fn multiply(lanes: &mut WarpLanes<'_>, inst: &MatrixInst, how: &Product) {
    if !matches!(how.layout, Layout::QuadPairs { .. }) {
        multiply_in(lanes, inst, how, &std::array::from_fn::<usize, 32, _>(|lane| lane));
        return;
    }
    for pair in 0..4 {
        let members: [usize; 8] = std::array::from_fn(|member| pair * 4 + member % 4 + member / 4 * 16);
        multiply_in(lanes, inst, how, &members);
    }
}

/// The product of the matrices that `members` hold.
fn multiply_in(lanes: &mut WarpLanes<'_>, inst: &MatrixInst, how: &Product, members: &[usize]) {
    let a = gather(lanes, how, Role::A, &inst.a, members);
    let b = gather(lanes, how, Role::B, &inst.b, members);
    let c = gather(lanes, how, Role::C, &inst.c, members);
    scatter(lanes, how, &inst.d, members, &product(how, &a, &b, &c));
}

/// The matrix of which `members` hold fragments.
pub(super) fn gather(
    lanes: &WarpLanes<'_>,
    how: &Product,
    role: Role,
    registers: &[Reg],
    members: &[usize],
) -> Vec<f64> {
    let element = match role {
        Role::A => how.a,
        Role::B => how.b,
        Role::C => how.c,
    };
    let mut matrix = vec![0.0; how.shape.extent(role).len() as usize];
    each_element(how, role, element, members, registers, |lane, register, shift, at| {
        if let Some(place) = matrix.get_mut(at) {
            *place = decode(element, lanes.get(lane, register) >> shift);
        }
    });
    matrix
}

/// Hands fragments of a result to `members`.
pub(super) fn scatter(
    lanes: &mut WarpLanes<'_>,
    how: &Product,
    registers: &[Reg],
    members: &[usize],
    d: &[u64],
) {
    let width = how.d.bits();
    each_element(how, Role::C, how.d, members, registers, |lane, register, shift, at| {
        let value = d.get(at).copied().unwrap_or(0);
        // The first element of a register also clears the others.
        let before = if shift == 0 { 0 } else { lanes.get(lane, register) };
        let value = if width == 64 { value } else { before | value << shift };
        lanes.set(lane, register, value);
    });
}

/// Calls `each` with lane, register, first bit and position in the matrix of every element.
fn each_element(
    how: &Product,
    role: Role,
    element: Element,
    members: &[usize],
    registers: &[Reg],
    mut each: impl FnMut(usize, Reg, u32, usize),
) {
    let columns = how.shape.extent(role).columns;
    let (per_register, width) = (element.per_register(), element.bits());
    for &lane in members {
        for (number, &register) in registers.iter().enumerate() {
            for part in 0..per_register {
                let index = number as u32 * per_register + part;
                let (row, column) = fragment::place(how.layout, role, how.shape, element, lane as u32, index);
                each(lane, register, part * width, (row * columns + column) as usize);
            }
        }
    }
}

fn cell(element: Element) -> Cell {
    match element.bits() {
        8 => Cell::U8,
        16 => Cell::U16,
        64 => Cell::U64,
        _ => Cell::U32,
    }
}

/// Where element `index` of a lane's fragment lies behind the address, in bytes.
fn behind(lanes: &WarpLanes<'_>, inst: &MatrixInst, fragment: Fragment, lane: usize, index: u32) -> u64 {
    let Fragment { element, extent, is_row } = fragment;
    let stride = u64::from(lanes.get(lane, inst.memory.stride) as u32);
    // As a matrix `c` of that extent: the layout depends on nothing else.
    let shape = Shape { m: extent.rows, n: extent.columns, k: 1 };
    let (row, column) = fragment::place(Layout::Wmma, Role::C, shape, element, lane as u32, index);
    let (outer, inner) = if is_row { (row, column) } else { (column, row) };
    (u64::from(outer) * stride + u64::from(inner)) * u64::from(element.bits() / 8)
}

/// `wmma.load`.
fn load_fragment(
    worker: &mut Worker<'_>,
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
    fragment: Fragment,
) -> LaneResult<()> {
    let element = fragment.element;
    let (per_register, width, cell) = (element.per_register(), element.bits(), cell(element));
    for lane in 0..32 {
        let mut values = Vec::with_capacity(inst.d.len());
        for number in 0..inst.d.len() as u32 {
            let mut whole = 0;
            for part in 0..per_register {
                let more = behind(lanes, inst, fragment, lane, number * per_register + part);
                let value =
                    lanes.access(worker, lane, inst, more, (width / 8, false), |memory, location| {
                        memory.load(location, cell, 0)
                    })?;
                whole |= value << (part * width);
            }
            values.push(whole);
        }
        // The base may be one of the destinations.
        for (&register, value) in inst.d.iter().zip(values) {
            lanes.set(lane, register, value);
        }
    }
    Ok(())
}

/// `wmma.store`.
fn store_fragment(
    worker: &mut Worker<'_>,
    lanes: &mut WarpLanes<'_>,
    inst: &MatrixInst,
    fragment: Fragment,
) -> LaneResult<()> {
    let element = fragment.element;
    let (per_register, width, cell) = (element.per_register(), element.bits(), cell(element));
    for lane in 0..32 {
        for (number, &register) in inst.a.iter().enumerate() {
            let whole = lanes.get(lane, register);
            for part in 0..per_register {
                let more = behind(lanes, inst, fragment, lane, number as u32 * per_register + part);
                lanes.access(worker, lane, inst, more, (width / 8, true), |memory, location| {
                    memory.store(location, cell, 0, whole >> (part * width));
                })?;
            }
        }
    }
    Ok(())
}
