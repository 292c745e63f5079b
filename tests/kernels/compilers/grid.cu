// Sums up to each element, by a cooperative launch whose threads all wait for each other after
// every round, with the toolkit's `cooperative_groups.h`.
#include <cooperative_groups.h>

// `first` holds the `n` elements, and has the sums in the end; there is a thread for each element.
extern "C" __global__ void grid_scan(unsigned n, unsigned* first, unsigned* second)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned i = grid.thread_rank();
    unsigned* from = first;
    unsigned* to = second;
    for (unsigned distance = 1; distance < n; distance *= 2) {
        if (i < n) {
            to[i] = i >= distance ? from[i] + from[i - distance] : from[i];
        }
        grid.sync();
        unsigned* swap = from;
        from = to;
        to = swap;
    }
    if (i < n && from != first) {
        first[i] = from[i];
    }
}
