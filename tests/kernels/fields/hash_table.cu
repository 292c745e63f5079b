// A hash table with open addressing. A slot is a key and a count; key 0xffffffff means that it is
// empty. The number of slots is a power of two.

static const unsigned EMPTY = 0xffffffff;

struct Slot {
    unsigned key;
    unsigned count;
};

static __device__ unsigned hash(unsigned key)
{
    key ^= key >> 16;
    key *= 0x85ebca6b;
    key ^= key >> 13;
    key *= 0xc2b2ae35;
    return key ^ key >> 16;
}

// Counts each key in its slot; counts the keys for which there is no room in `failures`.
extern "C" __global__ void hash_insert(unsigned count, unsigned slots, const unsigned* keys, Slot* table, unsigned* failures)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned key = keys[i];
    unsigned at = hash(key) & (slots - 1);
    for (unsigned tries = 0; tries < slots; tries++) {
        unsigned found = atomicCAS(&table[at].key, EMPTY, key);
        if (found == EMPTY || found == key) {
            atomicAdd(&table[at].count, 1);
            return;
        }
        at = (at + 1) & (slots - 1);
    }
    atomicAdd(failures, 1);
}

extern "C" __global__ void hash_find(unsigned count, unsigned slots, const unsigned* keys, const Slot* table, unsigned* counts)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned at = hash(keys[i]) & (slots - 1);
    unsigned answer = 0;
    for (unsigned tries = 0; tries < slots && table[at].key != EMPTY; tries++) {
        if (table[at].key == keys[i]) {
            answer = table[at].count;
            break;
        }
        at = (at + 1) & (slots - 1);
    }
    counts[i] = answer;
}
