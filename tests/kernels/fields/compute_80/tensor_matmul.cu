// A product of matrices by tensor cores: 16-bit floats (as their bits), summed in 32 bits. `a` has
// `m` rows of `k`, `b` has `k` rows of `n`; `m`, `n` and `k` are multiples of 32, 32 and 16. A
// block of four warps makes 32 by 32 elements, each warp 16 by 16 of them.

static const unsigned TILE = 32;
static const unsigned DEPTH = 16;
// Rows in shared memory are longer by 16 bytes, so that those which are read at once lie in
// different banks.
static const unsigned PAD = 8;

static __device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

static __device__ void load_four(unsigned* matrices, const void* row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row)));
}

static __device__ void load_two_transposed(unsigned* matrices, const void* row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(matrices[0]), "=r"(matrices[1])
                 : "r"(shared_address(row)));
}

static __device__ void multiply_add(float* sum, const unsigned* a, const unsigned* b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(128) tensor_matmul(unsigned m, unsigned n, unsigned k, const unsigned short* a,
    const unsigned short* b, float* c)
{
    __shared__ __align__(16) unsigned short a_tile[TILE][DEPTH + PAD];
    __shared__ __align__(16) unsigned short b_tile[DEPTH][TILE + PAD];
    unsigned row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
    float sums[2][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    for (unsigned start = 0; start < k; start += DEPTH) {
        // Four elements a thread of each tile.
        unsigned a_row = threadIdx.x / 4, a_column = threadIdx.x % 4 * 4;
        *(uint2*)&a_tile[a_row][a_column] = *(const uint2*)&a[(row + a_row) * k + start + a_column];
        unsigned b_row = threadIdx.x / 8, b_column = threadIdx.x % 8 * 4;
        *(uint2*)&b_tile[b_row][b_column] = *(const uint2*)&b[(start + b_row) * n + column + b_column];
        __syncthreads();
        unsigned left[4];
        load_four(left, &a_tile[warp_row + lane % 16][lane / 16 * 8]);
        for (unsigned i = 0; i < 2; i++) {
            unsigned right[2];
            load_two_transposed(right, &b_tile[lane % 16][warp_column + i * 8]);
            multiply_add(sums[i], left, right);
        }
        __syncthreads();
    }
    for (unsigned i = 0; i < 2; i++) {
        unsigned at = (row + warp_row + lane / 4) * n + column + warp_column + i * 8 + lane % 4 * 2;
        *(float2*)&c[at] = make_float2(sums[i][0], sums[i][1]);
        *(float2*)&c[at + 8 * n] = make_float2(sums[i][2], sums[i][3]);
    }
}
