// The memory spaces besides global and shared, and the special registers.

__constant__ unsigned squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
__device__ unsigned total = 40;

extern "C" __global__ void constant_table(unsigned n, const unsigned* index, unsigned* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = squares[index[i] & 7];
    }
}

// A variable of the image: it keeps its value from launch to launch.
extern "C" __global__ void device_variable(unsigned amount, unsigned* out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        total += amount;
        *out = total;
    }
}

// An array indexed at run time lives in local memory.
extern "C" __global__ void local_array(unsigned n, const unsigned* in, unsigned* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    unsigned digits[10];
    for (unsigned k = 0; k < 10; k++) {
        digits[k] = 0;
    }
    for (unsigned rest = in[i]; rest != 0; rest /= 10) {
        digits[rest % 10] += 1;
    }
    unsigned most = 0;
    for (unsigned k = 1; k < 10; k++) {
        if (digits[k] > digits[most]) {
            most = k;
        }
    }
    out[i] = most;
}

// Six words a thread, threads in the order of the grid.
extern "C" __global__ void positions(unsigned* out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned* mine = out + 6 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
    mine[0] = blockIdx.x;
    mine[1] = blockIdx.y;
    mine[2] = blockIdx.z;
    mine[3] = threadIdx.x;
    mine[4] = threadIdx.y;
    mine[5] = threadIdx.z;
}
