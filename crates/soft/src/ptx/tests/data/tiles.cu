// Groups of several warps, which use the shared memory that GPUs reserve. Made to PTX with NVRTC
// 12.0 for compute_90; the constants of the headers, which no kernel uses, are left out.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tiles(const unsigned *in, unsigned *out) {
    __shared__ unsigned turned[256];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<64>(block);
    unsigned me = block.thread_rank();
    turned[me] = in[me];
    tile.sync();
    unsigned other = turned[me ^ 63];
    unsigned sum = cg::reduce(tile, in[me], cg::plus<unsigned>());
    unsigned first = tile.shfl(in[me], 5);
    bool all = tile.all(in[me] < 1000), any = tile.any(in[me] == 70);
    auto warp = cg::tiled_partition<32>(block);
    unsigned greatest = cg::reduce(warp, in[me], cg::greater<unsigned>());
    auto group = cg::coalesced_threads();
    out[me] = other + sum * 1000 + first + (all ? 1 : 0) + (any ? 7 : 0) + greatest * 3 + group.size();
}
