// How far each element of linked lists is from its list's end, by pointer jumping: in each round
// all elements jump to the element to which their next one points. All blocks of a cooperative
// launch go from round to round together, through a barrier made of atomics.

// `arrived` starts as 0 and counts every arrival of every block, up to 2^32 - 1 of them.
static __device__ void wait_for_grid(unsigned* arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned place = atomicAdd(arrived, 1);
        unsigned all = (place / gridDim.x + 1) * gridDim.x;
        while (*(volatile unsigned*)arrived < all) {
        }
        __threadfence();
    }
    __syncthreads();
}

// `next` has `count` places below `count`; the last element of a list is its own next one. The
// ranks are those in `ranks` at the end, `moved` has how many elements moved in each of at most 33
// rounds and starts as zeros, and `rounds` gets the number of rounds. `next` and the other arrays
// change.
extern "C" __global__ void list_ranking(unsigned count, unsigned* next, unsigned* ranks, unsigned* other_next,
    unsigned* other_ranks, unsigned* moved, unsigned* rounds, unsigned* arrived)
{
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (unsigned i = first; i < count; i += stride) {
        ranks[i] = next[i] != i;
    }
    wait_for_grid(arrived);
    unsigned round = 0;
    for (;;) {
        unsigned own_moves = 0;
        for (unsigned i = first; i < count; i += stride) {
            unsigned to = min(next[i], count - 1);
            unsigned far = min(next[to], count - 1);
            other_ranks[i] = ranks[i] + (to == i ? 0 : ranks[to]);
            other_next[i] = far;
            own_moves += far != to;
        }
        if (own_moves > 0) {
            atomicAdd(&moved[round], own_moves);
        }
        wait_for_grid(arrived);
        unsigned* swap = next;
        next = other_next;
        other_next = swap;
        swap = ranks;
        ranks = other_ranks;
        other_ranks = swap;
        bool is_over = *(volatile unsigned*)&moved[round] == 0 || round >= 32;
        round++;
        if (is_over) {
            break;
        }
    }
    // After an odd number of rounds the result is in the other array.
    if (round % 2 == 1) {
        for (unsigned i = first; i < count; i += stride) {
            other_ranks[i] = ranks[i];
        }
    }
    if (first == 0) {
        *rounds = round;
    }
}
