// Roots by bisection, in double precision: for each `y`, the `x` from -1 up with x * exp(x) = y,
// and the one between 0 and pi with cos(x) + x / 4 = y / 4; and how many steps each took.

struct Product {
    static __device__ double at(double x, double y) { return x * exp(x) - y; }
};

struct Wave {
    static __device__ double at(double x, double y) { return y / 4.0 - cos(x) - x / 4.0; }
};

template <typename Function>
static __device__ double root(double low, double high, double y, double tolerance, unsigned* steps)
{
    while (high - low > tolerance) {
        double middle = 0.5 * (low + high);
        if (middle == low || middle == high) {
            break;
        }
        ++*steps;
        if (Function::at(middle, y) < 0.0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

extern "C" __global__ void bisection(unsigned count, double tolerance, const double* y, double* products, double* waves,
    unsigned* steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        unsigned taken = 0;
        products[i] = root<Product>(-1.0, fmax(1.0, log1p(fabs(y[i]))), y[i], tolerance, &taken);
        waves[i] = root<Wave>(0.0, 3.14159265358979323846, y[i], tolerance, &taken);
        steps[i] = taken;
    }
}
