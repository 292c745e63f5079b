// Element-wise kernels: the plainest use of parameters, guards and global memory.

struct Line {
    float slope;
    double offset;
    int steps[3];
};

extern "C" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void heat(const float *from, float *to, int width, int height, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    float c = from[i];
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) { to[i] = c; return; }
    to[i] = c + rate * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width] - 4.0f * c);
}

extern "C" __global__ void struct_parameter(Line line, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = line.slope * i + line.offset + line.steps[i % 3];
}

extern "C" __global__ void vectors(const float4 *in, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = in[i];
    out[i] = make_float4(v.w, v.z * 2.0f, v.y - 1.0f, v.x);
}

extern "C" __global__ void local_array(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bins[16];
    for (int k = 0; k < 16; ++k) bins[k] = k * i;
    for (int k = 0; k < 32; ++k) bins[in[(i + k) % n] & 15] += k;
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum = sum * 3 + bins[(in[i] + k) & 15];
    out[i] = sum;
}

extern "C" __global__ void busy(unsigned *out, unsigned rounds) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = i;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) v = v * 1664525u + (v >> 7) + k;
    out[i] = v;
}
