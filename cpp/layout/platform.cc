// This file is compiled for all processors of an architecture, because `has_avx2` runs on them.
#include "layout/platform.h"

#ifdef _WIN32
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <time.h>
#endif

namespace mujacobian {

long long processor_time() {
#ifdef _WIN32
  FILETIME created, ended, kernel, user;  // in units of 100 ns
  GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user);
  auto count = [](FILETIME t) {
    return static_cast<long long>(t.dwHighDateTime) << 32 | t.dwLowDateTime;
  };
  return 100 * (count(kernel) + count(user));
#else
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1000000000LL * now.tv_sec + now.tv_nsec;
#endif
}

bool has_avx2() {
#if defined(_WIN32)
  return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE);
#elif defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace mujacobian
