#include "adjoint/parameter_support.h"

#include <algorithm>

#include "adjoint/curve.h"
#include "layout/engine.h"
#include "layout/enums.h"
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

// Calls report(element, reason) for what prevents second derivatives with respect to numbers of
// contacts where it acts.
template <class F>
void visit_surfaces(const ModelView& m, F report) {
  if (m.opt.disableflags & disable::kConstraint) return;
  constexpr const char* kReason =
      "second derivatives with respect to numbers of its contacts are not supported";
  for (int g = 0; m.flg_surfacevel && g < m.ngeom; g++) {
    const double* v = m.geom_surfacevel + 6 * g;
    const bool moves = std::any_of(v, v + 6, [](double x) { return x != 0; });
    if (moves) report(element_name(m, object::kGeom, g), kReason);
  }
  if (m.flg_adhesion) report("an adhesive geom", kReason);
}

}  // namespace

std::vector<Unsupported> list_parameters(const ModelView& m, const ParameterList& params,
                                         int order) {
  if (params.count == 0) return {};
  std::vector<Unsupported> all;
  if (order > 1) all = list_parameter_options(m);
  const bool contacts =
      std::any_of(params.item, params.item + params.count,
                  [](const Parameter& p) { return family_of(p) == Family::kContact; });
  if (order > 1 && contacts) {
    visit_surfaces(m, [&](const std::string& element, const char* reason) {
      all.emplace_back(element, reason);
    });
  }
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
