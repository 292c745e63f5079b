// Attention, as FlashAttention computes it: keys and values come in tiles through shared memory,
// and each query keeps its largest score, its sum of powers and its weighted sum of values, which
// it scales down when a larger score comes. A thread has a query, and a block has 64 of them.

static const unsigned WIDTH = 32;
static const unsigned TILE = 32;
static const unsigned QUERIES = 64;

// NVRTC has no such name of its own.
#define INFINITY __int_as_float(0x7f800000)

extern "C" __global__ void __launch_bounds__(64) attention(unsigned length, float scale, unsigned is_causal,
    const float* queries, const float* keys, const float* values, float* out)
{
    __shared__ float key_tile[TILE][WIDTH];
    __shared__ float value_tile[TILE][WIDTH];
    size_t head = (size_t)blockIdx.y * length * WIDTH;
    queries += head;
    keys += head;
    values += head;
    out += head;
    unsigned own = blockIdx.x * QUERIES + threadIdx.x;
    float query[WIDTH], sum[WIDTH];
    for (unsigned i = 0; i < WIDTH; i++) {
        query[i] = own < length ? queries[own * WIDTH + i] * scale : 0.0f;
        sum[i] = 0.0f;
    }
    float largest = -INFINITY, powers = 0.0f;
    for (unsigned start = 0; start < length; start += TILE) {
        for (unsigned i = threadIdx.x; i < TILE * WIDTH; i += QUERIES) {
            bool is_inside = start + i / WIDTH < length;
            key_tile[i / WIDTH][i % WIDTH] = is_inside ? keys[start * WIDTH + i] : 0.0f;
            value_tile[i / WIDTH][i % WIDTH] = is_inside ? values[start * WIDTH + i] : 0.0f;
        }
        __syncthreads();
        float scores[TILE];
        float tile_largest = -INFINITY;
        for (unsigned i = 0; i < TILE; i++) {
            float score = 0.0f;
            for (unsigned j = 0; j < WIDTH; j++) {
                score += query[j] * key_tile[i][j];
            }
            bool is_hidden = start + i >= length || (is_causal && start + i > own);
            scores[i] = is_hidden ? -INFINITY : score;
            tile_largest = fmaxf(tile_largest, scores[i]);
        }
        float now = fmaxf(largest, tile_largest);
        if (now > -INFINITY) {
            float shrink = __expf(largest - now);
            powers *= shrink;
            for (unsigned j = 0; j < WIDTH; j++) {
                sum[j] *= shrink;
            }
            for (unsigned i = 0; i < TILE; i++) {
                float power = __expf(scores[i] - now);
                powers += power;
                for (unsigned j = 0; j < WIDTH; j++) {
                    sum[j] += power * value_tile[i][j];
                }
            }
            largest = now;
        }
        __syncthreads();
    }
    if (own < length) {
        for (unsigned i = 0; i < WIDTH; i++) {
            out[own * WIDTH + i] = sum[i] / powers;
        }
    }
}
