//! The executable form of functions: flat instructions over numbered registers, with every name
//! resolved.

pub(super) mod matrix;
pub(super) mod texture;
pub(super) mod transfer;

use super::global::Global;
use super::math::convert::Conversion;
use super::math::{F1, F2, F3, F4};
use super::memory::Heap;
use super::special::Special;
use matrix::MatrixInst;
use texture::TextureInst;
use transfer::AsyncInst;

/// A register of the frame. Immediate values are registers, too: the frame starts as a copy of
/// [`Function::template`], which holds them.
pub(super) type Reg = u32;

/// Stands for a missing register.
pub(super) const NONE: Reg = u32::MAX;

/// The bytes of shared memory that each block has beyond those of its kernel, as on GPUs.
pub(super) const RESERVED_SHARED: u32 = 1024;

/// The number of barriers that a program can name.
pub(super) const BARRIERS: u32 = 16;
/// The barrier behind `barrier.cluster`, after the named ones.
pub(super) const CLUSTER_BARRIER: u32 = BARRIERS;

/// The code that all kernels of an image share.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) functions: Vec<Function>,
    pub(super) globals: Vec<Global>,
    pub(super) shared: Vec<SharedVariable>,
    /// Whether code asks for the shared memory that is reserved for cooperative groups.
    pub(super) uses_reserved: bool,
    /// The heap of `malloc` where the driver offers none.
    pub(super) heap: Heap,
    /// The files that the texts were made from.
    pub(super) files: Vec<String>,
}

/// A variable in shared memory. Each kernel that uses it assigns it an offset.
#[derive(Debug, Clone)]
pub(super) struct SharedVariable {
    pub(super) name: String,
    pub(super) size: u32,
    pub(super) align: u32,
    /// An extern array without a size, which starts where dynamic shared memory starts.
    pub(super) is_dynamic: bool,
}

/// A lowered function.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) code: Vec<Inst>,
    /// The line of each instruction.
    pub(super) lines: Vec<u32>,
    /// The instructions with a memory order, in order, each with its index in the code.
    pub(super) orders: Vec<(u32, MemoryOrder)>,
    /// The places in the source, each from an instruction on, in order.
    pub(super) sources: Vec<SourceLine>,
    /// The initial registers of a frame.
    pub(super) template: Vec<u64>,
    /// The registers that hold immediate values, and are never written.
    pub(super) constants: Vec<Reg>,
    /// The local memory of a frame in bytes: variables, parameters, arguments of calls.
    pub(super) frame_bytes: u32,
    pub(super) params: Vec<Formal>,
    pub(super) returns: Vec<Formal>,
    /// Registers of vector accesses and targets of indirect branches.
    pub(super) lists: Vec<u32>,
    pub(super) calls: Vec<CallSite>,
    pub(super) matrices: Vec<MatrixInst>,
    pub(super) asyncs: Vec<AsyncInst>,
    pub(super) textures: Vec<TextureInst>,
    /// The number of 32-bit registers that the text declares and uses.
    pub(super) registers: u32,
}

/// The memory order of an instruction, for the checks of races. The interpreter executes every
/// access as a relaxed atomic of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MemoryOrder {
    /// `.volatile`, `.relaxed`, `.acquire` and so on: such accesses do not race with each other.
    pub(super) is_strong: bool,
    /// `.release` or `.acq_rel`.
    pub(super) releases: bool,
    /// Scope `.cta`: it is strong among the threads of a block alone.
    pub(super) is_of_block: bool,
}

/// A place in the source that a text was made from, as `.loc` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourceLine {
    /// The first instruction.
    pub(super) pc: u32,
    /// Index in [`Program::files`].
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The place of a parameter or return value, in a function and at a call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Formal {
    pub(super) place: Place,
    /// Bytes.
    pub(super) size: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Register(Reg),
    /// Offset in the frame.
    Frame(u32),
}

#[derive(Debug)]
pub(super) struct CallSite {
    pub(super) target: Target,
    pub(super) args: Vec<Formal>,
    pub(super) returns: Vec<Formal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Function(u32),
    /// A register with the address of a function.
    Indirect(Reg),
    Intrinsic(Intrinsic),
}

/// Functions that the driver provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intrinsic {
    Print,
    AssertFail,
    SetConditional,
    /// `malloc`
    Allocate,
    /// `free`
    Free,
}

/// State space of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    /// The parameter space, by address.
    Param,
    /// A parameter of the kernel, at a known offset: no base register.
    Entry,
    /// A variable of the frame, at a known offset: no base register.
    Frame,
}

/// The type of one element in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
}

impl Cell {
    pub(super) fn bytes(self) -> u32 {
        match self {
            Cell::U8 | Cell::S8 => 1,
            Cell::U16 | Cell::S16 => 2,
            Cell::U32 | Cell::S32 => 4,
            Cell::U64 => 8,
        }
    }
}

/// Shape of an access: `count` elements side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) cell: Cell,
    pub(super) count: u8,
}

impl Access {
    pub(super) fn bytes(self) -> u32 {
        self.cell.bytes() * u32::from(self.count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
    Increment,
    Decrement,
}

/// Atomic accesses to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op128 {
    Load,
    Store,
    Exchange,
    CompareSwap,
}

/// Types that atomics work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomicType {
    U16,
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
}

impl AtomicType {
    pub(super) fn bytes(self) -> u32 {
        match self {
            AtomicType::U16 | AtomicType::F16 | AtomicType::Bf16 => 2,
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            _ => 4,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BarrierOp {
    Sync,
    /// As `Sync`, at the barrier of the cluster.
    Cluster,
    Arrive,
    RedAnd,
    RedOr,
    RedPopc,
}

/// Warp-wide operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WarpOp {
    Sync,
    ActiveMask,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    ShuffleIndex,
    VoteAll,
    VoteAny,
    VoteUniform,
    VoteBallot,
    MatchAny32,
    MatchAny64,
    MatchAll32,
    MatchAll64,
    ReduceAdd,
    ReduceMinU,
    ReduceMinS,
    ReduceMaxU,
    ReduceMaxS,
    ReduceAnd,
    ReduceOr,
    ReduceXor,
    /// The minimum or maximum of singles, maybe of their magnitudes; `nan` lets a NaN win.
    ReduceFloat {
        is_max: bool,
        abs: bool,
        nan: bool,
    },
    Elect,
    /// The instruction of that number in [`Function::matrices`].
    Matrix(u32),
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inst {
    Unary {
        f: F1,
        d: Reg,
        a: Reg,
    },
    Binary {
        f: F2,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary {
        f: F3,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Quaternary {
        f: F4,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        e: Reg,
    },
    Convert {
        d: Reg,
        a: Reg,
        how: Conversion,
    },
    Move {
        d: Reg,
        a: Reg,
    },
    // The most common operations have their own instructions, without a call.
    Add32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Add64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Mul32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Mad32 {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    And {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddF32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulF32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Select {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    /// An operation with the carry flag. Subtraction adds the complement, so a borrow is a carry of
    /// 0.
    Carry {
        d: Reg,
        a: Reg,
        b: Reg,
        how: CarryHow,
    },
    Special {
        d: Reg,
        which: Special,
    },
    GlobalAddress {
        d: Reg,
        index: u32,
        addend: i64,
    },
    SharedAddress {
        d: Reg,
        index: u32,
        addend: i64,
    },
    /// Address of a variable of the frame in the local space, plus `bias`.
    FrameAddress {
        d: Reg,
        offset: u32,
        bias: u64,
    },
    /// 1 if the generic address `a` lies in the space. Constant memory is recognised by the image's
    /// variables.
    IsSpace {
        d: Reg,
        a: Reg,
        which: SpaceTest,
    },
    Jump {
        to: u32,
    },
    JumpIf {
        p: Reg,
        to: u32,
    },
    JumpUnless {
        p: Reg,
        to: u32,
    },
    /// Jumps to the `index`-th of `len` targets in the lists.
    Switch {
        index: Reg,
        list: u32,
        len: u32,
    },
    Call {
        site: u32,
    },
    Return,
    Exit,
    Trap,
    /// `nanosleep`
    Sleep {
        nanoseconds: Reg,
    },
    /// A value that another thread may change was read to `a`: reading the same one again and again
    /// is waiting.
    Poll {
        a: Reg,
    },
    StackAllocate {
        d: Reg,
        size: Reg,
        align: u32,
    },
    StackSave {
        d: Reg,
    },
    StackRestore {
        a: Reg,
    },
    /// Waits until the grids in front have ended (`griddepcontrol.wait`).
    GridWait,
    Fence,
    /// With a `count` above 1, `d` is the position of the registers in the lists.
    Load {
        d: Reg,
        base: Reg,
        offset: i32,
        access: Access,
    },
    Store {
        a: Reg,
        base: Reg,
        offset: i32,
        access: Access,
    },
    Atomic {
        op: AtomicOp,
        ty: AtomicType,
        space: Space,
        d: Reg,
        base: Reg,
        offset: i32,
        b: Reg,
        c: Reg,
    },
    /// The instruction of that number in [`Function::asyncs`].
    Async {
        index: u32,
    },
    /// The instruction of that number in [`Function::textures`].
    Texture {
        index: u32,
    },
    /// An atomic access to 16 bytes. Each register is the first of two.
    Atomic128 {
        op: Op128,
        space: Space,
        d: Reg,
        base: Reg,
        offset: i32,
        b: Reg,
        c: Reg,
    },
    /// Checks the alignment of an access that the next instructions make in parts.
    CheckAligned {
        base: Reg,
        offset: i32,
        align: u32,
    },
    Barrier {
        op: BarrierOp,
        d: Reg,
        id: Reg,
        count: Reg,
        a: Reg,
    },
    Warp {
        op: WarpOp,
        d: Reg,
        p: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        mask: Reg,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CarryHow {
    pub(super) wide: bool,
    pub(super) subtract: bool,
    pub(super) carry_in: bool,
    pub(super) carry_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpaceTest {
    Global,
    Const,
    Shared,
    Local,
    Param,
}
