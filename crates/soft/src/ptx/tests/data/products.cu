// Products of matrices on tensor cores, in tiles. NVRTC 12.0 makes products.ptx from it:
//     --gpu-architecture=compute_90a --std=c++17 --device-as-default-execution-space

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short half_bits;

__device__ __forceinline__ u32 shared_address(const void *pointer) {
    return (u32)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void copy_async(u32 to, const void *from, bool is_inside) {
    u32 bytes = is_inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// c = a * b of halves, rows contiguous; k is a multiple of 32, n and m of 8. A block of 128 threads
// has a tile of 64 x 64. Copies of the next tiles are on their way while warps multiply.
extern "C" __global__ void gemm_mma(const half_bits *a, const half_bits *b, float *c, int m, int n, int k) {
    const int TILE = 64, DEPTH = 32, PITCH_A = DEPTH + 8, PITCH_B = TILE + 8;
    __shared__ __align__(16) half_bits tile_a[2][TILE * PITCH_A];
    __shared__ __align__(16) half_bits tile_b[2][DEPTH * PITCH_B];
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float sums[2][4][4] = {};

    auto fetch = [&](int stage, int at) {
        for (int i = thread; i < TILE * DEPTH / 8; i += 128) {
            int r = i / (DEPTH / 8), s = i % (DEPTH / 8) * 8;
            bool is_inside = row + r < m;
            const half_bits *from = a + (is_inside ? (long long)(row + r) * k + at + s : 0);
            copy_async(shared_address(&tile_a[stage][r * PITCH_A + s]), from, is_inside);
        }
        for (int i = thread; i < DEPTH * TILE / 8; i += 128) {
            int r = i / (TILE / 8), s = i % (TILE / 8) * 8;
            bool is_inside = column + s < n;
            const half_bits *from = b + (is_inside ? (long long)(at + r) * n + column + s : 0);
            copy_async(shared_address(&tile_b[stage][r * PITCH_B + s]), from, is_inside);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    fetch(0, 0);
    for (int at = 0, stage = 0; at < k; at += DEPTH, stage ^= 1) {
        if (at + DEPTH < k) {
            fetch(stage ^ 1, at + DEPTH);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < DEPTH; step += 16) {
            u32 fa[2][4], fb[4][2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                u32 from = shared_address(&tile_a[stage][(warp_row + i * 16 + lane % 16) * PITCH_A + step + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(from));
            }
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                u32 from = shared_address(&tile_b[stage][(step + lane % 16) * PITCH_B + warp_column + j * 8 + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1]) : "r"(from));
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                                 : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int r = row + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                int s = column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                if (r < m && s < n) c[(long long)r * n + s] = sums[i][j][e];
            }
}

// The same with fragments that the compiler lays out: a warp for each tile of 16 x 16. All sizes
// are multiples of 16.
extern "C" __global__ void gemm_wmma(const half_bits *a, const half_bits *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    float d[8] = {};
    for (int at = 0; at < k; at += 16) {
        u32 fa[8], fb[8];
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]), "=r"(fa[4]), "=r"(fa[5]), "=r"(fa[6]), "=r"(fa[7])
                     : "l"(a + (long long)row * k + at), "r"(k));
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                     : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]), "=r"(fb[4]), "=r"(fb[5]), "=r"(fb[6]), "=r"(fb[7])
                     : "l"(b + (long long)at * n + column), "r"(n));
        asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fa[4]), "r"(fa[5]), "r"(fa[6]), "r"(fa[7]),
                       "r"(fb[0]), "r"(fb[1]), "r"(fb[2]), "r"(fb[3]), "r"(fb[4]), "r"(fb[5]), "r"(fb[6]), "r"(fb[7]));
    }
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::
                 "l"(c + (long long)row * n + column), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3]), "f"(d[4]), "f"(d[5]),
                 "f"(d[6]), "f"(d[7]), "r"(n) : "memory");
}

struct __align__(64) Map { u64 words[16]; };

__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred done;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra.uni DONE;\n"
                 "bra.uni WAIT;\nDONE:\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void load_box(u32 to, const Map *map, int x, int y, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                 "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}

// A swizzled tile with rows of 128 bytes.
__device__ __forceinline__ u64 descriptor(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// c = a * transposed b, by tensor maps with boxes of 64 x 64 halves. One warp loads, four multiply;
// they have two stages. A block has a tile of 64 x 64.
extern "C" __global__ void gemm_wgmma(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float *c, int n, int k) {
    const int STAGES = 2, TILE = 64, BYTES = 64 * 64 * 2;
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ __align__(8) u64 full[STAGES], empty[STAGES];
    int thread = threadIdx.x, warp = thread / 32;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE, count = (k + 63) / 64;
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(shared_address(&empty[stage])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (warp == 4) {
        if (thread == 128) {
            for (int i = 0; i < count; i++) {
                int stage = i % STAGES;
                u32 barrier = shared_address(&full[stage]), to = shared_address(tiles) + stage * 2 * BYTES;
                wait_for(shared_address(&empty[stage]), (i / STAGES & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(2 * BYTES) : "memory");
                load_box(to, &map_a, i * 64, row, barrier);
                load_box(to + BYTES, &map_b, i * 64, column, barrier);
            }
        }
        return;
    }
    float d[32] = {};
    for (int i = 0; i < count; i++) {
        int stage = i % STAGES;
        u32 from = shared_address(tiles) + stage * 2 * BYTES;
        wait_for(shared_address(&full[stage]), i / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < 4; step++) {
            u64 a = descriptor(from + step * 32), b = descriptor(from + BYTES + step * 32);
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                         "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                           "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                           "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                           "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                         : "l"(a), "l"(b), "r"(1));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[stage])) : "memory");
    }
    int lane = thread % 32;
    for (int e = 0; e < 32; e++) {
        int r = row + warp * 16 + lane / 4 + e / 2 % 2 * 8, s = column + e / 4 * 8 + lane % 4 * 2 + e % 2;
        if (s < n) c[(long long)r * n + s] = d[e];
    }
}
