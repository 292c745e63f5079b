// Calls, switches and the compiler's own library code.
#include <cuda_fp16.h>

struct Pair { double a; int b; };

__device__ __noinline__ float polynomial(float x, int degree) {
    float r = 1.0f;
    for (int i = 0; i < degree; ++i) r = r * x + (float)i;
    return r;
}

__device__ __noinline__ Pair swap_scale(Pair p, float by) {
    Pair q;
    q.a = p.b * by;
    q.b = (int)p.a;
    return q;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
typedef int (*Step)(int);
__device__ Step steps[2] = {twice, square};

extern "C" __global__ void calls(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pair p = {in[i] * 3.0, i};
    Pair q = swap_scale(p, in[i]);
    out[i] = polynomial(in[i], i & 7) + (float)q.a + q.b;
}

extern "C" __global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

extern "C" __global__ void indirect(int *out) { out[threadIdx.x] = steps[threadIdx.x & 1](threadIdx.x); }

extern "C" __global__ void switches(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r;
    switch (v) {
        case 0: r = v * 17 + i; break;
        case 1: r = v ^ i; break;
        case 2: r = i / 3; break;
        case 3: r = i % 5; out[i] = 3; break;
        case 4: r = i << 2; break;
        case 5: r = ~i; break;
        case 6: r = i * i * i; break;
        case 7: r = __popc(i) + __clz(i); break;
        case 8: r = __brev(i); break;
        default: r = -1;
    }
    out[i] = r;
}

extern "C" __global__ void doubles(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i];
    double *o = out + i * 10;
    o[0] = sin(x); o[1] = cos(x); o[2] = exp(x * 0.125); o[3] = log(fabs(x) + 0.5); o[4] = pow(fabs(x), 1.75);
    o[5] = sqrt(fabs(x)); o[6] = x / 3.7; o[7] = tan(x); o[8] = atan(x); o[9] = fmod(x, 0.7);
}

extern "C" __global__ void floats(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    float *o = out + i * 12;
    o[0] = sinf(x); o[1] = cosf(x); o[2] = expf(x * 0.125f); o[3] = logf(fabsf(x) + 0.5f); o[4] = powf(fabsf(x), 1.75f);
    o[5] = sqrtf(fabsf(x)); o[6] = x / 3.7f; o[7] = tanhf(x); o[8] = rsqrtf(fabsf(x) + 1.0f); o[9] = __sinf(x);
    o[10] = floorf(x) + ceilf(x) * 2.0f + truncf(x) * 4.0f + rintf(x) * 8.0f; o[11] = __fdividef(x, 1.5f);
}

extern "C" __global__ void integers(const long long *a, const long long *b, long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i];
    long long *o = out + i * 10;
    o[0] = x / y; o[1] = x % y; o[2] = (long long)((unsigned long long)x / (unsigned long long)y);
    o[3] = __mul64hi(x, y); o[4] = (long long)__umul64hi(x, y); o[5] = (int)x / ((int)y | 1);
    o[6] = (short)x * (signed char)y; o[7] = __funnelshift_l((unsigned)x, (unsigned)y, 13);
    o[8] = __byte_perm((unsigned)x, (unsigned)y, 0x5140); o[9] = (x >> 5) + ((unsigned long long)y >> 3) + (x < y) + llabs(x);
}

extern "C" __global__ void halves(const float *in, float *out, unsigned short *bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half h = __float2half(in[i]);
    __half2 pair = __floats2half2_rn(in[i], 2.0f);
    __half2 sum = __hfma2(pair, pair, __float2half2_rn(0.5f));
    bits[i] = __half_as_ushort(h);
    out[i] = __half2float(__hadd(h, __low2half(sum))) + __half2float(__high2half(sum)) + (__hlt(h, __float2half(0.0f)) ? 100.0f : 0.0f);
}

extern "C" __global__ void checked(const int *in, int limit) {
    int v = in[threadIdx.x];
    if (v > limit) __trap();
    if (v < 0) printf("thread %d of %s: %d %5.2f %llu%%\n", threadIdx.x, "checked", v, v * 0.5, 1ull << 40);
}

extern "C" __global__ void asserted(const int *in) {
    if (in[threadIdx.x] != 1) __assertfail("in[threadIdx.x] == 1", "functions.cu", 120, "asserted", 1);
}
