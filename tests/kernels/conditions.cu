// Kernels that decide how a graph goes on.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

// Sets the condition to a value given.
extern "C" __global__ void set_to(unsigned value, unsigned long long handle)
{
    cudaGraphSetConditional(handle, value);
}

// Sets the condition to a number in memory.
extern "C" __global__ void set_from(const unsigned* value, unsigned long long handle)
{
    cudaGraphSetConditional(handle, *value);
}

// Counts down; the condition is what is left.
extern "C" __global__ void count_down(unsigned* counter, unsigned long long handle)
{
    *counter -= 1;
    cudaGraphSetConditional(handle, *counter);
}

// Counts up to a limit; the condition is whether that is reached.
extern "C" __global__ void count_up(unsigned* counter, unsigned limit, unsigned long long handle)
{
    *counter += 1;
    cudaGraphSetConditional(handle, *counter < limit);
}
