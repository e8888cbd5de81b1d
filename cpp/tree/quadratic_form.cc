#include "tree/quadratic_form.h"

#include "linear/lanes.h"

namespace mujacobian {

QuadraticForm make_quadratic_form(const ModelView& m, const DofRows& residual, Arena& arena) {
  double** half = arena.take<double*>(residual.count);
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const std::size_t rows = round_to_lanes(part.end_column());
    half[c] = arena.zeros<double>(rows * part.stride);
  }
  return {residual, half, make_like(m, residual, arena).row};
}

}  // namespace mujacobian
