// What clang needs of CUDA's headers for `basics.cu`. Its library of functions is CUDA's.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
struct Index {
    unsigned x, y;
};
#define threadIdx (Index{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y()})
#define blockIdx (Index{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y()})
#define blockDim (Index{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y()})
#define gridDim (Index{(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y()})
#define atomicAdd(at, by) __nvvm_atom_add_gen_i((at), (by))
#define __shfl_down_sync(mask, value, distance) __nvvm_shfl_sync_down_i32((mask), (value), (distance), 31)
#define fmaxf(a, b) __nv_fmaxf((a), (b))
#define expf(x) __nv_expf(x)
extern "C" __device__ float __nv_fmaxf(float, float);
extern "C" __device__ float __nv_expf(float);
