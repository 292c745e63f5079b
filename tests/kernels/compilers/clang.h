// What clang needs of CUDA's headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
struct Index { unsigned x; };
#define threadIdx (Index{(unsigned)__nvvm_read_ptx_sreg_tid_x()})
#define atomicAdd(at, by) __nvvm_atom_add_gen_i((int*)(at), (int)(by))
extern "C" __attribute__((device)) int printf(const char*, ...);
