//! Instructions that a whole warp executes on matrices.

use super::{Reg, Space};

/// The type of one element of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Element {
    F16,
    Bf16,
    /// The upper 19 bits of a single.
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    S32,
    /// 32 single bits, which are one element here.
    Bits,
}

impl Element {
    /// The elements in one register of a fragment.
    pub(in crate::ptx) fn per_register(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 2,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => 4,
            Element::S4 | Element::U4 => 8,
            Element::Tf32 | Element::F32 | Element::F64 | Element::S32 | Element::Bits => 1,
        }
    }

    /// Bits in a register.
    pub(in crate::ptx) fn bits(self) -> u32 {
        if self == Element::F64 { 64 } else { 32 / self.per_register() }
    }
}

/// How far a matrix goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Extent {
    pub(in crate::ptx) rows: u32,
    pub(in crate::ptx) columns: u32,
}

impl Extent {
    pub(in crate::ptx) fn len(self) -> u32 {
        self.rows * self.columns
    }
}

/// Rows of `a`, columns of `b`, and the dimension that a product sums over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Shape {
    pub(in crate::ptx) m: u32,
    pub(in crate::ptx) n: u32,
    pub(in crate::ptx) k: u32,
}

impl Shape {
    pub(in crate::ptx) fn extent(self, role: Role) -> Extent {
        let (rows, columns) = match role {
            Role::A => (self.m, self.k),
            Role::B => (self.k, self.n),
            Role::C => (self.m, self.n),
        };
        Extent { rows, columns }
    }
}

/// The part that a matrix has in `d = a * b + c`. `d` is as `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Role {
    A,
    B,
    C,
}

/// Which elements of a matrix each lane holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Layout {
    /// The layout of `mma`.
    Mma,
    /// The layout of `mma.m8n8k4` on halves: four products, each of eight lanes.
    QuadPairs { a_is_row: bool, b_is_row: bool },
    /// The layout of `wmma`, which PTX leaves open: the elements in the order of rows, shared out
    /// among the lanes.
    Wmma,
}

/// A combination of bits whose ones are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum BitOp {
    Xor,
    And,
}

/// `d = a * b + c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Product {
    pub(in crate::ptx) shape: Shape,
    pub(in crate::ptx) layout: Layout,
    pub(in crate::ptx) a: Element,
    pub(in crate::ptx) b: Element,
    pub(in crate::ptx) c: Element,
    pub(in crate::ptx) d: Element,
    pub(in crate::ptx) saturates: bool,
    /// For [`Element::Bits`].
    pub(in crate::ptx) bits: BitOp,
}

/// A fragment of `wmma` in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Fragment {
    pub(in crate::ptx) element: Element,
    pub(in crate::ptx) extent: Extent,
    /// Whether rows are contiguous, not columns.
    pub(in crate::ptx) is_row: bool,
}

/// `wgmma.mma_async`. Four warps multiply 64 rows; each of them has 16 rows of its own, so that
/// here each multiplies alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct GroupProduct {
    pub(in crate::ptx) product: Product,
    pub(in crate::ptx) a: GroupSource,
    pub(in crate::ptx) b: GroupSource,
    /// A predicate: whether `d` is added to.
    pub(in crate::ptx) adds: Reg,
}

/// A source of `wgmma.mma_async`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct GroupSource {
    pub(in crate::ptx) is_in_registers: bool,
    pub(in crate::ptx) is_negated: bool,
    /// Whether rows of `a`, or columns of `b`, are contiguous in memory, not the dimension that is
    /// summed over.
    pub(in crate::ptx) is_transposed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum MatrixOp {
    /// `ldmatrix`: 8x8 matrices of 16 bits, from shared memory to one register of each lane.
    Load {
        is_transposed: bool,
    },
    /// `stmatrix`.
    Store {
        is_transposed: bool,
    },
    /// `movmatrix.trans`.
    Transpose,
    Product(Product),
    GroupProduct(GroupProduct),
    /// `wmma.load`.
    LoadFragment(Fragment),
    /// `wmma.store`.
    StoreFragment(Fragment),
}

/// The memory operand of a matrix instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct MatrixMemory {
    pub(in crate::ptx) space: Space,
    pub(in crate::ptx) base: Reg,
    pub(in crate::ptx) offset: i32,
    /// The elements from a row (or column) to the next.
    pub(in crate::ptx) stride: Reg,
}

/// A matrix instruction with the registers that each lane gives.
#[derive(Debug)]
pub(in crate::ptx) struct MatrixInst {
    pub(in crate::ptx) op: MatrixOp,
    pub(in crate::ptx) memory: MatrixMemory,
    pub(in crate::ptx) d: Vec<Reg>,
    pub(in crate::ptx) a: Vec<Reg>,
    pub(in crate::ptx) b: Vec<Reg>,
    pub(in crate::ptx) c: Vec<Reg>,
}
