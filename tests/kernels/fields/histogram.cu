// How often each byte occurs. Blocks count in shared memory and add what they counted to `bins`,
// which must start as zeros.

extern "C" __global__ void histogram(unsigned words, const uchar4* in, unsigned* bins)
{
    __shared__ unsigned counts[256];
    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        counts[bin] = 0;
    }
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        uchar4 four = in[i];
        atomicAdd(&counts[four.x], 1);
        atomicAdd(&counts[four.y], 1);
        atomicAdd(&counts[four.z], 1);
        atomicAdd(&counts[four.w], 1);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        if (counts[bin] > 0) {
            atomicAdd(&bins[bin], counts[bin]);
        }
    }
}
