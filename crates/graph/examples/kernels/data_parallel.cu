// A training step of a small network: a layer of units with a rectifier, then one unit, and the
// squared error. Each operation is rounded on its own and sums have one order, so that a processor
// that does the same operations in the same order gets the same bits.
//
// The parameters are in one piece: the weights of the units, their offsets, the weights of the last
// unit, and its offset. So are the gradients.

// What the units put out, a thread for each sample and unit.
extern "C" __global__ void units(unsigned samples, unsigned inputs, unsigned count, const float* x, const float* parameters, float* outputs)
{
    unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= samples * count) {
        return;
    }
    unsigned sample = place / count, unit = place % count;
    float sum = parameters[count * inputs + unit];
    for (unsigned i = 0; i < inputs; ++i) {
        sum = __fadd_rn(sum, __fmul_rn(parameters[unit * inputs + i], x[sample * inputs + i]));
    }
    outputs[place] = sum > 0.0f ? sum : 0.0f;
}

// The error of each sample, a thread for each.
extern "C" __global__ void errors(unsigned samples, unsigned inputs, unsigned count, const float* outputs, const float* parameters, const float* targets, float* errors)
{
    unsigned sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample >= samples) {
        return;
    }
    const float* last = parameters + count * inputs + count;
    float sum = last[count];
    for (unsigned unit = 0; unit < count; ++unit) {
        sum = __fadd_rn(sum, __fmul_rn(last[unit], outputs[sample * count + unit]));
    }
    errors[sample] = __fsub_rn(sum, targets[sample]);
}

// The gradient of each parameter, summed over the samples, a thread for each.
extern "C" __global__ void gradients(unsigned samples, unsigned inputs, unsigned count, const float* x, const float* outputs, const float* errors, const float* parameters, float* gradients)
{
    unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned offsets = count * inputs, last = offsets + count;
    if (place > last + count) {
        return;
    }
    unsigned unit = place < offsets ? place / inputs : (place < last ? place - offsets : place - last);
    float sum = 0.0f;
    for (unsigned sample = 0; sample < samples; ++sample) {
        float term = errors[sample];
        if (place < last) {
            bool active = outputs[sample * count + unit] > 0.0f;
            term = active ? __fmul_rn(term, parameters[last + unit]) : 0.0f;
            if (place < offsets) {
                term = __fmul_rn(term, x[sample * inputs + place % inputs]);
            }
        } else if (unit < count) {
            term = __fmul_rn(term, outputs[sample * count + unit]);
        }
        sum = __fadd_rn(sum, term);
    }
    gradients[place] = sum;
}

// The sum of the gradients of all shares, in their order. They are one after the other.
extern "C" __global__ void add_shares(unsigned count, unsigned shares, const float* gradients, float* total)
{
    unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= count) {
        return;
    }
    float sum = gradients[place];
    for (unsigned share = 1; share < shares; ++share) {
        sum = __fadd_rn(sum, gradients[share * count + place]);
    }
    total[place] = sum;
}

// A step against the gradient.
extern "C" __global__ void descend(unsigned count, float rate, const float* gradients, float* parameters)
{
    unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < count) {
        parameters[place] = __fsub_rn(parameters[place], __fmul_rn(rate, gradients[place]));
    }
}
