#include "step/activation.h"

namespace mujacobian {

void write_activations(const ModelView& m, const DataView& d, const Actuation& actuation,
                       const Outputs& out, Arena& arena) {
  const std::size_t nx = state_size(m);
  for (int i = 0; i < m.na; i++) {
    double* state = out.A ? out.A + (2 * m.nv + i) * nx : nullptr;
    double* ctrl = out.B ? out.B + (2 * m.nv + i) * m.nu : nullptr;
    visit_activation(
        m, d, actuation, i, arena,
        [=](int column, double value) {
          if (state) state[column] = value;
        },
        [=](int column, double value) {
          if (ctrl) ctrl[column] = value;
        });
  }
}

}  // namespace mujacobian
