// Memory of the device's `malloc`. Made to PTX with NVRTC 12.0 for compute_70; the constants that
// the compiler adds are left out.

struct Link {
    Link *next;
    unsigned value;
};

// Each thread builds a list, and leaves it to `drain`.
extern "C" __global__ void fill(Link **lists, unsigned length) {
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    Link *list = 0;
    for (unsigned i = 0; i < length; i++) {
        Link *link = (Link *)malloc(sizeof(Link));
        if (link == 0) __trap();
        link->next = list;
        link->value = me * 100 + i;
        list = link;
    }
    lists[me] = list;
}

// Adds each list up and frees it.
extern "C" __global__ void drain(Link **lists, unsigned *sums) {
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (Link *link = lists[me]; link != 0;) {
        Link *next = link->next;
        sum += link->value;
        free(link);
        link = next;
    }
    sums[me] = sum;
}

// The number of blocks of `size` bytes that there is room for; all are freed again.
extern "C" __global__ void room(unsigned long long size, unsigned *count) {
    char **last = 0;
    while (char **block = (char **)malloc(size)) {
        *block = (char *)last;
        last = block;
        ++*count;
    }
    while (last != 0) {
        char **before = (char **)*last;
        free(last);
        last = before;
    }
}

// A block that is used after it is freed, past its end, or freed where none begins.
extern "C" __global__ void wrong(unsigned how, unsigned *out) {
    unsigned *block = new unsigned[5];
    block[4] = 7;
    if (how == 0) out[0] = block[5];
    if (how == 1) free(block + 1);
    if (how == 2) free(out);
    delete[] block;
    if (how == 3) out[0] = block[4];
    if (how == 4) block[0] = 1;
    if (how == 5) free(block);
    free(0);
    out[1] = 9;
}
