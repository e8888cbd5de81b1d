// Linear combinations of rows whose padding to whole lanes is zero.
#pragma once

#include "linear/lanes.h"

namespace mujacobian {

// out = (add ? out : 0) + sum_r scale c_r x_r over the first `width` columns, rounded up to whole
// lanes. The rows x_r have length `stride`, and c_r is at c[r * step].
template <bool add>
inline void combine_rows(double* out, const double* c, int step, double scale, const double* x,
                         int count, int stride, int width) {
  for (int k = 0; k < width; k += kLanes) {
    Lanes sum = add ? load_lanes(out + k) : Lanes{};
    for (int r = 0; r < count; r++) {
      sum += broadcast(scale * c[r * step]) * load_lanes(x + r * stride + k);
    }
    store_lanes(out + k, sum);
  }
}

template <bool add>
inline void combine_rows(double* out, const double* c, int step, double scale, const double* x,
                         int count, int stride) {
  combine_rows<add>(out, c, step, scale, x, count, stride, stride);
}

}  // namespace mujacobian
