// Integer and float arithmetic whose results are defined to the last bit, and branches that part
// the threads.

extern "C" __global__ void integers(unsigned n, const int* a, const int* b, int* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    int x = a[i];
    int y = b[i];
    int* mine = out + 12 * i;
    mine[0] = x + y;
    mine[1] = x - y;
    mine[2] = x * y;
    mine[3] = __mulhi(x, y);
    mine[4] = y == 0 || (x == (int)0x80000000 && y == -1) ? 0 : x / y;
    mine[5] = y == 0 || (x == (int)0x80000000 && y == -1) ? 0 : x % y;
    mine[6] = x >> (y & 31);
    mine[7] = (int)((unsigned)x << (y & 31));
    mine[8] = (int)((unsigned)x >> (y & 31));
    mine[9] = min(x, y) ^ max(x, y);
    mine[10] = __popc(x) + 100 * __clz(y);
    mine[11] = (int)(((long long)x * y) >> 7);
}

extern "C" __global__ void floats(unsigned n, const float* a, const float* b, float* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float x = a[i];
    float y = b[i];
    float* mine = out + 10 * i;
    mine[0] = __fadd_rn(x, y);
    mine[1] = __fsub_rn(x, y);
    mine[2] = __fmul_rn(x, y);
    mine[3] = __fdiv_rn(x, y);
    mine[4] = __fsqrt_rn(fabsf(x));
    mine[5] = fmaf(x, y, x);
    mine[6] = fminf(x, y);
    mine[7] = fmaxf(x, y);
    mine[8] = x < y ? 1.0f : x == y ? 2.0f : x > y ? 3.0f : 4.0f;
    mine[9] = floorf(x) + truncf(y);
}

extern "C" __global__ void conversions(unsigned n, const float* in, int* whole, unsigned* counts, double* twice)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    whole[i] = __float2int_rz(in[i]);
    counts[i] = __float2uint_rn(in[i]);
    twice[i] = (double)in[i] * 2.0 + (double)(short)whole[i];
}

// How many steps each number needs to reach 1: threads of a warp leave the loop at different times.
extern "C" __global__ void collatz(unsigned n, const unsigned* in, unsigned* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    unsigned long long value = in[i];
    unsigned steps = 0;
    while (value > 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        steps += 1;
    }
    out[i] = steps;
}
