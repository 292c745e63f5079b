// Textures and surfaces by their objects. Each thread writes one element of `out`, whose rows have
// `width` elements.

typedef unsigned long long Texture;
typedef unsigned long long Surface;

__device__ int x_of() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ int y_of() { return blockIdx.y * blockDim.y + threadIdx.y; }

// An image resampled at `origin + step * index`.
extern "C" __global__ void resample(Texture image, float* out, int width, int height, float2 origin,
                                    float2 step) {
    int x = x_of(), y = y_of();
    if (x >= width || y >= height) return;
    out[y * width + x] = tex2D<float>(image, origin.x + step.x * x, origin.y + step.y * y);
}

// The mean of 3 by 3 texels, through a surface.
extern "C" __global__ void box_filter(Surface from, Surface to, int width, int height) {
    int x = x_of(), y = y_of();
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i)
            sum += surf2Dread<float>(from, (x + i) * 4, y + j, cudaBoundaryModeClamp);
    surf2Dwrite(sum / 9, to, x * 4, y, cudaBoundaryModeTrap);
}

// A table of three dimensions at points with four numbers each.
extern "C" __global__ void look_up(Texture table, const float4* points, float* out, int count) {
    int x = x_of();
    if (x < count) out[x] = tex3D<float>(table, points[x].x, points[x].y, points[x].z);
}

// One coordinate, of singles and of integers.
extern "C" __global__ void line(Texture texels, const float* at, float* out, int count) {
    int x = x_of();
    if (x < count) out[x] = tex1D<float>(texels, at[x]);
}
extern "C" __global__ void fetch(Texture texels, const int* at, int* out, int count) {
    int x = x_of();
    if (x < count) out[x] = tex1Dfetch<int>(texels, at[x]);
}

// Colours as numbers and as bytes.
extern "C" __global__ void colours(Texture image, float4* out, int width, int height) {
    int x = x_of(), y = y_of();
    if (x < width && y < height) out[y * width + x] = tex2D<float4>(image, x + 0.5f, y + 0.5f);
}
extern "C" __global__ void bytes(Texture image, uchar4* out, int width, int height) {
    int x = x_of(), y = y_of();
    if (x < width && y < height) out[y * width + x] = tex2D<uchar4>(image, x + 0.5f, y + 0.5f);
}

// A layer of an image.
extern "C" __global__ void layer(Texture image, int number, float* out, int width, int height) {
    int x = x_of(), y = y_of();
    if (x < width && y < height) out[y * width + x] = tex2DLayered<float>(image, x + 0.5f, y + 0.5f, number);
}
extern "C" __global__ void fill_layer(Surface image, int number, int width, int height) {
    int x = x_of(), y = y_of();
    if (x < width && y < height) surf2DLayeredwrite(100.0f * number + 10 * y + x, image, 4 * x, y, number);
}

// The four texels around a point.
extern "C" __global__ void gather(Texture image, float x, float y, float4* out) {
    *out = tex2Dgather<float4>(image, x, y, 0);
}

// The directions of the six faces of a cube, and points beside them.
extern "C" __global__ void directions(Texture cube, const float4* at, float* out, int count) {
    int x = x_of();
    if (x < count) out[x] = texCubemap<float>(cube, at[x].x, at[x].y, at[x].z);
}
