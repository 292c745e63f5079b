// Arguments of every width, many of them, structs by value.

struct Packed {
    float scale;
    float offset;
    unsigned count;
    unsigned stride;
};

// The compiler puts padding behind `tag` and at the end.
struct Padded {
    unsigned char tag;
    double weight;
    int corner[3];
    unsigned short last;
};

extern "C" __global__ void packed_struct(Packed p, float* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.count) {
        out[i * p.stride] = fmaf((float)i, p.scale, p.offset);
    }
}

extern "C" __global__ void padded_struct(Padded p, double* out)
{
    out[0] = p.tag;
    out[1] = p.weight;
    out[2] = p.corner[0];
    out[3] = p.corner[1];
    out[4] = p.corner[2];
    out[5] = p.last;
}

extern "C" __global__ void widths(unsigned char a, signed char b, unsigned short c, short d, unsigned e, int f,
                                  unsigned long long g, long long h, float i, double j, double* out)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = e;
    out[5] = f;
    out[6] = (double)g;
    out[7] = (double)h;
    out[8] = i;
    out[9] = j;
}

extern "C" __global__ void many(unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned a4, unsigned a5, unsigned a6,
                                unsigned a7, unsigned a8, unsigned a9, unsigned long long b0, unsigned long long b1,
                                unsigned long long b2, unsigned long long b3, float c0, float c1, float c2,
                                unsigned char d0, unsigned short d1, unsigned long long* out)
{
    out[0] = a0 + 2 * a1 + 3 * a2 + 4 * a3 + 5 * a4 + 6 * a5 + 7 * a6 + 8 * a7 + 9 * a8 + 10 * a9;
    out[1] = b0 ^ (b1 << 1) ^ (b2 << 2) ^ (b3 << 3);
    out[2] = (unsigned long long)(c0 + c1 * 10.0f + c2 * 100.0f);
    out[3] = d0 + 256ull * d1;
}
