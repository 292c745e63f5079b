// Kernels that keep a stream busy for a given time, so that a test can act while work is in flight.

static __device__ unsigned long long nanoseconds_now()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ void wait(unsigned long long nanoseconds)
{
    unsigned long long start = nanoseconds_now();
    while (nanoseconds_now() - start < nanoseconds) {
    }
}

extern "C" __global__ void spin(unsigned long long nanoseconds)
{
    wait(nanoseconds);
}

// Copies `n` words only after the time has passed: memory that is freed too early is seen in `out`.
extern "C" __global__ void spin_copy(unsigned long long nanoseconds, unsigned n, const unsigned* in, unsigned* out)
{
    wait(nanoseconds);
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = in[i];
    }
}

// Spins until `*flag` is not 0, at most the given time, and writes 1 to `*seen` if it saw the flag.
extern "C" __global__ void spin_until(unsigned long long nanoseconds, const volatile unsigned* flag, unsigned* seen)
{
    unsigned long long start = nanoseconds_now();
    unsigned found = 0;
    while (found == 0 && nanoseconds_now() - start < nanoseconds) {
        found = *flag != 0;
    }
    *seen = found;
}
