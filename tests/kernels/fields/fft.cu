// Fourier transforms of 256 complex numbers each, by the radix-2 algorithm in shared memory. A
// block of 128 threads transforms one; `direction` is -1 for the transform and 1 for its inverse,
// without the factor 1/256.

static const unsigned POINTS = 256;

extern "C" __global__ void fft_256(float direction, const float2* in, float2* out)
{
    __shared__ float2 points[POINTS];
    in += (size_t)blockIdx.x * POINTS;
    out += (size_t)blockIdx.x * POINTS;
    for (unsigned i = threadIdx.x; i < POINTS; i += POINTS / 2) {
        points[__brev(i) >> 24] = in[i];
    }
    for (unsigned half = 1; half < POINTS; half *= 2) {
        __syncthreads();
        unsigned k = threadIdx.x % half;
        unsigned low = threadIdx.x / half * 2 * half + k;
        float sine, cosine;
        sincosf(direction * 3.14159265f * (float)k / (float)half, &sine, &cosine);
        float2 a = points[low], b = points[low + half];
        float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        points[low] = make_float2(a.x + turned.x, a.y + turned.y);
        points[low + half] = make_float2(a.x - turned.x, a.y - turned.y);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < POINTS; i += POINTS / 2) {
        out[i] = points[i];
    }
}
