// The device side of a conditional graph node.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

extern "C" __global__ void count_down(int *left, unsigned long long handle) {
    int now = *left - 1;
    *left = now;
    cudaGraphSetConditional(handle, now > 0);
}
