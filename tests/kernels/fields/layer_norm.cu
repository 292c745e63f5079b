// Layer normalisation of rows, with Welford's mean and variance: one warp a row, several a block.
// The row's elements are read as vectors of four.

struct Moments {
    float count;
    float mean;
    float squares;
};

static __device__ Moments together(Moments a, Moments b)
{
    Moments both;
    both.count = a.count + b.count;
    if (both.count == 0.0f) {
        return a;
    }
    float distance = b.mean - a.mean;
    float share = b.count / both.count;
    both.mean = a.mean + distance * share;
    both.squares = a.squares + b.squares + distance * distance * a.count * share;
    return both;
}

static __device__ Moments with(Moments a, float value)
{
    a.count += 1.0f;
    float distance = value - a.mean;
    a.mean += distance / a.count;
    a.squares += distance * (value - a.mean);
    return a;
}

extern "C" __global__ void layer_norm(unsigned rows, unsigned fours, float epsilon, const float4* in, const float4* weight,
    const float4* bias, float4* out)
{
    unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) {
        return;
    }
    in += (size_t)row * fours;
    out += (size_t)row * fours;
    Moments moments = {0.0f, 0.0f, 0.0f};
    for (unsigned i = threadIdx.x; i < fours; i += 32) {
        float4 four = in[i];
        moments = with(with(with(with(moments, four.x), four.y), four.z), four.w);
    }
    for (int mask = 16; mask > 0; mask >>= 1) {
        Moments other;
        other.count = __shfl_xor_sync(0xffffffff, moments.count, mask);
        other.mean = __shfl_xor_sync(0xffffffff, moments.mean, mask);
        other.squares = __shfl_xor_sync(0xffffffff, moments.squares, mask);
        moments = together(moments, other);
    }
    float scale = rsqrtf(moments.squares / moments.count + epsilon);
    float mean = moments.mean;
    for (unsigned i = threadIdx.x; i < fours; i += 32) {
        float4 four = in[i], factor = __ldg(&weight[i]), offset = __ldg(&bias[i]);
        four.x = (four.x - mean) * scale * factor.x + offset.x;
        four.y = (four.y - mean) * scale * factor.y + offset.y;
        four.z = (four.z - mean) * scale * factor.z + offset.z;
        four.w = (four.w - mean) * scale * factor.w + offset.w;
        out[i] = four;
    }
}
