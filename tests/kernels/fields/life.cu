// Conway's game of life on a torus, 32 cells a word: sums of neighbours are counted for all cells
// of a word at once, a word for each binary digit of the sums. The cell in bit 0 is the leftmost.

extern "C" __global__ void life(unsigned words, unsigned height, const unsigned* in, unsigned* out)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= words || y >= height) {
        return;
    }
    unsigned ones = 0, twos = 0, fours = 0;
    unsigned here = in[y * words + x];
    unsigned left = (x + words - 1) % words, right = (x + 1) % words;
    for (unsigned i = 0; i < 3; i++) {
        const unsigned* row = in + (y + height + i - 1) % height * words;
        unsigned middle = row[x];
        unsigned from_left = __funnelshift_l(row[left], middle, 1);
        unsigned from_right = __funnelshift_r(middle, row[right], 1);
        unsigned neighbours[3] = {from_left, i == 1 ? 0 : middle, from_right};
        for (unsigned j = 0; j < 3; j++) {
            unsigned carry = ones & neighbours[j];
            ones ^= neighbours[j];
            fours |= twos & carry;
            twos ^= carry;
        }
    }
    // Three neighbours, or two and alive. A sum of eight looks like one of four or more.
    out[y * words + x] = twos & ~fours & (ones | here);
}
