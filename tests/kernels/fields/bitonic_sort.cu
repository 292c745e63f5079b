// A bitonic sort of each block's part, in dynamic shared memory of eight bytes for each element. A
// block sorts `2 * blockDim.x` elements, which must be a power of two.

extern "C" __global__ void bitonic_sort(const long long* in, long long* out)
{
    extern __shared__ long long part[];
    unsigned length = 2 * blockDim.x;
    in += (size_t)blockIdx.x * length;
    out += (size_t)blockIdx.x * length;
    part[threadIdx.x] = in[threadIdx.x];
    part[threadIdx.x + blockDim.x] = in[threadIdx.x + blockDim.x];
    for (unsigned size = 2; size <= length; size <<= 1) {
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            bool is_rising = (threadIdx.x & (size / 2)) == 0;
            long long a = part[low], b = part[low + stride];
            if ((a > b) == is_rising) {
                part[low] = b;
                part[low + stride] = a;
            }
        }
    }
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x];
    out[threadIdx.x + blockDim.x] = part[threadIdx.x + blockDim.x];
}
