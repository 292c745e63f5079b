// A step of a small model that generates token after token: the row of one token goes through all
// layers. What it has to remember of a token goes into a cache, at the position of the token.
//
// The arithmetic is spelled out, each operation rounded on its own, so that a processor that does
// the same operations in the same order gets the same bits. All kernels run in one block of one
// dimension.

// The most positions that attention has room for.
static const unsigned MOST_POSITIONS = 256;

// Position and cache of a step, for the kernels that read them from memory.
struct Step {
    unsigned long long position;
    float* cache;
};

// The row divided by the root of the mean of its squares. Each thread sums up the whole row, which
// is short.
extern "C" __global__ void normalise(unsigned width, const float* row, float* to)
{
    float squares = 0.0f;
    for (unsigned i = 0; i < width; i += 1) {
        squares = __fadd_rn(squares, __fmul_rn(row[i], row[i]));
    }
    float mean = __fdiv_rn(squares, (float)width);
    float root = __fsqrt_rn(__fadd_rn(mean, 1e-5f));
    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        to[i] = __fdiv_rn(row[i], root);
    }
}

// A row of `depth` numbers times the matrix `weights` of `depth` rows and `columns` columns: one
// number of the product.
static __device__ float product(unsigned depth, unsigned columns, const float* weights, const float* row,
                                unsigned column)
{
    float sum = 0.0f;
    for (unsigned i = 0; i < depth; i += 1) {
        sum = __fadd_rn(sum, __fmul_rn(row[i], weights[(size_t)i * columns + column]));
    }
    return sum;
}

// Query, key and value of the token, one after the other.
extern "C" __global__ void project(unsigned width, const float* weights, const float* row, float* to)
{
    for (unsigned column = threadIdx.x; column < 3 * width; column += blockDim.x) {
        to[column] = product(width, 3 * width, weights, row, column);
    }
}

// The part of the cache that belongs to a layer: for each position a key and a value.
static __device__ float* part_of(float* cache, unsigned width, unsigned capacity, unsigned layer)
{
    return cache + (size_t)layer * capacity * 2 * width;
}

static __device__ void store_at(unsigned width, unsigned position, const float* projected, float* part)
{
    for (unsigned i = threadIdx.x; i < 2 * width; i += blockDim.x) {
        part[(size_t)position * 2 * width + i] = projected[width + i];
    }
}

// Puts key and value of the token into the cache.
extern "C" __global__ void store(unsigned width, unsigned capacity, unsigned layer, unsigned position,
                                 const float* projected, float* cache)
{
    store_at(width, position, projected, part_of(cache, width, capacity, layer));
}

// The same, with position and cache from memory.
extern "C" __global__ void store_from(unsigned width, unsigned capacity, unsigned layer, const Step* step,
                                      const float* projected)
{
    store_at(width, (unsigned)step->position, projected, part_of(step->cache, width, capacity, layer));
}

// The mean of all values up to the position. The square of how well its key fits the query says how
// much a value counts.
static __device__ void attend_to(unsigned width, unsigned position, const float* query, const float* part,
                                 float* to)
{
    __shared__ float shares[MOST_POSITIONS];
    for (unsigned other = threadIdx.x; other <= position; other += blockDim.x) {
        const float* key = part + (size_t)other * 2 * width;
        float fit = 0.0f;
        for (unsigned i = 0; i < width; i += 1) {
            fit = __fadd_rn(fit, __fmul_rn(query[i], key[i]));
        }
        shares[other] = __fadd_rn(__fmul_rn(fit, fit), 1e-3f);
    }
    __syncthreads();
    float total = 0.0f;
    for (unsigned other = 0; other <= position; other += 1) {
        total = __fadd_rn(total, shares[other]);
    }
    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        float sum = 0.0f;
        for (unsigned other = 0; other <= position; other += 1) {
            float value = part[(size_t)other * 2 * width + width + i];
            sum = __fadd_rn(sum, __fmul_rn(shares[other], value));
        }
        to[i] = __fdiv_rn(sum, total);
    }
}

// Attention of the token to itself and all before it.
extern "C" __global__ void attend(unsigned width, unsigned capacity, unsigned layer, unsigned position,
                                  const float* query, const float* cache, float* to)
{
    attend_to(width, position, query, part_of((float*)cache, width, capacity, layer), to);
}

// The same, with position and cache from memory.
extern "C" __global__ void attend_from(unsigned width, unsigned capacity, unsigned layer, const Step* step,
                                       const float* query, float* to)
{
    attend_to(width, (unsigned)step->position, query, part_of(step->cache, width, capacity, layer), to);
}

// Adds the product of what attention found with a matrix to the row.
extern "C" __global__ void mix(unsigned width, const float* weights, const float* attended, float* row)
{
    for (unsigned column = threadIdx.x; column < width; column += blockDim.x) {
        row[column] = __fadd_rn(row[column], product(width, width, weights, attended, column));
    }
}

// x / (1 + |x|) of each number.
extern "C" __global__ void activate(unsigned width, float* row)
{
    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        row[i] = __fdiv_rn(row[i], __fadd_rn(1.0f, fabsf(row[i])));
    }
}
