//! The table of opcodes: the function that lowers each of them. Every other opcode is unsupported.

use super::body::Body;
use super::reader::{InstructionReader, Lowered};
use super::{
    atomic, cluster, control, convert, data, float, hint, integer, matrix, mbarrier, memory, stack,
    tensormap, texture, transfer, video, wgmma, wmma,
};
use crate::ptx::syntax::Instruction;
use crate::ptx::types::Type;

impl<'t> Body<'_, 't> {
    /// Lowers an instruction, whatever its guard.
    pub(super) fn opcode(&mut self, instruction: &Instruction<'t>) -> Lowered<()> {
        let mut reader = InstructionReader::new(instruction);
        self.takes_special = matches!(instruction.opcode, "mov" | "cvt");
        let reader = &mut reader;
        match instruction.opcode {
            "add" | "sub" | "mul" | "div" | "min" | "max" | "abs" | "neg" | "mad" | "fma" => {
                if instruction.modifiers.iter().filter_map(|name| Type::parse(name)).any(Type::is_float) {
                    float::arithmetic(self, reader)
                } else {
                    integer::arithmetic(self, reader)
                }
            }
            "rem" | "sad" | "mul24" | "mad24" | "dp4a" | "dp2a" => integer::arithmetic(self, reader),
            "addc" | "subc" | "madc" => integer::carrying(self, reader),
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "prmt" | "popc"
            | "clz" | "bfind" | "brev" | "bfe" | "bfi" | "fns" | "bmsk" | "szext" => {
                integer::bits(self, reader)
            }
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" | "copysign" | "testp" => {
                float::function(self, reader)
            }
            "mov" => data::mov(self, reader),
            "setp" => data::setp(self, reader),
            "set" => data::set(self, reader),
            "selp" | "slct" => data::select(self, reader),
            "cvt" => convert::cvt(self, reader),
            "cvta" => convert::cvta(self, reader),
            "isspacep" => convert::isspacep(self, reader),
            "st" | "red" if instruction.modifiers.first() == Some(&"async") => transfer::send(self, reader),
            "tensormap" => tensormap::instruction(self, reader),
            "tex" => texture::sample(self, reader),
            "tld4" => texture::gather(self, reader),
            "txq" | "suq" => texture::query(self, reader),
            "suld" | "sust" => texture::surface(self, reader),
            "sured" => texture::reduce(self, reader),
            "ld" | "ldu" => memory::load(self, reader),
            "st" => memory::store(self, reader),
            "atom" | "red" => atomic::atomic(self, reader),
            "createpolicy" => hint::create_policy(self, reader),
            "membar" | "fence" => hint::fence(self, reader),
            "prefetch" | "prefetchu" => hint::prefetch(self, reader),
            "discard" | "applypriority" => hint::line(self, reader),
            "alloca" => stack::allocate(self, reader),
            "stacksave" => stack::save(self, reader),
            "stackrestore" => stack::restore(self, reader),
            "mapa" => cluster::map(self, reader),
            "getctarank" => cluster::rank(self, reader),
            "griddepcontrol" => control::grid_dependencies(self, reader),
            "bra" => control::branch(self, reader),
            "brx" => control::switch(self, reader),
            "call" => control::call(self, reader),
            "ret" => control::ret(self, reader),
            "exit" => control::exit(self, reader),
            "trap" | "brkpt" => control::trap(self, reader),
            "nanosleep" => control::nanosleep(self, reader),
            "pmevent" => control::pmevent(reader),
            "setmaxnreg" => control::set_registers(reader),
            "bar" | "barrier" => control::barrier(self, reader),
            "shfl" => control::shuffle(self, reader),
            "vote" => control::vote(self, reader),
            "match" => control::matching(self, reader),
            "redux" => control::reduce(self, reader),
            "activemask" => control::activemask(self, reader),
            "elect" => control::elect(self, reader),
            "ldmatrix" | "stmatrix" | "movmatrix" => matrix::transfer(self, reader),
            "mma" => matrix::product(self, reader),
            "cp" => transfer::copy(self, reader),
            "mbarrier" => mbarrier::instruction(self, reader),
            "wgmma" => wgmma::instruction(self, reader),
            "wmma" => wmma::instruction(self, reader),
            _ => video::instruction(self, reader),
        }
    }
}
