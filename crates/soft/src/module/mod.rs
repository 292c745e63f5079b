//! Modules and libraries: PTX images loaded into a context or for all of them, their kernels,
//! functions and variables.

pub(crate) mod image;

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::context::Context;
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE, INVALID_PTX, NOT_FOUND};
use crate::memory::copy::{Copy3, Promised};
use crate::memory::{self, Allocation, Origin, Request};
use crate::ptx::{Image, Kernel};
use crate::stream;

/// The attributes of a kernel that can be set.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Dynamic shared memory allowed, in bytes.
    pub(crate) dynamic_shared: AtomicI32,
    pub(crate) carveout: AtomicI32,
    pub(crate) non_portable_cluster: AtomicBool,
    pub(crate) cluster_policy: AtomicI32,
}

/// The parts that a kernel and its functions in all contexts share.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) kernel: Kernel,
    pub(crate) name: CString,
    pub(crate) ptx_version: i32,
    pub(crate) settings: Settings,
}

/// A function: a kernel in a context.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) handle: u64,
    pub(crate) code: Arc<Code>,
    pub(crate) module: Arc<Module>,
    /// The kernel of a library, if it comes from one.
    pub(crate) kernel: u64,
}

/// A kernel of a library.
#[derive(Debug)]
pub(crate) struct LibraryKernel {
    pub(crate) code: Arc<Code>,
    /// The library's handle.
    pub(crate) library: u64,
    index: usize,
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
    /// The library it was made for, and that one's kernels.
    pub(crate) library: u64,
    kernels: Vec<u64>,
    functions: Mutex<HashMap<usize, Arc<Function>>>,
    alive: AtomicBool,
}

/// A library.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) handle: u64,
    /// The image with its code; where it was refused, the code that every use of the library
    /// answers.
    content: Answer<(Image, Vec<Arc<Code>>)>,
    pub(crate) kernels: Vec<u64>,
    modules: Mutex<HashMap<u64, Arc<Module>>>,
}

static MODULES: Mutex<Slots<Arc<Module>>> = Mutex::new(Slots::new(Kind::Module));
static FUNCTIONS: Mutex<Slots<Arc<Function>>> = Mutex::new(Slots::new(Kind::Function));
static LIBRARIES: Mutex<Slots<Arc<Library>>> = Mutex::new(Slots::new(Kind::Library));
static KERNELS: Mutex<Slots<Arc<LibraryKernel>>> = Mutex::new(Slots::new(Kind::Kernel));

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn codes(image: &Image) -> Vec<Arc<Code>> {
    let (major, minor) = image.version();
    let ptx_version = i32::try_from(major.saturating_mul(10).saturating_add(minor)).unwrap_or(0);
    let code = |kernel: &Kernel| {
        let free = (48 << 10) - i32::try_from(kernel.static_shared_bytes()).unwrap_or(i32::MAX);
        let settings = Settings {
            dynamic_shared: AtomicI32::new(free.max(0)),
            carveout: AtomicI32::new(-1),
            non_portable_cluster: AtomicBool::new(false),
            cluster_policy: AtomicI32::new(0),
        };
        let name = CString::new(kernel.name()).unwrap_or_default();
        Arc::new(Code { kernel: kernel.clone(), name, ptx_version, settings })
    };
    image.kernels().map(code).collect()
}

/// Memory for a variable of an image: zeros, as PTX has it for all that an initialiser does not
/// name.
fn allocate_variable(size: u64, align: u64, managed: bool, context: &Context) -> Answer<Arc<Allocation>> {
    if align > memory::ALIGNMENT {
        return Err(INVALID_PTX);
    }
    let variable = memory::allocate(Request {
        origin: if managed { Origin::Managed } else { Origin::Variable },
        len: usize::try_from(size.max(1)).unwrap_or(usize::MAX),
        device: context.device,
        context: context.handle,
        pool: 0,
        flags: 0,
    })?;
    variable.clear();
    Ok(variable)
}

/// Loads an image into a context.
fn instantiate(
    image: &Image,
    codes: &[Arc<Code>],
    context: &Arc<Context>,
    library: Option<&Library>,
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
            Copy3::linear(*address, bytes.as_ptr().expose_provenance() as u64, bytes.len(), Promised::No)
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
            library: library.map_or(0, |library| library.handle),
            kernels: library.map_or_else(Vec::new, |library| library.kernels.clone()),
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

/// `cuLibraryLoadData`, which succeeds for images that are refused, too: the first use says so.
pub(crate) fn load_library(image: Answer<Image>) -> u64 {
    let content = image.map(|image| {
        let codes = codes(&image);
        (image, codes)
    });
    lock(&LIBRARIES).insert_with(|handle| {
        let mut table = lock(&KERNELS);
        let kernel = |(index, code): (usize, &Arc<Code>)| {
            table.insert(Arc::new(LibraryKernel { code: Arc::clone(code), library: handle, index }))
        };
        let codes = content.as_ref().map_or(&[][..], |(_, codes)| codes);
        let kernels = codes.iter().enumerate().map(kernel).collect();
        Arc::new(Library { handle, content, kernels, modules: Mutex::default() })
    })
}

pub(crate) fn module(handle: u64) -> Answer<Arc<Module>> {
    lock(&MODULES).get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn function(handle: u64) -> Answer<Arc<Function>> {
    lock(&FUNCTIONS).get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn library(handle: u64) -> Answer<Arc<Library>> {
    lock(&LIBRARIES).get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn kernel(handle: u64) -> Answer<Arc<LibraryKernel>> {
    lock(&KERNELS).get(handle).cloned().ok_or(INVALID_HANDLE)
}

/// How many libraries and how many modules (those of libraries not counted) are loaded.
pub(crate) fn counts() -> (usize, usize) {
    let modules = lock(&MODULES).values().filter(|module| module.library == 0).count();
    (lock(&LIBRARIES).len(), modules)
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

/// `cuLibraryUnload`.
pub(crate) fn unload_library(handle: u64) -> Answer {
    let library = lock(&LIBRARIES).remove(handle).ok_or(INVALID_HANDLE)?;
    for kernel in &library.kernels {
        lock(&KERNELS).remove(*kernel);
    }
    for module in lock(&library.modules).values() {
        module.end();
    }
    Ok(())
}

/// Ends the modules of a context.
pub(crate) fn forget_context(context: &Context) {
    let gone: Vec<_> =
        lock(&MODULES).values().filter(|module| module.context.id == context.id).cloned().collect();
    for module in gone {
        if let Ok(library) = library(module.library) {
            lock(&library.modules).remove(&context.id);
        }
        module.end();
    }
}

impl Module {
    fn end(&self) {
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
    fn function_at(self: &Arc<Self>, index: usize) -> Answer<Arc<Function>> {
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

    /// All functions, in the order of the image.
    pub(crate) fn functions(self: &Arc<Self>) -> impl Iterator<Item = Answer<Arc<Function>>> {
        (0..self.codes.len()).map(|index| self.function_at(index))
    }

    pub(crate) fn has_kernel(&self, name: &str) -> bool {
        self.codes.iter().any(|code| code.kernel.name() == name)
    }

    pub(crate) fn variable(&self, name: &str) -> Answer<Arc<Allocation>> {
        // Variables that functions declare have no name here.
        let index =
            self.names.iter().position(|known| !known.is_empty() && known == name).ok_or(NOT_FOUND)?;
        self.variables.get(index).cloned().ok_or(NOT_FOUND)
    }
}

impl Library {
    /// Whether its code and variables are somewhere yet.
    pub(crate) fn is_in_a_context(&self) -> bool {
        !lock(&self.modules).is_empty()
    }

    /// The image and its code, or why there is none.
    fn content(&self) -> Answer<(&Image, &[Arc<Code>])> {
        self.content.as_ref().map(|(image, codes)| (image, &codes[..])).map_err(|code| *code)
    }

    /// The kernels, in the order of the image.
    pub(crate) fn kernels(&self) -> Answer<&[u64]> {
        self.content().map(|_| &self.kernels[..])
    }

    pub(crate) fn kernel(&self, name: &str) -> Answer<u64> {
        let index = self.content()?.1.iter().position(|code| code.kernel.name() == name).ok_or(NOT_FOUND)?;
        self.kernels.get(index).copied().ok_or(NOT_FOUND)
    }

    /// The library's module in a context, loaded at its first use there. That waits for the
    /// context's work (seen).
    pub(crate) fn module(&self, context: &Arc<Context>) -> Answer<Arc<Module>> {
        let known = lock(&self.modules).get(&context.id).cloned();
        if let Some(module) = known {
            return Ok(module);
        }
        let (image, codes) = self.content()?;
        stream::synchronize_context(context)?;
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.id) {
            return Ok(Arc::clone(module));
        }
        let module = instantiate(image, codes, context, Some(self))?;
        modules.insert(context.id, Arc::clone(&module));
        Ok(module)
    }
}

impl LibraryKernel {
    /// The kernel's function in a context.
    pub(crate) fn function(&self, context: &Arc<Context>) -> Answer<Arc<Function>> {
        library(self.library)?.module(context)?.function_at(self.index)
    }
}
