#include "step/kept_step.h"

#include <algorithm>

#include "contact/collider.h"
#include "layout/enums.h"
#include "sensor/sensor.h"

namespace mujacobian {
namespace {

// Whether MuJoCo reads controls from a history, which is that of the current data.
bool has_delays(const ModelView& m) {
  return std::any_of(m.actuator_delay, m.actuator_delay + m.nactuator,
                     [](double delay) { return delay != 0; });
}

}  // namespace

void KeptStep::transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena) {
  clear();
  const bool calls = (out.C || out.D || out.Df) && calls_engine(m, out.sensors);
  if (calls || !is_possible(m, d)) return mujacobian::transition(m, d, out, arena);
  memory_.reset();
  d_ = copy_arrays(m, d, memory_);
  has_forces_ = out.Bf || out.Df;
  s_ = differentiate_step(m, d_, has_forces_, needs_acceleration(m, out), memory_);
  write_transition(m, d_, s_, out, arena);
  is_kept_ = true;
}

void KeptStep::differentiate(const ModelView& m, const DataView& d, bool forces) {
  clear();
  if (!is_possible(m, d)) return;
  memory_.reset();
  d_ = copy_arrays(m, d, memory_);
  has_forces_ = forces;
  s_ = differentiate_step(m, d_, forces, false, memory_);
  is_kept_ = true;
}

bool KeptStep::is_possible(const ModelView& m, const DataView& d) const {
  return m.opt.integrator != integrator::kRK4 && !has_inexact_contacts(m, d) && !has_delays(m);
}

}  // namespace mujacobian
