// Sums of numbers of several ranks, in the order of the ranks, each addition rounded on its own.

static __device__ float add(float a, float b)
{
    return __fadd_rn(a, b);
}

static __device__ double add(double a, double b)
{
    return __dadd_rn(a, b);
}

static __device__ unsigned add(unsigned a, unsigned b)
{
    return a + b;
}

static __device__ unsigned long long add(unsigned long long a, unsigned long long b)
{
    return a + b;
}

// `parts` has `count` numbers of each rank, one rank after the other.
template <typename T>
static __device__ void sum(unsigned long long count, unsigned ranks, const T* parts, T* to)
{
    unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
    for (unsigned long long i = first; i < count; i += step) {
        T total = parts[i];
        for (unsigned rank = 1; rank < ranks; ++rank) {
            total = add(total, parts[rank * count + i]);
        }
        to[i] = total;
    }
}

extern "C" __global__ void sum_f32(unsigned long long count, unsigned ranks, const float* parts, float* to)
{
    sum(count, ranks, parts, to);
}

extern "C" __global__ void sum_f64(unsigned long long count, unsigned ranks, const double* parts, double* to)
{
    sum(count, ranks, parts, to);
}

extern "C" __global__ void sum_u32(unsigned long long count, unsigned ranks, const unsigned* parts, unsigned* to)
{
    sum(count, ranks, parts, to);
}

extern "C" __global__ void sum_u64(unsigned long long count, unsigned ranks, const unsigned long long* parts, unsigned long long* to)
{
    sum(count, ranks, parts, to);
}
