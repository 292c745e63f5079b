//! Modules: images loaded into a context.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::kernel_code::{Code, codes};
use crate::device::context::Context;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_PTX, NOT_FOUND};
use crate::memory::copy::Copy3;
use crate::memory::memory_kind::Accept;
use crate::memory::{self, Allocation, Origin, Request};
use crate::ptx::Image;
use crate::sync::lock;

/// A function: a kernel in a context.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) handle: u64,
    pub(crate) code: Arc<Code>,
    pub(crate) module: Arc<Module>,
    /// The handle of the library's kernel, or 0.
    pub(crate) kernel: u64,
}

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) handle: u64,
    pub(crate) context: Arc<Context>,
    pub(crate) variables: Vec<Arc<Allocation>>,
    /// The device address of each variable.
    pub(crate) addresses: Vec<u64>,
    pub(crate) codes: Vec<Arc<Code>>,
    names: Vec<String>,
    /// The handle of the library that it belongs to, or 0, and the library's kernels.
    pub(crate) library: u64,
    kernels: Vec<u64>,
    functions: Mutex<HashMap<usize, Arc<Function>>>,
    alive: AtomicBool,
}

static MODULES: Mutex<Slots<Arc<Module>>> = Mutex::new(Slots::new(Kind::Module));
static FUNCTIONS: Mutex<Slots<Arc<Function>>> = Mutex::new(Slots::new(Kind::Function));

/// Allocates memory for a variable, filled with zeros.
fn allocate_variable(size: u64, align: u64, managed: bool, context: &Context) -> Answer<Arc<Allocation>> {
    if align > memory::ALIGNMENT {
        return Err(INVALID_PTX);
    }
    let variable = memory::allocate(Request {
        origin: if managed { Origin::ManagedVariable } else { Origin::Variable },
        len: usize::try_from(size.max(1)).unwrap_or(usize::MAX),
        device: context.device,
        context: context.handle,
        pool: 0,
        flags: 0,
    })?;
    variable.clear();
    Ok(variable)
}

/// Loads an image into a context. `library` holds the handles of the library and of its kernels.
pub(super) fn instantiate(
    image: &Image,
    codes: &[Arc<Code>],
    context: &Arc<Context>,
    library: Option<(u64, &[u64])>,
) -> Answer<Arc<Module>> {
    let mut variables = Vec::with_capacity(image.globals().len());
    for global in image.globals() {
        match allocate_variable(global.size, global.align, global.is_managed, context) {
            Ok(allocation) => variables.push(allocation),
            Err(code) => {
                variables.iter().for_each(|done| memory::remove(done, "a failed load"));
                return Err(code);
            }
        }
    }
    let addresses: Vec<u64> = variables.iter().map(|variable| variable.start).collect();
    for (global, address) in image.globals().iter().zip(&addresses) {
        let bytes = image.initial_bytes(global, &addresses);
        if let Ok(copy) =
            Copy3::linear(*address, bytes.as_ptr().expose_provenance() as u64, bytes.len(), Accept::Allocated)
        {
            // SAFETY: the source is given as staged bytes.
            let _ = unsafe { copy.run(Some(&bytes)) };
        }
    }
    let handle = lock(&MODULES).insert_with(|handle| {
        Arc::new(Module {
            handle,
            context: Arc::clone(context),
            variables,
            addresses,
            codes: codes.to_vec(),
            names: image.globals().iter().map(|global| global.name.clone()).collect(),
            library: library.map_or(0, |(library, _)| library),
            kernels: library.map_or_else(Vec::new, |(_, kernels)| kernels.to_vec()),
            functions: Mutex::default(),
            alive: AtomicBool::new(true),
        })
    });
    module(handle)
}

/// `cuModuleLoadData`.
pub(crate) fn load_module(image: &Image, context: &Arc<Context>) -> Answer<u64> {
    instantiate(image, &codes(image), context, None).map(|module| module.handle)
}

pub(crate) fn module(handle: u64) -> Answer<Arc<Module>> {
    lock(&MODULES).get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn function(handle: u64) -> Answer<Arc<Function>> {
    lock(&FUNCTIONS).get(handle).cloned().ok_or(INVALID_HANDLE)
}

/// The number of modules; those of libraries do not count.
pub(super) fn count() -> usize {
    lock(&MODULES).values().filter(|module| module.library == 0).count()
}

/// The modules of a context.
pub(super) fn of_context(context: &Context) -> Vec<Arc<Module>> {
    lock(&MODULES).values().filter(|module| module.context.id == context.id).cloned().collect()
}

/// `cuModuleUnload`.
pub(crate) fn unload_module(handle: u64) -> Answer {
    let module = module(handle)?;
    if module.library != 0 {
        return Err(INVALID_HANDLE);
    }
    module.end();
    Ok(())
}

impl Module {
    pub(super) fn end(&self) {
        self.alive.store(false, Ordering::Release);
        lock(&MODULES).remove(self.handle);
        for (_, function) in lock(&self.functions).drain() {
            lock(&FUNCTIONS).remove(function.handle);
        }
        for variable in &self.variables {
            memory::remove(variable, "the unload of the module");
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// The function of the kernel with this index.
    pub(super) fn function_at(self: &Arc<Self>, index: usize) -> Answer<Arc<Function>> {
        let code = self.codes.get(index).ok_or(NOT_FOUND)?;
        let mut functions = lock(&self.functions);
        if let Some(function) = functions.get(&index) {
            return Ok(Arc::clone(function));
        }
        let kernel = self.kernels.get(index).copied().unwrap_or(0);
        let make =
            |handle| Arc::new(Function { handle, code: Arc::clone(code), module: Arc::clone(self), kernel });
        let handle = lock(&FUNCTIONS).insert_with(make);
        let function = function(handle)?;
        functions.insert(index, Arc::clone(&function));
        Ok(function)
    }

    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Answer<Arc<Function>> {
        let index = self.codes.iter().position(|code| code.kernel.name() == name).ok_or(NOT_FOUND)?;
        self.function_at(index)
    }

    /// All functions in the order of the image.
    pub(crate) fn functions(self: &Arc<Self>) -> impl Iterator<Item = Answer<Arc<Function>>> {
        (0..self.codes.len()).map(|index| self.function_at(index))
    }

    pub(crate) fn has_kernel(&self, name: &str) -> bool {
        self.codes.iter().any(|code| code.kernel.name() == name)
    }

    pub(crate) fn variable(&self, name: &str) -> Answer<Arc<Allocation>> {
        // Variables declared inside functions have no name here.
        let index =
            self.names.iter().position(|known| !known.is_empty() && known == name).ok_or(NOT_FOUND)?;
        self.variables.get(index).cloned().ok_or(NOT_FOUND)
    }
}
