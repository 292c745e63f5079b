//! Live objects of each kind, as arguments of calls.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use cuda_soft::control::ExternalSemaphore;
use cuda_sys::*;

/// Short, since it is read often.
const PTX: &str = ".version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .entry add(.param .u64 out, .param .u32 value)
{
    ret;
}
";
const OK: CUresult = CUresult::CUDA_SUCCESS;
/// Bytes of each allocation.
pub(crate) const BYTES: usize = 4096;

/// The objects, and memory that outlives all calls.
pub(crate) struct LiveObjects {
    pub(crate) driver: &'static Driver,
    pub(crate) context: CUcontext,
    pub(crate) stream: CUstream,
    /// Handles by the name of their type.
    pub(crate) handles: HashMap<&'static str, Vec<u64>>,
    pub(crate) device: u64,
    pub(crate) pinned: u64,
    pub(crate) condition: u64,
    /// Texts that calls may want, with their ends.
    pub(crate) texts: Vec<&'static CStr>,
    /// Pointers to zeros, as the arguments of a kernel.
    pub(crate) pointers: &'static [u64],
    pub(crate) semaphore: Option<ExternalSemaphore>,
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

macro_rules! made {
    ($out:ident: $ty:ty = $call:expr) => {{
        let mut $out: $ty = null_mut();
        assert_eq!($call, OK);
        $out
    }};
}

fn semaphore_fd(semaphore: &ExternalSemaphore) -> i32 {
    OwnedFd::into_raw_fd(semaphore.descriptor().unwrap())
}

impl LiveObjects {
    pub(crate) unsafe fn new(driver: &'static Driver) -> Self {
        unsafe {
            let context = made!(context: CUcontext = driver.cuDevicePrimaryCtxRetain(&mut context, 0));
            assert_eq!(driver.cuCtxSetCurrent(context), OK);
            let zeros: &'static [u64] = Box::leak(vec![0; 1024].into_boxed_slice());
            let pointers = Box::leak(vec![address(zeros.as_ptr()); 32].into_boxed_slice());
            let (mut device, mut pinned) = (0, null_mut());
            assert_eq!(driver.cuMemAlloc(&mut device, BYTES), OK);
            assert_eq!(driver.cuMemHostAlloc(&mut pinned, BYTES, 0), OK);
            let stream = made!(stream: CUstream = driver.cuStreamCreate(&mut stream, 1));
            let semaphore = ExternalSemaphore::new().unwrap();
            let mut objects = Self {
                driver,
                context,
                stream,
                handles: HashMap::new(),
                device,
                pinned: address(pinned),
                condition: 0,
                texts: vec![c"", c"add", c"counter", c"/dev/null", leak(PTX)],
                pointers,
                semaphore: Some(semaphore),
            };
            objects.fill();
            objects
        }
    }

    /// No objects at all.
    pub(crate) fn none(driver: &'static Driver) -> Self {
        Self {
            driver,
            context: null_mut(),
            stream: null_mut(),
            handles: HashMap::new(),
            device: 1 << 48,
            pinned: 0,
            condition: 0,
            texts: vec![c"", c"add"],
            pointers: &[0; 32],
            semaphore: None,
        }
    }

    fn keep<T>(&mut self, kind: &'static str, handle: *mut T) {
        self.handles.entry(kind).or_default().push(handle.addr() as u64);
    }

    unsafe fn fill(&mut self) {
        let driver = self.driver;
        unsafe {
            let image: *const c_void = self.texts.last().unwrap().as_ptr().cast();
            let module = made!(module: CUmodule = driver.cuModuleLoadData(&mut module, image));
            let none = null_mut();
            let library = made!(library: CUlibrary = driver.cuLibraryLoadData(&mut library, image, none, null_mut(), 0, null_mut(), null_mut(), 0));
            let kernel =
                made!(kernel: CUkernel = driver.cuLibraryGetKernel(&mut kernel, library, c"add".as_ptr()));
            let function = made!(function: CUfunction = driver.cuModuleGetFunction(&mut function, module, c"add".as_ptr()));
            let event = made!(event: CUevent = driver.cuEventCreate(&mut event, 0));
            let mut props = CUmemPoolProps {
                allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                ..Default::default()
            };
            props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
            let pool = made!(pool: CUmemoryPool = driver.cuMemPoolCreate(&mut pool, &props));
            let object = made!(object: CUuserObject = driver.cuUserObjectCreate(&mut object, null_mut(), Some(nothing), 1, 1));
            let link = made!(link: CUlinkState = driver.cuLinkCreate(0, null_mut(), null_mut(), &mut link));
            let desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
                type_: CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
                handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 {
                    fd: self.semaphore.as_ref().map_or(-1, semaphore_fd),
                },
                ..Default::default()
            };
            let semaphore = made!(semaphore: CUexternalSemaphore = driver.cuImportExternalSemaphore(&mut semaphore, &desc));
            let raw = CUDA_ARRAY3D_DESCRIPTOR {
                Width: 16,
                Height: 4,
                Format: CUarray_format::CU_AD_FORMAT_FLOAT,
                NumChannels: 1,
                Flags: CUDA_ARRAY3D_SURFACE_LDST,
                ..Default::default()
            };
            let array = made!(array: CUarray = driver.cuArray3DCreate(&mut array, &raw));
            self.keep("CUarray", array);
            self.keep("CUcontext", self.context);
            self.keep("CUstream", self.stream);
            self.keep("CUmodule", module);
            self.keep("CUlibrary", library);
            self.keep("CUkernel", kernel);
            self.keep("CUfunction", function);
            self.keep("CUfunction", kernel.cast::<CUfunc_st>());
            self.keep("CUevent", event);
            self.keep("CUmemoryPool", pool);
            self.keep("CUuserObject", object);
            self.keep("CUlinkState", link);
            self.keep("CUexternalSemaphore", semaphore);
            self.graphs(function, event);
        }
    }

    /// A graph with a node of most types, an executable of it, and a graph to embed.
    unsafe fn graphs(&mut self, function: CUfunction, event: CUevent) {
        let driver = self.driver;
        unsafe {
            let graph = made!(graph: CUgraph = driver.cuGraphCreate(&mut graph, 0));
            let inner = made!(inner: CUgraph = driver.cuGraphCreate(&mut inner, 0));
            assert_eq!(
                driver.cuGraphConditionalHandleCreate(&mut self.condition, graph, self.context, 0, 1),
                Ok(OK)
            );
            let all = self.node_params(function, event, inner);
            for (add, params) in all {
                let mut params = params;
                let node = made!(node: CUgraphNode = driver.cuGraphAddNode(&mut node, graph, null(), 0, &mut params));
                self.keep("CUgraphNode", node);
                assert!(!node.is_null(), "{add}");
            }
            let exec = made!(exec: CUgraphExec = driver.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
            self.keep("CUgraph", graph);
            self.keep("CUgraph", inner);
            self.keep("CUgraphExec", exec);
        }
    }

    /// Valid parameters of nodes.
    pub(crate) fn node_params(
        &self,
        function: CUfunction,
        event: CUevent,
        inner: CUgraph,
    ) -> Vec<(&'static str, CUgraphNodeParams)> {
        type T = CUgraphNodeType;
        let params = |type_| CUgraphNodeParams { type_, ..Default::default() };
        let mut kernel = params(T::CU_GRAPH_NODE_TYPE_KERNEL);
        kernel.__bindgen_anon_1.kernel = crate::templates::kernel_v3(self, function);
        let mut fill = params(T::CU_GRAPH_NODE_TYPE_MEMSET);
        fill.__bindgen_anon_1.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
            dst: self.device,
            elementSize: 4,
            width: 4,
            height: 1,
            ctx: self.context,
            ..Default::default()
        };
        let mut copy = params(T::CU_GRAPH_NODE_TYPE_MEMCPY);
        copy.__bindgen_anon_1.memcpy = CUDA_MEMCPY_NODE_PARAMS {
            copyCtx: self.context,
            copyParams: crate::templates::copy(self),
            ..Default::default()
        };
        let mut host = params(T::CU_GRAPH_NODE_TYPE_HOST);
        host.__bindgen_anon_1.host = CUDA_HOST_NODE_PARAMS_v2 { fn_: Some(nothing), ..Default::default() };
        let mut child = params(T::CU_GRAPH_NODE_TYPE_GRAPH);
        child.__bindgen_anon_1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: inner, ..Default::default() };
        let mut record = params(T::CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        record.__bindgen_anon_1.eventRecord.event = event;
        let mut wait = params(T::CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        wait.__bindgen_anon_1.eventWait.event = event;
        let mut alloc = params(T::CU_GRAPH_NODE_TYPE_MEM_ALLOC);
        alloc.__bindgen_anon_1.alloc.bytesize = 64;
        alloc.__bindgen_anon_1.alloc.poolProps = crate::templates::pool_props();
        let mut conditional = params(T::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        conditional.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle: self.condition,
            size: 1,
            ctx: self.context,
            ..Default::default()
        };
        vec![
            ("empty", params(T::CU_GRAPH_NODE_TYPE_EMPTY)),
            ("kernel", kernel),
            ("fill", fill),
            ("copy", copy),
            ("host", host),
            ("child", child),
            ("record", record),
            ("wait", wait),
            ("alloc", alloc),
            ("conditional", conditional),
        ]
    }

    pub(crate) fn handle(&self, kind: &str) -> u64 {
        self.handles.get(kind).and_then(|all| all.first()).copied().unwrap_or(0)
    }
}

pub(crate) fn leak(text: &str) -> &'static CStr {
    Box::leak(CString::new(text).unwrap().into_boxed_c_str())
}

/// A host function, or a destructor.
pub(crate) unsafe extern "C" fn nothing(_: *mut c_void) {}
