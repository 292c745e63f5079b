// The root of a monotone function, by halving an interval. One thread each.
//
// The arithmetic is spelled out, each operation rounded on its own, so that a processor that does
// the same operations in the same order gets the same bits.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

// What is looked for: the x between `low` and `high` with x^3 + x = level, as near as `tolerance`,
// or nearer still if the function is further than `accuracy` from its level there.
struct Problem {
    double level, low, high, tolerance, accuracy;
};

static __device__ double function(double x, double level)
{
    double cube = __dmul_rn(__dmul_rn(x, x), x);
    return __dsub_rn(__dadd_rn(cube, x), level);
}

static __device__ double middle_of(double low, double high)
{
    return __dadd_rn(low, __dmul_rn(0.5, __dsub_rn(high, low)));
}

static __device__ bool is_wide(double low, double high, double tolerance)
{
    return __dsub_rn(high, low) > tolerance;
}

// Sets the bounds, and whether there is anything to halve.
extern "C" __global__ void begin(const Problem* problem, double* low, double* high, unsigned long long go_on)
{
    *low = problem->low;
    *high = problem->high;
    cudaGraphSetConditional(go_on, is_wide(*low, *high, problem->tolerance));
}

// Looks at the middle: is the function below its level there?
extern "C" __global__ void look(const Problem* problem, const double* low, const double* high, double* middle,
                                unsigned long long is_below)
{
    *middle = middle_of(*low, *high);
    cudaGraphSetConditional(is_below, function(*middle, problem->level) < 0.0);
}

// After a round: is there more to halve? An interval without a number inside of it is as narrow as
// it gets.
extern "C" __global__ void judge(const Problem* problem, const double* low, const double* high, unsigned* rounds,
                                 unsigned long long go_on)
{
    *rounds += 1;
    double middle = middle_of(*low, *high);
    bool is_divisible = *low < middle && middle < *high;
    cudaGraphSetConditional(go_on, is_divisible && is_wide(*low, *high, problem->tolerance));
}

// Takes the middle for the root: does it need polish?
extern "C" __global__ void conclude(const Problem* problem, const double* low, const double* high, double* root,
                                    unsigned long long needs_polish)
{
    *root = middle_of(*low, *high);
    cudaGraphSetConditional(needs_polish, fabs(function(*root, problem->level)) > problem->accuracy);
}

// Newton's steps from the root as it is.
extern "C" __global__ void polish(const Problem* problem, double* root, unsigned* steps)
{
    for (; *steps < 3; *steps += 1) {
        double slope = __dadd_rn(__dmul_rn(3.0, __dmul_rn(*root, *root)), 1.0);
        *root = __dsub_rn(*root, __ddiv_rn(function(*root, problem->level), slope));
    }
}
