// A transformer block: rows of numbers, one row for each token.
//
// The arithmetic is spelled out, each operation rounded on its own, so that a processor that does
// the same operations in the same order gets the same bits. Therefore the exponential function is
// here, too.

// Threads of a block that sums; a power of two.
static const unsigned BLOCK = 128;

// The most tokens that attention has room for.
static const unsigned MOST_TOKENS = 128;

// e to the power of x, nearly: 2 to a whole power, times a polynomial for the rest.
static __device__ float exponential(float x)
{
    x = fminf(fmaxf(x, -80.0f), 80.0f);
    int whole = __float2int_rn(__fmul_rn(x, 1.44269504f));
    float rest = __fsub_rn(x, __fmul_rn((float)whole, 0.693147181f));
    float sum = 0.00833333333f;
    sum = __fadd_rn(__fmul_rn(sum, rest), 0.0416666667f);
    sum = __fadd_rn(__fmul_rn(sum, rest), 0.166666667f);
    sum = __fadd_rn(__fmul_rn(sum, rest), 0.5f);
    sum = __fadd_rn(__fmul_rn(sum, rest), 1.0f);
    sum = __fadd_rn(__fmul_rn(sum, rest), 1.0f);
    return __fmul_rn(sum, __int_as_float((whole + 127) << 23));
}

// The sum of a block's numbers, for all its threads.
static __device__ float sum_of_block(float number)
{
    __shared__ float numbers[BLOCK];
    // The sum before this one was read.
    __syncthreads();
    numbers[threadIdx.x] = number;
    __syncthreads();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            numbers[threadIdx.x] = __fadd_rn(numbers[threadIdx.x], numbers[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return numbers[0];
}

// Each row with mean 0 and variance 1, times `scale`, plus `shift`. A block for each row, of one
// dimension and `BLOCK` threads.
extern "C" __global__ void layer_norm(unsigned rows, unsigned width, const float* scale, const float* shift,
                                      const float* from, float* to)
{
    if (blockIdx.x >= rows) {
        return;
    }
    from += (size_t)blockIdx.x * width;
    to += (size_t)blockIdx.x * width;
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < width; i += BLOCK) {
        sum = __fadd_rn(sum, from[i]);
    }
    float mean = __fdiv_rn(sum_of_block(sum), (float)width);
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < width; i += BLOCK) {
        float distance = __fsub_rn(from[i], mean);
        squares = __fadd_rn(squares, __fmul_rn(distance, distance));
    }
    float variance = __fdiv_rn(sum_of_block(squares), (float)width);
    float deviation = __fsqrt_rn(__fadd_rn(variance, 1e-5f));
    for (unsigned i = threadIdx.x; i < width; i += BLOCK) {
        float normal = __fdiv_rn(__fsub_rn(from[i], mean), deviation);
        to[i] = __fadd_rn(__fmul_rn(normal, scale[i]), shift[i]);
    }
}

// Each row of `depth` numbers times the matrix `weights` of `depth` rows and `columns` columns,
// plus `bias`. A thread for each result, along x for columns and along y for rows.
extern "C" __global__ void linear(unsigned rows, unsigned columns, unsigned depth, const float* weights,
                                  const float* bias, const float* from, float* to)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= columns || row >= rows) {
        return;
    }
    from += (size_t)row * depth;
    float sum = bias[column];
    for (unsigned i = 0; i < depth; i += 1) {
        sum = __fadd_rn(sum, __fmul_rn(from[i], weights[(size_t)i * columns + column]));
    }
    to[(size_t)row * columns + column] = sum;
}

// Attention of each token to itself and those before. A row has `size` numbers for each head, one
// head after the other. A block of one dimension for each token (x) and head (y).
extern "C" __global__ void attention(unsigned tokens, unsigned heads, unsigned size, float scale, const float* queries,
                                     const float* keys, const float* values, float* to)
{
    // How much each token counts: first how well its key fits, then e to that power.
    __shared__ float shares[MOST_TOKENS];
    unsigned token = blockIdx.x, head = blockIdx.y;
    if (token >= tokens || head >= heads) {
        return;
    }
    size_t width = (size_t)heads * size, start = (size_t)head * size;
    const float* query = queries + token * width + start;
    for (unsigned other = threadIdx.x; other <= token; other += blockDim.x) {
        const float* key = keys + other * width + start;
        float sum = 0.0f;
        for (unsigned i = 0; i < size; i += 1) {
            sum = __fadd_rn(sum, __fmul_rn(query[i], key[i]));
        }
        shares[other] = __fmul_rn(sum, scale);
    }
    __syncthreads();
    float largest = shares[0];
    for (unsigned other = 1; other <= token; other += 1) {
        largest = fmaxf(largest, shares[other]);
    }
    __syncthreads();
    for (unsigned other = threadIdx.x; other <= token; other += blockDim.x) {
        shares[other] = exponential(__fsub_rn(shares[other], largest));
    }
    __syncthreads();
    float total = 0.0f;
    for (unsigned other = 0; other <= token; other += 1) {
        total = __fadd_rn(total, shares[other]);
    }
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
        float sum = 0.0f;
        for (unsigned other = 0; other <= token; other += 1) {
            sum = __fadd_rn(sum, __fmul_rn(shares[other], values[other * width + start + i]));
        }
        to[token * width + start + i] = __fdiv_rn(sum, total);
    }
}

// Gaussian error linear units, with the logistic function for the tangent: x / (1 + exp(-2 u)),
// where u = sqrt(2 / pi) * (x + 0.044715 x^3).
extern "C" __global__ void gelu(unsigned n, float* numbers)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = numbers[i];
        float cube = __fmul_rn(__fmul_rn(x, x), x);
        float u = __fmul_rn(0.797884561f, __fadd_rn(x, __fmul_rn(0.044715f, cube)));
        numbers[i] = __fdiv_rn(x, __fadd_rn(1.0f, exponential(__fmul_rn(-2.0f, u))));
    }
}

// Adds numbers to others.
extern "C" __global__ void add(unsigned n, const float* from, float* to)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        to[i] = __fadd_rn(to[i], from[i]);
    }
}
