// Variables of an image, and kernels that use them.

extern "C" {

__constant__ float weights[16] = {1.0f, 2.0f, 3.0f};
__device__ unsigned int calls = 5;
__device__ unsigned char odd[3] = {7, 8, 9};
__managed__ unsigned int word = 9;

// Multiplies each element by the weight of its position in a group of 16.
__global__ void weigh(unsigned int n, float *values)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        values[i] *= weights[i % 16];
}

// Counts its threads.
__global__ void count()
{
    atomicAdd(&calls, 1u);
}

}

namespace mine {
__device__ unsigned long long total = 40;
}

// What the other variables hold, added up.
extern "C" __global__ void add_up(unsigned long long *out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *out = mine::total + word + odd[0] + odd[1] + odd[2];
}
