// What the ready-made loops and branches decide with. One thread each.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

// Where in a loop the kernel is.
enum Place { BRANCH, BEFORE_WHILE, BEFORE_DO, AFTER_ROUND };

enum Test { EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL };

template <typename T>
__device__ bool holds(T found, unsigned test, T value)
{
    switch (test) {
    case EQUAL: return found == value;
    case NOT_EQUAL: return found != value;
    case LESS: return found < value;
    case LESS_OR_EQUAL: return found <= value;
    case GREATER: return found > value;
    default: return found >= value;
    }
}

// `rounds` counts those done since the loop was entered, of at most `limit`.
template <typename T>
__device__ void decide(unsigned long long handle, const T* flag, unsigned test, T value, unsigned place,
                       unsigned long long* rounds, unsigned long long limit)
{
    bool go_on = true;
    if (place != BRANCH) {
        *rounds = place == AFTER_ROUND ? *rounds + 1 : 0;
        go_on = *rounds < limit;
    }
    if (go_on && place != BEFORE_DO) {
        go_on = holds(*flag, test, value);
    }
    cudaGraphSetConditional(handle, go_on);
}

#define DECIDE(name, type)                                                                                             \
    extern "C" __global__ void name(unsigned long long handle, const type* flag, unsigned test, type value,            \
                                    unsigned place, unsigned long long* rounds, unsigned long long limit)              \
    {                                                                                                                  \
        decide(handle, flag, test, value, place, rounds, limit);                                                       \
    }

DECIDE(decide_u32, unsigned)
DECIDE(decide_i32, int)
DECIDE(decide_u64, unsigned long long)
DECIDE(decide_i64, long long)
DECIDE(decide_f32, float)
DECIDE(decide_f64, double)

// Gives a condition its default where the driver does not: each time a body is entered.
extern "C" __global__ void set_condition(unsigned long long handle, unsigned value)
{
    cudaGraphSetConditional(handle, value);
}

// Gives a condition the value of a number in memory.
extern "C" __global__ void set_condition_from(unsigned long long handle, const unsigned* value)
{
    cudaGraphSetConditional(handle, *value);
}
