//! Libraries: images for all contexts, loaded into each at its first use, or with eager loading
//! into all that there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::kernel_code::{Code, codes};
use super::loaded::{self, Function, Module, instantiate};
use super::loading;
use crate::device::context::{self, Context};
use crate::driver::handle::{Kind, Slots};
use crate::driver::result_code::{Answer, INVALID_HANDLE, NOT_FOUND};
use crate::ptx::Image;
use crate::stream;
use crate::sync::lock;

/// A library.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) handle: u64,
    /// The image and its code, or the result code that every use of the library returns.
    content: Answer<(Image, Vec<Arc<Code>>)>,
    pub(crate) kernels: Vec<u64>,
    modules: Mutex<HashMap<u64, Arc<Module>>>,
}

/// A kernel of a library.
#[derive(Debug)]
pub(crate) struct LibraryKernel {
    pub(crate) code: Arc<Code>,
    /// The library's handle.
    pub(crate) library: u64,
    index: usize,
}

static LIBRARIES: Mutex<Slots<Arc<Library>>> = Mutex::new(Slots::new(Kind::Library));
static KERNELS: Mutex<Slots<Arc<LibraryKernel>>> = Mutex::new(Slots::new(Kind::Kernel));

/// `cuLibraryLoadData`. It succeeds even for a rejected image; the first use fails.
pub(crate) fn load_library(image: Answer<Image>) -> u64 {
    let content = image.map(|image| {
        let codes = codes(&image);
        (image, codes)
    });
    let handle = lock(&LIBRARIES).insert_with(|handle| {
        let mut table = lock(&KERNELS);
        let kernel = |(index, code): (usize, &Arc<Code>)| {
            table.insert(Arc::new(LibraryKernel { code: Arc::clone(code), library: handle, index }))
        };
        let codes = content.as_ref().map_or(&[][..], |(_, codes)| codes);
        let kernels = codes.iter().enumerate().map(kernel).collect();
        Arc::new(Library { handle, content, kernels, modules: Mutex::default() })
    });
    if loading::is_eager() {
        load_into_all_contexts(handle);
    }
    handle
}

/// What fails here fails again at the first use, which returns the code.
fn load_into_all_contexts(handle: u64) {
    let Ok(library) = library(handle) else { return };
    for context in context::all() {
        let _ = library.load_into(&context);
    }
}

pub(crate) fn library(handle: u64) -> Answer<Arc<Library>> {
    lock(&LIBRARIES).get(handle).cloned().ok_or(INVALID_HANDLE)
}

pub(crate) fn kernel(handle: u64) -> Answer<Arc<LibraryKernel>> {
    lock(&KERNELS).get(handle).cloned().ok_or(INVALID_HANDLE)
}

/// The numbers of libraries and of modules; the modules of libraries do not count.
pub(crate) fn counts() -> (usize, usize) {
    (lock(&LIBRARIES).len(), loaded::count())
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

/// Removes the modules of a context that has ended.
pub(crate) fn forget_context(context: &Context) {
    for module in loaded::of_context(context) {
        if let Ok(library) = library(module.library) {
            lock(&library.modules).remove(&context.id);
        }
        module.end();
    }
}

impl Library {
    /// Whether it has been loaded into a context.
    pub(crate) fn is_in_a_context(&self) -> bool {
        !lock(&self.modules).is_empty()
    }

    /// The image and its code.
    fn content(&self) -> Answer<(&Image, &[Arc<Code>])> {
        self.content.as_ref().map(|(image, codes)| (image, &codes[..])).map_err(|code| *code)
    }

    /// The kernels in the order of the image.
    pub(crate) fn kernels(&self) -> Answer<&[u64]> {
        self.content().map(|_| &self.kernels[..])
    }

    pub(crate) fn kernel(&self, name: &str) -> Answer<u64> {
        let index = self.content()?.1.iter().position(|code| code.kernel.name() == name).ok_or(NOT_FOUND)?;
        self.kernels.get(index).copied().ok_or(NOT_FOUND)
    }

    /// The library's module in a context, loaded at the first use. Loading waits for the work of
    /// the context, as observed on a GPU.
    pub(crate) fn module(&self, context: &Arc<Context>) -> Answer<Arc<Module>> {
        let known = lock(&self.modules).get(&context.id).cloned();
        if let Some(module) = known {
            return Ok(module);
        }
        self.content()?;
        stream::synchronize_context(context)?;
        self.load_into(context)
    }

    /// The library's module in a context, loaded without a wait.
    fn load_into(&self, context: &Arc<Context>) -> Answer<Arc<Module>> {
        let (image, codes) = self.content()?;
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.id) {
            return Ok(Arc::clone(module));
        }
        let module = instantiate(image, codes, context, Some((self.handle, &self.kernels)))?;
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
