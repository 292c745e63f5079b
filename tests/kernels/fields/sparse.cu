// A sparse matrix in rows (CSR) times a vector: one thread a row, and one warp a row. Columns are
// below the length of the vector, and `starts` has a place more than there are rows.

extern "C" __global__ void sparse_by_thread(unsigned rows, const unsigned* starts, const unsigned* columns, const float* values,
    const float* x, float* y)
{
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (unsigned i = starts[row]; i < starts[row + 1]; i++) {
            sum += values[i] * x[columns[i]];
        }
        y[row] = sum;
    }
}

extern "C" __global__ void sparse_by_warp(unsigned rows, const unsigned* __restrict__ starts, const unsigned* __restrict__ columns,
    const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y)
{
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    unsigned lane = threadIdx.x % warpSize;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (unsigned i = starts[row] + lane; i < starts[row + 1]; i += warpSize) {
        sum = fmaf(values[i], x[columns[i]], sum);
    }
    for (unsigned distance = warpSize / 2; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    }
    if (lane == 0) {
        y[row] = sum;
    }
}
