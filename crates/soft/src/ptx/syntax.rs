//! The syntax tree of a PTX text, before names are resolved.

use super::types::Type;

/// State spaces that a variable can be declared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// The linkage of a name of module scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linkage {
    /// Visible in its own text.
    Local,
    /// Declared here, defined in another text.
    Extern,
    /// Visible in all linked texts.
    Visible,
    /// As visible, but another definition may replace it.
    Weak,
}

/// A whole text.
#[derive(Debug, Default)]
pub(super) struct Module<'t> {
    pub(super) version: (u32, u32),
    pub(super) target: &'t str,
    pub(super) variables: Vec<Variable<'t>>,
    pub(super) aliases: Vec<Alias<'t>>,
    pub(super) functions: Vec<Function<'t>>,
    /// The source files, by their numbers.
    pub(super) files: Vec<(u64, &'t str)>,
}

/// Another name for a function: `.alias name, of;`
#[derive(Debug, Clone, Copy)]
pub(super) struct Alias<'t> {
    pub(super) line: u32,
    pub(super) name: &'t str,
    pub(super) of: &'t str,
}

/// A variable in memory.
#[derive(Debug, Clone)]
pub(super) struct Variable<'t> {
    pub(super) line: u32,
    pub(super) name: &'t str,
    pub(super) space: Space,
    pub(super) align: u64,
    /// Bytes; `None` for an array without a size.
    pub(super) size: Option<u64>,
    pub(super) initial: Vec<Initial<'t>>,
    pub(super) linkage: Linkage,
    pub(super) is_managed: bool,
    /// A reference to a texture, a sampler or a surface: `.texref`, `.samplerref`, `.surfref`.
    pub(super) is_reference: bool,
}

/// One initialised element of a variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Initial<'t> {
    pub(super) line: u32,
    pub(super) offset: u64,
    pub(super) width: u32,
    pub(super) value: InitialValue<'t>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum InitialValue<'t> {
    Bits(u64),
    /// The address of a variable or function; of an element that is a byte, the one `shift` bits
    /// up.
    Address {
        name: &'t str,
        addend: u64,
        shift: u32,
    },
}

impl<'t> InitialValue<'t> {
    /// The variable or function whose address it is.
    pub(super) fn name(self) -> Option<&'t str> {
        match self {
            InitialValue::Bits(_) => None,
            InitialValue::Address { name, .. } => Some(name),
        }
    }
}

/// A formal parameter or return value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter<'t> {
    pub(super) line: u32,
    pub(super) name: &'t str,
    pub(super) ty: Type,
    pub(super) size: u32,
    pub(super) align: u32,
    /// Declared `.reg`, not `.param`.
    pub(super) is_register: bool,
}

/// A kernel or device function.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub(super) line: u32,
    pub(super) name: &'t str,
    pub(super) is_kernel: bool,
    pub(super) linkage: Linkage,
    pub(super) returns: Vec<Parameter<'t>>,
    pub(super) params: Vec<Parameter<'t>>,
    pub(super) max_threads: Option<u32>,
    pub(super) required: Option<[u32; 3]>,
    /// `None` for a declaration.
    pub(super) body: Option<Vec<Statement<'t>>>,
}

/// A line of a body.
#[derive(Debug)]
pub(super) struct Statement<'t> {
    pub(super) line: u32,
    pub(super) kind: StatementKind<'t>,
}

#[derive(Debug)]
pub(super) enum StatementKind<'t> {
    Open,
    Close,
    /// One register, or `name0` to `name(count-1)`.
    Registers {
        ty: Type,
        name: &'t str,
        count: Option<u32>,
        /// Elements of each: 1, or those of a vector.
        lanes: u8,
    },
    Variable(Box<Variable<'t>>),
    /// `.loc`: the place in the source, from here on.
    Location {
        file: u64,
        line: u32,
    },
    Label(&'t str),
    /// `.branchtargets`: what `brx.idx` chooses from.
    Targets {
        name: &'t str,
        labels: Vec<&'t str>,
    },
    /// `.callprototype` and `.calltargets`: a name, which an indirect call gives.
    Prototype(&'t str),
    Instruction(Box<Instruction<'t>>),
}

#[derive(Debug)]
pub(super) struct Instruction<'t> {
    pub(super) guard: Option<Guard<'t>>,
    pub(super) opcode: &'t str,
    pub(super) modifiers: Vec<&'t str>,
    pub(super) operands: Vec<Operand<'t>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Guard<'t> {
    pub(super) negated: bool,
    pub(super) predicate: &'t str,
}

/// A number in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Literal {
    /// An integer, two's complement.
    Int(u64),
    /// Single precision, as bits.
    F32(u32),
    /// Double precision, as bits.
    F64(u64),
}

impl Literal {
    /// The number as the bits of a type.
    pub(super) fn bits(self, ty: Type) -> u64 {
        let bits = match (self, ty) {
            (Literal::Int(value), Type::F32) => u64::from((value as i64 as f32).to_bits()),
            (Literal::Int(value), Type::F64) => (value as i64 as f64).to_bits(),
            (Literal::Int(value), _) => value,
            (Literal::F32(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Literal::F32(bits), _) => u64::from(bits),
            (Literal::F64(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Literal::F64(bits), _) => bits,
        };
        match ty.bits() {
            64.. => bits,
            width => bits & ((1 << width) - 1),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Operand<'t> {
    /// A register, label, variable or function.
    Name(&'t str),
    /// A name with a component, such as `%tid.x`.
    Member(&'t str, &'t str),
    Number(Literal),
    /// `!p`
    Not(&'t str),
    /// `-r` or `-r.b0`: a register, or a part of one, with the opposite sign
    Negated(Box<Operand<'t>>),
    /// `name+offset`, of a variable or a register
    Offset(&'t str, i64),
    /// `[base+offset]`
    Address {
        base: Option<&'t str>,
        offset: i64,
    },
    /// `[base+offset, {a, b}]`: of a texture, a surface or a tensor
    Coordinates {
        base: Option<&'t str>,
        offset: i64,
        at: Vec<Operand<'t>>,
        /// Whether a sampler of its own stands before the coordinates.
        has_sampler: bool,
    },
    /// `{a, b}`
    Vector(Vec<Operand<'t>>),
    /// `(a, b)`
    Group(Vec<Operand<'t>>),
    /// `a|b`
    Pair(Box<[Operand<'t>; 2]>),
    /// `_`
    Ignore,
}
