#include <cmath>

#include "adjoint/column.h"
#include "layout/enums.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// Returns the trees whose bias force is in the integrator's matrix, null if there are none.
TreeBlock* const* bias_blocks(const StepDifferential& s) {
  return s.forward.metric.block ? s.forward.metric.block : s.step.block;
}

bool any_block(const ModelView& m, const StepDifferential& s) {
  TreeBlock* const* blocks = bias_blocks(s);
  for (int t = 0; blocks && t < m.ntree; t++) {
    if (blocks[t]) return true;
  }
  return false;
}

}  // namespace

Passes make_passes(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena) {
  Passes passes{};
  passes.early = {d, sweep_motion(m, d, s.at, base_acceleration(m), arena), -1};

  // M enters after d(acc) with a - w                                                       (PAR-2)
  const DataView resting = at_rest(m, d, arena);
  passes.late[passes.late_count++] = {resting, sweep_motion(m, resting, s.lag, {0, 0, 0}, arena),
                                      -1};

  // so does h (dc/dv) w if the bias c is in the integrator's matrix, by the bilinear identity
  // (PAR-3)
  if (!any_block(m, s)) return passes;
  double speed = 0, size = 0;
  for (int i = 0; i < m.nv; i++) {
    speed = std::fmax(speed, std::abs(d.qvel[i]));
    size = std::fmax(size, std::abs(s.step.w[i]));
  }
  if (size == 0) return passes;
  const double scale = (speed > 0 ? speed : 1) / size;
  for (double sign : {1.0, -1.0}) {
    double* velocity = arena.take<double>(m.nv);
    for (int i = 0; i < m.nv; i++) velocity[i] = d.qvel[i] + sign * scale * s.step.w[i];
    const DataView moving = at_velocity(m, d, velocity, arena);
    passes.late[passes.late_count++] = {moving, sweep_motion(m, moving, nullptr, {0, 0, 0}, arena),
                                        -sign * m.opt.timestep / (2 * scale)};
  }
  return passes;
}

bool in_block(const ModelView& m, const StepDifferential& s, int body) {
  const int dof = last_dof(m, body);
  TreeBlock* const* blocks = bias_blocks(s);
  return blocks && dof >= 0 && blocks[m.dof_treeid[dof]];
}

}  // namespace mujacobian
