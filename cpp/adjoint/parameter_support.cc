#include "adjoint/parameter_support.h"

#include <algorithm>

#include "adjoint/curve.h"
#include "second_order/support.h"
#include "sensor/sensor.h"

namespace mujacobian {
namespace {

// Adds the element that `check` throws, unless the list has it.
template <class F>
void collect(std::vector<Unsupported>& all, F check) {
  try {
    check();
  } catch (const Unsupported& found) {
    for (const Unsupported& known : all) {
      if (known.element == found.element && known.reason == found.reason) return;
    }
    all.push_back(found);
  }
}

}  // namespace

std::vector<Unsupported> list_parameters(const ModelView& m, const ParameterList& params,
                                         int order) {
  if (params.count == 0) return {};
  std::vector<Unsupported> all;
  if (order > 1) all = list_parameter_options(m);
  for (int k = 0; k < params.count; k++) {
    const ParameterList one{params.item + k, 1};
    collect(all, [&] { require_parameters(m, one); });
    if (order > 1) collect(all, [&] { require_curved(m, one, nullptr); });
  }
  for (int i = 0; i < m.nsensor; i++) {
    if (sensor_refusal(m, i)) continue;
    std::vector<double> weights(m.nsensordata);
    std::fill_n(weights.begin() + m.sensor_adr[i], m.sensor_dim[i], 1);
    for (int k = 0; k < params.count; k++) {
      const ParameterList one{params.item + k, 1};
      collect(all, [&] { sensors_depend(m, one, weights.data()); });
      if (order > 1) collect(all, [&] { require_curved(m, one, weights.data()); });
    }
  }
  return all;
}

}  // namespace mujacobian
