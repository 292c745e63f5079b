//! The kernels of `zig.ptx`.

fn place() u32 {
    return @workGroupId(0) * @workGroupSize(0) + @workItemId(0);
}

export fn saxpy(n: u32, a: f32, x: [*]addrspace(.global) const f32, y: [*]addrspace(.global) f32) callconv(.nvptx_kernel) void {
    const i = place();
    if (i < n) {
        y[i] += a * x[i];
    }
}

/// Adds the sum of `n` elements to `total`, which must start as 0; a thread has four elements.
export fn sum(n: u32, x: [*]addrspace(.global) const i32, total: *addrspace(.global) i32) callconv(.nvptx_kernel) void {
    var own: i32 = 0;
    var i = 4 * place();
    const end = @min(i + 4, n);
    while (i < end) : (i += 1) {
        own +%= x[i];
    }
    _ = @atomicRmw(i32, total, .Add, own, .monotonic);
}

/// One thread a row.
export fn softmax(rows: u32, columns: u32, x: [*]addrspace(.global) const f32, out: [*]addrspace(.global) f32) callconv(.nvptx_kernel) void {
    const row = place();
    if (row >= rows) {
        return;
    }
    var largest = x[row * columns];
    for (0..columns) |i| {
        largest = @max(largest, x[row * columns + i]);
    }
    var powers: f32 = 0;
    for (0..columns) |i| {
        powers += power(x[row * columns + i] - largest);
    }
    for (0..columns) |i| {
        out[row * columns + i] = power(x[row * columns + i] - largest) / powers;
    }
}

fn power(x: f32) f32 {
    return asm ("ex2.approx.f32 %[out], %[in];"
        : [out] "=f" (-> f32),
        : [in] "f" (x * 1.44269504),
    );
}

/// Square matrices of `n` rows, a thread four elements of a row.
export fn matmul(n: u32, a: [*]addrspace(.global) const f32, b: [*]addrspace(.global) const f32, c: [*]addrspace(.global) f32) callconv(.nvptx_kernel) void {
    const i = 4 * place();
    if (i >= n * n) {
        return;
    }
    const row = i / n;
    const column = i % n;
    var four: @Vector(4, f32) = @splat(0);
    for (0..n) |k| {
        const left: @Vector(4, f32) = @splat(a[row * n + k]);
        const right = b[k * n + column ..][0..4];
        four += left * @Vector(4, f32){ right[0], right[1], right[2], right[3] };
    }
    inline for (0..4) |j| {
        c[i + j] = four[j];
    }
}
