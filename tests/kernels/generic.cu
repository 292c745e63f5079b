// Pointers that lead anywhere: what compilers turn into generic addresses. Every kernel writes
// words that one thread, or the threads of one block, compute; the tests know them. `compilers` has
// this file as other compilers translate it.

#define FAR static __device__ __noinline__

__device__ unsigned global_words[4] = {10, 20, 30, 40};
__device__ unsigned untouched;
__device__ unsigned short_list[4] = {1, 2};
__device__ unsigned char bytes[8] = {1, 2, 3};
__constant__ unsigned constant_words[4] = {3, 5, 7};
__constant__ char constant_text[8] = "const";
__device__ char global_text[8] = "global";
__device__ unsigned* pointer_to_global = global_words + 2;
__device__ const unsigned* pointer_to_constant = constant_words + 1;
__device__ unsigned* kept;

FAR unsigned get(const unsigned* at) { return *at; }
FAR void put(unsigned* at, unsigned value) { *at = value; }
FAR void bump(unsigned* at, unsigned by) { atomicAdd(at, by); }

FAR unsigned is_global(const void* at)
{
    unsigned yes;
    asm("{ .reg .pred q; isspacep.global q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(yes) : "l"(at));
    return yes;
}
FAR unsigned is_constant(const void* at)
{
    unsigned yes;
    asm("{ .reg .pred q; isspacep.const q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(yes) : "l"(at));
    return yes;
}
FAR unsigned is_shared(const void* at)
{
    unsigned yes;
    asm("{ .reg .pred q; isspacep.shared q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(yes) : "l"(at));
    return yes;
}
FAR unsigned is_local(const void* at)
{
    unsigned yes;
    asm("{ .reg .pred q; isspacep.local q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(yes) : "l"(at));
    return yes;
}
FAR unsigned where(const void* at)
{
    return is_global(at) | is_constant(at) << 4 | is_shared(at) << 8 | is_local(at) << 12;
}

// Each space by a pointer that says nothing of its space.
extern "C" __global__ void spaces(unsigned* out)
{
    __shared__ unsigned shared[4];
    unsigned local[4] = {0, 0, 0, 0};
    put(out, 7);
    put(global_words + 1, get(global_words) + 1);
    put(shared + 3, 5);
    put(local + 2, 6);
    out[1] = get(global_words + 1);
    out[2] = get(shared + 3);
    out[3] = get(local + 2);
    out[4] = get(constant_words + 2);
    out[5] = shared[3] * 100 + local[2];
    bump(out + 6, 3);
    bump(shared + 3, 4);
    out[7] = shared[3];
    put(global_words + 1, 20);
}

extern "C" __global__ void kinds(unsigned* out)
{
    __shared__ unsigned shared[4];
    unsigned local[4];
    put(shared, 1);
    put(local, 1);
    out[0] = where(out);
    out[1] = where(global_words);
    out[2] = where(constant_words);
    out[3] = where(shared + 3);
    out[4] = where(local + 3);
    out[5] = where(0);
    out[6] = where(constant_text + 5);
    out[7] = get(shared) + get(local);
}

struct Node {
    unsigned value;
    unsigned* weight;
    const Node* next;
};

FAR unsigned walk(const Node* node)
{
    unsigned sum = 0;
    for (; node != 0; node = node->next) {
        sum += node->value * *node->weight;
    }
    return sum;
}

// Pointers in structures, which lie in three spaces and point into four.
extern "C" __global__ void lists(unsigned* out, Node* nodes)
{
    __shared__ Node in_shared;
    __shared__ unsigned weight;
    unsigned own = 11;
    Node last = {3, &own, 0};
    Node first;
    put(&weight, 100);
    in_shared.value = 2;
    in_shared.weight = &weight;
    in_shared.next = &last;
    nodes[1].value = 1;
    nodes[1].weight = pointer_to_global;
    nodes[1].next = &in_shared;
    first.value = 5;
    first.weight = out + 8;
    first.next = nodes + 1;
    out[8] = 1000;
    out[0] = walk(&first);
    out[1] = walk(&in_shared);
    const unsigned* all[4] = {&own, &weight, out + 8, pointer_to_constant};
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        sum = sum * 3 + get(all[(i + out[9]) & 3]);
    }
    out[2] = sum;
    kept = out + 3;
    put(kept, 77);
    out[4] = get(pointer_to_constant) + get(pointer_to_global);
}

// Every call has a frame of its own, and reaches into that of its caller.
FAR unsigned deep(unsigned depth, unsigned* above)
{
    unsigned mine[3] = {depth, 2 * depth, 0};
    if (depth > 0) {
        mine[2] = deep(depth - 1, mine + 1);
    }
    *above += mine[1];
    return mine[0] + mine[2];
}

FAR unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0) {
        return n + 1;
    }
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(unsigned* out)
{
    unsigned top = 0;
    out[3 * threadIdx.x] = deep(threadIdx.x, &top);
    out[3 * threadIdx.x + 1] = top;
    out[3 * threadIdx.x + 2] = ackermann(2, threadIdx.x);
}

typedef unsigned (*Step)(unsigned, unsigned*);
FAR unsigned twice(unsigned x, unsigned* count) { *count += 1; return 2 * x; }
FAR unsigned square(unsigned x, unsigned* count) { *count += 10; return x * x; }
FAR unsigned minus(unsigned x, unsigned* count) { *count += 100; return x - 1; }
__device__ Step steps[3] = {twice, square, minus};

struct Program {
    Step step;
    unsigned turns;
};

FAR unsigned run(const Program* program, unsigned x, unsigned* count)
{
    for (unsigned i = 0; i < program->turns; i++) {
        x = program->step(x, count);
    }
    return x;
}

// Functions by their addresses: in global memory, in structures, in local memory.
extern "C" __global__ void functions(unsigned* out)
{
    __shared__ unsigned count;
    unsigned calls = 0;
    put(&count, 0);
    Program programs[3];
    unsigned x = 3;
    for (unsigned i = 0; i < 3; i++) {
        programs[i].step = steps[(i + out[8]) % 3];
        programs[i].turns = i + 1;
    }
    for (unsigned i = 0; i < 3; i++) {
        x = run(programs + i, x, i == 1 ? &count : &calls);
    }
    out[0] = x;
    out[1] = calls;
    out[2] = count;
    out[3] = steps[0] == twice;
    out[4] = steps[1] == twice;
}

struct Large {
    unsigned words[12];
    const unsigned* table;
};

FAR unsigned total(const Large& large)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 12; i++) {
        sum += large.words[i] * (i + 1);
    }
    return sum + *large.table;
}
FAR Large reversed(Large large)
{
    Large back = large;
    for (unsigned i = 0; i < 12; i++) {
        back.words[i] = large.words[11 - i];
    }
    return back;
}

// Structures by value and by reference, a parameter of the kernel among them.
extern "C" __global__ void values(unsigned* out, Large large)
{
    out[0] = total(large);
    out[1] = total(reversed(large));
    large.words[out[8]] = 1000;
    large.table = constant_words;
    out[2] = total(large);
}

// Variables without an initialiser, or with a short one.
extern "C" __global__ void zeros(unsigned* out)
{
    out[0] = get(&untouched);
    out[1] = get(short_list + 1);
    out[2] = get(short_list + 2) + get(short_list + 3);
    out[3] = get(constant_words + 3);
    unsigned sum = 0;
    for (unsigned i = 0; i < 8; i++) {
        sum = sum * 2 + bytes[(i + out[8]) & 7];
    }
    out[4] = sum;
}

FAR unsigned sum_of(const unsigned* first, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += first[i];
    }
    return sum;
}

// 64 threads exchange pointers through shared memory.
extern "C" __global__ void exchange(unsigned* out)
{
    __shared__ unsigned tile[64];
    __shared__ unsigned* places[64];
    unsigned i = threadIdx.x;
    places[i] = i % 2 == 0 ? tile + i : out + i;
    __syncthreads();
    put(places[63 - i], i * i);
    __syncthreads();
    if (i % 2 == 0) {
        out[i] = tile[i];
    }
    __syncthreads();
    if (i == 0) {
        out[64] = sum_of(out, 64);
        out[65] = sum_of(tile, 1);
    }
}

// The carry of sums and differences, in every mixture.
#define CARRY(first, second, a, b, c) \
    asm volatile("{ .reg .u32 t; " first " " second " }" : "=r"(y) : "r"(a), "r"(b), "r"(c))
extern "C" __global__ void carries(unsigned* out, const unsigned* in)
{
    unsigned zero = in[0], one = in[1], two = in[2], most = in[3], y;
    CARRY("sub.cc.u32 t, %1, %2;", "addc.u32 %0, %3, %3;", one, two, zero);
    out[0] = y;
    CARRY("sub.cc.u32 t, %1, %2;", "addc.u32 %0, %3, %3;", two, one, zero);
    out[1] = y;
    CARRY("add.cc.u32 t, %1, %2;", "subc.u32 %0, %3, %3;", one, most, zero);
    out[2] = y;
    CARRY("add.cc.u32 t, %1, %2;", "subc.u32 %0, %3, %3;", one, one, zero);
    out[3] = y;
    CARRY("mad.lo.cc.u32 t, %1, %2, %2;", "subc.cc.u32 t, %3, %3; madc.hi.u32 %0, %2, %2, %3;", most, one, zero);
    out[4] = y;
    CARRY("sub.cc.u32 t, %1, %2;", "subc.cc.u32 t, %3, %3; subc.u32 %0, %3, %3;", one, two, zero);
    out[5] = y;
    CARRY("mad.hi.cc.u32 t, %1, %1, %2;", "madc.lo.cc.u32 t, %3, %3, %3; addc.u32 %0, %3, %3;", most, two, one);
    out[6] = y;
    CARRY("add.cc.u32 t, %1, %2;", "addc.cc.u32 t, %1, %3; subc.u32 %0, %3, %3;", most, one, zero);
    out[7] = y;
}

FAR unsigned say(const char* what, unsigned n, double x) { return printf("%s %u %.2f\n", what, n, x); }

// Strings from every space.
extern "C" __global__ void prints(unsigned* out)
{
    __shared__ char in_shared[8];
    char own[8];
    for (unsigned i = 0; i < 7; i++) {
        in_shared[i] = "shared"[i];
        own[i] = "local!!"[i] == '!' ? 0 : "local!!"[i];
    }
    printf("begin\n");
    out[0] = say(global_text, 1, 0.5);
    out[1] = say(constant_text, 2, 1.25);
    out[2] = say(in_shared, 3, -2.0);
    out[3] = say(own, 4, 1e3);
    out[4] = say("literal", 5, 0.0);
    out[5] = printf("%d|%5d|%-5d|%lld|%c|%s|%%\n", -5, 7, 7, -9000000000LL, 'x', (const char*)0);
    printf("end\n");
}
