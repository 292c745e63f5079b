// What shaping puts in place of other nodes.

typedef unsigned long long u64;

// Takes the place of nodes that only order others. One thread.
extern "C" __global__ void nothing() {}

// Takes the place of a small fill of a row of aligned words. A thread for each word.
extern "C" __global__ void fill_words(unsigned* target, unsigned count, unsigned pattern)
{
    unsigned word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < count) {
        target[word] = pattern;
    }
}

// Takes the place of a copy of a row of aligned units of 16 bytes. Any grid and block.
extern "C" __global__ void copy_units(uint4* to, const uint4* from, unsigned count)
{
    for (unsigned unit = blockIdx.x * blockDim.x + threadIdx.x; unit < count; unit += gridDim.x * blockDim.x) {
        to[unit] = from[unit];
    }
}

// Takes the place of a copy of a row of aligned words. Any grid and block.
extern "C" __global__ void copy_words(unsigned* to, const unsigned* from, unsigned count)
{
    for (unsigned word = blockIdx.x * blockDim.x + threadIdx.x; word < count; word += gridDim.x * blockDim.x) {
        to[word] = from[word];
    }
}

// Writes a part of 16 bytes that begin at an aligned address.
__device__ void fill_part(char* to, u64 bytes, unsigned pattern)
{
    while (bytes > 0) {
        unsigned at = (u64)to & 3;
        if (at == 0 && bytes >= 4) {
            *(unsigned*)to = pattern;
            to += 4;
            bytes -= 4;
        } else {
            *to = pattern >> (8 * at);
            to += 1;
            bytes -= 1;
        }
    }
}

// Takes the place of a fill of `height` rows of `width` bytes. The byte at each address is the one
// of `pattern` that has this place in an aligned word of four bytes: a value of one or two bytes is
// in `pattern` four times or twice. Any grid and block.
extern "C" __global__ void fill(char* target, u64 pitch, u64 width, u64 height, u64 pattern)
{
    unsigned word = pattern;
    u64 column = (u64)blockIdx.x * blockDim.x + threadIdx.x, columns = (u64)gridDim.x * blockDim.x;
    u64 row = (u64)blockIdx.y * blockDim.y + threadIdx.y, rows = (u64)gridDim.y * blockDim.y;
    for (; row < height; row += rows) {
        char* start = target + row * pitch;
        // The row begins `before` bytes into 16 aligned ones.
        u64 before = (u64)start & 15, end = before + width;
        for (u64 from = column * 16; from < end; from += columns * 16) {
            u64 first = from < before ? before : from, last = from + 16 < end ? from + 16 : end;
            if (last - first == 16) {
                *(uint4*)(start - before + from) = make_uint4(word, word, word, word);
            } else {
                fill_part(start - before + first, last - first, word);
            }
        }
    }
}

// Copies fewer bytes than a whole `Unit`. Both addresses have the same place in a unit.
template <typename Unit>
__device__ void copy_part(char* to, const char* from, u64 bytes)
{
    while (bytes > 0) {
        u64 at = (u64)to, moved = 1;
        if (sizeof(Unit) > 8 && (at & 7) == 0 && bytes >= 8) {
            *(u64*)to = *(const u64*)from;
            moved = 8;
        } else if (sizeof(Unit) > 4 && (at & 3) == 0 && bytes >= 4) {
            *(unsigned*)to = *(const unsigned*)from;
            moved = 4;
        } else if (sizeof(Unit) > 2 && (at & 1) == 0 && bytes >= 2) {
            *(unsigned short*)to = *(const unsigned short*)from;
            moved = 2;
        } else {
            *to = *from;
        }
        to += moved;
        from += moved;
        bytes -= moved;
    }
}

// The sizes and steps of a copy, in bytes.
struct Box {
    u64 width, height, depth;
    u64 to_pitch, to_layer, from_pitch, from_layer;
};

template <typename Unit>
__device__ void copy_box(char* to, const char* from, const Box& box)
{
    u64 column = (u64)blockIdx.x * blockDim.x + threadIdx.x, columns = (u64)gridDim.x * blockDim.x;
    u64 row = (u64)blockIdx.y * blockDim.y + threadIdx.y, rows = (u64)gridDim.y * blockDim.y;
    for (; row < box.height * box.depth; row += rows) {
        u64 layer = box.depth == 1 ? 0 : row / box.height;
        u64 in_layer = row - layer * box.height;
        char* to_row = to + layer * box.to_layer + in_layer * box.to_pitch;
        const char* from_row = from + layer * box.from_layer + in_layer * box.from_pitch;
        u64 before = (u64)to_row & (sizeof(Unit) - 1), end = before + box.width;
        for (u64 at = column * sizeof(Unit); at < end; at += columns * sizeof(Unit)) {
            u64 first = at < before ? before : at;
            u64 last = at + sizeof(Unit) < end ? at + sizeof(Unit) : end;
            if (last - first == sizeof(Unit)) {
                *(Unit*)(to_row - before + at) = *(const Unit*)(from_row - before + at);
            } else {
                copy_part<Unit>(to_row - before + first, from_row - before + first, last - first);
            }
        }
    }
}

// Takes the place of a copy of `depth` layers of `height` rows of `width` bytes. Rows that stand
// for each other begin at the same place in an aligned unit of so many bytes: 1, 2, 4, 8 or 16. Any
// grid and block.
extern "C" __global__ void copy(char* to, u64 to_pitch, u64 to_layer, const char* from, u64 from_pitch,
                                u64 from_layer, u64 width, u64 height, u64 depth, u64 unit)
{
    Box box = {width, height, depth, to_pitch, to_layer, from_pitch, from_layer};
    switch (unit) {
    case 16: copy_box<uint4>(to, from, box); break;
    case 8: copy_box<uint2>(to, from, box); break;
    case 4: copy_box<unsigned>(to, from, box); break;
    case 2: copy_box<unsigned short>(to, from, box); break;
    default: copy_box<char>(to, from, box); break;
    }
}
