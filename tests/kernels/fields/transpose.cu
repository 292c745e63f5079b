// A transposed matrix, through a tile in shared memory whose rows are one element longer than
// needed, so that its columns lie in different banks. Blocks have 32 by 8 threads.

static const unsigned TILE = 32;
static const unsigned ROWS = 8;

extern "C" __global__ void transpose(unsigned width, unsigned height, const float* in, float* out)
{
    __shared__ float tile[TILE][TILE + 1];
    unsigned x = blockIdx.x * TILE + threadIdx.x;
    unsigned y = blockIdx.y * TILE + threadIdx.y;
    for (unsigned i = 0; i < TILE; i += ROWS) {
        if (x < width && y + i < height) {
            tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (unsigned i = 0; i < TILE; i += ROWS) {
        if (x < height && y + i < width) {
            out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
        }
    }
}
