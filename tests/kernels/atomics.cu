// Every thread does one of each atomic operation; `words` and `wide` start with what the test
// writes there.

extern "C" __global__ void atomics_word(unsigned n, unsigned* words)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    atomicAdd(&words[0], i);
    atomicSub(&words[1], 1u);
    atomicMin(&words[2], i + 5);
    atomicMax(&words[3], i);
    atomicAnd(&words[4], ~(1u << (i % 31)));
    atomicOr(&words[5], 1u << (i % 32));
    atomicXor(&words[6], i);
    atomicInc(&words[7], 9u);
    atomicDec(&words[8], 9u);
    // Only one thread finds the value it expects.
    if (atomicCAS(&words[9], 0u, i + 1) == 0u) {
        atomicAdd(&words[10], 1u);
    }
    atomicMin((int*)&words[11], -(int)i);
}

extern "C" __global__ void atomics_wide(unsigned n, unsigned long long* wide, float* single, double* twice)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    atomicAdd(&wide[0], 0x100000001ull);
    atomicMax(&wide[1], (unsigned long long)i << 33);
    atomicExch(&wide[2], 7ull);
    atomicCAS(&wide[3], 0ull, 11ull);
    atomicAdd(single, 0.5f);
    atomicAdd(twice, 0.25);
}
