// Gravity between bodies, all pairs, in tiles of one block. Bodies are x, y, z and mass; blocks
// have `blockDim.x` threads and 16 bytes of dynamic shared memory for each.

extern "C" __global__ void n_body_step(unsigned count, float softening, float step, const float4* bodies, float4* velocities,
    float4* moved)
{
    extern __shared__ float4 tile[];
    unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    float4 body = bodies[min(own, count - 1)];
    float3 pull = make_float3(0.0f, 0.0f, 0.0f);
    for (unsigned start = 0; start < count; start += blockDim.x) {
        unsigned i = start + threadIdx.x;
        tile[threadIdx.x] = i < count ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 4
        for (unsigned j = 0; j < blockDim.x; j++) {
            float4 other = tile[j];
            float x = other.x - body.x, y = other.y - body.y, z = other.z - body.z;
            float inverse = rsqrtf(x * x + y * y + z * z + softening);
            float force = other.w * inverse * inverse * inverse;
            pull.x += x * force;
            pull.y += y * force;
            pull.z += z * force;
        }
        __syncthreads();
    }
    if (own < count) {
        float4 velocity = velocities[own];
        velocity.x += pull.x * step;
        velocity.y += pull.y * step;
        velocity.z += pull.z * step;
        velocities[own] = velocity;
        body.x += velocity.x * step;
        body.y += velocity.y * step;
        body.z += velocity.z * step;
        moved[own] = body;
    }
}
