//! Calls of functions of the image and of functions that the driver provides.

use std::io::Write;

use super::access::ThreadMemory;
use super::print::{self, Source};
use super::thread::Thread;
use super::thread_fault::{Checked, ThreadFault};
use super::worker::{BlockContext, Worker};
use crate::ptx::code::{Cell, Intrinsic, Space, Target};
use crate::ptx::error::FaultKind;
use crate::ptx::windows::{FUNCTION_STEP, FUNCTION_WINDOW};

/// Longer strings are cut off.
const MOST_TEXT: usize = 4096;

impl Worker<'_> {
    /// Executes the call at `site` of the running function.
    pub(super) fn call(
        &mut self,
        thread: &mut Thread,
        context: &mut BlockContext<'_>,
        site: u32,
    ) -> Checked<()> {
        let grid = self.grid;
        let function = grid.program.functions.get(thread.function as usize);
        let Some(call) = function.and_then(|function| function.calls.get(site as usize)) else {
            return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, "no such call"));
        };
        let bases = (thread.register_base, thread.local_base);
        let callee = match call.target {
            Target::Function(callee) => callee,
            Target::Indirect(register) => {
                let slot = thread.register_base + register as usize;
                let address = thread.registers.get(slot).copied().unwrap_or(0);
                self.callee(address)?
            }
            Target::Intrinsic(intrinsic) => {
                let args: Vec<u64> = call.args.iter().map(|&arg| thread.value(arg, bases)).collect();
                let result = self.intrinsic(intrinsic, &args, thread, context)?;
                if let Some(&location) = call.returns.first() {
                    thread.put_value(location, result);
                }
                return Ok(());
            }
        };
        thread.call(grid, site, callee)
    }

    /// The function behind an address.
    fn callee(&self, address: u64) -> Checked<u32> {
        let offset = address.wrapping_sub(FUNCTION_WINDOW);
        let index = (offset / FUNCTION_STEP).wrapping_sub(1);
        if offset.is_multiple_of(FUNCTION_STEP) && index < self.grid.program.functions.len() as u64 {
            return Ok(index as u32);
        }
        let detail = format!("{address:#x} is called, which is not a function");
        Err(ThreadFault::new(FaultKind::InvalidProgramCounter, detail))
    }

    fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        args: &[u64],
        thread: &mut Thread,
        context: &mut BlockContext<'_>,
    ) -> Checked<u64> {
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let mut reader = Reader {
            pc: thread.pc,
            thread_memory: ThreadMemory {
                unchecked_shared: context.shared.len(),
                shared: context.shared,
                local: &mut thread.local,
                local_base: thread.local_base,
                params: self.grid.launch.params,
            },
            worker: self,
            arguments: arg(1),
        };
        match intrinsic {
            Intrinsic::SetConditional => {
                let memory = reader.worker.grid.memory;
                memory
                    .set_conditional(arg(0), arg(1) as u32)
                    .map_err(|fault| ThreadFault::new(fault.kind, fault.message))?;
                Ok(0)
            }
            Intrinsic::Allocate => Ok(reader.worker.grid.heap().allocate(arg(0))),
            Intrinsic::Free => {
                let freed = reader.worker.grid.heap().free(arg(0));
                freed.map(|()| 0).map_err(|fault| ThreadFault::new(fault.kind, fault.message))
            }
            // As CUDA's documentation says.
            Intrinsic::Print if arg(0) == 0 => Ok(u64::from(u32::MAX)),
            Intrinsic::Print => {
                let format = reader.text(arg(0))?;
                let (text, count) = print::format(&format, &mut reader)?;
                // A program without standard output prints nothing.
                let _ = std::io::stdout().write_all(&text);
                Ok(count)
            }
            Intrinsic::AssertFail => {
                let mut text =
                    |index| reader.text(arg(index)).map(|text| String::from_utf8_lossy(&text).into_owned());
                let (message, file, function) = (text(0)?, text(1)?, text(3)?);
                let detail = format!("assertion `{message}` at {file}:{} in `{function}`", arg(2) as u32);
                Err(ThreadFault::new(FaultKind::Assert, detail))
            }
        }
    }
}

/// Reads the arguments and strings of a formatted print.
struct Reader<'a, 'w, 'g> {
    worker: &'w mut Worker<'g>,
    thread_memory: ThreadMemory<'a>,
    pc: usize,
    /// Address of the next argument.
    arguments: u64,
}

impl Reader<'_, '_, '_> {
    fn read(&mut self, address: u64, cell: Cell) -> Checked<u64> {
        let bytes = cell.bytes();
        let location =
            self.worker.find(&self.thread_memory, self.pc, Space::Generic, address, bytes, bytes, false)?;
        Ok(self.thread_memory.load(location, cell, 0))
    }
}

impl Source for Reader<'_, '_, '_> {
    fn argument(&mut self, cell: Cell) -> Checked<u64> {
        let bytes = u64::from(cell.bytes());
        let address = self.arguments.wrapping_add(bytes - 1) & !(bytes - 1);
        self.arguments = address.wrapping_add(u64::from(cell.bytes()));
        self.read(address, cell)
    }

    fn text(&mut self, address: u64) -> Checked<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < MOST_TEXT {
            let byte = self.read(address.wrapping_add(text.len() as u64), Cell::U8)? as u8;
            if byte == 0 {
                break;
            }
            text.push(byte);
        }
        Ok(text)
    }
}
