// Functions that depend on the compiler or the operating system.
#pragma once

namespace mujacobian {

// Returns the processor time of the calling thread in nanoseconds.
long long processor_time();

// Returns whether the processor and the operating system support AVX2 and FMA.
bool has_avx2();

}  // namespace mujacobian
