// Works for a number of clock cycles, in one block. The numbers stay as they are.
extern "C" __global__ void work(unsigned cycles, unsigned* numbers)
{
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
    if (cycles == 0xffffffff) {
        numbers[0] += 1;
    }
}
